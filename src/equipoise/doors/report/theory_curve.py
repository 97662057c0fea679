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

    Where the size of some noise is private, `guessed` is what is left to a snooper to whom every size up to twice the
    true one is as likely: the gap between the curves is what the secret buys, as long as it is one.
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
    setting = {"n": max(2, records), "s2": 1.0}
    noise_curve = curve("noise", "scale", values.tolist(), **setting)
    expected = noise_curve.select(utility=pl.col("parameter") ** 2, risk=1 - 1 / pl.col("risk"))
    if not any(mask.private for mask in noises):
        return expected
    guesses = [curve("noise", "scale", [v], private=(0.0, 2 * v), **setting)["risk"][0] for v in values.tolist()]
    return expected.with_columns(guessed=1 - 1 / pl.Series(guesses))
