"""Top and bottom coding but for the side: one value for a whole tail of a numeric column."""

from dataclasses import dataclass
from math import ceil, floor, isfinite
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl

from equipoise.data.cells import Cells
from equipoise.data.labels import Tail
from equipoise.data.recode_values import Data, recoded
from equipoise.data.records import Law
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import DataError, ParameterError
from equipoise.ground.randomness import Draws
from equipoise.methods.method import name_of
from equipoise.methods.parameters import check_fields

ReplaceBy = Literal["mean", "median", "threshold"]
WIDEST = 1 << 100
"""Beyond every integer a column may hold."""


@dataclass(frozen=True, slots=True)
class TailCode:
    """Replace the values of `column` beyond `at`; `above` says on which side."""

    above: ClassVar[bool]

    column: str
    at: float
    replace_by: ReplaceBy = "mean"

    def __post_init__(self) -> None:
        check_fields(self)
        if not isinstance(self.at, Real) or not isfinite(self.at):
            raise ParameterError("at must be a finite number.")

    def apply(self, data: Data, draws: Draws) -> Data:
        return recoded(data, self.column, self._change, self.law(), keep_hierarchy=True, tail=self._tail())

    def roll_up(self, cells: Cells) -> Cells:
        return recoded(cells, self.column, self._change, self.law(), keep_hierarchy=True)

    def words(self) -> str:
        side = "above" if self.above else "below"
        by = "the threshold" if self.replace_by == "threshold" else f"their {self.replace_by}"
        return f"{self.column} {side} {self.at:,.10g} replaced by {by}"

    def _tail(self) -> Tail:
        """What the value that stands for the tail is called."""
        side = "above" if self.above else "below"
        words = f"{self.replace_by} of all values {side} {self.at:,.10g}"
        return Tail(f"{self.at:,.10g} and {side}" if self.replace_by == "threshold" else words, self.at, self.above)

    def law(self) -> Law:
        parameters = {"column": self.column, "at": self.at, "replace_by": self.replace_by}
        return Law(name_of(type(self)), (self.column,), self.words(), parameters, coarsens=True)

    def _change(self, values: pl.Series, n: Integers) -> pl.Series:
        return replace_tail(values, n, at=self.at, above=self.above, replace_by=self.replace_by)


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
