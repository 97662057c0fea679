"""What top and bottom coding share: one value for a whole tail of a numeric column."""

from math import ceil, floor
from typing import Any, Literal

import numpy as np
import polars as pl

from equipoise.ground.arrays import Integers
from equipoise.ground.errors import DataError

ReplaceBy = Literal["mean", "median", "threshold"]
WIDEST = 1 << 100
"""Beyond every integer a column may hold."""


def replace_tail(values: pl.Series, n: Integers, *, at: float, above: bool, replace_by: ReplaceBy) -> pl.Series:
    """The values with those beyond `at` replaced by one number.

    `n` is the number of records with each value: the mean and the median are of records, so the column's sum (by the
    mean) is kept. Integers stay integers where the replacement is whole.

    >>> replace_tail(pl.Series([1, 5, 9]), np.array([4, 1, 3]), at=4, above=True, replace_by="mean").to_list()
    [1, 8, 8]
    """
    if not values.dtype.is_numeric():
        raise DataError(f"Column {values.name!r} is {values.dtype}, not numeric: it has no top or bottom.")
    beyond = _beyond(values, at, above)
    if not beyond.any():
        return values
    new = at if replace_by == "threshold" else _centre(values.filter(beyond), n[beyond.to_numpy()], replace_by)
    kind = _kind(values.dtype, new)
    replaced = pl.when(beyond).then(pl.lit(new).cast(kind)).otherwise(values.cast(kind))
    return pl.select(replaced.alias(values.name)).to_series()


def _beyond(values: pl.Series, at: float, above: bool) -> pl.Series:
    """Strictly beyond the threshold, which may lie outside the column's type; missing never is."""
    if values.dtype.is_integer():
        edge = max(-WIDEST, min(WIDEST, floor(at) if above else ceil(at)))
        numbers = values.cast(pl.Int128)
        compared = pl.select(numbers > pl.lit(edge, pl.Int128) if above else numbers < pl.lit(edge, pl.Int128))
        return compared.to_series().fill_null(False)
    beyond = ((values > at) if above else (values < at)).fill_null(False)
    return beyond & values.is_not_nan() if values.dtype.is_float() else beyond


def _kind(dtype: pl.DataType, new: float) -> pl.DataType:
    """The column's own type where the new value fits it: whole numbers stay whole."""
    if not dtype.is_integer():
        return dtype if dtype.is_float() else pl.Float64()
    if not float(new).is_integer():
        return pl.Float64()
    low, high = integer_ends(dtype)
    if low <= new <= high:
        return dtype
    return pl.Int64() if abs(new) < 1 << 53 else pl.Float64()


def integer_ends(dtype: Any) -> tuple[int, int]:
    """The least and the greatest number of an integer type.

    >>> integer_ends(pl.UInt8())
    (0, 255)
    """
    low, high = pl.select(low=dtype.min(), high=dtype.max()).row(0)
    return int(low), int(high)


def _centre(values: pl.Series, n: Integers, replace_by: ReplaceBy) -> float:
    x = values.cast(pl.Float64).to_numpy()
    if replace_by == "mean":
        return float(np.average(x, weights=n))
    order = np.argsort(x)
    x, reached = x[order], np.cumsum(n[order])
    middle = reached[-1] / 2
    low, high = np.searchsorted(reached, middle, side="left"), np.searchsorted(reached, middle, side="right")
    return float((x[low] + x[high]) / 2)
