"""Response error: how finely people answered, the finest interval that makes sense, and an interval for each answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError

Numbers = Sequence[float | None]
NORMAL_95 = 1.959963984540054
STEPS = tuple(float(f"{digit}e{power}") for power in range(-6, 13) for digit in (1, 2, 5))
"""Numbers that people round to: 1, 2 and 5 times powers of ten."""
HEAPED_SHARE = 0.5
"""Share of the respondents who round to a step, from which it is the precision of the column."""


@dataclass(frozen=True)
class ResponsePrecision:
    """How finely a number was answered.

    `rounded` is the step that all values are multiples of; `heaped` has the share of respondents who round to each
    coarser step; `error` the standard deviation of the response error, where people were asked again; `width` the
    finest interval that makes sense, a floor for `Hierarchy.intervals`.
    """

    rounded: float
    heaped: dict[float, float]
    error: float | None
    width: float

    @property
    def step(self) -> float:
        """The coarsest step that half of the respondents round to."""
        return max((step for step, share in self.heaped.items() if share >= HEAPED_SHARE), default=self.rounded)


def finest_interval(values: Numbers, again: Numbers | None = None) -> ResponsePrecision:
    """The finest sensible interval of a number, from rounding, heaping and, where there are any, re-interviews.

    - Rounding: the largest of 1, 2, 5 times a power of ten that every value is a multiple of.
    - Heaping: of multiples of the step r a share r/s would be multiples of s by chance; with a share q of them,
      h = (q - r/s) / (1 - r/s) of the respondents round to s. The coarsest step with h of half and more counts.
    - Re-interviews: with answers x and x' the error has the variance Var(x - x') / 2, and 1.96 standard deviations on
      both sides of an answer hold the truth 95 times in 100.

    The width is the largest of the three, rounded up to 1, 2 or 5 times a power of ten. Zeros are left out: "none" is
    exact. Source: Massell (1999), section II.a and b: intervals finer than the measurement error are not reasonable.
    Misleads when prices or tariffs make round values true, and when both interviews err alike. Cost: O(n) a step.

    >>> pay = [1200, 1500, 2000, 1850, 3000, 2500, 1000, 4000, 3500, 2200, 5000, 4500]
    >>> precision = finest_interval(pay)
    >>> precision.rounded, precision.width
    (50.0, 500.0)
    """
    numbers = _answers(values)
    rounded = max((step for step in STEPS if _multiples(numbers, step).all()), default=0.0)
    heaped = _heaping(numbers, rounded) if rounded else {}
    error = _error(values, again) if again is not None else None
    precision = ResponsePrecision(rounded, heaped, error, 0.0)
    least = max(precision.step, 2 * NORMAL_95 * (error or 0.0))
    return replace(precision, width=min((s for s in STEPS if s >= least * (1 - 1e-9)), default=least))


def response_intervals(values: Numbers, again: Numbers | None = None) -> pl.DataFrame:
    """An interval around each answer that reflects its own precision; intervals may overlap.

    An answer is uncertain by half of the coarsest step that half of the respondents use and that it is a multiple of,
    or by 1.96 standard deviations of the response error, whichever is more; 0 is exact. Columns: `low`, `high`,
    `width`, and `alike`, how many answers (its own among them) have an interval that overlaps it (more than at an end):
    1 is a unique among numbers known no better than they were answered. Missing answers have neither. Source and
    caveats as in `finest_interval`. Cost: O(n log n).

    >>> response_intervals([1000, 1010, 2000, 3000, 5000, 7000, 9000])["alike"].to_list()
    [2, 2, 1, 1, 1, 1, 1]
    """
    precision = finest_interval(values, again)
    numbers = pl.Series(values).cast(pl.Float64).fill_nan(None)
    answers = numbers.fill_null(0.0).to_numpy()
    steps = (precision.rounded, precision.step)
    half = np.max(
        [np.where(_multiples(answers, step), step / 2, 0.0) for step in steps if step] or [answers * 0], axis=0
    )
    half = np.where(answers == 0, 0.0, np.maximum(half, NORMAL_95 * (precision.error or 0.0)))
    low, high = answers - half, answers + half
    answered = numbers.is_not_null().to_numpy()
    least = max(1e-6 * precision.rounded, 1e-12 * float(np.abs(answers).max()))
    wide = np.maximum(half, least)
    ends, starts = np.sort((answers + wide)[answered]), np.sort((answers - wide)[answered])
    alike = np.searchsorted(starts, answers + wide, side="left") - np.searchsorted(ends, answers - wide, side="right")
    table = pl.DataFrame({"low": low, "high": high, "width": 2 * half, "alike": alike})
    return table.select(pl.when(pl.Series(answered)).then(pl.all()))


def _answers(values: Numbers) -> Floats:
    numbers = pl.Series(values).cast(pl.Float64).fill_nan(None).drop_nulls().to_numpy()
    numbers = np.asarray(numbers[numbers != 0])
    if not len(numbers) or not np.isfinite(numbers).all():
        raise DataError("There are no finite numbers beside 0: nothing says how finely they were answered.")
    return numbers


def _multiples(numbers: Floats, step: float) -> Integers:
    """Which numbers are multiples of a step, up to the digits of a float."""
    ratio = numbers / step
    return np.asarray(np.abs(ratio - np.rint(ratio)) <= 1e-9 * np.abs(ratio))


def _heaping(numbers: Floats, rounded: float) -> dict[float, float]:
    """For each coarser step that nests the share of respondents who round to it."""
    span = float(np.abs(numbers).max())
    steps = [s for s in STEPS if s > rounded and 3 * s <= span and _multiples(np.array([s]), rounded)[0]]
    shares = {step: (float(_multiples(numbers, step).mean()), rounded / step) for step in steps}
    return {step: max(0.0, (share - chance) / (1 - chance)) for step, (share, chance) in shares.items()}


def _error(values: Numbers, again: Numbers) -> float:
    """Standard deviation of the response error, from those who answered twice."""
    if len(values) != len(again):
        raise DataError("Answers and those of the re-interview must go together, a missing one as null.")
    pairs = pl.DataFrame({"x": pl.Series(values).cast(pl.Float64), "y": pl.Series(again).cast(pl.Float64)})
    gaps = pairs.fill_nan(None).drop_nulls().select(pl.col("x") - pl.col("y")).to_series().to_numpy()
    if len(gaps) < 2:
        raise DataError("Fewer than two people answered twice: their error cannot be estimated.")
    return float(gaps.std(ddof=1) / np.sqrt(2))
