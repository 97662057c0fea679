"""Branches of a hierarchy: chains of levels, each a function of the finer one.

`kind` is the name of a branch everywhere: `Hierarchy.<kind>(...)`, `kind = "<kind>"` in files, `column=<kind>:...` on
the command line, and on the page; its fields have one name everywhere, too.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from fractions import Fraction
from math import inf
from typing import Any, ClassVar

import numpy as np

from equipoise.data.levels import (
    ORIGINAL,
    Bands,
    Closed,
    DatePart,
    Everything,
    First,
    Head,
    Level,
    Lookup,
    Part,
    Style,
    leaf_text,
    number_text,
)
from equipoise.ground.errors import ParameterError, hint, shown


@dataclass(frozen=True, slots=True)
class Intervals:
    """Levels of equal-width intervals; `floor` is the finest width that the measurement itself deserves."""

    kind: ClassVar[str] = "intervals"
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
        if not self.widths or any(not 0 < w < inf for w in self.widths):
            raise ParameterError("Interval widths must be positive numbers, at least one.")
        for fine, coarse in zip(self.widths, self.widths[1:], strict=False):
            ratio = Fraction(str(coarse)) / Fraction(str(fine))
            if ratio.denominator != 1 or ratio <= 1:
                raise ParameterError(
                    f"Level {number_text(coarse)!r} is not a function of the finer level {number_text(fine)!r}: "
                    "each width must be a multiple of the one before. Use two branches: a | b."
                )
        if self.floor is not None and self.floor > self.widths[-1]:
            raise ParameterError(
                f"The floor {number_text(self.floor)} is above the widest interval {number_text(self.widths[-1])}."
            )
        _check_ends(self.bottom, self.top)

    def levels(self) -> tuple[Level, ...]:
        common = (self.closed, self.start, self.top, self.bottom, self.alone, self.labels)
        levels = tuple(Bands(number_text(w), w, (), *common) for w in self.widths)
        return _with_root(levels, self.root)

    def finest(self) -> int:
        """How many of the levels, the original first, are finer than the floor."""
        return 0 if self.floor is None else 1 + sum(w < self.floor for w in self.widths)


class FlooredLevels:
    """Mixin of branches whose floor is the name or the number of a level."""

    __slots__ = ()

    def finest(self: Any) -> int:
        """How many of the levels, the original first, are finer than the floor."""
        names = [ORIGINAL, *(level.name for level in self.levels())]
        if self.floor is None:
            return 0
        if isinstance(self.floor, str) and self.floor in names:
            return names.index(self.floor)
        if isinstance(self.floor, int) and 0 <= self.floor < len(names):
            return self.floor
        raise ParameterError(f"The floor {self.floor!r} is none of the levels: {', '.join(names)}.")


@dataclass(frozen=True, slots=True)
class Breaks(FlooredLevels):
    """Levels of intervals between given breaks; a coarser level drops breaks of the finer one."""

    kind: ClassVar[str] = "breaks"
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
        levels = tuple(
            Bands(name, None, level, self.closed, 0, None, None, self.alone, text)
            for name, level, text in zip(names, self.breaks, labels, strict=True)
        )
        return _with_root(levels, self.root)


@dataclass(frozen=True, slots=True)
class ValueMapping(FlooredLevels):
    """Levels listed value by value: (value, group, coarser group, ...) in each row, or {value: group}."""

    kind: ClassVar[str] = "mapping"
    groups: tuple[tuple[str, ...], ...] = field(repr=False)
    _: KW_ONLY
    names: tuple[str, ...] = ()
    other: str | None = None
    floor: int | str | None = None
    root: bool = False

    def __post_init__(self) -> None:
        rows = _rows(self.groups)
        object.__setattr__(self, "groups", rows)
        lengths = {len(row) for row in rows}
        if len(lengths) != 1 or lengths == {1}:
            raise ParameterError(
                "Every row of a hierarchy needs the value and the same number of groups, at least one."
            )
        if len({row[0] for row in rows}) < len(rows):
            raise ParameterError("A value stands in two rows of the hierarchy.")
        names = (ORIGINAL, *_names(self.names, lengths.pop() - 1))
        for place in range(1, len(names) - 1):
            parents: dict[str, str] = {}
            if any(parents.setdefault(row[place], row[place + 1]) != row[place + 1] for row in rows):
                raise ParameterError(
                    f"Level {names[place + 1]!r} is not a function of the finer level {names[place]!r}: "
                    "one of its categories is split between two groups."
                )

    def levels(self) -> tuple[Level, ...]:
        leaves = {row[0]: row[1:] for row in self.groups}
        names = _names(self.names, len(self.groups[0]) - 1)
        return _with_root(tuple(Lookup(name, i, leaves, self.other) for i, name in enumerate(names)), self.root)


@dataclass(frozen=True, slots=True)
class Prefix(FlooredLevels):
    """Levels of shorter and shorter prefixes (postcodes, industry and disease codes).

    Codes that begin with one of `pooled` become `pool` at levels of that length and shorter; codes of fewer than
    `digits` digits get their leading zeros back.
    """

    kind: ClassVar[str] = "prefix"
    lengths: tuple[int, ...]
    _: KW_ONLY
    pooled: tuple[str, ...] = ()
    pool: str | None = None
    digits: int | None = None
    floor: int | str | None = None
    root: bool = False

    def __post_init__(self) -> None:
        if not self.lengths or min(self.lengths) < 1:
            raise ParameterError("Prefix lengths must be at least 1.")
        object.__setattr__(self, "pooled", as_tuple(self.pooled))
        if bool(self.pooled) != (self.pool is not None):
            raise ParameterError("Prefixes that are pooled need the name of their pool, and a pool its prefixes.")
        for fine, coarse in zip(self.lengths, self.lengths[1:], strict=False):
            if coarse >= fine:
                raise ParameterError(
                    f"Level '{coarse}' is not a function of the finer level '{fine}': give lengths from long to short."
                )

    def levels(self) -> tuple[Level, ...]:
        return _with_root(tuple(map(self._head, self.lengths)), self.root)

    def _head(self, length: int) -> Head:
        return Head(str(length), length, self.pooled, self.pool or "", self.digits or 0)


NESTING: dict[Part, tuple[Part, ...]] = {
    "day": ("week", "month", "quarter", "year", "five years", "decade"),
    "week": (),
    "month": ("quarter", "year", "five years", "decade"),
    "quarter": ("year", "five years", "decade"),
    "year": ("five years", "decade"),
    "five years": ("decade",),
    "decade": (),
}


@dataclass(frozen=True, slots=True)
class Dates(FlooredLevels):
    """Levels of calendar periods; weeks do not nest in months. Everything up to the year `oldest` is one category.

    `first` says whether the day or the month comes first in dates such as 03/04/2026.
    """

    kind: ClassVar[str] = "dates"
    parts: tuple[Part, ...]
    _: KW_ONLY
    oldest: int | None = None
    first: First | None = None
    floor: int | str | None = None
    root: bool = False

    def __post_init__(self) -> None:
        if self.first not in (None, "day", "month"):
            raise ParameterError(f"first must be 'day' or 'month', got {shown(self.first)}.")
        if not self.parts:
            raise ParameterError(f"Name at least one date part: {', '.join(NESTING)}.")
        for part in self.parts:
            if part not in NESTING:
                raise ParameterError(f"No date part {part!r}.{hint(part, list(NESTING))}")
        for fine, coarse in zip(self.parts, self.parts[1:], strict=False):
            if coarse not in NESTING[fine]:
                raise ParameterError(f"Level {coarse!r} is not a function of the finer level {fine!r}.")

    def levels(self) -> tuple[Level, ...]:
        return _with_root(tuple(DatePart(part, self.oldest, self.first) for part in self.parts), self.root)


Branch = Intervals | Breaks | ValueMapping | Prefix | Dates
BRANCHES: dict[str, type[Branch]] = {kind.kind: kind for kind in (Intervals, Breaks, ValueMapping, Prefix, Dates)}
OLD_KINDS = {"widths": "intervals", "leaves": "mapping", "calendar": "dates"}
OLD_FIELDS = {"rows": "groups"}
"""Words of version 0.1 for kinds and fields; files and command lines that have them are still read."""


def plain_branch(branch: Branch) -> dict[str, Any]:
    values = {f.name: getattr(branch, f.name) for f in fields(branch) if f.name != "_"}
    return {"kind": branch.kind} | {k: v for k, v in values.items() if v is not None and v is not False and v != ()}


def in_current_words(table: Mapping[str, Any]) -> dict[str, Any]:
    """A hierarchy of a file with old kinds and fields replaced by those of this version.

    >>> in_current_words({"kind": "leaves", "rows": [["a", "x"]]})
    {'kind': 'mapping', 'groups': [['a', 'x']]}
    """
    kind = OLD_KINDS.get(table["kind"], table["kind"])
    return {"kind": kind} | {OLD_FIELDS.get(k, k): v for k, v in table.items() if k != "kind"}


def old_words(table: Mapping[str, Any]) -> list[str]:
    """Old kinds and fields in a hierarchy of a file, and what to write instead."""
    kind = str(table.get("kind"))
    notes = [f"kind = {kind!r} is now kind = {OLD_KINDS[kind]!r}"] if kind in OLD_KINDS else []
    return notes + [f"{name} is now {OLD_FIELDS[name]}" for name in table if name in OLD_FIELDS]


def _rows(groups: Any) -> tuple[tuple[str, ...], ...]:
    """Rows of texts from any accepted form of groups."""
    rows = [(value, *as_tuple(group)) for value, group in groups.items()] if isinstance(groups, Mapping) else groups
    return tuple(tuple(map(leaf_text, row)) for row in rows)


def _with_root(levels: tuple[Level, ...], root: bool) -> tuple[Level, ...]:
    return (*levels, Everything()) if root else levels


def _names(names: tuple[str, ...], count: int) -> tuple[str, ...]:
    if names and len(names) != count:
        raise ParameterError(f"{len(names)} level names were given for {count} levels.")
    return names or tuple(str(i + 1) for i in range(count))


def _plain_numbers(branch: Any, *names: str) -> None:
    """Numbers as Python numbers, a single one as a tuple where several are allowed; anything else is refused."""
    plural = ("widths", "breaks", "alone")
    for name in names:
        value = getattr(branch, name)
        try:
            plain = None if value is None else _number(as_tuple(value) if name in plural else value)
        except (TypeError, ValueError, OverflowError):
            raise ParameterError(f"{name} must be a number{' or numbers' if name in plural else ''}.") from None
        object.__setattr__(branch, name, plain)


def _number(value: Any) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(_number(v) for v in value)
    if isinstance(value, str | bool):
        raise TypeError
    number = float(value)
    return int(value) if isinstance(value, int | np.integer) else number


def _check_words(closed: str, labels: Any) -> None:
    if closed not in ("left", "right"):
        raise ParameterError(f"closed must be 'left' or 'right', got {shown(closed)}.")
    if isinstance(labels, str) and labels not in ("range", "lower", "upper", "middle"):
        raise ParameterError(f"labels must be 'range', 'lower', 'upper' or 'middle', got {shown(labels)}.")


def _check_ends(bottom: float | None, top: float | None) -> None:
    if top is not None and bottom is not None and bottom >= top:
        raise ParameterError(f"The bottom code {number_text(bottom)} must be below the top code {number_text(top)}.")


def as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple | range | np.ndarray) else (value,)
