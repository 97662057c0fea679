"""Files and folders written whole or not at all, never over an existing one unasked."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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


def write_whole(place: Path, page: str) -> None:
    """Written whole or not at all, for its owner only."""
    place.parent.mkdir(parents=True, exist_ok=True)
    stage = place.with_name(f".{place.name}.{secrets.token_hex(4)}.partial")
    try:
        system.write(stage, page, private=True)
        system.move(stage, place)
    except BaseException:
        stage.unlink(missing_ok=True)
        raise


@contextmanager
def staged(
    folder: Path, overwrite: bool, *, refuse: Callable[[Path, bool], None], private: bool = False
) -> Iterator[Path]:
    """A folder beside the target that takes its place only when everything in it is written.

    `refuse` says whether the target may be replaced; a `private` one is for its owner only. Whenever it is killed, what
    is called .partial may be in pieces, and what is called .old is whole.
    """
    fresh = [parent for parent in folder.parents if not parent.exists()]
    folder.parent.mkdir(parents=True, exist_ok=True)
    stage = folder.parent / f".{folder.name}.{secrets.token_hex(4)}.partial"
    system.make_folder(stage, private=True)
    old = stage.with_suffix(".old")
    try:
        yield stage
        refuse(folder, overwrite)
        if folder.exists():
            system.move(folder, old)
        system.move(stage, folder)
    except BaseException:
        if old.exists() and not folder.exists():
            system.move(old, folder)
        system.remove_folder(stage)
        for parent in fresh:
            with suppress(OSError):
                parent.rmdir()
        raise
    system.restrict(folder, private=private)
    if old.exists():
        system.restrict(old)
        system.move(old, stage)
    system.remove_folder(stage)
