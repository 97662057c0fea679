"""Overlays: the distribution of a variable before and after, on one scale. For internal reports: they show data."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from math import asinh, floor, log10
from typing import Any, Literal

import numpy as np
import polars as pl

from equipoise.core.errors import EngineError
from equipoise.core.pairs import aligned, in_order
from equipoise.core.records import Records
from equipoise.flow.wording import number, said

Floats = np.ndarray[Any, np.dtype[np.float64]]
MOST, MOST_RECORDS = 12, 5_000_000
"""Variables drawn at most, and records beyond which none are."""
BINS, BARS, SAMPLE = 32, 10, 200_000
TAIL, SKEW = 0.005, 10
"""The share beyond either end of a histogram, and how much longer its upper half is where its scale is stretched."""


@dataclass(frozen=True)
class Overlay:
    """One variable before and after: shares of the records that have a value, in the same bins or categories.

    `edges` are those of a histogram and empty for categories; `ticks` are places on its axis and what they are called;
    `moved` is half the sum of the absolute differences: the share of records in another bin than before.
    """

    column: str
    labels: tuple[str, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    words: str
    edges: tuple[float, ...] = ()
    ticks: tuple[tuple[float, str], ...] = ()

    @property
    def kind(self) -> Literal["histogram", "bars"]:
        return "histogram" if self.edges else "bars"

    @property
    def moved(self) -> float:
        return sum(abs(b - a) for b, a in zip(self.before, self.after, strict=True)) / 2


def changed_columns(original: Records, released: Records) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The variables that the masks touched, and those that matter and were left as they are."""
    here = released.schema()
    roles = original.roles
    touched = tuple(dict.fromkeys(c for law in released.history for c in law.columns if c in here))
    matter = [c for c in (*roles.keys, *roles.sensitive, *roles.numeric) if c in here and c != roles.id]
    rest = tuple(c for c in dict.fromkeys(matter) if c not in touched)
    return ((*touched, *rest), ()) if released.synthetic else (touched, rest)


def overlays(original: Records, released: Records, columns: Iterable[str]) -> tuple[Overlay, ...]:
    """The distributions of some columns before and after, the first twelve. O(records) for each.

    Numbers and dates are drawn as histograms of up to 32 bins, half a percent of the records beyond each end counted in
    the last ones; a number that was released as groups is spread evenly over the range of each. Others are categories,
    the ten most frequent. Misleads when variables change together: each is drawn alone.

    >>> from equipoise.core.roles import Roles
    >>> file, coarse = (Records.of(pl.DataFrame({"town": list(towns)}), Roles(["town"])) for towns in ("aabc", "aa**"))
    >>> [one] = overlays(file, coarse, ["town"])
    >>> one.labels, one.before, one.after, one.moved
    (('a', '*', 'b', 'c'), (0.5, 0.0, 0.25, 0.25), (0.5, 0.5, 0.0, 0.0), 0.5)
    """
    if not (in_order(original) and in_order(released)) or original.height() > MOST_RECORDS:
        return ()
    both = [c for c in columns if c in original.schema() and c in released.schema()]
    return tuple(_overlay(original, released, column) for column in both[:MOST])


def _overlay(original: Records, released: Records, column: str) -> Overlay:
    before, after = original.collect(column)[column], released.collect(column)[column]
    one, two = as_number(before), as_number(after)
    if one is None or (_few(before) and _few(after)) or one.null_count() == len(one):
        return _bars(column, before, after, _pairs(original, released, column))
    if two is not None and two.null_count() < len(two) and _plain(before) == _plain(after):
        words = _moments(one, two) if _plain(before) else ""
        return _histogram(column, before, (one, two), words, lambda edges: _shares(two, edges))
    pairs = _pairs(original, released, column)
    if pairs is None:
        return _bars(column, before, after)
    spans = _spans(pairs)
    words = f"{one.n_unique():,} values became {spans.height:,} groups, drawn spread evenly"
    return _histogram(column, before, (one, one), words, lambda edges: _spread(spans, edges), after.null_count())


def _few(values: pl.Series) -> bool:
    """So few values that each has its bar."""
    return values.head(10 * BARS).n_unique() <= BARS and values.n_unique() <= BARS


def _pairs(original: Records, released: Records, column: str) -> pl.DataFrame | None:
    """The original and the released value of each record; none where nobody knows whose record is whose."""
    try:
        here, there = aligned(released, original, (column,))
    except EngineError:
        return None
    return pl.DataFrame({"value": there[column], "group": here[column]}).drop_nulls()


def as_number(values: pl.Series) -> pl.Series | None:
    """Numbers as they are, dates as days; nothing for the rest."""
    if values.dtype.is_numeric():
        return values.cast(pl.Float64).fill_nan(None)
    if values.dtype in (pl.Date, pl.Datetime):
        return values.cast(pl.Date).cast(pl.Int32).cast(pl.Float64)
    return None


def _plain(values: pl.Series) -> bool:
    return values.dtype.is_numeric()


def _moments(before: pl.Series, after: pl.Series) -> str:
    one, two = (values.drop_nulls().to_numpy() for values in (before, after))
    pairs = [("mean", one.mean(), two.mean()), ("standard deviation", one.std(), two.std())]
    return ", ".join(f"{name} {number(float(a))} → {number(float(b))}" for name, a, b in pairs)


# Numbers --------------------------------------------------------------------------------------------------------------


def _histogram(
    column: str,
    raw: pl.Series,
    sides: tuple[pl.Series, pl.Series],
    words: str,
    share: Callable[[Floats], Floats],
    missing: int | None = None,
) -> Overlay:
    before, after = sides
    edges, scale = _edges(before, after)
    gaps = after.null_count() if missing is None else missing
    told = _told(words, before.null_count(), gaps, len(before), len(after))
    first, last = _shares(before, edges), share(edges)
    name = number if _plain(raw) else _day
    whole = 0.5 if edges[0] % 1 == 0.5 and scale is _same else 0.0
    labels = tuple(f"{name(low + whole)} to {name(high - whole)}" for low, high in pairwise(edges.tolist()))
    drawn = tuple(float(scale(edge)) for edge in edges)
    ticks = _apart([(float(scale(at)), name(at)) for at in _ticks(edges, scale is _same, raw)], drawn[-1] - drawn[0])
    return Overlay(column, labels, tuple(first.tolist()), tuple(last.tolist()), told, drawn, ticks)


def _apart(ticks: Sequence[tuple[float, str]], width: float) -> tuple[tuple[float, str], ...]:
    """Those that do not touch the one before."""
    kept: list[tuple[float, str]] = []
    for tick in ticks:
        if not kept or tick[0] - kept[-1][0] > width / 9:
            kept.append(tick)
    return tuple(kept)


def _same(value: float) -> float:
    return value


def _edges(before: pl.Series, after: pl.Series) -> tuple[Floats, Callable[[float], float]]:
    """Common bins, equally wide on the scale that is drawn: as it is, or the inverse hyperbolic sine of skewed ones."""
    pooled = pl.concat([_sampled(before), _sampled(after)])
    low, middle, high = np.quantile(pooled.to_numpy(), (TAIL, 0.5, 1 - TAIL), method="nearest").tolist()
    if low == high:
        return np.array([low - 0.5, low + 0.5]), _same
    if high - middle > SKEW * max(middle - low, (high - low) / 1000):
        unit = float(pooled.filter(pooled != 0).abs().quantile(0.25, "nearest") or 1.0)
        ends = asinh(low / unit), asinh(high / unit)
        return unit * np.sinh(np.linspace(*ends, BINS + 1)), lambda x: asinh(x / unit)
    if bool((pooled == pooled.floor()).all()):
        width = max(1, -(-int(high - low + 1) // BINS))
        return np.arange(low, high + width + 0.5, width) - 0.5, _same
    return np.linspace(low, high, BINS + 1), _same


def _sampled(values: pl.Series) -> pl.Series:
    """Known values, at most 200,000 evenly chosen: enough to lay bins."""
    known = values.drop_nulls()
    return known.gather_every(max(1, -(-len(known) // SAMPLE)))


def _shares(values: pl.Series, edges: Floats) -> Floats:
    """The share of known values in each bin; what lies beyond is in the last ones."""
    known = values.drop_nulls().to_numpy()
    places = np.clip(np.searchsorted(edges, known, side="right") - 1, 0, len(edges) - 2)
    return np.bincount(places, minlength=len(edges) - 1) / max(1, len(known))


def _spans(pairs: pl.DataFrame) -> pl.DataFrame:
    """For each released group the range of the original numbers in it."""
    values = as_number(pairs["value"])
    assert values is not None
    half = 0.5 if bool((values == values.floor()).all()) else 0.0
    table = pl.DataFrame({"group": pairs["group"], "value": values})
    spans = table.group_by("group").agg(low=pl.col("value").min() - half, high=pl.col("value").max() + half, n=pl.len())
    return spans.sort("low", "high")


def _spread(spans: pl.DataFrame, edges: Floats) -> Floats:
    """The records of each group spread evenly over its range: its share in each bin."""
    low, high, many = (spans[name].to_numpy().astype(np.float64) for name in ("low", "high", "n"))
    wide = np.maximum(high - low, 1e-12)
    inner = edges[1:-1]
    reached = np.clip((inner[None, :] - low[:, None]) / wide[:, None], 0.0, 1.0)
    below = np.concatenate([[0.0], many @ reached, [many.sum()]])
    shares: Floats = np.diff(below) / max(1.0, float(many.sum()))
    return shares


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


def round_step(least: float) -> float:
    """The next 1, 2 or 5 times a power of ten.

    >>> round_step(0.3), round_step(14)
    (0.5, 20.0)
    """
    power = 10.0 ** floor(log10(least))
    return next((digit * power for digit in (1.0, 2.0, 5.0) if digit * power >= least * 0.999), 10 * power)


def _day(days: float) -> str:
    return (date(1970, 1, 1) + timedelta(days=round(days))).isoformat()


# Categories -----------------------------------------------------------------------------------------------------------


def _bars(column: str, before: pl.Series, after: pl.Series, pairs: pl.DataFrame | None = None) -> Overlay:
    """Every category of either file, the most frequent ones by name and the rest together."""
    one, two = _counts(before, "before"), _counts(after, "after")
    words = f"{one.height:,} categories → {two.height:,}" if one.height != two.height else ""
    if one.height > BARS and pairs is not None and not set(two["label"]) & set(one["label"]):
        one, words = _grouped(one, pairs), f"{words}, those of the original drawn in their groups"
    table = one.join(two, on="label", how="full", coalesce=True).fill_null(0)
    table = table.with_columns(most=pl.max_horizontal("before", "after")).sort(
        ["most", "before", "label"], descending=[True, True, False]
    )
    shown, rest = table.head(BARS), table.slice(BARS)
    if rest.height:
        name = f"{rest.height:,} others"
        shown = pl.concat([shown, rest.sum().with_columns(label=pl.lit(name)).select(shown.columns)])
    told = _told(words, before.null_count(), after.null_count(), len(before), len(after))
    first, last = (tuple((shown[side] / max(1, table[side].sum())).to_list()) for side in ("before", "after"))
    return Overlay(column, tuple(shown["label"]), first, last, told)


def _grouped(counts: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """The categories of the original by what most of their records are called in the release."""
    named = (
        pairs.select(pl.all().cast(pl.String)).group_by("value", "group").len().sort("len", "group", descending=True)
    )
    first = named.unique("value", keep="first", maintain_order=True)
    told = counts.join(first, left_on="label", right_on="value", how="left").with_columns(
        label=pl.col("group").fill_null("(withheld)")
    )
    return told.group_by("label").agg(pl.col("before").sum())


def _counts(values: pl.Series, name: str) -> pl.DataFrame:
    known = values.drop_nulls().cast(pl.String).alias("label")
    return known.to_frame().group_by("label").agg(pl.len().cast(pl.Int64).alias(name))


def _told(words: str, *counts: int) -> str:
    """The change in words, with the missing values where there are any."""
    one, two, rows, kept = counts
    gaps = f"missing {said(one / max(1, rows), 'share')} → {said(two / max(1, kept), 'share')}" if one or two else ""
    return "; ".join(part for part in (words, gaps) if part)
