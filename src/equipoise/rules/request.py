"""Request rule: cells that a contributor asked to have protected."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from equipoise.data.cells import Cells, amount
from equipoise.ground.arrays import Integers
from equipoise.methods import parameters
from equipoise.methods.protection_levels import Together, one, protection


@dataclass(frozen=True, slots=True)
class Request(Together):
    """A cell is sensitive when a contributor who asked for protection holds more than the `share` of it.

    The column `requested` of the table (`eq.table(..., request=...)`) has the largest contribution to each cell by
    somebody who asked. Sensitive iff requested > share x. Protection: requested / share - x more where share > 0.

    Source: the request rule of tau-ARGUS (foreign trade statistics are protected on request).
    Misleads when those who did not ask would have: it protects nobody else.

    >>> cells = Cells.of(pl.DataFrame({"cell": ["a", "b"], "n": 3, "value": 9, "requested": [5, 0]}), ("cell",))
    >>> Request().flag(cells).to_list()
    [True, False]
    """

    share: float = 0.0

    def __post_init__(self) -> None:
        parameters.share(self.share, "share", zero=True)

    def flag(self, cells: Cells) -> pl.Series:
        return pl.Series("unsafe", self._flagged(cells))

    def _flagged(self, cells: Cells) -> Integers:
        return cells.numbers("requested") > self.share * amount(cells)

    def levels(self, cells: Cells) -> pl.DataFrame:
        value = amount(cells)
        lack = cells.numbers("requested") / self.share - value if self.share else value * 0
        return protection(self._flagged(cells), lack, cells)

    def explain(self, cell: Mapping[str, Any]) -> str:
        unsafe = one(cell, lambda c: bool(self.flag(c)[0]))
        return "Sensitive: a contributor asked for protection." if unsafe else "Safe: no contributor of weight asked."
