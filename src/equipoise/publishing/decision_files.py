"""A decision to publish or suppress as files: the table, the same as JSON, and the page. All are internal."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.files import CsvFormulas, table_csv
from equipoise.ground.errors import DataError
from equipoise.ground.whole_files import refuse_page, staged, write_whole
from equipoise.presentation.pages import page

if TYPE_CHECKING:
    from equipoise.publishing.publish import Published

DECISION_FILES = ("decision.csv", "decision.json", "report.html")
FILE_OF_SUFFIX = {".csv": DECISION_FILES[0], ".json": DECISION_FILES[1], ".html": DECISION_FILES[2]}
"""A single file by its ending; anything else is a folder for the three."""


def refuse(place: Path, overwrite: bool, reads: Iterable[object] = ()) -> None:
    """Refuse to overwrite anything but a decision, and that only when asked to."""
    if place.suffix.lower() in FILE_OF_SUFFIX:
        refuse_page(place, overwrite, reads=reads)
    elif place.exists() or place.is_symlink():
        _refuse_folder(place, overwrite)


def _refuse_folder(folder: Path, overwrite: bool) -> None:
    if not folder.is_dir():
        raise DataError(f"{str(folder)!r} is a file: name a folder, or a file that ends in .csv, .json or .html.")
    names = {file.name for file in folder.iterdir()}
    if names and not overwrite:
        raise DataError(f"The folder {str(folder)!r} exists already: name another, or ask to overwrite it.")
    if names - set(DECISION_FILES):
        raise DataError(f"The folder {str(folder)!r} holds other files than a decision: it is not overwritten.")


def write(
    decision: "Published", place: Path, overwrite: bool, source: str, formulas: CsvFormulas = "escape"
) -> tuple[Path, ...]:
    """Write the folder or the file whole or not at all, for its owner only; give what was written."""
    if name := FILE_OF_SUFFIX.get(place.suffix.lower()):
        write_whole(place, _text(decision, name, source, formulas), goal=True)
        return (place,)
    with staged(place, overwrite, refuse=refuse, private=True) as stage:
        for name in DECISION_FILES:
            write_whole(stage / name, _text(decision, name, source, formulas))
    return tuple(place / name for name in DECISION_FILES)


def _text(decision: "Published", name: str, source: str, formulas: CsvFormulas) -> str:
    if name == DECISION_FILES[0]:
        return table_csv(decision.cells, formulas)
    if name == DECISION_FILES[1]:
        plain: dict[str, Any] = {"file": source, **decision.to_plain(values=True)}
        return json.dumps(plain, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    return page(decision, source)
