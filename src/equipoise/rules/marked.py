"""Cells marked as sensitive in a column of the table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, amount
from equipoise.data.tables.cell_status import marked
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, ParameterError
from equipoise.methods.parameters import entry, share
from equipoise.methods.protection_levels import Together, protection


@dataclass(frozen=True, slots=True)
class Marked(Together):
    """A cell is sensitive when a column of the table says so: true, 1 or u.

    For ready tables (`eq.table(..., ready=tables.Ready(sensitive=...))`) that another program has checked. Protection:
    the columns `lower` and `upper`; by default those that the table has as protection levels. Without any, the share
    `margin` of the value both ways, and of counts at least 1, so that another count remains possible; with `margin=0`
    the value must only not be known exactly.

    Source: the status column and the manual safety margin (20 % by default) of tau-ARGUS, Hundepool et al. (2014),
    *tau-ARGUS User's Manual*, version 4.1. Misleads when the marks were made for another value or another population.

    >>> cells = Cells.of(pl.DataFrame({"k": ["a", "b"], "n": 9, "value": [50, 7], "sensitive": [True, False]}), ("k",))
    >>> Marked().flag(cells).to_list(), Marked().levels(cells).rows()
    ([True, False], [(10.0, 10.0), (0.0, 0.0)])
    """

    column: str = "sensitive"
    lower: str | None = None
    upper: str | None = None
    margin: float = 0.2

    def __post_init__(self) -> None:
        if (self.lower is None) != (self.upper is None):
            raise ParameterError("lower and upper go together: name both columns of protection levels.")
        share(self.margin, "margin", zero=True)

    def flag(self, cells: Cells) -> pl.Series:
        if self.column not in cells.more.columns:
            raise DataError(
                f"The table has no column {self.column!r} that marks sensitive cells: name one with "
                "Ready(sensitive=...), or take another rule."
            )
        return marked(cells.more[self.column]).alias("unsafe")

    def levels(self, cells: Cells) -> pl.DataFrame:
        flagged: Integers = self.flag(cells).to_numpy()
        lower, upper = self._level_columns(cells)
        if lower is None or upper is None:
            value = amount(cells)
            return protection(flagged, np.maximum(self.margin * value, self._least(cells)), cells)
        below, above = (protection(flagged, _level(cells, column), cells) for column in (lower, upper))
        return pl.DataFrame({"lower": below["lower"], "upper": above["upper"]})

    def explain(self, cell: Mapping[str, Any]) -> str:
        unsafe = bool(marked(pl.Series(self.column, [entry(cell, self.column)]))[0])
        verdict = ("Sensitive", "marks") if unsafe else ("Safe", "does not mark")
        return f"{verdict[0]}: the column {self.column!r} {verdict[1]} it."

    def _level_columns(self, cells: Cells) -> tuple[str | None, str | None]:
        if self.lower is None and {"lower_level", "upper_level"} <= set(cells.more.columns):
            return "lower_level", "upper_level"
        return self.lower, self.upper

    def _least(self, cells: Cells) -> float:
        return 1.0 if self.margin and np.array_equal(amount(cells), cells.n) else 0.0


def _level(cells: Cells, column: str) -> Floats:
    levels = cells.numbers(column)
    if not (np.isfinite(levels) & (levels >= 0)).all():
        raise DataError(f"The protection levels in {column!r} must be numbers of at least 0 in every cell.")
    return levels
