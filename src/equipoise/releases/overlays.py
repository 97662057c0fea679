"""Overlays: the distribution of a variable before and after, on one scale. For internal reports: they show data."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from math import asinh, floor, log10
from typing import Literal

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned, in_order
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import EngineError
from equipoise.presentation.numbers import number, value_text

MAX_OVERLAYS, MAX_RECORDS = 12, 5_000_000
"""Variables drawn at most, and records beyond which none are."""
MAX_BINS, BARS, SAMPLE_VALUES = 32, 10, 200_000
MIN_NAMED_RECORDS = 3
"""Records that a category must have, before or after, to be named: a rarer one could name a person."""
TAIL_SHARE, SKEW_RATIO = 0.005, 10
"""The share beyond either end of a histogram, and how much longer its upper half is where its scale is stretched."""


@dataclass(frozen=True)
class Overlay:
    """One variable before and after: shares of the records that have a value, in the same bins or categories.

    Where the records have weights the shares are of their sum, and `weight` is the column that has them. `edges` are
    those of a histogram and empty for categories; `ticks` are places on its axis and what they are called; `shift` is
    half the sum of the absolute differences: the share of records in another bin than before.
    """

    column: str
    labels: tuple[str, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    words: str
    edges: tuple[float, ...] = ()
    ticks: tuple[tuple[float, str], ...] = ()
    weight: str = ""

    @property
    def kind(self) -> Literal["histogram", "bars"]:
        return "histogram" if self.edges else "bars"

    @property
    def shift(self) -> float:
        return sum(abs(b - a) for b, a in zip(self.before, self.after, strict=True)) / 2


def changed_columns(original: Records, released: Records) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The variables that the masks touched, and those that matter and were left as they are."""
    schema = released.schema()
    roles = original.roles
    touched = tuple(dict.fromkeys(c for law in released.history for c in law.columns if c in schema))
    matter = [c for c in (*roles.keys, *roles.sensitive, *roles.numeric) if c in schema and c != roles.id]
    rest = tuple(c for c in dict.fromkeys(matter) if c not in touched)
    return ((*touched, *rest), ()) if released.synthetic else (touched, rest)


def overlays(original: Records, released: Records, columns: Iterable[str]) -> tuple[Overlay, ...]:
    """The distributions of some columns before and after, the first twelve. O(records) for each.

    Numbers and dates are drawn as histograms of up to 32 bins, half a percent of the records beyond each end counted in
    the last ones; a number that was released as groups is spread evenly over the range of each. Others are categories,
    the ten most frequent. Records count by their weight where both files have it; a share is then the sum of weights of
    the records in it over that of all that have a value, f(b) = sum_i w_i 1(x_i in b) / sum_i w_i. Misleads when
    variables change together: each is drawn alone. Categories of fewer than three records are drawn together.

    >>> from equipoise.data.roles import Roles
    >>> towns = ("aabc" * 3, "aa**" * 3)
    >>> file, coarse = (Records.of(pl.DataFrame({"town": list(side)}), Roles(["town"])) for side in towns)
    >>> [one] = overlays(file, coarse, ["town"])
    >>> one.labels, one.before, one.after, one.shift
    (('a', '*', 'b', 'c'), (0.5, 0.0, 0.25, 0.25), (0.5, 0.5, 0.0, 0.0), 0.5)
    """
    if not (in_order(original) and in_order(released)) or original.height() > MAX_RECORDS:
        return ()
    both = [c for c in columns if c in original.schema() and c in released.schema()]
    return tuple(_overlay(original, released, column) for column in both[:MAX_OVERLAYS])


@dataclass(frozen=True)
class CountedValues:
    """The values of one file, and what each counts."""

    values: pl.Series
    weights: Floats

    @classmethod
    def of(cls, records: Records, column: str, weight: str) -> "CountedValues":
        table = records.collect(*dict.fromkeys((column, weight) if weight else (column,)))
        counts = table[weight].cast(pl.Float64).fill_null(0.0).to_numpy() if weight else np.ones(table.height)
        return cls(table[column], counts)

    def as_number(self) -> "CountedValues | None":
        """The same as numbers; nothing where they are none."""
        numbers = as_number(self.values)
        return None if numbers is None else CountedValues(numbers, self.weights)

    @property
    def present_values(self) -> tuple[Floats, Floats]:
        """The numbers that are not missing, and their weights."""
        present = self.values.is_not_null().to_numpy()
        return self.values.drop_nulls().to_numpy(), self.weights[present]

    @property
    def missing(self) -> float:
        """The share without a value."""
        return float(self.weights[self.values.is_null().to_numpy()].sum()) / (float(self.weights.sum()) or 1.0)


def weight_of(original: Records, released: Records, column: str) -> str:
    """The column by which records count, where both files have it; a weight itself is counted by record."""
    name = original.roles.weight or ""
    shared = name in original.schema() and name in released.schema() and name != column
    return name if shared and released.schema()[name].is_numeric() else ""


def _overlay(original: Records, released: Records, column: str) -> Overlay:
    weight = weight_of(original, released, column)
    before, after = (CountedValues.of(records, column, weight) for records in (original, released))
    return replace(_overlay_of(original, released, column, before, after, weight), weight=weight)


def _overlay_of(
    original: Records, released: Records, column: str, before: CountedValues, after: CountedValues, weight: str
) -> Overlay:
    one, two = before.as_number(), after.as_number()
    few = _few(before.values) and _few(after.values)
    if one is None or few or one.values.null_count() == len(one.values):
        return _bars(column, before, after, _pairs(original, released, column, weight))
    if two is not None and two.values.null_count() < len(two.values) and _plain(before.values) == _plain(after.values):
        words = _moments(one, two) if _plain(before.values) else ""
        return _histogram(column, before.values, (one, two), words, lambda edges: _shares(two, edges))
    pairs = _pairs(original, released, column, weight)
    if pairs is None:
        return _bars(column, before, after)
    spans = _spans(pairs)
    words = f"{one.values.n_unique():,} values became {spans.height:,} groups, drawn spread evenly"
    return _histogram(column, before.values, (one, one), words, lambda edges: _spread(spans, edges), after.missing)


def _few(values: pl.Series) -> bool:
    """Whether there are few enough values for a bar each."""
    return values.head(10 * BARS).n_unique() <= BARS and values.n_unique() <= BARS


def _pairs(original: Records, released: Records, column: str, weight: str) -> pl.DataFrame | None:
    """The original and the released value of each record, and what it counts in the release.

    None where nobody knows whose record is whose.
    """
    try:
        after, before = aligned(released, original, (column, weight) if weight else (column,))
    except EngineError:
        return None
    counts = after[weight].cast(pl.Float64) if weight else pl.repeat(1.0, after.height, eager=True)
    return pl.DataFrame({"value": before[column], "group": after[column], "weight": counts}).drop_nulls()


def as_number(values: pl.Series) -> pl.Series | None:
    """Numbers as they are, dates as days; nothing for the rest."""
    if values.dtype.is_numeric():
        return values.cast(pl.Float64).fill_nan(None)
    if values.dtype in (pl.Date, pl.Datetime):
        return values.cast(pl.Date).cast(pl.Int32).cast(pl.Float64)
    return None


def _plain(values: pl.Series) -> bool:
    return values.dtype.is_numeric()


def _moments(before: CountedValues, after: CountedValues) -> str:
    pairs = zip(("mean", "standard deviation"), _mean_and_sd(before), _mean_and_sd(after), strict=True)
    return ", ".join(f"{name} {number(one)} → {number(two)}" for name, one, two in pairs)


def _mean_and_sd(side: CountedValues) -> tuple[float, float]:
    """m = sum w x / sum w, s^2 = sum w (x - m)^2 / sum w."""
    values, weights = side.present_values
    mean = float(np.average(values, weights=weights))
    return mean, float(np.average((values - mean) ** 2, weights=weights)) ** 0.5


def _histogram(
    column: str,
    raw: pl.Series,
    sides: tuple[CountedValues, CountedValues],
    words: str,
    share: Callable[[Floats], Floats],
    missing: float | None = None,
) -> Overlay:
    before, after = sides
    edges, scale = _edges(before.values, after.values)
    summary = _with_missing(words, before.missing, after.missing if missing is None else missing)
    first, last = _shares(before, edges), share(edges)
    name = number if _plain(raw) else _day
    whole = 0.5 if edges[0] % 1 == 0.5 and scale is _same else 0.0
    labels = tuple(f"{name(low + whole)} to {name(high - whole)}" for low, high in pairwise(edges.tolist()))
    places = tuple(float(scale(edge)) for edge in edges)
    ticks = _apart([(float(scale(at)), name(at)) for at in _ticks(edges, scale is _same, raw)], places[-1] - places[0])
    return Overlay(column, labels, tuple(first.tolist()), tuple(last.tolist()), summary, places, ticks)


def _apart(ticks: Sequence[tuple[float, str]], width: float) -> tuple[tuple[float, str], ...]:
    """Ticks whose labels do not overlap."""
    spaced: list[tuple[float, str]] = []
    for tick in ticks:
        if not spaced or tick[0] - spaced[-1][0] > width / 9:
            spaced.append(tick)
    return tuple(spaced)


def _same(value: float) -> float:
    return value


def _edges(before: pl.Series, after: pl.Series) -> tuple[Floats, Callable[[float], float]]:
    """Common bins, equally wide on the scale that is drawn: as it is, or the inverse hyperbolic sine of skewed ones."""
    pooled = pl.concat([_sampled(before), _sampled(after)])
    low, middle, high = np.quantile(pooled.to_numpy(), (TAIL_SHARE, 0.5, 1 - TAIL_SHARE), method="nearest").tolist()
    if low == high:
        return np.array([low - 0.5, low + 0.5]), _same
    if high - middle > SKEW_RATIO * max(middle - low, (high - low) / 1000):
        unit = float(pooled.filter(pooled != 0).abs().quantile(0.25, "nearest") or 1.0)
        ends = asinh(low / unit), asinh(high / unit)
        return unit * np.sinh(np.linspace(*ends, MAX_BINS + 1)), lambda x: asinh(x / unit)
    if bool((pooled == pooled.floor()).all()):
        width = max(1, -(-int(high - low + 1) // MAX_BINS))
        return np.arange(low, high + width + 0.5, width) - 0.5, _same
    return np.linspace(low, high, MAX_BINS + 1), _same


def _sampled(values: pl.Series) -> pl.Series:
    """Known values, at most 200,000 evenly chosen: enough to lay bins."""
    present = values.drop_nulls()
    return present.gather_every(max(1, -(-len(present) // SAMPLE_VALUES)))


def _shares(side: CountedValues, edges: Floats) -> Floats:
    """The share of known values in each bin; what lies beyond is in the last ones."""
    values, weights = side.present_values
    places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return np.bincount(places, weights, minlength=len(edges) - 1) / (float(weights.sum()) or 1.0)


def _spans(pairs: pl.DataFrame) -> pl.DataFrame:
    """For each released group the range of the original numbers in it."""
    values = as_number(pairs["value"])
    assert values is not None
    half = 0.5 if bool((values == values.floor()).all()) else 0.0
    ends = {"low": pl.col("value").min() - half, "high": pl.col("value").max() + half}
    spans = pairs.with_columns(value=values).group_by("group").agg(**ends, n=pl.col("weight").sum())
    return spans.sort("low", "high")


def _spread(spans: pl.DataFrame, edges: Floats) -> Floats:
    """The records of each group spread evenly over its range: its share in each bin."""
    low, high, many = (spans[name].to_numpy().astype(np.float64) for name in ("low", "high", "n"))
    wide = np.maximum(high - low, 1e-12)
    inner = edges[1:-1]
    reached = np.clip((inner[None, :] - low[:, None]) / wide[:, None], 0.0, 1.0)
    below = np.concatenate([[0.0], many @ reached, [many.sum()]])
    return np.diff(below) / (float(many.sum()) or 1.0)


def _ticks(edges: Floats, even: bool, raw: pl.Series) -> Sequence[float]:
    """A few round numbers between the ends."""
    low, high = float(edges[0]), float(edges[-1])
    if raw.dtype in (pl.Date, pl.Datetime):
        return [low + (high - low) * share for share in (0.05, 0.5, 0.95)]
    if even:
        step = round_step((high - low) / 6)
        return [step * k for k in range(floor(low / step) + 1, floor(high / step) + 1)]
    most = max(abs(low), abs(high))
    tens = [10.0**k for k in range(floor(log10(most)) - 4, floor(log10(most)) + 1)]
    return [tick for tick in sorted([*(-ten for ten in tens), 0.0, *tens]) if low <= tick <= high]


def round_step(least: float, slack: float = 0.001) -> float:
    """The next 1, 2 or 5 times a power of ten; one that is too small by a share `slack` will do.

    >>> round_step(0.3), round_step(14)
    (0.5, 20.0)
    """
    power = 10.0 ** floor(log10(least))
    return next((digit * power for digit in (1.0, 2.0, 5.0) if digit * power >= least * (1 - slack)), 10 * power)


def _day(days: float) -> str:
    return (date(1970, 1, 1) + timedelta(days=round(days))).isoformat()


def _bars(column: str, before: CountedValues, after: CountedValues, pairs: pl.DataFrame | None = None) -> Overlay:
    """Every category of either file, the most frequent ones by name and the rest together."""
    one, two = _counts(before, "before"), _counts(after, "after")
    words = f"{one.height:,} categories → {two.height:,}" if one.height != two.height else ""
    if one.height > BARS and pairs is not None and not set(two["label"]) & set(one["label"]):
        one, words = _grouped(one, pairs), f"{words}, those of the original drawn in their groups"
    table = one.join(two, on="label", how="full", coalesce=True, suffix="_after").fill_null(0)
    table = table.with_columns(
        most=pl.max_horizontal("before", "after"), rare=pl.max_horizontal("n", "n_after") < MIN_NAMED_RECORDS
    ).sort(["rare", "most", "before", "label"], descending=[False, True, True, False])
    named_bars = min(BARS, int((~table["rare"]).sum()))
    bars, rest = table.head(named_bars), table.slice(named_bars)
    if rest.height:
        name = f"{rest.height:,} others" if rest.height > 1 else "another"
        lumped = rest.select(pl.lit(name).alias("label"), pl.col("before", "after").sum())
        bars = pl.concat([bars.select(lumped.columns), lumped])
    summary = _with_missing(words, before.missing, after.missing)
    first, last = (tuple((bars[side] / (table[side].sum() or 1.0)).to_list()) for side in ("before", "after"))
    return Overlay(column, tuple(bars["label"]), first, last, summary)


def _grouped(counts: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """The categories of the original by what most of their records are called in the release."""
    group_sizes = (
        pairs.select(pl.col("value", "group").cast(pl.String))
        .group_by("value", "group")
        .len()
        .sort("len", "group", descending=True)
    )
    first = group_sizes.unique("value", keep="first", maintain_order=True)
    grouped = counts.join(first, left_on="label", right_on="value", how="left").with_columns(
        label=pl.col("group").fill_null("(suppressed)")
    )
    return grouped.group_by("label").agg(pl.col("before", "n").sum())


def _counts(side: CountedValues, name: str) -> pl.DataFrame:
    table = pl.DataFrame({"label": side.values.cast(pl.String), name: side.weights}).drop_nulls("label")
    return table.group_by("label").agg(pl.col(name).sum(), n=pl.len())


def _with_missing(words: str, one: float, two: float) -> str:
    """The change in words, with the shares that are missing where there are any."""
    gaps = f"missing {value_text(one, 'share')} → {value_text(two, 'share')}" if one or two else ""
    return "; ".join(part for part in (words, gaps) if part)
