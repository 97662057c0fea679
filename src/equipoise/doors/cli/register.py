"""The verb `register`: list the releases that a register knows."""

from pathlib import Path
from typing import Annotated

from equipoise.doors.cli import json_answers, screen_parts
from equipoise.doors.cli import shared_options as o
from equipoise.ground.errors import DataError
from equipoise.provenance.seed_register import Entry, Register

FACTS = ("kind", "title", "made", "records", "keys", "columns", "masks", "changed")
"""What is shown of a release: neither seeds nor tokens."""


def show_register(
    file: Annotated[Path, o.argument("REGISTER", "The private file that --register names.")],
    asset: Annotated[str | None, o.option("Only the releases of the data of this name.", "NAME")] = None,
    as_json: o.AsJson = False,
) -> None:
    """List the releases of a register: when each was made, of how many records, by which keys and masks."""
    if not file.is_file():
        raise DataError(f"No file at {str(file)!r}.")
    entries = Register(file).releases(asset)
    if as_json:
        facts = [{name: entry[name] for name in FACTS if name in entry} for entry in entries]
        json_answers.show({"register": str(file), "asset": asset, "releases": facts})
        return
    out = screen_parts.screen()
    screen_parts.say(out, "Register", f"{file}, {len(entries)} {'release' if len(entries) == 1 else 'releases'}")
    for data in dict.fromkeys(entry["asset"] for entry in entries):
        screen_parts.listed(out, "Releases of the same people", [_line(e) for e in entries if e["asset"] == data])


def _line(entry: Entry) -> str:
    masks = "; ".join(entry["masks"]) or "no mask"
    made = entry["made"][:16].replace("T", " ")
    return (
        f"{made}  {entry['kind']} {entry['title']}: {entry['records']:,} records by {', '.join(entry['keys'])}; {masks}"
    )
