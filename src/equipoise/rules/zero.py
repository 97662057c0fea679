"""Zero rule: cells of value 0 that have contributors; where told so, cells without any."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, amount
from equipoise.data.tables.cell_status import structural
from equipoise.methods.protection_levels import Together, contribution, protection, refuse_uncounted


@dataclass(frozen=True, slots=True)
class Zero(Together):
    """A cell is sensitive when it has contributors and its value is 0: each of them is known to have contributed 0.

    With `empty` also a cell that nobody is in, of counts as of amounts: it tells that nobody has that combination.
    Empty cells are then unknown to an attacker where suppressed, and may be suppressed to protect others. Structural
    zeros (`eq.table(..., structural=)`) are never sensitive: everybody knows them. Protection, upwards (nothing lies
    below 0): of an empty cell one record, which is the mean contribution to the table; of others the minimum.

    Source: Hundepool et al. (2012), section 4.2; Massell (1999) on 0-cells; `zeros_are_disclosive` of the ACRO checker.
    Misleads when most cells are empty: then little is published. `GroupDisclosure` asks less.

    >>> cells = Cells.of(pl.DataFrame({"cell": ["a", "b", "c"], "n": [3, 2, 0], "value": [0, 7, 0]}))
    >>> Zero().flag(cells).to_list(), Zero(empty=True).flag(cells).to_list()
    ([True, False, False], [True, False, True])
    """

    empty: bool = False

    @property
    def hides_zeros(self) -> bool:
        return self.empty

    def flag(self, cells: Cells) -> pl.Series:
        refuse_uncounted(cells)
        zero = amount(cells) == 0
        return pl.Series("unsafe", zero & ~structural(cells) if self.empty else zero & (cells.n > 0))

    def levels(self, cells: Cells) -> pl.DataFrame:
        record = np.where(cells.n == 0, contribution(cells), 0.0)
        return protection(self.flag(cells).to_numpy(), record, cells)

    def explain(self, cell: Mapping[str, Any]) -> str:
        value = cell["value"] if "value" in cell else cell.get("total", cell["n"])
        if value or not (self.empty or cell["n"]) or cell.get("structural"):
            return (
                "Safe: it is not 0, or nobody can be there." if self.empty else "Safe: it is not 0, or nobody is there."
            )
        return "Sensitive: it is 0 and has contributors." if cell["n"] else "Sensitive: nobody is there."
