"""Columns whose values repeat in a household or of a person: one draw for all of them, or noise is averaged away."""

from collections.abc import Mapping
from dataclasses import dataclass

import narwhals as nw
import numpy as np
import polars as pl

from equipoise.data import engines
from equipoise.data.numeric_columns import as_float
from equipoise.data.records import Records
from equipoise.ground.arrays import Integers
from equipoise.ground.packed_keys import code

MIN_EQUAL_SHARE = 0.5
"""Share of the groups with several values in which all are equal, from which on a column is one of the group."""


def unit_columns(records: Records) -> tuple[str, ...]:
    """Columns that say which records belong together, the largest groups first."""
    return tuple(c for c in (records.roles.household, records.roles.person) if c)


def repeating(records: Records, columns: tuple[str, ...]) -> dict[str, str]:
    """Numeric columns that are equal in most groups of a unit, each with the column that names the unit.

    One pass to group for each unit. A few errors in the data do not make a column of the household one of the person.
    """
    owners: dict[str, str] = {}
    schema = records.schema()
    for unit in unit_columns(records):
        rest = tuple(c for c in columns if c not in owners and c != unit and schema[c].is_numeric())
        owners |= dict.fromkeys(_repeating_in(records, unit, rest), unit) if rest else {}
    return owners


def _repeating_in(records: Records, unit: str, columns: tuple[str, ...]) -> list[str]:
    aggregates = [
        f(nw.col(f"__{place}")).alias(f"{name}{place}")
        for place in range(len(columns))
        for name, f in (("low", nw.Expr.min), ("high", nw.Expr.max), ("n", nw.Expr.count))
    ]
    values = [as_float(column).alias(f"__{place}") for place, column in enumerate(columns)]
    groups = records.frame.select(nw.col(unit).alias("__unit"), *values).group_by("__unit").agg(*aggregates)
    table = engines.collect(groups)
    several = [table.filter(table[f"n{place}"] > 1) for place in range(len(columns))]
    equal = [int((part[f"low{place}"] == part[f"high{place}"]).sum()) for place, part in enumerate(several)]
    return [c for c, n, part in zip(columns, equal, several, strict=True) if n and n >= MIN_EQUAL_SHARE * part.height]


def once_words(owners: Mapping[str, str]) -> str:
    """Words for the law of a mask that changes these columns once for each unit and value."""
    return "".join(f"; {column} drawn once for each {unit} and value" for column, unit in owners.items())


@dataclass(frozen=True, eq=False, repr=False)
class Once:
    """A table with one row for each unit and value, the key of each row, and the row of each record."""

    table: pl.DataFrame
    keys: pl.Series
    rows: Integers

    def spread(self, column: pl.Series) -> pl.Series:
        """A column of that table given back to all records."""
        return column.gather(pl.Series(self.rows))


def once_each(table: pl.DataFrame, columns: tuple[str, ...], owners: Mapping[str, str]) -> Once | None:
    """The distinct units and values of columns that all repeat; None where one of them does not."""
    if any(column not in owners for column in columns):
        return None
    keys = pl.DataFrame([_unit_keys(table, column, owners[column]).alias(str(i)) for i, column in enumerate(columns)])
    coded = code(keys.select(pl.concat_str(pl.all(), separator="\x1e").alias("key"))["key"])
    first = np.unique(coded.codes, return_index=True)[1]
    return Once(table[first], coded.values, coded.codes.astype(np.uint32))


def draw_keys(table: pl.DataFrame, ids: pl.Series, column: str, owners: Mapping[str, str]) -> pl.Series:
    """The key of each record's draw for a column: its own, or that of its unit and value where values repeat."""
    return _unit_keys(table, column, owners[column]) if column in owners else ids


def _unit_keys(table: pl.DataFrame, column: str, unit: str) -> pl.Series:
    parts = [pl.col(c).cast(pl.String).fill_null("\x00") for c in (unit, column)]
    return table.select(pl.concat_str(parts, separator="\x1f").alias("key"))["key"]
