"""Levels of a hierarchy: each one coarsening of a column, which gives every value a label."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, Protocol

import numpy as np
import polars as pl

from equipoise.ground.errors import DataError, ParameterError

Closed = Literal["left", "right"]
Style = Literal["range", "lower", "upper", "middle"]
Part = Literal["day", "week", "month", "quarter", "year", "decade"]

ORIGINAL = "original"
ROOT = "all"


class Level(Protocol):
    """One coarsening: a name, and the label of each value (null stays null)."""

    @property
    def name(self) -> str: ...
    def label(self, values: pl.Series) -> pl.Series: ...
    def words(self) -> str: ...


@dataclass(frozen=True, slots=True)
class OriginalLevel:
    """The values as they are."""

    name: str = ORIGINAL

    def label(self, values: pl.Series) -> pl.Series:
        return values

    def words(self) -> str:
        return "left as it is"


@dataclass(frozen=True, slots=True)
class Everything:
    """One category for all values."""

    name: str = ROOT

    def label(self, values: pl.Series) -> pl.Series:
        return pl.select(pl.when(has_value(values)).then(pl.lit("*")).alias(values.name)).to_series()

    def words(self) -> str:
        return "withheld (one category for all)"


@dataclass(frozen=True, slots=True)
class Bands:
    """Intervals of one width, or between given breaks; one rule for labels."""

    name: str
    width: float | None
    breaks: tuple[float, ...]
    closed: Closed
    start: float
    top: float | None
    bottom: float | None
    alone: tuple[float, ...]
    labels: Style | tuple[str, ...]

    def label(self, values: pl.Series) -> pl.Series:
        if not values.dtype.is_numeric() and values.dtype != pl.Null:
            raise DataError(f"Column {values.name!r} is {values.dtype}, not numeric: intervals cannot be made of it.")
        whole = values.dtype.is_integer()
        present = has_value(values)
        x = values.filter(present).cast(pl.Float64).to_numpy()
        edges = self._edges(x)
        band = np.searchsorted(edges, x, side="left" if self.closed == "right" else "right")
        for i, value in enumerate(self.alone):
            band[x == value] = len(edges) + 1 + i
        texts = self._texts(edges, whole)
        self._check_numbers(texts, band)
        full = np.full(len(values), -1)
        full[present.to_numpy()] = band
        picks = pl.Series(full).replace_strict(
            pl.Series(range(len(texts))), texts, default=None, return_dtype=texts.dtype
        )
        return picks.alias(values.name)

    def words(self) -> str:
        alone = f", {_join(self.alone)} kept alone" if self.alone else ""
        ends = [f"top code {number_text(self.top)}"] if self.top is not None else []
        ends += [f"bottom code {number_text(self.bottom)}"] if self.bottom is not None else []
        size = f"intervals of {number_text(self.width)}" if self.width else f"{len(self.breaks) + 1} intervals"
        return f"grouped into {size}{alone}{''.join(', ' + end for end in ends)}"

    def _edges(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The inner breaks, exact to the decimals of width and start, over the range of the data."""
        if self.width is None:
            inner = np.array(self.breaks, dtype=float)
        else:
            lo = min(float(x.min()), self.start) if len(x) else self.start
            hi = max(float(x.max()), self.start) if len(x) else self.start
            lo = max(lo, self.bottom) if self.bottom is not None else lo
            hi = min(hi, self.top) if self.top is not None else hi
            first, last = np.floor((lo - self.start) / self.width) - 1, np.ceil((hi - self.start) / self.width) + 1
            if last - first > 5_000_000:
                raise ParameterError(
                    f"Intervals of {number_text(self.width)} would make {last - first:,.0f} bands: use a wider one."
                )
            decimals = max(_decimals(self.width), _decimals(self.start))
            inner = np.round(self.start + np.arange(first, last + 1) * self.width, decimals)
        if self.top is not None:
            inner = np.append(inner[inner < self.top], self.top)
        if self.bottom is not None:
            inner = np.append(self.bottom, inner[inner > self.bottom])
        return inner

    def _texts(self, edges: np.ndarray[Any, Any], whole: bool) -> pl.Series:
        """The label of each band, then of each value kept alone."""
        lows = np.concatenate([[-np.inf], edges])
        highs = np.concatenate([edges, [np.inf]])
        if isinstance(self.labels, tuple):
            return pl.Series([*self.labels, *(number_text(value) for value in self.alone)])
        if self.labels == "range":
            texts = [_range(lo, hi, self.closed, whole) for lo, hi in zip(lows.tolist(), highs.tolist(), strict=True)]
            return pl.Series([*texts, *(number_text(value) for value in self.alone)])
        lows, highs = np.where(np.isinf(lows), highs, lows), np.where(np.isinf(highs), lows, highs)
        codes = {"lower": lows, "upper": highs, "middle": (lows + highs) / 2}[self.labels]
        numbers = pl.Series([*codes.tolist(), *self.alone], dtype=pl.Float64)
        exact = whole and self.labels != "middle" and bool((numbers.is_finite() & (numbers == numbers.round())).all())
        return numbers.cast(pl.Int64) if exact else numbers

    def _check_numbers(self, texts: pl.Series, band: np.ndarray[Any, Any]) -> None:
        """An open end takes the number of its only bound, which may be its neighbour's: refuse to merge the two."""
        used = texts.gather(pl.Series(np.unique(band)).cast(pl.UInt32))
        if texts.dtype.is_numeric() and used.n_unique() < len(used):
            raise ParameterError(
                f"Level {self.name!r} with labels={self.labels!r} gives two categories the same number "
                "(an open end, or a value kept alone): use another style, such as 'range'."
            )


@dataclass(frozen=True, slots=True)
class Lookup:
    """Labels from a table of leaves."""

    name: str
    place: int
    leaves: dict[str, tuple[str, ...]] = field(repr=False, hash=False)
    other: str | None

    def label(self, values: pl.Series) -> pl.Series:
        texts = as_text(values)
        listed = _as_numbers(self.leaves) if values.dtype.is_float() else self.leaves
        old, new = list(listed), [groups[self.place] for groups in listed.values()]
        labelled = texts.replace_strict(
            pl.Series(old, dtype=pl.String), pl.Series(new, dtype=pl.String), default=self.other
        )
        labels = pl.select(pl.when(texts.is_not_null()).then(labelled)).to_series()
        unlisted = int((labels.is_null() & texts.is_not_null()).sum())
        if unlisted:
            raise DataError(
                f"{unlisted:,} value{'s' if unlisted > 1 else ''} of column {values.name!r} "
                f"{'are' if unlisted > 1 else 'is'} not in its hierarchy: add {'them' if unlisted > 1 else 'it'}, "
                "or give other='...' for values that are not listed."
            )
        return labels.alias(values.name)

    def words(self) -> str:
        groups_used = {groups[self.place] for groups in self.leaves.values()} | ({self.other} if self.other else set())
        return f"combined into {len(groups_used):,} categories"


@dataclass(frozen=True, slots=True)
class Head:
    """The first characters of a code."""

    name: str
    length: int

    def label(self, values: pl.Series) -> pl.Series:
        return as_text(values).str.head(self.length).alias(values.name)

    def words(self) -> str:
        return f"cut to the first {self.length} character{'s' if self.length > 1 else ''}"


@dataclass(frozen=True, slots=True)
class DatePart:
    """The calendar period of a date."""

    name: Part

    def label(self, values: pl.Series) -> pl.Series:
        dates = _as_dates(values)
        texts = {
            "day": lambda: dates.dt.strftime("%Y-%m-%d"),
            "week": lambda: dates.dt.strftime("%G-W%V"),
            "month": lambda: dates.dt.strftime("%Y-%m"),
            "quarter": lambda: dates.dt.year().cast(pl.String) + "-Q" + dates.dt.quarter().cast(pl.String),
            "year": lambda: dates.dt.year().cast(pl.String),
            "decade": lambda: (dates.dt.year() // 10 * 10).cast(pl.String) + "s",
        }
        return texts[self.name]().alias(values.name)

    def words(self) -> str:
        return f"given by {self.name} only"


def as_text(values: pl.Series) -> pl.Series:
    """Values as the text a hierarchy file lists: whole floats without the '.0'."""
    if not values.dtype.is_float():
        return values.cast(pl.String)
    present = values.fill_nan(None)
    whole = (present % 1 == 0) & (present.abs() < 2**53)
    digits = pl.select(pl.when(whole).then(present)).to_series().cast(pl.Int64).cast(pl.String)
    return pl.select(pl.coalesce(digits, present.cast(pl.String)).alias(values.name)).to_series()


def _as_dates(values: pl.Series) -> pl.Series:
    if values.dtype == pl.Date or isinstance(values.dtype, pl.Datetime) or values.dtype == pl.Null:
        return values.cast(pl.Date)
    dates = values.cast(pl.String).str.to_date("%Y-%m-%d", strict=False)
    unread = int((dates.is_null() & values.is_not_null()).sum())
    if unread:
        raise DataError(f"{unread:,} values of column {values.name!r} are not dates like 2026-01-31.")
    return dates


def has_value(values: pl.Series) -> pl.Series:
    return values.is_not_null() & values.is_not_nan() if values.dtype.is_float() else values.is_not_null()


def leaf_text(value: Any) -> str:
    """A value as `as_text` writes it: true, 2 for 2.0.

    >>> leaf_text(True), leaf_text(2.0), leaf_text("2.0")
    ('true', '2', '2.0')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _as_numbers(leaves: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Leaves as a column of floats would write them: a file may list 2.0 for 2."""
    return {leaf_text(float(leaf)) if is_number(leaf) else leaf: groups for leaf, groups in leaves.items()}


def _decimals(value: float) -> int:
    exponent = Decimal(str(value)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def number_text(value: float | None) -> str:
    """A number as a person writes it: 5, 0.5, 100000."""
    if value is None:
        return ""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _join(values: tuple[float, ...]) -> str:
    return ", ".join(number_text(value) for value in values)


def _range(low: float, high: float, closed: Closed, whole: bool) -> str:
    """The label of a band: 11-15 for whole numbers, (10, 15] otherwise, 65+ and <18 at the ends.

    >>> _range(10, 15, "right", True), _range(10, 15, "left", True), _range(0.5, 1, "left", False)
    ('11-15', '10-14', '[0.5, 1)')
    >>> _range(65, np.inf, "left", True), _range(65, np.inf, "right", True), _range(-np.inf, 18, "right", False)
    ('65+', '>65', '<=18')
    """
    left_closed = closed == "left"
    if np.isinf(low) and np.isinf(high):
        return "*"
    if np.isinf(high):
        return f"{number_text(low)}+" if left_closed else f">{number_text(low)}"
    if np.isinf(low):
        return f"<{number_text(high)}" if left_closed else f"<={number_text(high)}"
    if whole and float(low).is_integer() and float(high).is_integer():
        first, last = (low, high - 1) if left_closed else (low + 1, high)
        both = f"{number_text(first)}{'-' if first >= 0 else ' to '}{number_text(last)}"
        return number_text(first) if first == last else both
    return f"[{number_text(low)}, {number_text(high)})" if left_closed else f"({number_text(low)}, {number_text(high)}]"
