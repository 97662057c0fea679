"""Threshold (frequency) rule: cells need at least `n` records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, amount
from equipoise.data.equivalence_classes import Classes
from equipoise.ground.arrays import Integers
from equipoise.methods.parameters import share, whole_number
from equipoise.methods.protection_levels import Together, protection, refuse_uncounted
from equipoise.methods.sensitive_values import Merging


@dataclass(frozen=True, slots=True)
class MinCount(Together):
    """A cell is unsafe when it holds records, but fewer than `n` (the threshold or frequency rule, k-anonymity).

    Protection in a table: of counts, up to n, so that a safe count remains possible; of values the share `margin` of
    the value, both ways.

    Source: Willenborg and de Waal (1996), *Statistical Disclosure Control in Practice*, ch. 3.
    Misleads when the few records of a cell are not the few people of the population.

    >>> cells = Cells.of(pl.DataFrame({"sex": ["f", "m"], "n": [2, 3]}))
    >>> MinCount(3).flag(cells).to_list()
    [True, False]
    """

    merging: ClassVar[Merging] = "any"
    n: int = 3
    margin: float = 0.2

    def __post_init__(self) -> None:
        whole_number(self.n, "n")
        share(self.margin, "margin")

    def asks(self) -> tuple[int, int | None]:
        """The minimum size of a class, and on how many of the keys: all."""
        return self.n, None

    def flag(self, cells: Cells) -> pl.Series:
        refuse_uncounted(cells)
        size = cells.alike[0]
        return pl.Series("unsafe", (size > 0) & (size < self.n))

    def unsafe(self, classes: Classes) -> Integers:
        """Flags of the unsafe classes."""
        return classes.alike < self.n

    def levels(self, cells: Cells) -> pl.DataFrame:
        value = amount(cells)
        is_count = bool(np.array_equal(value, cells.n))
        return protection(self.flag(cells).to_numpy(), self.n - value if is_count else self.margin * value, cells)

    def explain(self, cell: Mapping[str, Any]) -> str:
        unsafe = 0 < int(cell["n"]) < self.n
        if not cell["n"]:
            return "Safe: nobody is there."
        verdict = ("Unsafe", "fewer than") if unsafe else ("Safe", "at least")
        return f"{verdict[0]}: {cell['n']:,} records, {verdict[1]} {self.n:,}."
