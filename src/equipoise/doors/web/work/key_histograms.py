"""Histograms of a key: numbers of records over its values."""

from math import ceil, floor, isfinite
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.branches import NESTING
from equipoise.data.levels import DatePart
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import code
from equipoise.releases.overlays import round_step

MAX_SINGLE_BARS = 150
"""Whole numbers over a range up to this have a bar each."""
LONG_RANGE_BARS = 100
"""Approximate number of bars over a longer range."""
MAIN_SHARE = 0.995
"""Share of records that the main histogram shows of a distribution with a long tail."""
MAX_PERIODS = 80
"""Calendar periods shown as bars, at most."""


def round_up(size: float, whole: bool = False) -> float:
    """The next larger 1, 2 or 5 times a power of ten.

    >>> round_up(0.03), round_up(7), round_up(0.3, whole=True)
    (0.05, 10.0, 1.0)
    """
    width = round_step(size, slack=1e-9) if size > 0 and isfinite(size) else 1.0
    return max(1.0, width) if whole else width


def over_range(values: pl.Series, counts: Integers) -> dict[str, Any]:
    """Histograms of a numeric key: `whole` over its range, `main` without a long tail."""
    finite = (values.is_not_null() & values.cast(pl.Float64).is_finite()).to_numpy()
    x, n = values.cast(pl.Float64).to_numpy()[finite], counts[finite]
    whole = values.dtype.is_integer() or bool((x == np.round(x)).all())
    low, high = float(x[0]), float(x[-1])
    share = np.cumsum(n) / n.sum()
    near = float(x[int(np.searchsorted(share, MAIN_SHARE))])
    far = float(x[int(np.searchsorted(share, 1 - MAIN_SHARE))])
    full = _histogram(x, n, low, high, whole)
    cut = _histogram(x, n, far, near, whole) if near - far < 0.6 * (high - low) else full
    step = 1.0 if whole and full["width"] <= 10 else round_up((full["high"] - full["low"]) / 500, whole)
    suggested = round_up((near - far) / 12, whole)
    return {"whole": full, "main": cut, "integers": whole, "step": step, "suggested": suggested}


def _histogram(x: Floats, n: Integers, low: float, high: float, whole: bool) -> dict[str, Any]:
    """Histogram with bars of a round width between round ends; records outside count as `below` and `above`."""
    width = 1.0 if whole and high - low <= MAX_SINGLE_BARS else round_up((high - low) / LONG_RANGE_BARS, whole)
    first, last = floor(low / width), ceil((high + (width if whole else 0)) / width)
    bars = max(1, last - first)
    place = np.floor(x / width).astype(np.int64) - first
    if not whole:
        place = np.where((place == bars) & (x <= last * width), bars - 1, place)
    inside = (place >= 0) & (place < bars)
    totals = np.bincount(place[inside], weights=n[inside], minlength=bars)
    return {
        "low": first * width, "high": (first + bars) * width, "width": width, "n": np.rint(totals).astype(int).tolist(),
        "below": int(n[place < 0].sum()), "above": int(n[place >= bars].sum()),
    }  # fmt: skip


def over_time(values: pl.Series, counts: Integers) -> dict[str, Any]:
    """Histogram over calendar periods, the shortest of which there are not too many."""
    for part in ("day", "month", "quarter", "year", "decade"):
        coded = code(DatePart(part).label(values))
        if coded.size <= MAX_PERIODS or part == "decade":
            break
    totals = np.rint(np.bincount(coded.codes, weights=counts)).astype(int).tolist()
    bars = [(text, n) for text, n in zip(coded.values.to_list(), totals, strict=True) if text is not None]
    return {"part": part, "bars": bars[:MAX_PERIODS]}


def fits_calendar(values: pl.Series) -> bool:
    """Whether the values are dates, or texts that are all dates."""
    if values.dtype == pl.Date or isinstance(values.dtype, pl.Datetime):
        return True
    present = values.drop_nulls()
    if values.dtype != pl.String or not len(present) or len(str(present[0])) != 10:
        return False
    return bool(present.str.to_date("%Y-%m-%d", strict=False).is_not_null().all())


CALENDAR_PARTS = tuple(NESTING)
