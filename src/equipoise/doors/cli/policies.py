"""The verbs `init`, `check` and `presets`: write a first policy, explain a policy, list the policies of agencies."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

import equipoise as eq
from equipoise.doors.cli import json_answers, screen_parts, screens
from equipoise.doors.cli import shared_options as o
from equipoise.doors.cli.declared_options import declared
from equipoise.doors.cli.exit_codes import one_line
from equipoise.doors.cli.progress_bar import bar
from equipoise.ground.errors import DataError
from equipoise.ground.system import shell_word
from equipoise.ground.whole_files import write_whole
from equipoise.policies import schema_text
from equipoise.policies.explain import Explained
from equipoise.policies.presets import preset_named, presets, slots_of

SCHEMA_WORDS = "Write the JSON schema of policies to this file, for editors; - for the screen."
HEADINGS = {
    "data": "What is read",
    "scenarios": "Who may attack it",
    "estimates": "What users compute",
    "limits": "What must hold",
    "candidates": "What is tried",
    "work": "How much work it is",
    "choice": "What is chosen",
}


@declared(None, o.FORMAT)
def init(
    file: Annotated[Path, o.argument("FILE", "The data to look at.")],
    out: Annotated[Path, typer.Option(help="The policy file to write.", metavar="POLICY.toml")] = Path("policy.toml"),
    preset: Annotated[str | None, o.option("Limits and methods of an agency: equipoise presets.", "NAME")] = None,
    overwrite: o.Overwrite = False,
    as_json: o.AsJson = False,
    **options: Any,
) -> None:
    """Write a first policy by looking at the data, commented in plain words; nothing is done until you run it."""
    with bar("looking at the data"):
        eq.init(file, out, preset=preset, overwrite=overwrite, **options)
    if as_json:
        json_answers.show({"file": str(file), "policy": str(out), "preset": preset})
        return
    screen, name = screen_parts.screen(), shell_word(out)
    screen_parts.say(screen, "Written", f"{one_line(str(out))}, a proposal: read every line.")
    screens.steps(("See what it means", f"equipoise check {name}"), ("Run it", f"equipoise balance {name}"))


def check(
    policy: Annotated[Path | None, o.argument("POLICY.toml", "The policy to explain.")] = None,
    schema: Annotated[Path | None, o.option(SCHEMA_WORDS, "FILE")] = None,
    as_json: o.AsJson = False,
) -> None:
    """Say in plain words what a policy means, or list everything that is wrong with it, each with its line."""
    if policy is None and schema is None:
        raise DataError("Name the policy to check, or --schema FILE.")
    with bar("looking at the data"):
        explanation = eq.check(policy) if policy is not None else None
    if schema is not None:
        _write_schema(schema)
    if policy is None or explanation is None:
        return
    if as_json:
        json_answers.show({"policy": str(policy), **explanation.to_plain()})
    else:
        _screen(policy, explanation)


def _write_schema(place: Path) -> None:
    if place.exists() and place.suffix != ".json":
        raise DataError(f"{str(place)!r} exists already and is no .json file: name another for the schema.")
    if str(place) == "-":
        print(schema_text(), end="")
    else:
        write_whole(place, schema_text(), private=False, goal=True)


def _screen(policy: Path, explanation: Explained) -> None:
    out = screen_parts.screen()
    many = f"{explanation.recipes:,} recipe{'s' if explanation.recipes != 1 else ''}"
    screen_parts.say(out, one_line(policy.name), f"can be used; {many}.")
    for heading, lines in explanation.parts.items():
        screen_parts.listed(out, HEADINGS[heading], (screen_parts.flat(line) for line in lines))
    if explanation.warnings:
        screen_parts.listed(out, "What is doubtful", (screen_parts.flat(line) for line in explanation.warnings))
    screens.steps(("Run it", f"equipoise balance {shell_word(policy)}"))


def show_presets(
    name: Annotated[str | None, o.argument("NAME", "One of them.")] = None,
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
    out = screen_parts.screen()
    for preset in chosen:
        out.print(Text.assemble((preset.name, "bold"), f" ({preset.about}): {preset.words}"))
        out.print(screen_parts.indented(Text(f"{preset.source}. It says: {preset.says}.", "dim")))
    screens.steps(("See one", "equipoise presets ema"), ("Begin with one", "equipoise init FILE --preset ema"))
