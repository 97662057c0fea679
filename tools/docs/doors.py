"""Pages about the ways in: the command line from its own help, the file formats from their list."""

import inspect
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import docstrings
import polars as pl

from equipoise.data.labels import Column, Labels
from equipoise.doors.cli.command import command
from equipoise.files import FORMATS, KNOWN, read, save
from equipoise.files.column_types import STORABLE
from equipoise.files.format import Format

CODES = (
    (0, "done"),
    (1, "refused by policy: the release does not meet the limits, and nothing was written"),
    (2, "bad input: a file, role, parameter or policy is not as it must be; one sentence on stderr says which"),
    (3, "internal error, or an optional package is missing; the sentence names what to install"),
    (130, "interrupted; nothing half done is left behind"),
)
LABELLED = Labels({"sex": Column("Sex", ((1, "man"), (2, "woman")))})
"""What is written into a file of each format, to see what comes back."""


def pages() -> dict[str, str]:
    """Every page about a door, by its path."""
    return {"reference/command-line.md": _command_line(), "reference/formats.md": _formats()}


def _command_line() -> str:
    verbs = command().commands
    rows = [f"| [`equipoise {name}`](#{name}) | {_text(_said(verb)[0])} |" for name, verb in verbs.items()]
    codes = [f"| {code} | {text} |" for code, text in CODES]
    parts = [
        "# Command line",
        "Each verb is the Python function of the same name. `equipoise VERB --help` says the same as this page.",
        "\n".join(["| verb | what it does |", "|---|---|", *rows]),
        "## Exit codes",
        "\n".join(["| code | meaning |", "|---:|---|", *codes]),
        'With `--json` stdout holds one JSON object, also when a command fails: `{"error": ..., "exit_code": ...}`.',
    ]
    return "\n\n".join([*parts, *(_verb(name, verb) for name, verb in verbs.items())]) + "\n"


def _said(verb: Any) -> list[str]:
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", inspect.cleandoc(verb.help or ""))]


def _verb(name: str, verb: Any) -> str:
    parts = [f"## {name} {{ #{name} }}"]
    takes = [
        p.human_readable_name.upper() if p.metavar is None else p.metavar
        for p in verb.params
        if not p.opts[0].startswith("-")
    ]
    parts.append(f"```text\nequipoise {' '.join([name, *takes, '[OPTIONS]'])}\n```")
    parts += [f"```text\n{part}\n```" if part.startswith("equipoise ") else _text(part) for part in _said(verb)]
    panels: dict[str, list[str]] = {}
    for param in verb.params:
        if param.name in ("help", "ctx"):
            continue
        panel = getattr(param, "rich_help_panel", None) or "Arguments and options"
        panels.setdefault(panel, []).append(_row(param))
    for panel, rows in panels.items():
        parts += [f"**{panel}**", "\n".join(["| option | what it says |", "|---|---|", *rows])]
    return "\n\n".join(parts)


def _row(param: Any) -> str:
    option, flag = param.opts[0].startswith("-"), getattr(param, "is_flag", False)
    takes = "" if flag or not option else f" {(param.metavar or 'NUMBER').strip()}"
    names = (
        ", ".join(f"`{name}{takes}`" for name in param.opts) if option else f"`{param.metavar or param.name.upper()}`"
    )
    shown = [] if flag or param.default in (None, (), []) else [f"Default: `{param.default}`."]
    needed = ["Required."] if param.required and option else []
    return f"| {names} | {' '.join([_text(' '.join((param.help or '').split())), *needed, *shown])} |"


def _formats() -> str:
    rows = [_format(name, one) for name, one in KNOWN.items()]
    head = [
        "| format | files end in | written | labels kept of | missing codes | options | extra |",
        "|---|---|---|---|---|---|---|",
    ]
    modules = dict.fromkeys(inspect.getmodule(one.load) for one in KNOWN.values())
    notes = [docstrings.page_part(inspect.getdoc(module) or "", lambda name: None) for module in modules]
    parts = [
        "# File formats",
        "The ending of a file says its format. A release is written in the format that came in, unless `--format` or "
        "`[output] format` say otherwise; formats that can only be read become the one named here.",
        "\n".join([*head, *rows]),
        "## Column types",
        "A column that a format cannot hold is refused with its name and type, before anything is written. A tick "
        "means that the type comes back as it went; a name is the type that the same values come back as. A column "
        "without any value has no type in text, spreadsheet and statistical formats.",
        _types(),
        _precision(),
        "## What each keeps",
        *notes,
    ]
    return "\n\n".join(parts) + "\n"


def _types() -> str:
    """What becomes of every kind of column in every format that is written."""
    head = ["| type |" + "".join(f" `{name}` |" for name in FORMATS), "|---|" + "---|" * len(FORMATS)]
    rows = [f"| `{kind}` |" + "".join(f" {_fate(kind, one)} |" for one in FORMATS.values()) for kind in STORABLE]
    return "\n".join([*head, *rows])


def _fate(kind: str, one: Format) -> str:
    stored = one.types.get(kind)
    return "refused" if stored is None else "✓" if stored == kind else f"`{stored}`"


def _precision() -> str:
    """What is said of numbers and times that a format cannot hold in full."""
    times = [f"`{name}` to {one.resolution}" for name, one in FORMATS.items() if one.resolution != "1ns"]
    whole = [f"`{name}` {one.largest_integer:,}" for name, one in FORMATS.items() if one.largest_integer]
    return (
        f"Times are kept in {', '.join(times)}; elsewhere in full. Larger whole numbers than these are refused, not "
        f"rounded: {', '.join(whole)}."
    )


def _format(name: str, one: Format) -> str:
    written = "yes" if one.save else f"becomes `{one.becomes or 'parquet'}`"
    endings, options = (", ".join(f"`{part}`" for part in found) for found in (one.suffixes, one.options))
    labels, codes = _labels_kept(name) if one.save else "see below", "yes" if one.codes else "no"
    extra = f"`{one.extra}`" if one.extra else ""
    return f"| `{name}` | {endings} | {written} | {labels} | {codes} | {options} | {extra} |"


def _labels_kept(name: str) -> str:
    """Which labels a file of the format gives back."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"data.{name}"
        save(pl.LazyFrame({"sex": [1, 2]}), path, name, LABELLED)
        told = read(path).labels.of("sex")
    kept = [word for word, there in (("variables", told.label), ("values", told.values)) if there]
    return " and ".join(kept) or "no"


def _text(text: str) -> str:
    """Help as Markdown: options as code; an escaped bracket of rich is a bracket."""
    coded = re.sub(r"(?<![\w`-])(--[a-z][\w-]*)", r"`\1`{ .option }", text.replace("\\[", "["))
    return docstrings.prose(coded, lambda name: None)
