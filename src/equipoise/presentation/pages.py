"""Pages of results: which function renders each kind of result as a self-contained HTML page, and file names on it.

The renderers are named, not imported: they stand among the doors, and are loaded when the first page is written.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from equipoise.data.records import Records

RENDERERS_MODULE = "equipoise.doors.report"
PAGES: dict[str, str | Callable[..., str]] = {
    "Assessment": "render_assessment",
    "Attack": "render_attack",
    "Published": "render_publish",
    "Refused": "render_refused",
    "Report": "render",
    "Tabulated": "render_table",
}
"""From the class of a result to the function that renders it, or its name there."""


def page(result: object, *words: str, **options: Any) -> str:
    """The page of a result; `words` and `options` are those of its renderer."""
    renderer = PAGES[type(result).__name__]
    render = getattr(import_module(RENDERERS_MODULE), renderer) if isinstance(renderer, str) else renderer
    return str(render(result, *words, **options))


def source_name(records: Records, otherwise: str) -> str:
    """A file by its name, a release by that of its folder."""
    if not records.source:
        return otherwise
    path = Path(records.source.path).resolve()
    return path.parent.parent.name if (path.parent / "evidence.json").is_file() else path.name
