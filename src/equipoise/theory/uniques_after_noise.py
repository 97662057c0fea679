"""Uniques of noisy numbers: who is still found by his value after noise, and the least noise that keeps a limit."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from scipy.special import ndtr, ndtri

from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError, InfeasibleError
from equipoise.methods.parameters import share

ERRORS = ndtri(0.5 + (np.arange(64) + 0.5) / 128)
"""Sizes of the noise in standard deviations, each as likely: medians of 64 slices of the half-normal law."""
MAX_SCALE = 3.0
MAX_EVALUATIONS = 1 << 28
MIN_TARGETS = 50


def uniques_after_noise(values: Sequence[float], scales: Sequence[float]) -> pl.DataFrame:
    """Share of people found by their exact number in a file with independent noise, for each size of the noise.

    The intruder knows x and takes the record whose noisy value is nearest, which among records with the same normal
    noise is the likeliest. With d_j = x_j - x_i, noise of standard deviation l = scale times that of the values and z
    standard normal, person i is found with the chance E prod over j of P(|d_j + l z_j| > l |z_i|), summed here over
    64 sizes of |z_i|; without noise the chance is 1 / (records with that value). It falls to 1/n.

    Source: Duncan and Keller-McNulty (2000), section 3, after Keller-McNulty and Unger (1990): the share of uniques as
    a function of the noise's standard deviation. Misleads when an intruder knows more columns, or links all records at
    once (see `attacks.Nearest`). Cost: O(n) for each of at most n targets; of many records targets are spread by rank.

    >>> [round(p, 3) for p in uniques_after_noise([0.0, 1.0], [0.0, 1.0])["found"]]
    [1.0, 0.855]
    """
    numbers = _numbers(values)
    spread = float(numbers.std())
    rows = [(float(scale), float(scale) * spread, _mean_chance(numbers, float(scale) * spread)) for scale in scales]
    return pl.DataFrame(rows, schema=["scale", "sd", "found"], orient="row")


def smallest_noise(values: Sequence[float], found_at_most: float) -> float:
    """The least scale of `masks.Noise` (share of the standard deviation) with which at most this share is found.

    By bisection between 0 and 3, to a thousandth; where even 3 leaves more, `InfeasibleError`. Source and caveats as
    in `uniques_after_noise`.

    >>> scale = smallest_noise([0.0, 1.0], 0.6)
    >>> 0.55 < uniques_after_noise([0.0, 1.0], [scale])["found"][0] <= 0.6
    True
    """
    share(found_at_most, "found_at_most")
    limit, numbers = found_at_most, _numbers(values)
    spread = float(numbers.std())
    if _mean_chance(numbers, 0.0) <= limit:
        return 0.0
    low, high = 0.0, MAX_SCALE
    if _mean_chance(numbers, high * spread) > limit:
        raise InfeasibleError(f"Noise of {MAX_SCALE:g} standard deviations leaves more than {limit:g} found.")
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if _mean_chance(numbers, middle * spread) <= limit else (middle, high)
    return high


def _numbers(values: Sequence[float]) -> Floats:
    numbers = np.sort(np.asarray(pl.Series(values).cast(pl.Float64).drop_nulls().drop_nans(), dtype=np.float64))
    if not len(numbers) or not np.isfinite(numbers).all():
        raise DataError("There are no finite numbers to add noise to.")
    if len(numbers) * MIN_TARGETS * len(ERRORS) > MAX_EVALUATIONS:
        raise DataError(f"{len(numbers):,} values are too many for this sum: take a part of the file.")
    return numbers


def _mean_chance(numbers: Floats, sd: float) -> float:
    """Mean chance of being found, over targets spread evenly by rank."""
    _, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    if sd == 0:
        return float((1 / counts[place]).mean())
    many = min(len(numbers), max(MIN_TARGETS, MAX_EVALUATIONS // (len(numbers) * len(ERRORS))))
    targets = np.unique(np.linspace(0, len(numbers) - 1, many).round().astype(np.int64))
    return float(np.mean([_chance(numbers, int(target), sd) for target in targets]))


def _chance(numbers: Floats, target: int, sd: float) -> float:
    gaps = np.abs(np.delete(numbers, target) - numbers[target])[:, None] / sd
    nearer = ndtr(ERRORS - gaps) - ndtr(-ERRORS - gaps)
    return float(np.exp(np.log1p(-np.minimum(nearer, 1 - 1e-16)).sum(axis=0)).mean())
