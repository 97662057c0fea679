"""Levels of a hierarchy: each one coarsening of a column, which gives every value a label."""

import re
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cache
from math import isinf
from typing import Any, Literal, Protocol

import numpy as np
import polars as pl

from equipoise.ground.errors import DataError, ParameterError

Closed = Literal["left", "right"]
Style = Literal["range", "lower", "upper", "middle"]
PLAIN_DATES = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%Y%m%d")
DAY_FIRST, MONTH_FIRST = ("%d/%m/%Y", "%d-%m-%Y"), ("%m/%d/%Y", "%m-%d-%Y")
"""How dates are written as text; where nobody says which number comes first, of the latter only the year is read."""
SHORT_YEAR, LATEST_SHORT_YEAR = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{2})|[^\W\d_]{3,}\.?[-'’](\d{2})"), 30
"""Dates with years of two digits, 12.01.16 and Jan-16; 31 to 99 are of the last century."""
MONTH_ONLY = re.compile(r"(\d{4})[-/.](\d{1,2})|(\d{1,2})[-/.](\d{4})")
FILLERS = frozenset(("de", "del", "di", "do", "of", "st", "nd", "rd", "th", "er", "le", "r"))
MONTH_NAMES = """\
january jan januar jänner jaenner janvier janv enero ene gennaio gen januari janeiro styczeń stycznia sty styczen
february feb februar feber février fevrier févr fevr fév fev febrero febbraio februari fevereiro luty lutego lut
march mar märz maerz marz mrz mär mars marzo maart mrt março marco marzec marca
april apr avril avr abril abr aprile kwiecień kwietnia kwi kwiecien
may mai mayo mag maggio mei maio maj maja
june jun juni juin junio giugno giu junho czerwiec czerwca cze
july jul juli juillet juil julio luglio lug julho lipiec lipca lip
august aug août aout agosto ago augustus sierpień sierpnia sie sierpien
september sep sept septembre septiembre setiembre settembre set setembro wrzesień września wrzesnia wrz
october oct oktober okt octobre octubre ottobre ott outubro out październik października pazdziernika paź paz
november nov novembre noviembre novembro listopad listopada lis
december dec dezember dez décembre decembre déc diciembre dic dicembre dezembro grudzień grudnia gru"""
"""Names of months in dates, a month a line, in eight languages: whole, short, and as cases change them."""
First = Literal["day", "month"]
Part = Literal["day", "week", "month", "quarter", "year", "five years", "decade"]

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
    """The first characters of a code; codes that begin with one of `pooled` are one category, `pool`.

    Codes of fewer than `digits` digits have lost their leading zeros, as in files that took them for numbers.
    """

    name: str
    length: int
    pooled: tuple[str, ...] = ()
    pool: str = ""
    digits: int = 0

    def label(self, values: pl.Series) -> pl.Series:
        codes = self._codes(values)
        heads = codes.str.head(self.length)
        longer = [prefix for prefix in self.pooled if len(prefix) >= self.length]
        small = pl.any_horizontal(pl.lit(False), *(pl.col("code").str.starts_with(prefix) for prefix in longer))
        labels = pl.DataFrame({"code": codes, "head": heads}).select(
            pl.when(small).then(pl.lit(self.pool)).otherwise(pl.col("head")).alias(values.name)
        )
        return labels.to_series()

    def _codes(self, values: pl.Series) -> pl.Series:
        codes = as_text(values)
        if not self.digits:
            return codes
        if values.dtype.is_numeric() and (long := int((codes.str.len_chars() > self.digits).sum())):
            raise DataError(
                f"{long:,} values of column {values.name!r} have more than {self.digits} digits: store as text."
            )
        padded = codes.str.zfill(self.digits)
        return pl.select(
            pl.when(codes.str.contains(r"^\d+$")).then(padded).otherwise(codes).alias(values.name)
        ).to_series()

    def words(self) -> str:
        cut = f"cut to the first {self.length} character{'s' if self.length > 1 else ''}"
        return f"{cut}, {len(self.pooled)} small groups as {self.pool}" if self.pooled else cut


@dataclass(frozen=True, slots=True)
class DatePart:
    """The calendar period of a date; everything up to the year `oldest` is one category.

    `first` says whether the day or the month comes first in 03/04/2026.
    """

    name: Part
    oldest: int | None = None
    first: First | None = None

    def label(self, values: pl.Series) -> pl.Series:
        dates = _as_dates(values, years=self.name in ("year", "five years", "decade"), first=self.first)
        if self.oldest is None:
            return self._texts(dates).alias(values.name)
        word, periods = pl.lit(f"{self.oldest} or before"), self._texts(dates)
        return pl.select(
            pl.when(dates.dt.year() <= self.oldest).then(word).otherwise(periods).alias(values.name)
        ).to_series()

    def _texts(self, dates: pl.Series) -> pl.Series:
        first_year = dates.dt.year() // 5 * 5
        texts = {
            "day": lambda: dates.dt.strftime("%Y-%m-%d"),
            "week": lambda: dates.dt.strftime("%G-W%V"),
            "month": lambda: dates.dt.strftime("%Y-%m"),
            "quarter": lambda: dates.dt.year().cast(pl.String) + "-Q" + dates.dt.quarter().cast(pl.String),
            "year": lambda: dates.dt.year().cast(pl.String),
            "five years": lambda: pl.select(pl.format("{}-{}", first_year, first_year + 4)).to_series(),
            "decade": lambda: (dates.dt.year() // 10 * 10).cast(pl.String) + "s",
        }
        return texts[self.name]()

    def words(self) -> str:
        return f"given by {self.name} only" + (f", {self.oldest} and before as one" if self.oldest is not None else "")


def as_text(values: pl.Series) -> pl.Series:
    """Values as the text a hierarchy file lists: whole floats without the '.0'."""
    if not values.dtype.is_float():
        return values.cast(pl.String)
    present = values.fill_nan(None)
    whole = (present % 1 == 0) & (present.abs() < 2**53)
    digits = pl.select(pl.when(whole).then(present)).to_series().cast(pl.Int64).cast(pl.String)
    return pl.select(pl.coalesce(digits, present.cast(pl.String)).alias(values.name)).to_series()


def _as_dates(values: pl.Series, *, years: bool, first: First | None) -> pl.Series:
    if values.dtype == pl.Date or isinstance(values.dtype, pl.Datetime) or values.dtype == pl.Null:
        return values.cast(pl.Date)
    dates = dates_in_text(values, years=years, first=first)
    unread = int((dates.is_null() & values.is_not_null()).sum())
    if unread:
        raise DataError(f"{unread:,} values of column {values.name!r} are not dates like 2026-01-31 or 31.01.2026.")
    return dates


def dates_in_text(values: pl.Series, *, years: bool = False, first: First | None = None) -> pl.Series:
    """Dates written as text, null where they are none; for `years` also those whose day and month cannot be told apart.

    Months may be words of eight languages; a time of day is left out; a month without a day is its first day.

    >>> texts = pl.Series(["2026-01-31", "31.01.2026", "03/04/2026", "12 de enero de 2026"])
    >>> dates_in_text(texts).dt.year().to_list(), dates_in_text(texts, years=True).dt.year().to_list()
    ([2026, 2026, None, 2026], [2026, 2026, 2026, 2026])
    >>> dates_in_text(texts, first="month").dt.month().to_list()
    [1, 1, 3, 1]
    """
    texts = values.cast(pl.String).str.replace(r"[T ]\d{1,2}:\d{2}.*$", "")
    ambiguous = {"day": DAY_FIRST, "month": MONTH_FIRST, None: (*DAY_FIRST, *MONTH_FIRST) if years else ()}[first]
    formats = (texts.str.to_date(f, strict=False) for f in (*PLAIN_DATES, *ambiguous))
    dates = pl.select(pl.coalesce(formats)).to_series().alias(values.name)
    others = texts.filter(dates.is_null() & texts.is_not_null()).unique()
    words = {text: day for text in others if (day := date_in_words(text))}
    return dates.fill_null(texts.replace_strict(words, default=None, return_dtype=pl.Date)) if words else dates


def date_in_words(text: str) -> date | None:
    """A date with the month as a word, a year of two digits after dots, or no day; None where it is none.

    >>> date_in_words("12 Jan 2016"), date_in_words("März 3, 2016"), date_in_words("Main St 12")
    (datetime.date(2016, 1, 12), datetime.date(2016, 3, 3), None)
    """
    if part := MONTH_ONLY.fullmatch(text):
        return _date(part[1] or part[4], part[2] or part[3], "1")
    short = SHORT_YEAR.fullmatch(text)
    if short and short[3]:
        return _date(_full_year(short[3]), short[2], short[1])
    words = re.findall(r"[^\W\d_]+|\d+", text.lower())
    months = [month for word in words if (month := _month_numbers().get(word))]
    others = [word for word in words if not word.isdigit() and word not in _month_numbers() and word not in FILLERS]
    numbers = [word for word in words if word.isdigit()]
    if len(months) != 1 or others or not 1 <= len(numbers) <= 2:
        return None
    if short:
        return _date(_full_year(numbers[0]), months[0], "1")
    years = [number for number in numbers if len(number) == 4]
    days = [number for number in numbers if len(number) <= 2] or ["1"]
    return _date(years[0], months[0], days[0]) if len(years) == 1 else None


def _full_year(digits: str) -> int:
    return int(digits) + (2000 if int(digits) <= LATEST_SHORT_YEAR else 1900)


def _date(year: str | int, month: str | int, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day)) if 1800 <= int(year) <= 2100 else None
    except ValueError:
        return None


@cache
def _month_numbers() -> dict[str, int]:
    return {name: number for number, line in enumerate(MONTH_NAMES.splitlines(), 1) for name in line.split()}


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
    >>> _range(10**20, 10**20 + 5, "left", True)
    '100000000000000000000-100000000000000000004'
    """
    left_closed = closed == "left"
    if isinf(low) and isinf(high):
        return "*"
    if isinf(high):
        return f"{number_text(low)}+" if left_closed else f">{number_text(low)}"
    if isinf(low):
        return f"<{number_text(high)}" if left_closed else f"<={number_text(high)}"
    if whole and float(low).is_integer() and float(high).is_integer():
        first, last = (low, high - 1) if left_closed else (low + 1, high)
        both = f"{number_text(first)}{'-' if first >= 0 else ' to '}{number_text(last)}"
        return number_text(first) if first == last else both
    return f"[{number_text(low)}, {number_text(high)})" if left_closed else f"({number_text(low)}, {number_text(high)}]"
