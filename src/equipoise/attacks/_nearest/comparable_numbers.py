"""Columns of two files as comparable numbers: amounts, points in time, times of day, spans."""

from typing import Any

import numpy as np
import polars as pl

from equipoise.data.numeric_columns import finite
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError

MICROSECONDS_PER_DAY = 86_400e6


def is_date(*columns: pl.Series) -> bool:
    """Whether all columns hold dates or points in time."""
    return all(isinstance(column.dtype, pl.Date | pl.Datetime) for column in columns)


def numbers(first: pl.Series, second: pl.Series) -> Floats:
    """Numbers, or points in time counted in the same unit, of one file after the other; missing is NaN."""
    both = [_physical(s) for s in (first, second)]
    if len({kind for _, kind in both if kind}) > 1:
        raise DataError(f"Column {first.name!r} holds different kinds of numbers or times in the two files.")
    return finite(first.name, np.concatenate([s.cast(pl.Float64).to_numpy() for s, _ in both]))


def _physical(column: pl.Series) -> tuple[pl.Series, str]:
    """Dates and times as numbers in one unit, and the kind of the column."""
    kind: Any = column.dtype
    if isinstance(kind, pl.Date | pl.Datetime):
        return column.cast(pl.Datetime("us")).to_physical(), "point"
    if isinstance(kind, pl.Duration):
        return column.cast(pl.Duration("us")).to_physical(), "span"
    if isinstance(kind, pl.Time):
        return column.to_physical(), "time"
    return column, "" if kind == pl.Null else "number"
