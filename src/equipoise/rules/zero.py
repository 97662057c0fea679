"""Zero rule: cells of value 0 that have contributors; of counts, or where told so, cells without any."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, amount
from equipoise.data.tables.cell_status import structural
from equipoise.methods.parameters import entry
from equipoise.methods.protection_levels import Together, contribution, protection, refuse_uncounted


@dataclass(frozen=True, slots=True)
class Zero(Together):
    """A cell is sensitive when it has contributors and its value is 0: each of them is known to have contributed 0.

    With `empty` also a cell that nobody is in: it tells that nobody has that combination. Unless told otherwise that is
    so in tables of counts, where only empty cells are 0, and not in those of amounts. Empty cells are then unknown to
    an attacker where suppressed, and may be suppressed to protect others. Structural zeros (`eq.table(...,
    structural=)`) are never sensitive: everybody knows them. Protection, upwards (nothing lies below 0): of an empty
    cell one record, which is the mean contribution to the table; of others the minimum.

    Source: Hundepool et al. (2012), section 4.2; Massell (1999) on 0-cells; `zeros_are_disclosive` of the ACRO checker.
    Misleads when most cells are empty: then little is published. `GroupDisclosure` asks less.

    >>> cells = Cells.of(pl.DataFrame({"cell": ["a", "b", "c"], "n": [3, 2, 0], "value": [0, 7, 0]}))
    >>> Zero().flag(cells).to_list(), Zero(empty=True).flag(cells).to_list()
    ([True, False, False], [True, False, True])
    """

    empty: bool | None = None

    def hides_zeros(self, cells: Cells) -> bool:
        return bool(np.array_equal(amount(cells), cells.total)) if self.empty is None else self.empty

    def flag(self, cells: Cells) -> pl.Series:
        refuse_uncounted(cells)
        zero = amount(cells) == 0
        return pl.Series("unsafe", zero & ~structural(cells) if self.hides_zeros(cells) else zero & (cells.n > 0))

    def levels(self, cells: Cells) -> pl.DataFrame:
        record = np.where(cells.n == 0, contribution(cells), 0.0)
        return protection(self.flag(cells).to_numpy(), record, cells)

    def explain(self, cell: Mapping[str, Any]) -> str:
        value, n = cell.get("value", cell.get("total", cell.get("n"))), entry(cell, "n")
        if value or cell.get("structural"):
            return "Safe: it is not 0, or nobody can be there."
        if n:
            return "Sensitive: it is 0 and has contributors."
        if self.empty is None:
            return "Nobody is there: sensitive in a table of counts, safe in one of amounts."
        return "Sensitive: nobody is there." if self.empty else "Safe: it is not 0, or nobody is there."
