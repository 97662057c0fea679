"""Pages: how each kind of result becomes a self-contained HTML page, and what its file is called on it.

The reports among the doors enter here how they render; everything above writes pages without knowing how they look.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from equipoise.data.records import Records
from equipoise.ground.errors import EngineError

PAGES: dict[type, Callable[..., str]] = {}
"""From the class of a result to the function that renders it."""


def page(result: object, *words: str, **options: Any) -> str:
    """The page of a result; `words` and `options` are those of its renderer."""
    if type(result) not in PAGES:
        raise EngineError(f"No page is known for {type(result).__name__}: import equipoise.doors.report first.")
    return PAGES[type(result)](result, *words, **options)


def source_name(records: Records, otherwise: str) -> str:
    """A file by its name, a release by that of its folder."""
    if not records.source:
        return otherwise
    path = Path(records.source.path).resolve()
    return path.parent.parent.name if (path.parent / "evidence.json").is_file() else path.name
