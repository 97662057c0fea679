"""The verb `register`: list the releases that a register knows."""

from pathlib import Path
from typing import Annotated

from equipoise.doors.cli import json_answers, screen_parts
from equipoise.doors.cli import shared_options as o
from equipoise.ground.errors import DataError
from equipoise.provenance.seed_register import Entry, Register

FACTS = ("kind", "title", "made", "records", "keys", "columns", "masks", "changed")
"""What is shown of a release: neither seeds nor tokens."""
FORGET = "Drop the release with this number from the register, because it was never handed out to anybody."


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
    out = screen_parts.screen()
    screen_parts.say(out, "Register", f"{file}, {len(entries)} {'release' if len(entries) == 1 else 'releases'}")
    for data in dict.fromkeys(entry["asset"] for entry in entries.values()):
        lines = [f"{n}  {_line(entry)}" for n, entry in entries.items() if entry["asset"] == data]
        screen_parts.listed(out, "Releases of the same people", lines)


def _line(entry: Entry) -> str:
    masks = "; ".join(entry["masks"]) or "no mask"
    time = entry["made"][:16].replace("T", " ")
    return (
        f"{time}  {entry['kind']} {entry['title']}: {entry['records']:,} records by {', '.join(entry['keys'])}; {masks}"
    )
