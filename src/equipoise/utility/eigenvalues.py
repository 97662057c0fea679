"""Change of the eigenvalues of the covariance matrix (principal variances)."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.numeric_columns import numeric_columns
from equipoise.data.records import Records
from equipoise.data.weighted_samples import WeightedSample, sample, sample_notes
from equipoise.ground.arrays import Floats
from equipoise.methods.method import label
from equipoise.methods.score import Score


@dataclass(frozen=True, slots=True)
class Eigenvalues:
    """Change of the eigenvalues of the covariance matrix, as a share of the variance in both files.

    Both files are scaled by the original standard deviations; with eigenvalues l and l', largest first, the value is
    sum |l - l'| / sum (l + l'), from 0 (all kept) to 1. No eigenvalue is divided by alone, so columns that are (nearly)
    collinear, whose smallest eigenvalues are 0, do no harm; a column that does not vary in the original is
    scaled by 1. Weighted, over the records that have every column. The detail has a row per component: the
    eigenvalues and their `share` of the variance in each file.

    Source: the comparison of eigenvalues in Templ, Kowarik and Meindl (2015), *Statistical disclosure control for
    micro-data using the R package sdcMicro*, which divides by each. Misleads when the axes turn but their lengths stay.
    Cost: O(records x columns^2 + columns^3).

    >>> old = eq.Records.of(pl.DataFrame({"x": [1.0, 2.0, 3.0]}), eq.Roles(numeric="x"))
    >>> new = eq.Records.of(pl.DataFrame({"x": [1.0, 3.0, 5.0]}), eq.Roles(numeric="x"))
    >>> Eigenvalues().measure(new, old).value  # |1 - 4| / (1 + 4)
    0.6
    """

    columns: tuple[str, ...] | None = None

    def measure(self, released: Records, original: Records) -> Score:
        columns = numeric_columns(original, self.columns)
        after, before = sample(released, columns), sample(original, columns)
        spread = np.sqrt(before.complete().variances())
        unit = np.where(spread > 0, spread, 1.0)
        new, old = _spectrum(after, unit), _spectrum(before, unit)
        whole = float((new + old).sum())
        missing = sum(int((~side.present).any(axis=1).sum()) for side in (after, before))
        lacking = (f"{missing:,} records without every column were passed over.",) if missing else ()
        return Score(
            label(self),
            float(np.abs(new - old).sum()) / whole if whole > 0 else 0.0,
            side="utility",
            unit="share of the variance",
            notes=(*sample_notes(original, 0), *lacking),
            cells=lambda: _detail(new, old),
        )


def _spectrum(side: WeightedSample, unit: Floats) -> Floats:
    """Eigenvalues of the covariance matrix of the scaled columns, largest first; none is below 0."""
    whole = side.complete()
    n = len(whole.values)
    if n < 2:
        return np.zeros(len(unit))
    share = whole.weights / whole.weights.sum()
    scaled = (whole.values - share @ whole.values) / unit
    matrix = (scaled.T * share) @ scaled * n / (n - 1)
    return np.maximum(np.linalg.eigvalsh(matrix)[::-1], 0.0)


def _detail(new: Floats, old: Floats) -> pl.DataFrame:
    table = pl.DataFrame({"component": np.arange(1, len(new) + 1), "original": old, "released": new})
    shares = (pl.col(side) / pl.max_horizontal(pl.col(side).sum(), 1e-300) for side in ("original", "released"))
    return table.with_columns(*(share.alias(f"share_{share.meta.root_names()[0]}") for share in shares))
