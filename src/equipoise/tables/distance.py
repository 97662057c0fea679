"""How far a published table is from the true one."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from equipoise.data.cells import amount
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import both
from equipoise.ground.arrays import Floats
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score

Kind = Literal["share", "mean", "largest", "hellinger"]


@dataclass(frozen=True, slots=True)
class Distance:
    """Distance of what is published, r, from the true values x, over occupied cells and those published above 0.

    - share: sum of abs(r - x) / sum of x: the part of the value that moved;
    - mean: the mean of abs(r - x);
    - largest: the largest abs(r - x);
    - hellinger: sqrt(sum of (sqrt r - sqrt x)^2 / (2 sum of x)).

    A suppressed cell counts as published 0, all of its value lost, so that suppression and rounding can be compared;
    `skip` leaves suppressed cells out. Margins count as cells.

    Source: Shlomo and Young (2006), *Statistical disclosure control methods through a risk-utility framework*.
    Misleads when many small cells matter more to users than large ones: the share is ruled by the totals, the mean by
    the number of cells. Cost: O(cells).

    >>> from equipoise.data.records import Law
    >>> made = eq.table(eq.Records.of(pl.DataFrame({"k": ["a"] * 4 + ["b"]}), eq.Roles("k")), "k")
    >>> shown = made.protected(np.array([5.0, 5.0, 0.0]), pl.Series(["changed"] * 3), Law("", (), ""))
    >>> Distance().measure(shown, made).value, Distance("largest").measure(shown, made).value
    (0.2, 1.0)
    """

    kind: Kind = "share"
    skip: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    def measure(self, released: Table, original: Table) -> Score:
        table, true_table = both(released, original, "Distance")
        x, published = amount(true_table), table.published_values
        suppressed = np.isnan(published)
        r = np.where(suppressed, 0.0, published)
        compared = ((x > 0) | (r > 0)) & ~(suppressed & self.skip)
        number = int((suppressed & (x > 0)).sum())
        how = "left out" if self.skip else "counted as 0"
        return Score(
            label(self),
            self._value(r[compared], x[compared]),
            side="utility",
            unit="share of value" if self.kind == "share" else "",
            notes=(f"{number:,} suppressed cells are {how}.",) if number else (),
            cells=lambda: table.table.with_columns(distance=np.abs(r - x)),
        )

    def _value(self, r: Floats, x: Floats) -> float:
        if not len(x):
            return 0.0
        if self.kind == "mean":
            return float(np.abs(r - x).mean())
        if self.kind == "largest":
            return float(np.abs(r - x).max())
        everything = float(x.sum())
        if not everything:
            return 0.0
        if self.kind == "share":
            return float(np.abs(r - x).sum()) / everything
        roots = np.sqrt(np.maximum(r, 0.0)) - np.sqrt(x)
        return float(np.sqrt((roots**2).sum() / (2 * everything)))
