"""Top and bottom coding but for the side: one value for a whole tail of a numeric column."""

from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import ClassVar

import polars as pl

from equipoise.data.cells import Cells
from equipoise.data.labels import Tail
from equipoise.data.recode_values import Data, recoded
from equipoise.data.records import Law
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import ParameterError
from equipoise.ground.randomness import Draws
from equipoise.masks._tail_values import ReplaceBy, replace_tail
from equipoise.methods.method import name_of


@dataclass(frozen=True, slots=True)
class TailCode:
    """Replace the values of `column` beyond `at`; `above` says on which side."""

    above: ClassVar[bool]

    column: str
    at: float
    replace_by: ReplaceBy = "mean"

    def __post_init__(self) -> None:
        if self.replace_by not in ("mean", "median", "threshold"):
            raise ParameterError(f"replace_by must be 'mean', 'median' or 'threshold', got {self.replace_by!r}.")
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
        given = {"column": self.column, "at": self.at, "replace_by": self.replace_by}
        return Law(name_of(type(self)), (self.column,), self.words(), given, coarsens=True)

    def _change(self, values: pl.Series, n: Integers) -> pl.Series:
        return replace_tail(values, n, at=self.at, above=self.above, replace_by=self.replace_by)
