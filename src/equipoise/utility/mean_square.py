"""Mean squared change of numbers, in units of their variance."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.numeric_columns import numeric_columns
from equipoise.data.records import Records
from equipoise.data.weighted_samples import WeightedSample, pair, ratio, sample_notes
from equipoise.methods.method import label
from equipoise.methods.score import Score


@dataclass(frozen=True, slots=True)
class MeanSquare:
    """Mean squared change of the records' values, in units of the original's variance: a crude measure of use.

    MSE_j = sum w (x' - x)^2 / sum w; the value is the mean over columns of MSE_j / S_j^2, 0 for nothing changed and 1
    when the values are as far off as their own mean would be. The reciprocal, U = 1/MSE, is the column `utility` of the
    detail (null where nothing changed): errors are averaged over draws before a reciprocal is taken, never after. Where
    a column does not vary, the share of its values that changed stands for MSE / S^2. Weighted; values missing in
    either file are passed over, and counted in the notes. Needs the same records in both files.

    Source: Duncan and Keller-McNulty (2000), section 4. Misleads when users need estimates, not records: a shuffled
    column has a large error and the same distribution; suppressed values do not count. Cost: O(records x columns).

    >>> old = eq.Records.of(pl.DataFrame({"x": [1.0, 2.0, 3.0]}), eq.Roles(numeric="x"))
    >>> new = eq.Records.of(pl.DataFrame({"x": [1.0, 2.0, 4.5]}), eq.Roles(numeric="x"))
    >>> MeanSquare().measure(new, old).value, MeanSquare().measure(new, old).detail["utility"].item()
    (0.75, 1.3333333333333333)
    """

    columns: tuple[str, ...] | None = None

    def measure(self, released: Records, original: Records) -> Score:
        new, old = pair(released, original, numeric_columns(original, self.columns))
        table, missing = _errors(new, old), int((~new.present).sum())
        return Score(
            label(self),
            float(table["share"].drop_nulls().mean()),  # type: ignore[arg-type]
            side="utility",
            unit="times the variance",
            notes=("Crude: it compares records, not what users estimate.", *sample_notes(original, missing)),
            cells=lambda: table,
        )


def _errors(new: WeightedSample, old: WeightedSample) -> pl.DataFrame:
    totals = new.present.T @ new.weights
    change = np.nan_to_num(new.values - old.values)
    mse = ratio((change**2).T @ new.weights, totals, np.nan)
    changed = ratio((change != 0).T @ new.weights, totals, np.nan)
    variance = old.variances()
    return pl.DataFrame(
        {
            "column": new.names,
            "mse": mse,
            "variance": variance,
            "share": np.where(np.isnan(mse), np.nan, ratio(mse, variance, changed)),
            "utility": ratio(np.ones(len(mse)), mse, np.nan),
        }
    ).with_columns(pl.col(pl.Float64).fill_nan(None))
