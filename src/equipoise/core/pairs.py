"""A released file and its original, record by record."""

import polars as pl

from equipoise.core.errors import EngineError
from equipoise.core.records import Records


def aligned(released: Records, original: Records, columns: tuple[str, ...]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The columns of both files with equal rows for equal records: by id, or as they come from memory."""
    if released.synthetic:
        raise EngineError("The released file is fully synthetic: its records stand for nobody in the original.")
    one, two = _ordered(released, columns), _ordered(original, columns)
    name = original.roles.id
    if one.height != two.height or (name and not one[name].equals(two[name])):
        raise EngineError("The released and the original file have different records: align them by an id role.")
    return one.select(columns), two.select(columns)


def _ordered(records: Records, columns: tuple[str, ...]) -> pl.DataFrame:
    name = records.roles.id
    if name:
        return records.collect(*dict.fromkeys((name, *columns))).sort(name)
    if not records.in_memory and records.source is None:
        raise EngineError("Files on this engine have no row order: name an id role to compare them record by record.")
    return records.collect(*columns)
