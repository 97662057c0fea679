"""The verbs `init`, `check` and `presets`: write a first policy, explain a policy, list the policies of agencies."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

import equipoise as eq
from equipoise.doors.cli import json_answers, screen_parts, screens
from equipoise.doors.cli import shared_options as o
from equipoise.doors.cli.exit_codes import one_line
from equipoise.doors.cli.progress_bar import bar
from equipoise.ground.errors import DataError
from equipoise.ground.system import shell_word
from equipoise.policies import schema_text
from equipoise.policies.explain import Explained
from equipoise.policies.presets import preset_named, presets, slots_of

HEADINGS = {
    "data": "What is read",
    "scenarios": "Who may attack it",
    "limits": "What must hold",
    "candidates": "What is tried",
    "work": "How much work it is",
    "choice": "What is chosen",
}


def init(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The data to look at.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The policy file to write.", metavar="POLICY.toml")] = Path("policy.toml"),
    preset: Annotated[
        str | None,
        typer.Option(help="Limits and methods of an agency: equipoise presets.", metavar="NAME", show_default=False),
    ] = None,
    overwrite: o.Overwrite = False,
    as_json: o.AsJson = False,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    decimal: o.Decimal = None,
    sheet: o.Sheet = None,
    metadata: o.Metadata = None,
) -> None:  # fmt: skip
    """Write a first policy by looking at the data, commented in plain words; nothing is done until you run it."""
    options = {name: ctx.params[name] for name in ("delimiter", "encoding", "decimal", "sheet", "metadata")}
    with bar("looking at the data"):
        eq.init(file, out, preset=preset, overwrite=overwrite, **options)
    if as_json:
        json_answers.show({"file": str(file), "policy": str(out), "preset": preset})
        return
    screen, name = screens.screen(), shell_word(out)
    screen_parts.say(screen, "Written", f"{one_line(str(out))}, a proposal: read every line.")
    steps = [("See what it means", f"equipoise check {name}"), ("Run it", f"equipoise balance {name}")]
    screens.steps("What to do next", steps)


def check(
    policy: Annotated[
        Path | None, typer.Argument(metavar="POLICY.toml", help="The policy to explain.", show_default=False)
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            help="Write the JSON schema of policies to this file, for editors; - for the screen.", metavar="FILE",
            show_default=False,
        ),
    ] = None,
    as_json: o.AsJson = False,
) -> None:  # fmt: skip
    """Say in plain words what a policy means, or list everything that is wrong with it, each with its line."""
    if schema is not None:
        _write_schema(schema)
    if policy is None:
        if schema is None:
            raise DataError("Name the policy to check, or --schema FILE.")
        return
    with bar("looking at the data"):
        explanation = eq.check(policy)
    if as_json:
        json_answers.show({"policy": str(policy), **explanation.to_plain()})
    else:
        _screen(policy, explanation)


def _write_schema(place: Path) -> None:
    if str(place) == "-":
        print(schema_text(), end="")
    else:
        place.write_text(schema_text(), encoding="utf-8", newline="\n")


def _screen(policy: Path, explanation: Explained) -> None:
    out = screens.screen()
    many = f"{explanation.recipes:,} recipe{'s' if explanation.recipes != 1 else ''}"
    screen_parts.say(out, one_line(policy.name), f"can be used; {many}.")
    for heading, lines in explanation.parts.items():
        screen_parts.listed(out, HEADINGS[heading], (screen_parts.flat(line) for line in lines))
    if explanation.warnings:
        screen_parts.listed(out, "What is doubtful", (screen_parts.flat(line) for line in explanation.warnings))
    screens.steps("What to do next", [("Run it", f"equipoise balance {shell_word(policy)}")])


def show_presets(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One of them.", show_default=False)] = None,
    as_json: o.AsJson = False,
) -> None:
    """List the policies of agencies with their sources, or show one; a policy uses one by extends = "NAME"."""
    chosen = [preset_named(name)] if name else list(presets().values())
    if as_json:
        rows = [{"name": p.name, "words": p.words, "source": p.source, "about": p.about} for p in chosen]
        texts = {"text": chosen[0].text, "slots": list(slots_of(chosen[0]))} if name else {}
        json_answers.show({"presets": rows, **texts})
        return
    if name:
        print(chosen[0].text, end="")
        return
    out = screens.screen()
    for preset in chosen:
        out.print(Text.assemble((preset.name, "bold"), f" ({preset.about}): {preset.words}"))
        out.print(screen_parts.indented(Text(preset.source, "dim")))
    steps = [("See one", "equipoise presets ema"), ("Begin with one", "equipoise init FILE --preset ema")]
    screens.steps("What to do next", steps)
