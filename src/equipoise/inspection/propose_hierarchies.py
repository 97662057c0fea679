"""Hierarchies proposed from the values of a column: round intervals, code prefixes, dates, merged rare categories."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import floor, log10
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.branches import Dates, Intervals
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.levels import First, Part, dates_in_text
from equipoise.inspection.column_facts import Facts
from equipoise.inspection.column_names import meaning_of
from equipoise.inspection.value_patterns import years
from equipoise.theory.response_error import finest_interval

TARGET_BANDS = 20
"""Intervals that the finest level aims at."""
RARE_SHARE = 0.01
"""Share of the records below which a category is rare."""
MAX_BANDED = 1e300
"""Numbers beyond are not cut into bands: their differences overflow."""
MAX_LISTED_CATEGORIES = 100
"""Categories that are named at most when rare ones are merged."""
KEPT = re.compile(r"\d+ kept")
RARE_MERGED, OTHER = "rare merged", "other"
"""The first level of merged categories, and the category that the merged ones become."""
TOP_SHARE = 0.995
"""Share of the numbers below the top code: an open band counts by its bound, and more above it would shift means."""
MAX_TOP_SHIFT = 0.08
"""Standard deviations by which a top code may shift the mean: below what a first policy allows in all."""
WIDTH_STEPS = {1: (1, 5, 10), 2: (2, 10, 20), 5: (5, 10, 20)}
CODE_PATTERN = r"^[A-Za-z]{0,3}\d[0-9A-Za-z]*([.\-][0-9A-Za-z]+| \d[0-9A-Za-z]*| [A-Z]{2})?$|^[A-Z]{2,6}$"
BAND_TEXT = re.compile(
    r"(?:(?P<under><=?|under |up to |below |unter |bis |moins de )|(?:>=?|over |Y|ab )?)(?P<low>\d+)"
    r"(?:(?: ?[-–] ?| to | bis | à )(?P<high>\d+)|\+| ?and over| or more| and more| et plus| und mehr| plus)?"
    r"(?: years| Jahre| ans)?"
)
"""Texts that are bands of numbers: 18-24, 65+, <18, under 5, 20 to 24 years."""
MAX_DEGREES, FINEST_DEGREES, FINEST_METRES = 180, 0.01, 1000
"""Coordinates above are metres; the finest squares of a grid, about a kilometre."""


def nested(facts: Facts, coded: bool = False, *, age: bool = False) -> Hierarchy | None:
    """The hierarchy that a column suggests, if any; `coded` says that its numbers are codes, `age` that they are ages.

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
        return prefixes(facts) or neighbours(facts) or merged(facts)
    if facts.kind == "whole" and _months(facts):
        return Hierarchy.intervals([3, 6], start=1)
    if facts.numeric:
        if facts.distinct > TARGET_BANDS or facts.kind == "decimal":
            return intervals(facts, age)
        return few_numbers(facts) or merged(facts)
    return None


def few_numbers(facts: Facts) -> Hierarchy | None:
    """Joined years or codes of ages, and numbers of household members up to a top; None for codes without an order.

    No top is proposed that shifts the mean by more than a release may, an open category being read at its bound.

    >>> from equipoise.inspection.column_facts import facts_of
    >>> [level.name for level in few_numbers(facts_of(pl.Series("children", [0] * 9 + [1, 1, 2, 3, 4]))).levels]
    ['original', '3+']
    """
    meaning, (low, high) = meaning_of(facts.name), facts.range() if facts.records else (0.0, 0.0)
    if meaning and (meaning.name == "age" or (meaning.name == "time" and years(facts))):
        steps = (5, 10, 20) if meaning.name == "age" and high > TARGET_BANDS else (2, 4, 8)
        widths = [width for width in steps if width <= high - low]
        return Hierarchy.intervals(widths) if widths else None
    if not meaning or meaning.name != "part_of_household" or low < 0 or facts.distinct != high - low + 1:
        return None
    numbers = range(int(low), int(high) + 1)
    values = facts.values.cast(pl.Float64).drop_nulls().to_numpy()
    fit = [top for top in numbers[1:-1] if np.maximum(values - top, 0).mean() <= MAX_TOP_SHIFT * values.std()]
    halves = [numbers[size] for size in _halves(len(numbers) - 2) if len(numbers) > 3]
    tops = [*(top for top in halves if top in fit[1:]), *fit[:1]]
    rows = {n: [f"{top}+" if n >= top else str(n) for top in tops] for n in numbers}
    return Hierarchy.mapping(rows, other=OTHER, names=[f"{top}+" for top in tops]) if tops else None


def neighbours(facts: Facts) -> Hierarchy | None:
    """Bands that are texts joined with the next one, two by two; None where a text is no band.

    >>> from equipoise.inspection.column_facts import facts_of
    >>> tree = neighbours(facts_of(pl.Series("age", ["65+", "<18", "18-24", "25-64"] * 9)))
    >>> tree.levels[1].label(pl.Series(["<18", "18-24", "25-64", "65+"])).to_list()
    ['up to 24', 'up to 24', '25+', '25+']
    """
    bands = [band for text in facts.shaped if (band := BAND_TEXT.fullmatch(text))]
    if not 4 <= len(bands) == facts.distinct <= MAX_LISTED_CATEGORIES or sum(bool(b["high"]) for b in bands) < 2:
        return None
    bands.sort(key=lambda band: (not band["under"], float(band["low"])))
    names, chain = [band[0] for band in bands], [[*range(len(bands))]]
    while max(chain[-1]) > 1:
        chain.append([group // 2 for group in chain[-1]])
    labels = [[_joined([b for b, g in zip(bands, groups, strict=True) if g == own]) for own in groups]
              for groups in chain[1:]]  # fmt: skip
    rows = {name: list(its) for name, its in zip(names, zip(*labels, strict=True), strict=True)}
    return Hierarchy.mapping(rows, other=OTHER, names=[f"{max(groups) + 1} bands" for groups in chain[1:]])


def _joined(bands: list[re.Match[str]]) -> str:
    """The label of neighbouring bands."""
    first, last = bands[0], bands[-1]
    if len(bands) == 1:
        return first[0]
    if first["under"]:
        return f"up to {last['high'] or last['low']}"
    return f"{first['low']}-{last['high']}" if last["high"] else f"{first['low']}+"


def _months(facts: Facts) -> bool:
    """Whether whole numbers are months, by the name of their column: quarters and halves of a year."""
    words = facts.name.lower()
    return any(word in words for word in ("month", "monat", "mois", "mese", "maand")) and (
        facts.distinct > 6 and facts.range() == (1.0, 12.0)
    )


def calendar(facts: Facts) -> Hierarchy | None:
    """Periods of a date, as long as the file covers several of them; of days and months in doubt only the years."""
    order, doubtful = None, False
    if facts.values.dtype.is_temporal():
        dates = facts.values
    else:
        orders: tuple[First | None, ...] = (None, "day", "month")
        readings = {order: dates_in_text(facts.values, first=order) for order in orders}
        whole = [order for order, dates in readings.items() if not dates.null_count()]
        doubtful = None not in whole and len(whole) != 1
        order = None if doubtful else whole[0]
        dates = dates_in_text(facts.values, years=True) if doubtful else readings[order]
    if dates.null_count():
        return None
    years, days = dates.dt.year().n_unique(), dates.dt.day().n_unique()
    fine: tuple[Part, ...] = () if doubtful else ("month", "quarter") if days > 1 else ("quarter",)
    year: tuple[Part, ...] = ("year",) if years > 1 else ()
    decade: tuple[Part, ...] = ("decade",) if years > 15 else ()
    parts = fine + year + decade
    return Hierarchy.dates(*parts, first=order) if parts else None


def years_of_birth(facts: Facts) -> Hierarchy | None:
    """Years, five years and decades of birth, never a month or day; None where these are no dates of several years."""
    tree = calendar(facts) if facts.kind == "date" else None
    parts = [level.name for level in tree.levels] if tree else []
    if tree is None or "year" not in parts:
        return None
    chosen: tuple[Part, ...] = ("year", "five years", "decade") if "decade" in parts else ("year", "five years")
    branch = tree.branches[0]
    return Hierarchy.dates(*chosen, first=branch.first if isinstance(branch, Dates) else None, floor="year")


def grid(columns: Sequence[Facts]) -> Hierarchy:
    """Squares for coordinates: of a hundredth of a degree or a kilometre at least, some twenty of them each way."""
    ends = [np.quantile(facts.values.cast(pl.Float64).to_numpy(), (0.01, 0.99)) for facts in columns]
    metres = max(abs(float(end)) for pair in ends for end in pair) > MAX_DEGREES
    spread = max(float(high - low) for low, high in ends) / TARGET_BANDS
    step, scale = round_up(max(spread, FINEST_METRES if metres else FINEST_DEGREES))
    widths = [plain(width * scale) for width in WIDTH_STEPS[step]]
    return Hierarchy.intervals(widths, floor=widths[0])


def prefixes(facts: Facts) -> Hierarchy | None:
    """The first characters of codes, cut where their parts meet; else at each length that leaves 60 % or less."""
    texts = facts.shaped.str.replace(r"\.0$", "") if facts.kind == "whole" else facts.shaped
    digits = _lost_zeros(texts) if facts.kind == "whole" else None
    texts = texts.str.zfill(digits) if digits else texts
    coded = texts.str.contains(CODE_PATTERN).mean()
    if facts.distinct <= TARGET_BANDS / 2 or not isinstance(coded, float) or coded < 0.95:
        return None
    sizes = texts.str.len_chars()
    longest: Any = sizes.max()
    if longest < 3 or (facts.kind == "whole" and sizes.n_unique() > 1):  # 3, 36 and 361 have nothing in common
        return None
    lengths = halving(texts, joints(texts)) or halving(texts, range(min(longest, 12) - 1, 0, -1))
    return Hierarchy.prefix(*lengths[-4:], digits=digits) if lengths else None


def _lost_zeros(texts: pl.Series) -> int | None:
    """The digits of codes of four and more, of which a few have lost their leading zeros; None where all have theirs.

    >>> _lost_zeros(pl.Series(["110", *map(str, range(4000, 4060))])), _lost_zeros(pl.Series(["3", "36", "3610"]))
    (4, None)
    """
    sizes = texts.str.len_chars()
    longest: Any = sizes.max() or 0
    few = longest >= 4 and sizes.n_unique() > 1 and float((sizes < longest).mean() or 0) < 0.2
    return int(longest) if few and int(sizes.min()) >= longest - 2 else None  # type: ignore[arg-type]


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
    """Frequent categories as they are, the others as one, two at least; then half as many, down to the most frequent.

    Rare ones are not named. Where all are frequent, the first level keeps half of them.
    """
    least = max(2.0, RARE_SHARE * facts.records)
    often = facts.counts.filter(pl.col("records") >= least)["value"].to_list()[:MAX_LISTED_CATEGORIES]
    rare = len(often) < facts.distinct
    sizes = list(_halves(min(len(often), facts.distinct - 2) if rare else facts.distinct // 2))
    if len(often) < 2 or facts.distinct < 3:
        return None
    rows = {value: [value if i < size else OTHER for size in sizes] for i, value in enumerate(often[: sizes[0]])}
    names = [f"{size} kept" for size in sizes]
    return Hierarchy.mapping(rows, other=OTHER, names=[RARE_MERGED, *names[1:]] if rare else names)


def merges_by_frequency(branches: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a hierarchy, as in a policy, only merges rare categories: groups that mean nothing in a table.

    >>> merges_by_frequency([{"kind": "mapping", "names": ["rare merged", "2 kept"]}])
    True
    """
    names = [name for branch in branches for name in branch.get("names", [""])]
    return all(name == RARE_MERGED or KEPT.fullmatch(str(name)) for name in names)


def _halves(size: int) -> Iterator[int]:
    """A number and its halves, down to 1.

    >>> list(_halves(12))
    [12, 6, 3, 1]
    """
    while size >= 1:
        yield size
        size //= 2


def intervals(facts: Facts, age: bool = False) -> Hierarchy | None:
    """Bands of equal round width, of ages five years; breaks where the numbers are skewed."""
    values = facts.values.cast(pl.Float64)
    numbers = values.filter(values.is_finite()).to_numpy()
    if not len(numbers):
        return None
    low, middle, high = np.quantile(numbers, (0.01, 0.5, 0.99))
    if high <= low or np.abs(numbers).max() > MAX_BANDED:
        return None
    if high - middle > 8 * max(middle - low, 1e-12) or (low >= 0 and high > 20 * max(middle, 1e-12)):
        return breaks(numbers)
    meaning = meaning_of(facts.name)
    age = age or (meaning is not None and meaning.name == "age")
    width, scale = (5, 1.0) if age else round_up((high - low) / TARGET_BANDS)
    widths = [step * scale for step in WIDTH_STEPS[width] if facts.kind == "decimal" or step * scale > 1]
    alone = [0] if low >= 0 and 0.05 < float((numbers == 0).mean()) < 0.9 else []
    top = floor(float(np.quantile(numbers, TOP_SHARE)) / widths[0]) * widths[0]
    return Hierarchy.intervals(
        [plain(w) for w in widths], alone=alone, top=plain(top) if top > max(low, 0) else None
    )  # fmt: skip


def floored(tree: Hierarchy, facts: Facts) -> tuple[Hierarchy, float | None]:
    """Intervals with the finest sensible one as their floor, where half of the people round more; and its width.

    Source: Massell (1999), section II: intervals finer than the measurement error are not reasonable. Misleads as
    `finest_interval` does.

    >>> from equipoise.inspection.column_facts import facts_of
    >>> ages = facts_of(pl.Series("age", [20, 25, 30, 35, 40, 45, 50, 55, 60, 33] * 5))
    >>> floored(Hierarchy.intervals([2, 10, 20]), ages)[1]
    5.0
    """
    branch, numbers = tree.branches[0], facts.values.cast(pl.Float64)
    numbers = numbers.filter(numbers.is_finite() & (numbers != 0))
    if not isinstance(branch, Intervals) or branch.floor is not None or numbers.is_empty():
        return tree, None
    precision = finest_interval(numbers.to_list())
    if not precision.rounded < precision.width <= branch.widths[-1]:
        return tree, None
    return Hierarchy((replace(branch, floor=plain(precision.width)),)), precision.width


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
