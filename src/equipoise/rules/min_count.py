"""Threshold (frequency) rule: cells need at least `n` records, and as many holdings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, amount, gross
from equipoise.data.equivalence_classes import Classes
from equipoise.ground.arrays import Floats, Integers
from equipoise.methods.parameters import entry, share, whole_number
from equipoise.methods.protection_levels import Together, protection, refuse_uncounted
from equipoise.methods.sensitive_values import Merging


@dataclass(frozen=True, slots=True)
class MinCount(Together):
    """A cell is unsafe when it holds records, but fewer than `n` (the threshold or frequency rule, k-anonymity).

    Where a table says how many contributors a cell has (holdings), they are counted as well: fewer than `holdings`
    are too few, which is `n` unless given. Five records of one holding are one contributor. Protection in a table: of
    counts, up to n records, and one more for each contributor that lacks, so that a safe count remains possible; of
    values the share `margin` of the value, both ways.

    Source: Willenborg and de Waal (1996), *Statistical Disclosure Control in Practice*, ch. 3; minimum frequencies for
    records and for holdings as in tau-ARGUS, Hundepool et al. (2014), *tau-ARGUS User's Manual*, section 4.4.4.
    Misleads when the few records of a cell are not the few people of the population.

    >>> cells = Cells.of(pl.DataFrame({"sex": ["f", "m"], "n": [2, 3]}))
    >>> MinCount(3).flag(cells).to_list()
    [True, False]
    """

    merging: ClassVar[Merging] = "any"
    n: int = 3
    margin: float = 0.2
    holdings: int | None = None

    def __post_init__(self) -> None:
        whole_number(self.n, "n")
        share(self.margin, "margin")
        if self.holdings is not None:
            whole_number(self.holdings, "holdings")

    def asks(self) -> tuple[int, int | None]:
        """The minimum size of a class, and on how many of the keys: all."""
        return self.n, None

    def flag(self, cells: Cells) -> pl.Series:
        refuse_uncounted(cells)
        size = cells.alike[0]
        return pl.Series("unsafe", (size > 0) & ((size < self.n) | (self._lacking(cells) > 0)))

    def unsafe(self, classes: Classes) -> Integers:
        """Flags of the unsafe classes."""
        return classes.alike < self.n

    def levels(self, cells: Cells) -> pl.DataFrame:
        value = amount(cells)
        is_count = bool(np.array_equal(value, cells.n))
        lack = np.maximum(self.n - value, self._lacking(cells)) if is_count else self.margin * gross(cells)
        return protection(self.flag(cells).to_numpy(), lack, cells)

    def explain(self, cell: Mapping[str, Any]) -> str:
        if not entry(cell, "n"):
            return "Safe: nobody is there."
        holdings, least = cell.get("contributors"), self._holdings
        if holdings is not None and holdings != cell["n"] and holdings < least:
            return f"Unsafe: {holdings:,} contributor{'s' * (holdings != 1)}, fewer than {least:,}."
        verdict = ("Unsafe", "fewer than") if int(cell["n"]) < self.n else ("Safe", "at least")
        return f"{verdict[0]}: {cell['n']:,} record{'s' * (cell['n'] != 1)}, {verdict[1]} {self.n:,}."

    @property
    def _holdings(self) -> int:
        return self.n if self.holdings is None else self.holdings

    def _lacking(self, cells: Cells) -> Floats:
        """How many contributors a cell is short of, where they are not its records."""
        if "contributors" not in cells.more.columns:
            return np.zeros(len(cells))
        contributors = cells.numbers("contributors")
        held = not np.array_equal(contributors, cells.n)
        return np.maximum(self._holdings - contributors, 0.0) if held else np.zeros(len(cells))
