"""Where theory expects the trials of a map: the check on the empirical one."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from equipoise.masks import Noise
from equipoise.theory import curve
from equipoise.trials.trial import Trial


def expected_curve(trials: Sequence[Trial], risk: str, utility: str, records: int) -> pl.DataFrame | None:
    """The closed-form curve of independent noise, in the units of the map; None where theory says nothing of it.

    With noise of variance scale^2 on a column of variance 1, the mean squared change is scale^2, and the strongest
    snooper (the best linear one) has MSE = 1 / R, so that the share of the variance that is known is 1 - 1/R
    (Duncan and Keller-McNulty 2000, with the shrinking snooper). For maps of `value_disclosure` against `mean_square`,
    where noise is on one column or the snooper looks at each column by itself: other columns tell more.
    """
    noises = [mask for t in trials for mask in t.recipe.masks if isinstance(mask, Noise) and mask.kind == "independent"]
    alone = "snooper='own'" in risk or all(len(mask.columns) == 1 for mask in noises)
    scales = [mask.scale for mask in noises]
    if (
        not scales
        or not alone
        or risk.partition("(")[0] != "value_disclosure"
        or utility.partition("(")[0] != "mean_square"
    ):
        return None
    values = np.linspace(min(scales) / 2, max(scales) * 1.1, 60)
    noise_curve = curve("noise", "scale", values.tolist(), n=max(2, records), s2=1.0)
    return noise_curve.select(utility=pl.col("parameter") ** 2, risk=1 - 1 / pl.col("risk"))
