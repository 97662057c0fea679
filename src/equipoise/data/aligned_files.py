"""Alignment of a released file with its original, record by record or by id."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.records import Records
from equipoise.data.roles import beside
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import DataError, EngineError, RolesError, require_columns


def aligned(released: Records, original: Records, columns: tuple[str, ...]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The columns of both files with equal rows for equal records: by id, or as they come from memory."""
    if released.synthetic:
        raise EngineError("The released file is fully synthetic: its records stand for nobody in the original.")
    one, two = _ordered(released, columns), _ordered(original, columns)
    name = original.roles.id
    if one.height != two.height and name in one.columns:
        raise EngineError("The release has not the same people as the original file: this compares every record.")
    if one.height != two.height or (name and (name not in one.columns or not one[name].equals(two[name]))):
        raise EngineError("The released and the original file have different records: align them by an id role.")
    return _in_enums(one.select(columns), two), two.select(columns)


def released_people(released: Records, original: Records) -> Records:
    """The original records of those who are in the release, where ids tell that others were withheld; else all."""
    name = original.roles.id
    if released.synthetic or not name or released.schema().get(name) != original.schema()[name]:
        return original
    ids = released.collect(name)
    if ids.height >= original.height():
        return original
    return Records.of(original.collect().join(ids, on=name, how="semi", maintain_order="left"), original.roles)


def _in_enums(released: pl.DataFrame, original: pl.DataFrame) -> pl.DataFrame:
    """The released columns in the Enum types of the original: a release names only the categories that it has."""
    kinds: dict[Any, Any] = {
        column: kind
        for column, kind in original.schema.items()
        if isinstance(kind, pl.Enum) and isinstance(has := released.schema.get(column), pl.Enum)
        if set(has.categories) <= set(kind.categories)
    }
    return released.cast(kinds) if kinds else released


def _ordered(records: Records, columns: tuple[str, ...]) -> pl.DataFrame:
    name = records.roles.id
    if name:
        return records.collect(*dict.fromkeys((name, *columns))).sort(name)
    if not in_order(records):
        raise EngineError("Files on this engine have no row order: name an id role to compare them record by record.")
    return records.collect(*columns)


def in_order(records: Records) -> bool:
    """Whether the rows of the file have a reliable order."""
    return records.in_memory or records.source is not None


@dataclass(frozen=True, eq=False, repr=False)
class Matched:
    """Columns of the released file and of the original, and the rows in each of the people that are in both.

    Rows are in the order of the ids, if any. Without a match `second` is None and `first` has every original record.
    """

    released: pl.DataFrame
    original: pl.DataFrame
    first: Integers
    second: Integers | None
    keys: pl.Series
    places: Integers

    def rows(self, **values: pl.Series) -> pl.DataFrame:
        """One row per person, in the input order of the original file."""
        order = np.argsort(self.places[self.first], kind="stable")
        people = self.keys.gather(self.first[order])
        people = people.alias(beside(people.name, *values))
        return pl.DataFrame([people, *(column.gather(order).alias(name) for name, column in values.items())])


def matched(released: Records, original: Records, columns: tuple[str, ...]) -> Matched:
    """Match records by the original's id role where both files have the column, else by row where the sizes agree.

    People in one file only have no true match, but may be mistaken for one. O(n log n).
    """
    for records in (original, released):
        schema = records.schema()
        require_columns(columns, schema)
    name = original.roles.id
    if name and name in released.schema():
        return _by_id(released, original, columns, name)
    old = original.collect(*dict.fromkeys((*columns, *((name,) if name else ()))))
    new, every = _in_enums(released.collect(*columns), old), np.arange(old.height)
    keys = old[name] if name else pl.int_range(old.height, dtype=pl.UInt32, eager=True).alias("record")
    same_rows = new.height == old.height and in_order(released) and in_order(original)
    return Matched(new, old.select(columns), every, every if same_rows else None, keys, every)


def _by_id(released: Records, original: Records, columns: tuple[str, ...], name: str) -> Matched:
    with_id = tuple(dict.fromkeys((name, *columns)))
    old = original.collect(*with_id)
    new = _in_enums(released.collect(*with_id), old)
    for side in (new, old):
        if side[name].null_count() or side[name].n_unique() < side.height:
            raise RolesError(f"The id column {name!r} has missing or repeated values: ids must be unique.")
    if new.schema[name] != old.schema[name]:
        raise RolesError(f"The id column {name!r} has another type in the released file.")
    places = old[name].arg_sort().to_numpy()
    new, old = new.sort(name), old[places]
    rows = old.select(name).with_row_index("__eq_first")
    both = rows.join(new.select(name).with_row_index("__eq_second"), on=name, how="inner", maintain_order="left")
    if not both.height:
        raise EngineError("No record of the original file is in the released file: their ids have nothing in common.")
    people = both["__eq_first"].to_numpy().astype(np.int64), both["__eq_second"].to_numpy().astype(np.int64)
    return Matched(new.select(columns), old.select(columns), *people, old[name], places)


def comparable(*columns: pl.Series) -> tuple[list[pl.Series], bool]:
    """Columns of one kind, and whether they have an order: numbers and points in time as numbers, all else as text."""
    filled = [c for c in columns if c.dtype != pl.Null]
    if filled and all(c.dtype.is_numeric() for c in filled):
        return [c.fill_nan(None).cast(pl.Float64) if c.dtype.is_float() else c.cast(pl.Float64) for c in columns], True
    if filled and all(isinstance(c.dtype, pl.Date | pl.Datetime) for c in filled):
        return [c.cast(pl.Datetime("us")).to_physical().cast(pl.Float64) for c in columns], True
    if filled and all(c.dtype.is_temporal() and c.dtype == filled[0].dtype for c in filled):
        return [c.to_physical().cast(pl.Float64) for c in columns], True
    for c in columns:
        if isinstance(c.dtype, pl.List | pl.Array | pl.Binary | pl.Object):
            raise DataError(f"Column {c.name!r} is {type(c.dtype).__name__}: its values cannot be compared.")
    return [c.cast(pl.String) for c in columns], False
