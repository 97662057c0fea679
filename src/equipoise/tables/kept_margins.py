"""How many margins are published as they are."""

from dataclasses import dataclass

import numpy as np

from equipoise.data.cells import amount
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import CHANGE_TOLERANCE, both
from equipoise.methods.method import label
from equipoise.methods.parameters import share
from equipoise.methods.score import Score


@dataclass(frozen=True, slots=True)
class KeptMargins:
    """Share of the occupied margins published to within the share `within` of their value: 0 asks for the value itself.

    Source: Hundepool et al. (2012), *Statistical Disclosure Control*, section 5.6.
    Misleads when users need inner cells: these are not looked at. Cost: O(cells).

    >>> from equipoise.data.records import Law
    >>> made = eq.table(eq.Records.of(pl.DataFrame({"k": ["a", "a", "b"]}), eq.Roles("k")), "k")
    >>> shown = made.protected(np.array([3.0, 0.0, 3.0]), pl.Series(["changed"] * 3), Law("", (), ""))
    >>> KeptMargins().measure(shown, made).value
    1.0
    """

    within: float = 0.0

    def __post_init__(self) -> None:
        share(self.within, "within", zero=True)

    def measure(self, released: Table, original: Table) -> Score:
        table, true_table = both(released, original, "KeptMargins")
        x, published = amount(true_table), table.published_values
        margin = ~true_table.inner & (true_table.n > 0)
        change = np.abs(np.where(np.isnan(published), np.inf, published) - x)
        near = change <= (self.within + CHANGE_TOLERANCE) * np.abs(x)
        number, many = int((near & margin).sum()), int(margin.sum())
        return Score(
            label(self),
            number / many if many else 1.0,
            "higher",
            side="utility",
            number=number,
            unit="share of margins",
            cells=lambda: table.table.with_columns(kept=near).filter(margin),
        )
