"""What a register file must hold: a file that was edited by hand is refused before anything is made of it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

from equipoise.ground.argument_types import fits
from equipoise.ground.errors import ParameterError

BOOK = {"key": str, "assets": dict[str, Any], "releases": list[Any], "tables": dict[str, list[Any]]}
REQUIRED = {"asset": str, "made": str, "people": str, "bases": dict[str, list[str]], "kind": str, "records": int}
MAX_RECORDS = 1 << 48
OF_RECORDS = ("keys", "title")
"""What an entry of released records has beside."""
OPTIONAL = {
    "title": str,
    "keys": list[str],
    "masks": list[str],
    "columns": list[str],
    "changed": list[str],
    "seed": str | int | None,
}


def refuse_edited(book: Mapping[str, Any], path: str) -> None:
    """Refuse a register whose parts are not what releases leave there; the release at fault is named by its number."""
    for name, kind in BOOK.items():
        if name in book and not fits(book[name], kind):
            raise ParameterError(f"The register {path!r} was edited: {name!r} is not what it should be.")
    if not all(c in "0123456789abcdef" for c in book["key"]) or not book["key"] or len(book["key"]) % 2:
        raise ParameterError(f"The register {path!r} was edited: its key is none.")
    for number, entry in enumerate(book.get("releases", ()), 1):
        if wrong := _wrong(entry):
            raise ParameterError(
                f"The register {path!r} was edited: {wrong!r} of release {number} is not what it should be. "
                "Restore the file."
            )


def _wrong(entry: Any) -> str:
    """The first part of an entry that does not fit; nothing where all do."""
    if not isinstance(entry, dict):
        return "the entry"
    kinds = OF_RECORDS if entry.get("kind") == "records" else ()
    parts = {**REQUIRED, **{name: kind for name, kind in OPTIONAL.items() if name in entry or name in kinds}}
    wrong = [name for name, kind in parts.items() if name not in entry or not fits(entry[name], kind)]
    if not wrong and not 0 <= entry["records"] <= MAX_RECORDS:
        return "records"
    if not wrong:
        try:
            datetime.fromisoformat(entry["made"])
        except ValueError:
            return "made"
    return wrong[0] if wrong else ""


def no_number(text: str) -> NoReturn:
    """Refuse NaN and infinities, which JSON does not have."""
    raise ValueError(text)
