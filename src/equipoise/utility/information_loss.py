"""Information loss IL1s: mean absolute change of numbers, in standard deviations."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.numeric_columns import numeric_columns
from equipoise.data.records import Records
from equipoise.data.weighted_samples import WeightedSample, pair, ratio, sample_notes
from equipoise.ground.arrays import Floats
from equipoise.methods.method import label
from equipoise.methods.score import Score


@dataclass(frozen=True, slots=True)
class InformationLoss:
    """Mean distance of released from original values, in units of sqrt(2) standard deviations (IL1s).

    IL1s = 1/p sum_j sum_i w_i |x_ij - x'_ij| / (sqrt(2) S_j) / sum_i w_i. As a mean, not the published sum, it does not
    grow with the file: 0 for nothing changed; values replaced by independent draws of a normal law give
    sqrt(2/pi) = 0.80. Where a column does not vary, the share of its values that changed stands for it. Weighted;
    values missing in either file are passed over, and counted in the notes. Needs the same records in both files.

    Source: Mateo-Sanz, Sebe and Domingo-Ferrer (2004), *Outlier protection in continuous microdata masking*, and
    Yancey, Winkler and Creecy (2002), where S_j came in. Misleads when users need estimates, not records: a shuffled
    column loses much here and nothing in its distribution. Cost: O(records x columns).

    >>> old = eq.Records.of(pl.DataFrame({"x": [1.0, 2.0, 3.0]}), eq.Roles(numeric="x"))
    >>> new = eq.Records.of(pl.DataFrame({"x": [1.0, 2.0, 4.5]}), eq.Roles(numeric="x"))
    >>> round(InformationLoss().measure(new, old).value, 6)
    0.353553
    """

    columns: tuple[str, ...] | None = None

    def measure(self, released: Records, original: Records) -> Score:
        new, old = pair(released, original, numeric_columns(original, self.columns))
        losses = _losses(new, old)
        table = pl.DataFrame({"column": new.names, "deviation": np.sqrt(old.variances()), "loss": losses})
        return Score(
            label(self),
            float(np.nanmean(losses)),
            side="utility",
            unit="of sqrt(2) standard deviations",
            notes=sample_notes(original, int((~new.present).sum())),
            cells=lambda: table.with_columns(pl.col("loss").fill_nan(None)),
        )


def _losses(new: WeightedSample, old: WeightedSample) -> Floats:
    """The mean of |x - x'| / (sqrt(2) S) of each column, NaN where it has no value."""
    change = np.nan_to_num(np.abs(new.values - old.values))
    totals = new.present.T @ new.weights
    far = ratio(change.T @ new.weights, totals, np.nan)
    changed = ratio((change > 0).T @ new.weights, totals, np.nan)
    return np.where(np.isnan(far), np.nan, ratio(far, np.sqrt(2 * old.variances()), changed))
