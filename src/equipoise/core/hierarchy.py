"""Hierarchy: the ways a column may be coarsened, as nested levels.

A branch is one chain of levels, each a function of the finer one. A hierarchy holds one branch or several
alternatives (`thirds | fifths`), because useful coarsenings need not nest: bands of 3 and of 5 years do not.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import polars as pl

from equipoise.core.errors import DataError, ParameterError, hint

Closed = Literal["left", "right"]
Style = Literal["range", "lower", "upper", "middle"]
Part = Literal["day", "week", "month", "quarter", "year", "decade"]

ORIGINAL = "original"
ROOT = "all"
T = TypeVar("T")


class Level(Protocol):
    """One coarsening: a name, and the label of each value (null stays null)."""

    @property
    def name(self) -> str: ...
    def label(self, values: pl.Series) -> pl.Series: ...
    def words(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Original:
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
        return pl.select(pl.when(_known(values)).then(pl.lit("*")).alias(values.name)).to_series()

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
        known = _known(values)
        x = values.filter(known).cast(pl.Float64).to_numpy()
        edges = self._edges(x)
        band = np.searchsorted(edges, x, side="left" if self.closed == "right" else "right")
        for i, value in enumerate(self.alone):
            band[x == value] = len(edges) + 1 + i
        texts = self._texts(edges, whole)
        self._check_numbers(texts, band)
        full = np.full(len(values), -1)
        full[known.to_numpy()] = band
        picks = pl.Series(full).replace_strict(
            pl.Series(range(len(texts))), texts, default=None, return_dtype=texts.dtype
        )
        return picks.alias(values.name)

    def words(self) -> str:
        kept = f", {_join(self.alone)} kept alone" if self.alone else ""
        ends = [f"top code {_text(self.top)}"] if self.top is not None else []
        ends += [f"bottom code {_text(self.bottom)}"] if self.bottom is not None else []
        size = f"intervals of {_text(self.width)}" if self.width else f"{len(self.breaks) + 1} intervals"
        return f"grouped into {size}{kept}{''.join(', ' + end for end in ends)}"

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
                    f"Intervals of {_text(self.width)} would make {last - first:,.0f} bands: use a wider one."
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
            return pl.Series([*self.labels, *(_text(value) for value in self.alone)])
        if self.labels == "range":
            texts = [_range(lo, hi, self.closed, whole) for lo, hi in zip(lows.tolist(), highs.tolist(), strict=True)]
            return pl.Series([*texts, *(_text(value) for value in self.alone)])
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
        found = texts.replace_strict(
            pl.Series(old, dtype=pl.String), pl.Series(new, dtype=pl.String), default=self.other
        )
        labels = pl.select(pl.when(texts.is_not_null()).then(found)).to_series()
        lost = int((labels.is_null() & texts.is_not_null()).sum())
        if lost:
            raise DataError(
                f"{lost:,} value{'s' if lost > 1 else ''} of column {values.name!r} "
                f"{'are' if lost > 1 else 'is'} not in its hierarchy: add {'them' if lost > 1 else 'it'}, "
                "or give other='...' for values that are not listed."
            )
        return labels.alias(values.name)

    def words(self) -> str:
        return f"combined into {len({groups[self.place] for groups in self.leaves.values()}):,} categories"


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
    """The calendar period a date falls in."""

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


@dataclass(frozen=True, slots=True)
class Intervals:
    """Levels of equal-width intervals; `floor` is the finest width that the measurement itself deserves."""

    widths: tuple[float, ...]
    _: KW_ONLY
    closed: Closed = "left"
    start: float = 0
    top: float | None = None
    bottom: float | None = None
    alone: tuple[float, ...] = ()
    labels: Style = "range"
    floor: float | None = None
    root: bool = False

    def __post_init__(self) -> None:
        _plain_numbers(self, "widths", "start", "top", "bottom", "alone", "floor")
        _check_words(self.closed, self.labels)
        if not self.widths or any(not np.isfinite(w) or w <= 0 for w in self.widths):
            raise ParameterError("Interval widths must be positive numbers, at least one.")
        for fine, coarse in zip(self.widths, self.widths[1:], strict=False):
            ratio = Fraction(str(coarse)) / Fraction(str(fine))
            if ratio.denominator != 1 or ratio <= 1:
                raise ParameterError(
                    f"Level {_text(coarse)!r} is not a function of the finer level {_text(fine)!r}: "
                    "each width must be a multiple of the one before. Use two branches: a | b."
                )
        if self.floor is not None and self.floor > self.widths[-1]:
            raise ParameterError(
                f"The floor {_text(self.floor)} is above the widest interval {_text(self.widths[-1])}."
            )
        _check_ends(self.bottom, self.top)

    def levels(self) -> tuple[Level, ...]:
        common = (self.closed, self.start, self.top, self.bottom, self.alone, self.labels)
        made = tuple(Bands(_text(w), w, (), *common) for w in self.widths)
        return _rooted(made, self.root)

    def finest(self) -> int:
        """How many of the levels, the original first, are finer than the floor."""
        return 0 if self.floor is None else 1 + sum(w < self.floor for w in self.widths)


@dataclass(frozen=True, slots=True)
class Breaks:
    """Levels of intervals between given breaks; a coarser level drops breaks of the finer one."""

    breaks: tuple[tuple[float, ...], ...]
    _: KW_ONLY
    closed: Closed = "left"
    alone: tuple[float, ...] = ()
    labels: Style | tuple[tuple[str, ...], ...] = "range"
    names: tuple[str, ...] = ()
    floor: int | str | None = None
    root: bool = False

    def __post_init__(self) -> None:
        _plain_numbers(self, "breaks", "alone")
        _check_words(self.closed, self.labels)
        if not self.breaks or any(not level or list(level) != sorted(set(level)) for level in self.breaks):
            raise ParameterError("Breaks must be rising numbers, at least one for each level.")
        names = _names(self.names, len(self.breaks))
        for i, (fine, coarse) in enumerate(zip(self.breaks, self.breaks[1:], strict=False)):
            if not set(coarse) < set(fine):
                raise ParameterError(
                    f"Level {names[i + 1]!r} is not a function of the finer level {names[i]!r}: "
                    "its breaks must be some of the finer level's."
                )
        if isinstance(self.labels, tuple) and [len(t) for t in self.labels] != [len(b) + 1 for b in self.breaks]:
            raise ParameterError("Each level needs one label more than it has breaks.")

    def levels(self) -> tuple[Level, ...]:
        names = _names(self.names, len(self.breaks))
        labels = self.labels if isinstance(self.labels, tuple) else (self.labels,) * len(self.breaks)
        made = tuple(
            Bands(name, None, level, self.closed, 0, None, None, self.alone, text)
            for name, level, text in zip(names, self.breaks, labels, strict=True)
        )
        return _rooted(made, self.root)

    def finest(self) -> int:
        return _place(self.floor, self.levels())


@dataclass(frozen=True, slots=True)
class Leaves:
    """Levels listed leaf by leaf: (value, group, coarser group, ...) in each row."""

    rows: tuple[tuple[str, ...], ...] = field(repr=False)
    _: KW_ONLY
    names: tuple[str, ...] = ()
    other: str | None = None
    floor: int | str | None = None
    root: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(tuple(map(_leaf, row)) for row in self.rows))
        lengths = {len(row) for row in self.rows}
        if len(lengths) != 1 or lengths == {1}:
            raise ParameterError(
                "Every row of a hierarchy needs the value and the same number of groups, at least one."
            )
        if len({row[0] for row in self.rows}) < len(self.rows):
            raise ParameterError("A value stands in two rows of the hierarchy.")
        names = (ORIGINAL, *_names(self.names, lengths.pop() - 1))
        for place in range(1, len(names) - 1):
            parents: dict[str, str] = {}
            if any(parents.setdefault(row[place], row[place + 1]) != row[place + 1] for row in self.rows):
                raise ParameterError(
                    f"Level {names[place + 1]!r} is not a function of the finer level {names[place]!r}: "
                    "one of its categories is split between two groups."
                )

    def levels(self) -> tuple[Level, ...]:
        leaves = {row[0]: row[1:] for row in self.rows}
        names = _names(self.names, len(self.rows[0]) - 1)
        return _rooted(tuple(Lookup(name, i, leaves, self.other) for i, name in enumerate(names)), self.root)

    def finest(self) -> int:
        return _place(self.floor, self.levels())


@dataclass(frozen=True, slots=True)
class Prefix:
    """Levels of shorter and shorter prefixes (postcodes, industry and disease codes)."""

    lengths: tuple[int, ...]
    _: KW_ONLY
    floor: int | str | None = None
    root: bool = False

    def __post_init__(self) -> None:
        if not self.lengths or min(self.lengths) < 1:
            raise ParameterError("Prefix lengths must be at least 1.")
        for fine, coarse in zip(self.lengths, self.lengths[1:], strict=False):
            if coarse >= fine:
                raise ParameterError(
                    f"Level '{coarse}' is not a function of the finer level '{fine}': give lengths from long to short."
                )

    def levels(self) -> tuple[Level, ...]:
        return _rooted(tuple(Head(str(length), length) for length in self.lengths), self.root)

    def finest(self) -> int:
        return _place(self.floor, self.levels())


NESTING: dict[Part, tuple[Part, ...]] = {
    "day": ("week", "month", "quarter", "year", "decade"),
    "week": (),
    "month": ("quarter", "year", "decade"),
    "quarter": ("year", "decade"),
    "year": ("decade",),
    "decade": (),
}


@dataclass(frozen=True, slots=True)
class Calendar:
    """Levels of calendar periods; weeks do not nest in months."""

    parts: tuple[Part, ...]
    _: KW_ONLY
    floor: int | str | None = None
    root: bool = False

    def __post_init__(self) -> None:
        if not self.parts:
            raise ParameterError(f"Name at least one date part: {', '.join(NESTING)}.")
        for part in self.parts:
            if part not in NESTING:
                raise ParameterError(f"No date part {part!r}.{hint(part, list(NESTING))}")
        for fine, coarse in zip(self.parts, self.parts[1:], strict=False):
            if coarse not in NESTING[fine]:
                raise ParameterError(f"Level {coarse!r} is not a function of the finer level {fine!r}.")

    def levels(self) -> tuple[Level, ...]:
        return _rooted(tuple(DatePart(part) for part in self.parts), self.root)

    def finest(self) -> int:
        return _place(self.floor, self.levels())


Branch = Intervals | Breaks | Leaves | Prefix | Calendar
BRANCHES: dict[str, type[Branch]] = {
    "intervals": Intervals,
    "breaks": Breaks,
    "leaves": Leaves,
    "prefix": Prefix,
    "calendar": Calendar,
}


@dataclass(frozen=True)
class Hierarchy:
    """Nested coarsenings of one column, in one branch or several alternatives.

    Level 0 is the original; a level is named or numbered. A floor says which level is the finest that may be
    released, because the measurement is no better than that (Massell 1999, section I.a).

    >>> age = Hierarchy.intervals(3, closed="right", alone=0) | Hierarchy.intervals(5, closed="right", alone=0)
    >>> [level.name for level in age.levels]
    ['original', '3', '5']
    >>> age.level("5").label(pl.Series("age", [0, 1, 5, 6, None])).to_list()
    ['0', '1-5', '1-5', '6-10', None]
    """

    branches: tuple[Branch, ...]

    @classmethod
    def intervals(
        cls,
        widths: float | Sequence[float],
        *,
        closed: Closed = "left",
        start: float = 0,
        top: float | None = None,
        bottom: float | None = None,
        alone: float | Sequence[float] = (),
        labels: Style = "range",
        floor: float | None = None,
        root: bool = False,
    ) -> "Hierarchy":
        """Equal-width intervals from `start`; values in `alone` (often 0) are categories of their own.

        `closed` says which end belongs to the interval; everything from `top` on (above it when closed on the
        right) is one category, likewise below `bottom`; `floor` is the finest width that may be released.
        """
        branch = Intervals(
            _tuple(widths), closed=closed, start=start, top=top, bottom=bottom, alone=_tuple(alone), labels=labels,
            floor=floor, root=root,
        )  # fmt: skip
        return cls((branch,))

    @classmethod
    def breaks(
        cls,
        *levels: Sequence[float],
        closed: Closed = "left",
        alone: float | Sequence[float] = (),
        labels: Style | Sequence[Sequence[str]] = "range",
        names: Sequence[str] = (),
        floor: int | str | None = None,
        root: bool = False,
    ) -> "Hierarchy":
        """Intervals between breaks, finest level first; the outer intervals are open-ended (top and bottom code).

        >>> Hierarchy.breaks([18, 65]).level(1).label(pl.Series([17, 18, 64, 65])).to_list()
        ['<18', '18-64', '18-64', '65+']
        """
        texts: Any = labels if isinstance(labels, str) else tuple(tuple(level) for level in labels)
        points = tuple(_tuple(level) for level in levels)
        return cls(
            (
                Breaks(
                    points, closed=closed, alone=_tuple(alone), labels=texts, names=tuple(names), floor=floor, root=root
                ),
            )
        )

    @classmethod
    def mapping(
        cls,
        groups: Mapping[Any, Any],
        *,
        names: Sequence[str] = (),
        other: str | None = None,
        floor: int | str | None = None,
        root: bool = False,
    ) -> "Hierarchy":
        """From {value: group} or {value: (group, coarser group, ...)}.

        >>> Hierarchy.mapping({"a": "vowel", "b": "consonant"}).level(1).label(pl.Series(["b"])).to_list()
        ['consonant']
        """
        rows = tuple((leaf, *_tuple(group)) for leaf, group in groups.items())
        return cls((Leaves(rows, names=tuple(names), other=other, floor=floor, root=root),))

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        *,
        delimiter: str | None = None,
        names: Sequence[str] = (),
        other: str | None = None,
        floor: int | str | None = None,
        root: bool = False,
    ) -> "Hierarchy":
        """From a leaf-to-root file without header, as ARX writes it; `;`, `,` or tab."""
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise DataError(f"No hierarchy file at {str(path)!r}.") from None
        except (OSError, UnicodeDecodeError):
            raise DataError(f"Cannot read the hierarchy file {str(path)!r}: it must be UTF-8 text.") from None
        first = text.partition("\n")[0]
        mark = delimiter or max(";,\t", key=first.count)
        rows = tuple(tuple(row) for row in csv.reader(text.splitlines(), delimiter=mark) if row)
        if not rows:
            raise DataError(f"The hierarchy file {str(path)!r} is empty.")
        return cls((Leaves(rows, names=tuple(names), other=other, floor=floor, root=root),))

    @classmethod
    def prefix(cls, *lengths: int, floor: int | str | None = None, root: bool = False) -> "Hierarchy":
        """The first characters of a code, long to short.

        >>> Hierarchy.prefix(3, 1).level("1").label(pl.Series(["1017", "2600"])).to_list()
        ['1', '2']
        """
        return cls((Prefix(tuple(lengths), floor=floor, root=root),))

    @classmethod
    def dates(cls, *parts: Part, floor: int | str | None = None, root: bool = False) -> "Hierarchy":
        """Calendar periods, fine to coarse: day, week, month, quarter, year, decade."""
        return cls((Calendar(tuple(parts), floor=floor, root=root),))

    def __post_init__(self) -> None:
        if not self.branches:
            raise ParameterError("A hierarchy needs at least one level.")
        _ = self.levels

    def __or__(self, other: "Hierarchy") -> "Hierarchy":
        return Hierarchy((*self.branches, *other.branches))

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The original, then every level of every branch once."""
        found: dict[str, Level] = {ORIGINAL: Original()}
        for branch in self.branches:
            for level in branch.levels():
                if found.setdefault(level.name, level) != level:
                    raise ParameterError(f"Two branches define level {level.name!r} differently: give other names.")
        return tuple(found.values())

    def level(self, which: int | str) -> Level:
        """A level by number or by name."""
        names = [level.name for level in self.levels]
        if isinstance(which, str) and which in names:
            return self.levels[names.index(which)]
        number = int(which) if isinstance(which, int) or which.isdecimal() else -1
        if 0 <= number < len(names):
            return self.levels[number]
        listed = ", ".join(f"{i} {name!r}" for i, name in enumerate(names))
        raise ParameterError(f"No level {which!r}. There are: {listed}.")

    @cached_property
    def allowed(self) -> tuple[Level, ...]:
        """The levels that may be released: none finer than the floor."""
        finer = {level.name for branch in self.branches for level in (Original(), *branch.levels())[: branch.finest()]}
        return tuple(level for level in self.levels if level.name not in finer)

    def to_plain(self) -> list[dict[str, Any]]:
        """Plain data for a TOML file: one table per branch."""
        return [_plain(branch) for branch in self.branches]


def as_text(values: pl.Series) -> pl.Series:
    """Values as the text a hierarchy file lists: whole floats without the '.0'."""
    if not values.dtype.is_float():
        return values.cast(pl.String)
    known = values.fill_nan(None)
    whole = (known % 1 == 0) & (known.abs() < 2**53)
    digits = pl.select(pl.when(whole).then(known)).to_series().cast(pl.Int64).cast(pl.String)
    return pl.select(pl.coalesce(digits, known.cast(pl.String)).alias(values.name)).to_series()


def _as_dates(values: pl.Series) -> pl.Series:
    if values.dtype == pl.Date or isinstance(values.dtype, pl.Datetime) or values.dtype == pl.Null:
        return values.cast(pl.Date)
    dates = values.cast(pl.String).str.to_date("%Y-%m-%d", strict=False)
    lost = int((dates.is_null() & values.is_not_null()).sum())
    if lost:
        raise DataError(f"{lost:,} values of column {values.name!r} are not dates like 2026-01-31.")
    return dates


def _plain(branch: Branch) -> dict[str, Any]:
    kind = next(name for name, made in BRANCHES.items() if isinstance(branch, made))
    given = {f.name: getattr(branch, f.name) for f in fields(branch) if f.name != "_"}
    return {"kind": kind} | {k: v for k, v in given.items() if v is not None and v is not False and v != ()}


def _rooted(levels: tuple[Level, ...], root: bool) -> tuple[Level, ...]:
    return (*levels, Everything()) if root else levels


def _place(floor: int | str | None, levels: tuple[Level, ...]) -> int:
    names = [ORIGINAL, *(level.name for level in levels)]
    if floor is None:
        return 0
    if isinstance(floor, str) and floor in names:
        return names.index(floor)
    if isinstance(floor, int) and 0 <= floor < len(names):
        return floor
    raise ParameterError(f"The floor {floor!r} is none of the levels: {', '.join(names)}.")


def _names(names: tuple[str, ...], count: int) -> tuple[str, ...]:
    if names and len(names) != count:
        raise ParameterError(f"{len(names)} level names were given for {count} levels.")
    return names or tuple(str(i + 1) for i in range(count))


def _plain_numbers(branch: Any, *names: str) -> None:
    """Python's own numbers, one alone as a tuple where several may stand; anything else is refused."""
    plural = ("widths", "breaks", "alone")
    for name in names:
        value = getattr(branch, name)
        try:
            plain = None if value is None else _number(_tuple(value) if name in plural else value)
        except (TypeError, ValueError):
            raise ParameterError(f"{name} must be a number{' or numbers' if name in plural else ''}.") from None
        object.__setattr__(branch, name, plain)


def _number(value: Any) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(_number(v) for v in value)
    if isinstance(value, str | bool):
        raise TypeError
    return int(value) if isinstance(value, int | np.integer) else float(value)


def _check_words(closed: str, labels: Any) -> None:
    if closed not in ("left", "right"):
        raise ParameterError(f"closed must be 'left' or 'right', got {closed!r}.")
    if isinstance(labels, str) and labels not in ("range", "lower", "upper", "middle"):
        raise ParameterError(f"labels must be 'range', 'lower', 'upper' or 'middle', got {labels!r}.")


def _known(values: pl.Series) -> pl.Series:
    return values.is_not_null() & values.is_not_nan() if values.dtype.is_float() else values.is_not_null()


def _leaf(value: Any) -> str:
    """A value as `as_text` writes it: true, 2 for 2.0.

    >>> _leaf(True), _leaf(2.0), _leaf("2.0")
    ('true', '2', '2.0')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _as_numbers(leaves: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Leaves as a column of floats would write them: a file may list 2.0 for 2."""
    return {_leaf(float(leaf)) if _is_number(leaf) else leaf: groups for leaf, groups in leaves.items()}


def _check_ends(bottom: float | None, top: float | None) -> None:
    if top is not None and bottom is not None and bottom >= top:
        raise ParameterError(f"The bottom code {_text(bottom)} must be below the top code {_text(top)}.")


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple | range | np.ndarray) else (value,)


def _decimals(value: float) -> int:
    exponent = Decimal(str(value)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _text(value: float | None) -> str:
    """A number as a person writes it: 5, 0.5, 100000."""
    if value is None:
        return ""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _join(values: tuple[float, ...]) -> str:
    return ", ".join(_text(value) for value in values)


def _range(low: float, high: float, closed: Closed, whole: bool) -> str:
    """The label of a band: 11-15 for whole numbers, (10, 15] otherwise, 65+ and <18 at the ends.

    >>> _range(10, 15, "right", True), _range(10, 15, "left", True), _range(0.5, 1, "left", False)
    ('11-15', '10-14', '[0.5, 1)')
    >>> _range(65, np.inf, "left", True), _range(65, np.inf, "right", True), _range(-np.inf, 18, "right", False)
    ('65+', '>65', '<=18')
    """
    left = closed == "left"
    if np.isinf(low) and np.isinf(high):
        return "*"
    if np.isinf(high):
        return f"{_text(low)}+" if left else f">{_text(low)}"
    if np.isinf(low):
        return f"<{_text(high)}" if left else f"<={_text(high)}"
    if whole and float(low).is_integer() and float(high).is_integer():
        first, last = (low, high - 1) if left else (low + 1, high)
        return (
            _text(first)
            if first == last
            else f"{_text(first)}-{_text(last)}"
            if first >= 0
            else f"{_text(first)} to {_text(last)}"
        )
    return f"[{_text(low)}, {_text(high)})" if left else f"({_text(low)}, {_text(high)}]"
