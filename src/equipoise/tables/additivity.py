"""How much of a published table still adds up."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import CHANGE_TOLERANCE, additive, both
from equipoise.methods.method import label
from equipoise.methods.score import Score


@dataclass(frozen=True, slots=True)
class Additivity:
    """Share of the relations of a table, all of whose cells are published, that hold: parts add up to their total.

    The detail has a row for each such relation: the labels of its total, and by how much it is missed.

    Source: Hundepool et al. (2012), *Statistical Disclosure Control*, section 5.3.
    Misleads when most relations have a suppressed cell: these are left out, and the note says how many. Cost: O(cells).

    >>> from equipoise.data.records import Law
    >>> made = eq.table(eq.Records.of(pl.DataFrame({"k": ["a", "a", "b"]}), eq.Roles("k")), "k")
    >>> shown = made.protected(np.array([5.0, 5.0, 5.0]), pl.Series(["changed"] * 3), Law("", (), ""))
    >>> Additivity().measure(made, made).value, Additivity().measure(shown, made).value
    (1.0, 0.0)
    """

    def measure(self, released: Table, original: Table) -> Score:
        table, _ = both(released, original, "Additivity")
        rows, suppressed = additive(table), np.isnan(table.published_values)
        published = np.where(suppressed, 0.0, table.published_values)
        open_ = (abs(rows.matrix) @ suppressed.astype(np.float64)) == 0
        miss, size = rows.residuals(published), abs(rows.matrix) @ np.abs(published)
        additive_rows = (np.abs(miss) <= CHANGE_TOLERANCE * np.maximum(size, 1.0)) & open_
        many, skipped = int(open_.sum()), int((~open_).sum())
        return Score(
            label(self),
            float(additive_rows.sum()) / many if many else 1.0,
            "higher",
            side="utility",
            number=float(additive_rows.sum()),
            unit="share of relations",
            notes=(f"{skipped:,} relations with a suppressed cell are left out.",) if skipped else (),
            cells=lambda: table.table[rows.totals[open_]].with_columns(pl.Series("miss", miss[open_])),
        )
