"""What top and bottom coding share: one value for a whole tail of a numeric column."""

from typing import Literal

import numpy as np
import polars as pl

from equipoise.core.codes import Integers
from equipoise.core.errors import DataError

ReplaceBy = Literal["mean", "median", "threshold"]


def replace_tail(values: pl.Series, n: Integers, *, at: float, above: bool, replace_by: ReplaceBy) -> pl.Series:
    """The values with those beyond `at` replaced by one number.

    `n` is the number of records with each value: the mean and the median are of records, so the column's sum (by the
    mean) is kept. Integers stay integers where the replacement is whole.

    >>> replace_tail(pl.Series([1, 5, 9]), np.array([4, 1, 3]), at=4, above=True, replace_by="mean").to_list()
    [1, 8, 8]
    """
    if not values.dtype.is_numeric():
        raise DataError(f"Column {values.name!r} is {values.dtype}, not numeric: it has no top or bottom.")
    beyond = ((values > at) if above else (values < at)).fill_null(False)
    if values.dtype.is_float():
        beyond = beyond & values.is_not_nan()
    if not beyond.any():
        return values
    new = at if replace_by == "threshold" else _centre(values.filter(beyond), n[beyond.to_numpy()], replace_by)
    whole = values.dtype.is_integer() and float(new).is_integer()
    kind = values.dtype if whole or values.dtype.is_float() else pl.Float64()
    replaced = pl.select(pl.when(beyond).then(pl.lit(new)).otherwise(values).cast(kind).alias(values.name))
    return replaced.to_series()


def _centre(values: pl.Series, n: Integers, replace_by: ReplaceBy) -> float:
    x = values.cast(pl.Float64).to_numpy()
    if replace_by == "mean":
        return float(np.average(x, weights=n))
    order = np.argsort(x)
    x, reached = x[order], np.cumsum(n[order])
    middle = reached[-1] / 2
    low, high = np.searchsorted(reached, middle, side="left"), np.searchsorted(reached, middle, side="right")
    return float((x[low] + x[high]) / 2)
