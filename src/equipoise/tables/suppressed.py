"""Share of a table that is suppressed."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from equipoise.data.cells import amount
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import both
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score


@dataclass(frozen=True, slots=True)
class Suppressed:
    """Share of the occupied cells that are suppressed (`of="cells"`), or of the value in all cells (`of="value"`).

    Margins count as cells, and their value counts again.

    Source: Hundepool et al. (2012), *Statistical Disclosure Control*, section 4.4.
    Misleads when a suppressed cell can be computed from others, or when the cells suppressed are those that users need.
    Cost: O(cells).

    >>> from equipoise.data.records import Law
    >>> made = eq.table(eq.Records.of(pl.DataFrame({"k": ["a", "a", "b"]}), eq.Roles("k")), "k")
    >>> shown = made.protected(np.array([3.0, np.nan, np.nan]), pl.Series(["secondary"] * 3), Law("", (), ""))
    >>> round(Suppressed().measure(shown, made).value, 4), Suppressed("value").measure(shown, made).value
    (0.6667, 0.5)
    """

    of: Literal["cells", "value"] = "cells"

    def __post_init__(self) -> None:
        check_fields(self)

    def measure(self, released: Table, original: Table) -> Score:
        table, true_table = both(released, original, "Suppressed")
        suppressed = np.isnan(table.published_values)
        weight = (true_table.n > 0).astype(np.float64) if self.of == "cells" else np.abs(amount(true_table))
        number, everything = float(weight[suppressed].sum()), float(weight.sum())
        return Score(
            label(self),
            number / everything if everything else 0.0,
            side="utility",
            number=number,
            unit=f"share of {self.of}",
            cells=lambda: table.table.with_columns(suppressed=suppressed),
        )
