"""tau-ARGUS batch files (.arb): the job of each table they specify, as the command that does it here."""

import re
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

from equipoise.ground.errors import DataError
from equipoise.ground.system import shell_word

LINE = re.compile(r"<([A-Z]+)>\s*(.*)")
RULES = {"P": "p-percent:{0}%,{1}", "NK": "dominance:{0},{1}%", "FREQ": "min-count:{0},{1}%", "MAN": "marked"}
"""Safety rules and what they are here, with their numbers in order; ZERO is `zero`, REQ `request`."""
DEFAULTS = {"P": (10, 1), "NK": (1, 75), "FREQ": (3, 20)}
OTHERS = {"ZERO": "zero", "REQ": "request"}


@dataclass(frozen=True)
class BatchTable:
    """A table of a batch file: its columns, the value, and the rule in our words."""

    by: tuple[str, ...]
    value: str
    rule: str = ""


def batch_commands(path: str | Path) -> list[str]:
    """The commands that do the job of a tau-ARGUS batch file, one for each table; recodes are not among them."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise DataError(f"Cannot open {str(path)!r}: {(error.strerror or 'it is out of reach').lower()}.") from None
    files: dict[str, str] = {}
    tables: list[BatchTable] = []
    for tag, words in (match.groups() for line in lines if (match := LINE.match(line.strip()))):
        if tag in ("OPENMICRODATA", "OPENTABLEDATA", "OPENMETADATA", "APRIORI"):
            files[tag] = PureWindowsPath(words.split('"')[1] if '"' in words else words).name
        if tag == "SPECIFYTABLE":
            tables.append(_table(words))
        if tag == "SAFETYRULE" and tables:
            tables[-1] = BatchTable(tables[-1].by, tables[-1].value, _rule(words))
    if not tables or not {"OPENMICRODATA", "OPENTABLEDATA"} & files.keys():
        raise DataError(f"{str(path)!r} names no data or no table: it is not a batch file of tau-ARGUS.")
    return [_command(files, table, place) for place, table in enumerate(tables, start=1)]


def _table(words: str) -> BatchTable:
    columns, value = ([*words.split("|"), ""])[:2]
    response = value.strip().strip('"')
    return BatchTable(tuple(re.findall(r'"([^"]+)"', columns)), "" if response == "<freq>" else response)


def _rule(words: str) -> str:
    """The parts of a safety rule; those with only zeros are switched off."""
    parts = []
    for name, text in re.findall(r"([A-Z]+)\(([^)]*)\)", words):
        numbers = [number.strip() for number in text.split(",") if number.strip()]
        if not any(number.strip("0.") for number in numbers) or not {name} & {*RULES, *OTHERS}:
            continue
        defaults = [str(number) for number in DEFAULTS.get(name, ())]
        parts.append(OTHERS.get(name) or RULES[name].format(*numbers[:2], *defaults[len(numbers[:2]) :]))
    return " | ".join(parts)


def _command(files: dict[str, str], table: BatchTable, place: int) -> str:
    kind = "OPENTABLEDATA" if "OPENTABLEDATA" in files else "OPENMICRODATA"
    options = [files[kind], *(["--ready"] if kind == "OPENTABLEDATA" else []), "--by", ",".join(table.by)]
    options += ["--metadata", files["OPENMETADATA"]] if "OPENMETADATA" in files else []
    options += ["--value", table.value] if table.value else []
    options += ["--rule", table.rule] if table.rule else []
    options += ["--apriori", files["APRIORI"]] if "APRIORI" in files else []
    return " ".join(map(shell_word, ("equipoise", "table", *options, "--out", f"table-{place}")))
