"""Request rule: cells in which a contributor who asked for protection has a large share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from equipoise.data.cells import Cells, gross
from equipoise.ground.arrays import Booleans
from equipoise.methods import parameters
from equipoise.methods.protection_levels import Together, one, protection


@dataclass(frozen=True, slots=True)
class Request(Together):
    """A cell is sensitive when a contributor who asked for protection holds more than the `share` of it.

    The column `requested` of the table (`eq.table(..., request=...)`) has the largest contribution to each cell by
    somebody who asked (r), `requested2` by those with the code 2 in that column, for whom the share is `second`
    (the same unless given). Sensitive iff r > share x. With `n` also a cell with fewer than n contributors of whom one
    asked: a larger one could find him out. Protection: the share `margin` of the value, both ways.

    Source: the request rule of tau-ARGUS, with two percentages, a minimum frequency and a safety margin: Hundepool et
    al. (2014), *tau-ARGUS User's Manual*, version 4.1, sections 4.4.4 and 5.7, REQ(Percent1, Percent2, SafetyMargin);
    the manual names 70 % and the user the margin, here 20 %. It judges a cell by its largest request alone; here each
    code is judged by its own largest. Misleads when those who did not ask would have: it protects nobody else.

    >>> cells = Cells.of(pl.DataFrame({"cell": ["a", "b"], "n": 3, "value": 9, "requested": [7, 5]}), ("cell",))
    >>> Request().flag(cells).to_list(), Request().levels(cells)["upper"].round(6).to_list()
    ([True, False], [1.8, 0.0])
    """

    share: float = 0.7
    second: float | None = None
    margin: float = 0.2
    n: int = 1

    def __post_init__(self) -> None:
        parameters.share(self.share, "share", zero=True)
        if self.second is not None:
            parameters.share(self.second, "second", zero=True)
        parameters.share(self.margin, "margin")
        parameters.whole_number(self.n, "n")

    def flag(self, cells: Cells) -> pl.Series:
        return pl.Series("unsafe", self._flagged(cells))

    def _flagged(self, cells: Cells) -> Booleans:
        value, asked = gross(cells), cells.numbers("requested")
        second = cells.numbers("requested2") if "requested2" in cells.more.columns else 0.0 * asked
        share = self.share if self.second is None else self.second
        few = (cells.numbers("contributors") if "contributors" in cells.more.columns else cells.n) < self.n
        return (asked > self.share * value) | (second > share * value) | (few & ((asked > 0) | (second > 0)))

    def levels(self, cells: Cells) -> pl.DataFrame:
        return protection(self._flagged(cells), self.margin * gross(cells), cells)

    def explain(self, cell: Mapping[str, Any]) -> str:
        unsafe = one(cell, lambda c: bool(self.flag(c)[0]))
        return "Sensitive: a contributor asked for protection." if unsafe else "Safe: no contributor of weight asked."
