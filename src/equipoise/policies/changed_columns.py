"""Columns that the masks of a policy change: those that a mask names, or goes by where it names none."""

from collections.abc import Iterator, Mapping
from typing import Any

from equipoise.data.records import Records
from equipoise.ground.errors import EquipoiseError
from equipoise.methods.method import name_of
from equipoise.recipe.catalogue import find

CHANGED_COLUMN_FIELDS = ("column", "columns")
"""Parameters that name columns which a mask changes."""
ROLES_CHANGED = {"renumber": ("household", "person"), "coarsen_weights": ("weight",)}
"""Roles that a mask goes by where it names no column."""
WHOLE_FILE_MASKS = ("synthesize", "matrix")
"""Masks that change every column they can, unless they name some."""


def changed_columns(mask: Mapping[str, Any], records: Records) -> frozenset[str]:
    """The columns beside the keys that a mask of a policy file changes in these records; all of its alternatives.

    >>> import equipoise as eq, polars as pl
    >>> records = eq.read(pl.DataFrame({"age": [1, 2], "rent": [31, 42], "w": [1.5, 2.0]}), eq.Roles("age", weight="w"))
    >>> sorted(changed_columns({"use": "noise", "columns": ["rent"], "scale": 0.1}, records))
    ['rent']
    >>> sorted(changed_columns({"use": "coarsen_weights"}, records))
    ['w']
    """
    columns = frozenset(
        c for field in (*CHANGED_COLUMN_FIELDS, "attribute") for c in _texts(mask.get(field)) if c in records.schema()
    )
    return columns or frozenset(_unnamed(mask, records))


def _unnamed(mask: Mapping[str, Any], records: Records) -> Iterator[str]:
    try:
        name = name_of(find(str(mask.get("use", "")), "mask"))
    except EquipoiseError:
        return
    yield from (c for role in ROLES_CHANGED.get(name, ()) if (c := getattr(records.roles, role)))
    yield from records.schema() if name in WHOLE_FILE_MASKS else ()


def _texts(value: Any) -> Iterator[str]:
    """The texts in a value, or in lists of alternatives."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        yield from (text for one in value for text in _texts(one))
