"""What snoopers read: the columns of both files, row by row, and beside each row the other rows of its unit."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned, released_people
from equipoise.data.column_parts import with_parts
from equipoise.data.records import Records
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import EngineError

MAX_OF_OTHERS = 20
"""Columns beside the numbers that are guessed, of which a unit's other rows are read."""


def usable_columns(released: Records, original: Records) -> tuple[str, ...]:
    """Columns that both files hold, but the numbers of people, households and samples."""
    roles = (released.roles, original.roles)
    labels = {name for role in roles for name in (role.id, role.household, role.sample)}
    schema = released.schema()
    return tuple(c for c in original.schema() if c in schema and c not in labels)


def paired_people(released: Records, original: Records, columns: tuple[str, ...]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both files row by row, without people who were withheld; copies of the same people are averaged, their
    categories those of the first copy.
    """
    name = released.roles.sample
    if name is None:
        return aligned(released, released_people(released, original), columns)
    table, own = released.collect(), released.roles.id
    table = table.sort(pl.col(own).cast(pl.Int64, strict=False), maintain_order=True) if own else table
    copies = table.partition_by(name, maintain_order=True)
    people = original.collect(*columns)
    if any(copy.height != people.height for copy in copies):
        raise EngineError("The samples and the original file have different records: they cannot be averaged.")
    numeric = [c for c in columns if table.schema[c].is_numeric()]
    means = np.mean([copy.select(pl.col(numeric).cast(pl.Float64)).to_numpy() for copy in copies], axis=0)
    averages = pl.DataFrame(means, schema=numeric).fill_nan(None)
    return copies[0].select(columns).with_columns(averages.get_columns()), people


def seen_by_snoopers(
    released: Records, original: Records, columns: tuple[str, ...]
) -> tuple[tuple[str, ...], pl.DataFrame, pl.DataFrame, Integers]:
    """The released columns that a snooper reads, both files row by row, and the unit of each row.

    Rows of one household or person are seen together: beside each row stand the number of its other rows, their mean of
    each number and another row's category, of columns that differ within units. Noise drawn for each row of a panel
    would else seem larger than its average is, and what goes with a partner's work untold. Of dates and codes their
    parts are read too.
    """
    every = tuple(dict.fromkeys((*columns, *usable_columns(released, original))))
    units = [u for u in (released.roles.household, released.roles.person) if u and u in original.schema()]
    released_table, original_table = paired_people(released, original, tuple(dict.fromkeys((*every, *units))))
    more = [part for unit in dict.fromkeys(units) for part in _of_other_rows(released_table, unit, columns, every)]
    table = with_parts(released_table.with_columns(more), every)
    every = (*every, *table.columns[released_table.width :])
    return every, table, original_table, _unit_numbers(released_table, units)


def _unit_numbers(table: pl.DataFrame, units: Sequence[str]) -> Integers:
    """The same number for rows of one household, or of one person where there is no household."""
    alone = pl.int_range(pl.len(), dtype=pl.Int64)
    if not units:
        return table.select(alone).to_series().to_numpy()
    number = pl.col(units[0]).rank("dense").cast(pl.Int64)
    return table.select(pl.when(pl.col(units[0]).is_null()).then(-1 - alone).otherwise(number)).to_series().to_numpy()


def _of_other_rows(table: pl.DataFrame, unit: str, columns: Sequence[str], every: Sequence[str]) -> Iterator[pl.Expr]:
    """How many other rows of its unit a row has, the mean of each number in them, and a category of one of them."""
    within = pl.col(unit).is_not_null()
    yield pl.when(within).then(pl.len().over(unit) - 1).alias(f"other rows of {unit}")
    numbers = [c for c in every if table.schema[c].is_numeric()]
    texts = [c for c in every if c not in numbers and not table.schema[c].is_nested()]
    beside = [c for c in (*numbers, *texts) if c not in columns and c != unit]
    several = table.filter(within).group_by(unit).agg(pl.col(c).n_unique() > 1 for c in beside)
    varying = [c for c in beside if several[c].any()][:MAX_OF_OTHERS]
    for column in (*(c for c in columns if c in numbers), *varying):
        if column in numbers:
            own = pl.col(column).cast(pl.Float64).fill_nan(None)
            others = own.count().over(unit) - own.is_not_null().cast(pl.Int64)
            other, shared = (own.sum().over(unit) - own.fill_null(0.0)) / others, within & (others > 0)
        else:
            own = pl.col(column).cast(pl.String)
            least, most = own.min().over(unit), own.max().over(unit)
            other, shared = pl.when(own == least).then(most).otherwise(least), within & (pl.len().over(unit) > 1)
        yield pl.when(shared).then(other).alias(f"{column} in other rows of {unit}")
