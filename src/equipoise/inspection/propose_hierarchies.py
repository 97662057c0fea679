"""Hierarchies proposed from the values of a column: round intervals, code prefixes, dates, merged rare categories."""

from collections.abc import Iterable
from math import floor, log10
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.hierarchy import Hierarchy
from equipoise.data.levels import Part
from equipoise.inspection.column_facts import Facts

TARGET_BANDS = 20
"""Intervals that the finest level aims at."""
RARE_SHARE = 0.01
MAX_BANDED = 1e300
"""Numbers beyond are not cut into bands: their differences overflow."""
"""Share of the records below which a category is rare."""
MAX_LISTED_CATEGORIES = 100
"""Categories that are named at most when rare ones are merged."""
WIDTH_STEPS = {1: (1, 5, 10), 2: (2, 10, 20), 5: (5, 10, 20)}
CODE_PATTERN = r"^[A-Za-z]{0,3}\d[0-9A-Za-z]*([.\-][0-9A-Za-z]+)?$|^[A-Z]{2,6}$"


def nested(facts: Facts, coded: bool = False) -> Hierarchy | None:
    """The hierarchy that a column suggests, if any; `coded` says that its numbers are codes.

    Numbers: widths of 1, 2 or 5 times a power of ten, about twenty of them between the first and the last hundredth;
    skewed ones: breaks at quantiles, rounded. Codes: prefixes that leave 60 % of them or less. Dates: calendar periods.
    Other categories: those with less than 1 % of the records merged, without being named.
    Misleads when digits are codes that mean nothing by their first places.

    >>> from equipoise.inspection.column_facts import facts_of
    >>> [level.name for level in nested(facts_of(pl.Series("age", range(90)))).levels]
    ['original', '5', '10', '20']
    """
    if facts.kind == "date":
        return calendar(facts)
    if facts.kind == "text" or (coded and facts.kind == "whole"):
        return prefixes(facts) or merged(facts)
    if facts.numeric:
        return intervals(facts) if facts.distinct > TARGET_BANDS or facts.kind == "decimal" else merged(facts)
    return None


def calendar(facts: Facts) -> Hierarchy | None:
    """Periods of a date, as long as the file covers several of them."""
    dates = facts.values if facts.values.dtype != pl.String else facts.values.str.to_date("%Y-%m-%d", strict=False)
    if facts.values.dtype == pl.String and dates.null_count():
        return None
    years = dates.dt.year().n_unique()
    parts: tuple[Part, ...] = (
        ("month", "quarter") + (("year",) if years > 1 else ()) + (("decade",) if years > 15 else ())
    )
    return Hierarchy.dates(*parts)


def prefixes(facts: Facts) -> Hierarchy | None:
    """The first characters of codes, cut where their parts meet; else at each length that leaves 60 % or less."""
    texts = facts.shaped.str.replace(r"\.0$", "") if facts.kind == "whole" else facts.shaped
    coded = texts.str.contains(CODE_PATTERN).mean()
    if facts.distinct <= TARGET_BANDS / 2 or not isinstance(coded, float) or coded < 0.95:
        return None
    longest: Any = texts.str.len_chars().max()
    if longest < 3:
        return None
    lengths = halving(texts, joints(texts)) or halving(texts, range(min(longest, 12) - 1, 0, -1))
    return Hierarchy.prefix(*lengths[-4:]) if lengths else None


def joints(texts: pl.Series) -> list[int]:
    """The positions where letters, digits and marks meet, if all codes are built alike: 3 and 1 for J45.0.

    >>> joints(pl.Series(["J45.0", "C10.1"])), joints(pl.Series(["10311", "20110"]))
    ([3, 1], [])
    """
    built = texts.str.replace_all(r"\p{L}", "A").str.replace_all(r"\d", "9").unique()
    if len(built) > 1:
        return []
    shape = built[0]
    return [i for i in range(len(shape) - 1, 0, -1) if shape[i] != shape[i - 1] and shape[i - 1].isalnum()]


def halving(texts: pl.Series, lengths: Iterable[int]) -> list[int]:
    """The lengths, of those given from long to short, at which at most 60 % of the codes before are left."""
    halved, codes = list[int](), texts.n_unique()
    for length in lengths:
        size = texts.str.head(length).n_unique()
        shortest = length == 1 or texts.str.head(length - 1).n_unique() < size
        if shortest and 2 <= size <= 0.6 * codes:
            halved.append(length)
            codes = size
    return halved


def merged(facts: Facts) -> Hierarchy | None:
    """Frequent categories as they are, the others as one, two at least; rare ones are not named."""
    least = max(2.0, RARE_SHARE * facts.records)
    often = facts.counts.filter(pl.col("records") >= least)
    often = often.head(facts.distinct - 2) if often.height == facts.distinct - 1 else often
    if not 2 <= often.height <= min(MAX_LISTED_CATEGORIES, facts.distinct - 2):
        return None
    rows = {value: value for value in often["value"].to_list()}
    return Hierarchy.mapping(rows, other="other", names=["rare merged"])


def intervals(facts: Facts) -> Hierarchy | None:
    """Bands of equal round width; breaks where the numbers are skewed."""
    values = facts.values.cast(pl.Float64)
    numbers = values.filter(values.is_finite()).to_numpy()
    if not len(numbers):
        return None
    low, middle, high = np.quantile(numbers, (0.01, 0.5, 0.99))
    if high <= low or np.abs(numbers).max() > MAX_BANDED:
        return None
    if high - middle > 8 * max(middle - low, 1e-12) or (low >= 0 and high > 20 * max(middle, 1e-12)):
        return breaks(numbers)
    width, scale = round_up((high - low) / TARGET_BANDS)
    widths = [step * scale for step in WIDTH_STEPS[width] if facts.kind == "decimal" or step * scale > 1]
    alone = [0] if low >= 0 and 0.05 < float((numbers == 0).mean()) < 0.9 else []
    top = floor(float(np.quantile(numbers, 0.98)) / widths[0]) * widths[0]
    return Hierarchy.intervals(
        [plain(w) for w in widths], alone=alone, top=plain(top) if top > max(low, 0) else None
    )  # fmt: skip


def breaks(numbers: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Hierarchy | None:
    """Quantiles rounded to one figure; the coarser levels keep every second and every fourth."""
    cut = np.quantile(numbers, np.linspace(0, 1, 18)[1:-1])
    points = sorted({one_figure(float(value)) for value in cut if value})
    levels = [points, points[1::2], points[3::4]]
    chain = [level for i, level in enumerate(levels) if level and (i == 0 or len(level) < len(levels[i - 1]))]
    zero = [0] if numbers.min() == 0 else []
    names = [f"{len(level) + 1} bands" for level in chain]
    rounded = [[plain(point) for point in level] for level in chain]
    return Hierarchy.breaks(*rounded, alone=zero, names=names) if len(points) > 1 else None


def round_up(value: float) -> tuple[int, float]:
    """The next of 1, 2, 5 times a power of ten, and that power.

    >>> round_up(3.7), round_up(620)
    ((5, 1.0), (1, 1000.0))
    """
    scale = 10.0 ** floor(log10(value))
    for step in (1, 2, 5):
        if value <= step * scale * (1 + 1e-9):
            return step, scale
    return 1, 10 * scale


def one_figure(value: float) -> float:
    """A number to one significant figure, so that a break is nobody's value."""
    scale = 10.0 ** floor(log10(abs(value)))
    return round(value / scale) * scale


def plain(value: float) -> float:
    """A whole number without its '.0', and no digits that rounding left.

    >>> plain(20.0), plain(0.30000000000000004)
    (20, 0.3)
    """
    near = float(f"{value:.6g}")
    return int(near) if near.is_integer() else near
