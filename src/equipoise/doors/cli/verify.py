"""The verb `verify`: check that a release is what it claims to be."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

import equipoise as eq
from equipoise.doors.cli import json_answers
from equipoise.doors.cli import shared_options as o
from equipoise.doors.cli.exit_codes import one_line
from equipoise.doors.cli.progress_bar import bar
from equipoise.doors.cli.screen_parts import indented, say, screen, title
from equipoise.provenance.findings import Verification

ORIGINAL = "The original file, when not as private/policy.toml says."
CANARY = "A text that may be in no public file beside the data; repeat for more."
MARKS = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("–", "dim")}
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
