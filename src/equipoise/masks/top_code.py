"""Replace everything above a threshold by one value."""

from dataclasses import dataclass
from math import isfinite
from numbers import Real

import polars as pl

from equipoise.core.cells import Cells
from equipoise.core.codes import Integers
from equipoise.core.draws import Draws
from equipoise.core.errors import ParameterError
from equipoise.core.recoding import Data, recoded
from equipoise.core.records import Law
from equipoise.core.tails import ReplaceBy, replace_tail


@dataclass(frozen=True, slots=True)
class TopCode:
    """Replace the values of `column` that are above `at` by their mean, their median, or the threshold itself.

    x -> c for x > at, with c the mean or the median of the records beyond the threshold, or at. The mean keeps the
    column's sum. Source: Willenborg and de Waal (1996), ch. 1.
    Does not guard against a tail of one or two records: their mean or median shows them. Look at the tail's size.

    >>> incomes = Cells.of(pl.DataFrame({"income": [1, 5, 9], "n": [4, 1, 3]}))
    >>> TopCode("income", at=4).roll_up(incomes).table["income"].to_list()
    [1, 8]
    """

    column: str
    at: float
    replace_by: ReplaceBy = "mean"

    def __post_init__(self) -> None:
        if self.replace_by not in ("mean", "median", "threshold"):
            raise ParameterError(f"replace_by must be 'mean', 'median' or 'threshold', got {self.replace_by!r}.")
        if not isinstance(self.at, Real) or not isfinite(self.at):
            raise ParameterError("at must be a finite number.")

    def apply(self, data: Data, draws: Draws) -> Data:
        return recoded(data, self.column, self._change, self.law(), keep_hierarchy=True)

    def roll_up(self, cells: Cells) -> Cells:
        return recoded(cells, self.column, self._change, self.law(), keep_hierarchy=True)

    def words(self) -> str:
        by = "the threshold" if self.replace_by == "threshold" else f"their {self.replace_by}"
        return f"{self.column} above {self.at:,.10g} replaced by {by}"

    def law(self) -> Law:
        given = {"column": self.column, "at": self.at, "replace_by": self.replace_by}
        return Law("top_code", (self.column,), self.words(), given, coarsens=True)

    def _change(self, values: pl.Series, n: Integers) -> pl.Series:
        return replace_tail(values, n, at=self.at, above=True, replace_by=self.replace_by)
