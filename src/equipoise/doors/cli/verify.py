"""The verbs `verify` and `register`: check that a release is what it claims to be, and list what was released."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

import equipoise as eq
from equipoise.doors.cli import json_answers
from equipoise.doors.cli import shared_options as o
from equipoise.doors.cli.exit_codes import one_line
from equipoise.doors.cli.progress_bar import bar
from equipoise.doors.cli.screen_parts import indented, listed, say, screen, title
from equipoise.ground.errors import DataError
from equipoise.provenance.findings import Verification
from equipoise.provenance.seed_register import Entry, Register

ORIGINAL = "The original file, when not as private/policy.toml says."
CANARY = "A text that may be in no public file beside the data; repeat for more."
MARKS = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("–", "dim")}
FACTS = ("kind", "title", "made", "records", "keys", "columns", "masks", "changed")
"""What is shown of a release: neither seeds nor tokens."""
FORGET = "Drop the release with this number from the register, because it was never handed out to anybody."
STYLES = {"verified": "bold green", "refused": "bold red", "unproven": "bold yellow"}


def verify(
    folder: Annotated[Path, o.argument("FOLDER", "A release folder, or its public part alone.")],
    original: Annotated[Path | None, o.option(ORIGINAL, "FILE")] = None,
    key: Annotated[Path | None, o.option("The public Ed25519 key that must have signed it.", "PUBLIC.pem")] = None,
    canary: Annotated[o.Names, o.option(CANARY, "TEXT")] = None,
    as_json: o.AsJson = False,
) -> None:
    """Check a release: hashes, signature, secrets, scores measured again, and the release made again.

    Ends with 0 when it is proven, 1 when it is refused or cannot be proven from what is here.
    """
    with bar("making the release again"):
        verification = eq.verify(folder, original=original, key=key, canaries=canary or ())
    if as_json:
        json_answers.show(verification.to_plain())
    else:
        _screen(verification)
    if not verification:
        raise typer.Exit(1)


def _screen(verification: Verification) -> None:
    out = screen()
    say(out, "Release", one_line(str(verification.folder)))
    title(out, "Checks")
    for check in verification.checks:
        mark, style = MARKS[check.holds]
        out.print(indented(Text.assemble((mark, style), " ", one_line(check.words))))
    out.print()
    out.print(Text(one_line(verification.words), STYLES[verification.outcome]), soft_wrap=True)


def show_register(
    file: Annotated[Path, o.argument("REGISTER", "The private file that --register names.")],
    asset: Annotated[str | None, o.option("Only the releases of the data of this name.", "NAME")] = None,
    forget: Annotated[int | None, o.option(FORGET, "NUMBER")] = None,
    as_json: o.AsJson = False,
) -> None:
    """List the releases of a register: when each was made, of how many records, by which keys and masks."""
    if not file.is_file():
        raise DataError(f"No file at {str(file)!r}.")
    if forget is not None:
        Register(file).forget(forget - 1)
    every = Register(file).releases()
    entries = {every.index(entry) + 1: entry for entry in Register(file).releases(asset)}
    if as_json:
        facts = [{"number": n} | {name: e[name] for name in FACTS if name in e} for n, e in entries.items()]
        json_answers.show({"register": str(file), "asset": asset, "releases": facts})
        return
    out = screen()
    say(out, "Register", f"{file}, {len(entries)} {'release' if len(entries) == 1 else 'releases'}")
    for data in dict.fromkeys(entry["asset"] for entry in entries.values()):
        lines = [f"{n}  {_line(entry)}" for n, entry in entries.items() if entry["asset"] == data]
        listed(out, "Releases of the same people", lines)


def _line(entry: Entry) -> str:
    masks, keys = "; ".join(entry.get("masks", ())) or "no mask", ", ".join(entry.get("keys", ()))
    time = entry["made"][:16].replace("T", " ")
    return f"{time}  {entry.get('kind')} {entry.get('title')}: {entry.get('records', 0):,} records by {keys}; {masks}"
