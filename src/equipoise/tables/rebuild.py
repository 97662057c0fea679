"""The attack on tables that do not add up: average all the ways in which a cell can be rebuilt."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.cells import amount
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import both, holds
from equipoise.ground.arrays import Floats
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Share of the cells with counts from 1 to `small` whose true value an intruder finds from the published table.

    Perturbation and random rounding change each cell by itself. But the truth adds up: with the published r = H b + e,
    b the inner cells and H saying which cell holds which, he takes the least squares b, not below 0, and rounds H b to
    whole numbers. Errors of independent cells average out, a total most of all. The baseline is the share he finds by
    taking published numbers as they are; the detail has the `rebuilt` numbers and, as `risk`, whether each is true.
    Without `small` (0) all occupied cells count.

    Source: Asghar and Kaafar (2020), *Averaging attacks on bounded noise-based disclosure control algorithms*; least
    squares adjustment as in Cox (1987).
    Misleads when the intruder has other tables of the same records, whose cells average too, or knows the law of the
    noise and weighs cells by it: the truth is then nearer than this. Cost: sparse least squares, O(cells x depth) each
    step.

    >>> from equipoise.data.records import Law
    >>> made = eq.table(eq.Records.of(pl.DataFrame({"k": ["a", "a", "b"]}), eq.Roles("k")), "k")
    >>> shown = made.protected(np.array([3.0, 3.0, 1.0]), pl.Series(["changed"] * 3), Law("", (), ""))
    >>> score = Rebuild(small=0).measure(shown, made)
    >>> round(score.value, 3), round(score.baseline, 3)
    (0.667, 0.667)
    """

    small: int = 4

    def __post_init__(self) -> None:
        check_fields(self, small=0)

    def measure(self, released: Table, original: Table) -> Score:
        table, true_table = both(released, original, "Rebuild")
        x, published = amount(true_table), table.published_values
        aimed = (true_table.n > 0) & ((true_table.n <= self.small) | (self.small == 0))
        rebuilt = _rebuilt(table, published)
        right, right_before = np.abs(rebuilt - x) < 0.5, np.abs(np.nan_to_num(published, nan=-1.0) - x) < 0.5
        many = int(aimed.sum())
        return Score(
            label(self),
            float(right[aimed].mean()) if many else 0.0,
            side="risk",
            baseline=float(right_before[aimed].mean()) if many else 0.0,
            number=float(right[aimed].sum()),
            unit="share of cells",
            notes=_errors(published, rebuilt, x),
            cells=lambda: table.table.with_columns(pl.Series("rebuilt", rebuilt), risk=(right & aimed).astype(float)),
        )


def _rebuilt(table: Table, published: Floats) -> Floats:
    """Least squares over the relations, whole and not below 0."""
    from scipy.sparse.linalg import lsmr

    members, visible = holds(table), ~np.isnan(published)
    if not visible.any():
        return np.zeros(len(published))
    start = np.nan_to_num(published[table.inner])
    step = lsmr(members[visible], published[visible] - members[visible] @ start, atol=1e-10, btol=1e-10, maxiter=2000)[
        0
    ]
    return np.round(members @ np.maximum(start + step, 0.0))


def _errors(published: Floats, rebuilt: Floats, x: Floats) -> tuple[str, ...]:
    visible = ~np.isnan(published)
    if not visible.any():
        return ()
    before, after = (float(np.sqrt(np.mean((e[visible] - x[visible]) ** 2))) for e in (published, rebuilt))
    return (f"The root mean square error is {before:.3g} as published, {after:.3g} rebuilt.",)
