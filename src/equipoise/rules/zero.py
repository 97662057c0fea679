"""Zero rule: cells of value 0 that have contributors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from equipoise.data.cells import Cells, amount
from equipoise.methods.protection_levels import Together, one, protection, refuse_uncounted


@dataclass(frozen=True, slots=True)
class Zero(Together):
    """A cell is sensitive when it has contributors and its value is 0: each of them is known to have contributed 0.

    A cell without contributors is not: nobody is there. Protection: the minimum, upwards; nothing lies below 0.

    Source: Hundepool et al. (2012), section 4.2; Massell (1999) on 0-cells.
    Misleads when zeros are known to everybody (structural zeros): publish those.

    >>> cells = Cells.of(pl.DataFrame({"cell": ["a", "b"], "n": [3, 2], "value": [0, 7]}))
    >>> Zero().flag(cells).to_list()
    [True, False]
    """

    def flag(self, cells: Cells) -> pl.Series:
        refuse_uncounted(cells)
        return pl.Series("unsafe", (cells.n > 0) & (amount(cells) == 0))

    def levels(self, cells: Cells) -> pl.DataFrame:
        return protection(self.flag(cells).to_numpy(), amount(cells) * 0, cells)

    def explain(self, cell: Mapping[str, Any]) -> str:
        unsafe = one(cell, lambda c: bool(self.flag(c)[0]))
        return "Sensitive: it is 0 and has contributors." if unsafe else "Safe: it is not 0, or nobody is there."
