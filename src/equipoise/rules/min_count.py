"""Cells need at least `n` records."""

from dataclasses import dataclass

import polars as pl

from equipoise.core.cells import Cells
from equipoise.core.errors import ParameterError


@dataclass(frozen=True, slots=True)
class MinCount:
    """A cell is unsafe when it holds fewer than `n` records (the threshold or frequency rule).

    Source: Willenborg and de Waal (1996), *Statistical Disclosure Control in Practice*, ch. 3.
    Misleads when the few records of a cell are not the few people of the population.

    >>> cells = Cells.of(pl.DataFrame({"sex": ["f", "m"], "n": [2, 3]}))
    >>> MinCount(3).flag(cells).to_list()
    [True, False]
    """

    n: int = 3

    def __post_init__(self) -> None:
        if not isinstance(self.n, int) or self.n < 1:
            raise ParameterError(f"n must be a whole number, at least 1, got {self.n!r}.")

    def flag(self, cells: Cells) -> pl.Series:
        return pl.Series("unsafe", cells.n < self.n)
