"""Single pages: never over an existing one unasked, written whole or not at all."""

import secrets
from pathlib import Path

from equipoise.ground import system
from equipoise.ground.errors import DataError


def refuse_page(place: Path, overwrite: bool, what: str = "page", like: str = "report.html") -> None:
    if place.is_dir():
        raise DataError(f"{str(place)!r} is a folder: name the {what} to write, such as {like}.")
    if place.exists() and not overwrite:
        raise DataError(f"The file {str(place)!r} exists already: name another, or ask to overwrite it.")


def refuse_inside(place: Path, folder: Path) -> None:
    """A page in a folder that may not come to be would make it."""
    if folder.resolve() in place.resolve().parents:
        raise DataError(f"The page {str(place)!r} would stand in the release folder: put it beside that.")


def put(place: Path, page: str) -> None:
    """Written whole or not at all, for its owner only."""
    place.parent.mkdir(parents=True, exist_ok=True)
    stage = place.with_name(f".{place.name}.{secrets.token_hex(4)}.partial")
    try:
        system.write(stage, page, private=True)
        system.move(stage, place)
    except BaseException:
        stage.unlink(missing_ok=True)
        raise
