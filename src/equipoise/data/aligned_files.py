"""A released file and its original, record by record, and who is who where they hold different people."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.records import Records
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import EngineError, RolesError


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
    if not in_order(records):
        raise EngineError("Files on this engine have no row order: name an id role to compare them record by record.")
    return records.collect(*columns)


def in_order(records: Records) -> bool:
    """The rows of the file have an order that can be gone by."""
    return records.in_memory or records.source is not None


@dataclass(frozen=True, eq=False, repr=False)
class Matched:
    """Columns of the released file and of the original, and the people in both: their rows in each.

    Rows are in the order of the ids where there are any, so that moving rows changes nothing. Where nobody can tell who
    is who, `second` is None and `first` has every original record.
    """

    released: pl.DataFrame
    original: pl.DataFrame
    first: Integers
    second: Integers | None
    keys: pl.Series
    places: Integers

    def rows(self, **values: pl.Series) -> pl.DataFrame:
        """One row per person, in the order of the original file as it came in."""
        order = np.argsort(self.places[self.first], kind="stable")
        people = self.keys.gather(self.first[order])
        return pl.DataFrame([people, *(column.gather(order).alias(name) for name, column in values.items())])


def matched(released: Records, original: Records, columns: tuple[str, ...]) -> Matched:
    """Who is who: by the original's id role where both files have the column, else by the row where both have as many.

    People in one file only are candidates for nobody's own record, but may be mistaken for it. O(n log n).
    """
    for records in (original, released):
        schema = records.schema()
        for column in columns:
            if column not in schema:
                raise RolesError.missing(column, list(schema))
    name = original.roles.id
    if name and name in released.schema():
        return _by_id(released, original, columns, name)
    there = original.collect(*dict.fromkeys((*columns, *((name,) if name else ()))))
    here, every = released.collect(*columns), np.arange(there.height)
    keys = there[name] if name else pl.int_range(there.height, dtype=pl.UInt32, eager=True).alias("record")
    told = here.height == there.height and in_order(released) and in_order(original)
    return Matched(here, there.select(columns), every, every if told else None, keys, every)


def _by_id(released: Records, original: Records, columns: tuple[str, ...], name: str) -> Matched:
    wanted = tuple(dict.fromkeys((name, *columns)))
    here, there = released.collect(*wanted), original.collect(*wanted)
    for side in (here, there):
        if side[name].null_count() or side[name].n_unique() < side.height:
            raise RolesError(f"The id column {name!r} has missing or repeated values: ids must be unique.")
    if here.schema[name] != there.schema[name]:
        raise RolesError(f"The id column {name!r} has another type in the released file.")
    places = there[name].arg_sort().to_numpy()
    here, there = here.sort(name), there[places]
    rows = there.select(name).with_row_index("__first")
    both = rows.join(here.select(name).with_row_index("__second"), on=name, how="inner", maintain_order="left")
    if not both.height:
        raise EngineError("No record of the original file is in the released file: their ids have nothing in common.")
    people = both["__first"].to_numpy().astype(np.int64), both["__second"].to_numpy().astype(np.int64)
    return Matched(here.select(columns), there.select(columns), *people, there[name], places)
