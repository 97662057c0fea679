"""Pictures of a key: how its records lie over its values, in bars."""

from math import ceil, floor, isfinite, log10
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.branches import NESTING
from equipoise.data.levels import DatePart
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import code

SINGLE = 150
"""Whole numbers over so short a range have a bar each."""
BARS = 100
"""Bars over a longer range, about."""
TAIL = 0.995
"""The share of records that the first picture of a long tail shows."""
PERIODS = 80
"""Calendar periods that are shown as bars."""


def nice(size: float, whole: bool = False) -> float:
    """The next larger 1, 2 or 5 times a power of ten.

    >>> nice(0.03), nice(7), nice(0.3, whole=True)
    (0.05, 10.0, 1.0)
    """
    if not size > 0 or not isfinite(size):
        return 1.0
    power = 10.0 ** floor(log10(size))
    found = next(step * power for step in (1, 2, 5, 10) if step * power >= size * (1 - 1e-9))
    return max(1.0, found) if whole else found


def over_range(values: pl.Series, counts: Integers) -> dict[str, Any]:
    """Records over the range of numbers: `main` without a long tail, `whole` with it; each bar is (low, high, n)."""
    known = (values.is_not_null() & values.cast(pl.Float64).is_finite()).to_numpy()
    x, n = values.cast(pl.Float64).to_numpy()[known], counts[known]
    whole = values.dtype.is_integer() or bool((x == np.round(x)).all())
    low, high = float(x[0]), float(x[-1])
    share = np.cumsum(n) / n.sum()
    near = float(x[int(np.searchsorted(share, TAIL))])
    far = float(x[int(np.searchsorted(share, 1 - TAIL))])
    full = _picture(x, n, low, high, whole)
    cut = _picture(x, n, far, near, whole) if near - far < 0.6 * (high - low) else full
    step = 1.0 if whole and full["width"] <= 10 else nice((full["high"] - full["low"]) / 500, whole)
    return {"whole": full, "main": cut, "integers": whole, "step": step, "suggested": nice((near - far) / 12, whole)}


def _picture(x: Floats, n: Integers, low: float, high: float, whole: bool) -> dict[str, Any]:
    """Bars of a round width between round ends; what lies outside is counted as `below` and `above`."""
    width = 1.0 if whole and high - low <= SINGLE else nice((high - low) / BARS, whole)
    first, last = floor(low / width), ceil((high + (width if whole else 0)) / width)
    bars = max(1, last - first)
    place = np.floor(x / width).astype(np.int64) - first
    if not whole:
        place = np.where((place == bars) & (x <= last * width), bars - 1, place)
    inside = (place >= 0) & (place < bars)
    held = np.bincount(place[inside], weights=n[inside], minlength=bars)
    return {
        "low": first * width, "high": (first + bars) * width, "width": width, "n": np.rint(held).astype(int).tolist(),
        "below": int(n[place < 0].sum()), "above": int(n[place >= bars].sum()),
    }  # fmt: skip


def over_time(values: pl.Series, counts: Integers) -> dict[str, Any]:
    """Records over calendar periods, the shortest ones that fit into a picture."""
    for part in ("day", "month", "quarter", "year", "decade"):
        coded = code(DatePart(part).label(values))
        if coded.size <= PERIODS or part == "decade":
            break
    held = np.rint(np.bincount(coded.codes, weights=counts)).astype(int).tolist()
    bars = [(text, n) for text, n in zip(coded.values.to_list(), held, strict=True) if text is not None]
    return {"part": part, "bars": bars[:PERIODS]}


def fits_calendar(values: pl.Series) -> bool:
    """Dates, or text that is a date throughout."""
    if values.dtype == pl.Date or isinstance(values.dtype, pl.Datetime):
        return True
    known = values.drop_nulls()
    if values.dtype != pl.String or not len(known) or len(str(known[0])) != 10:
        return False
    return bool(known.str.to_date("%Y-%m-%d", strict=False).is_not_null().all())


PARTS = tuple(NESTING)
