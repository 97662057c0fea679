"""Hierarchy: the ways a column may be coarsened, as nested levels.

A branch is one chain of levels, each a function of the finer one. A hierarchy holds one branch or several
alternatives (`thirds | fifths`), because useful coarsenings need not nest: bands of 3 and of 5 years do not.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_type_hints

from equipoise.data.branches import (
    BRANCHES,
    Branch,
    Breaks,
    Dates,
    Intervals,
    Prefix,
    ValueMapping,
    as_tuple,
    plain_branch,
)
from equipoise.data.levels import ORIGINAL, Closed, First, Level, OriginalLevel, Part, Style
from equipoise.ground import system
from equipoise.ground.errors import DataError, ParameterError, shown, warn_renamed

FILE_KINDS = ("csv", "hrc")
"""Kinds that are read from a file into a mapping."""


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
            as_tuple(widths), closed=closed, start=start, top=top, bottom=bottom, alone=as_tuple(alone), labels=labels,
            floor=floor, root=root,
        )  # fmt: skip
        return cls((branch,))

    @classmethod
    def breaks(
        cls,
        *breaks: Sequence[float],
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
        points = tuple(as_tuple(level) for level in breaks)
        branch = Breaks(
            points, closed=closed, alone=as_tuple(alone), labels=texts, names=tuple(names), floor=floor, root=root
        )
        return cls((branch,))

    @classmethod
    def mapping(
        cls,
        groups: Mapping[Any, Any] | Sequence[Sequence[Any]],
        *,
        names: Sequence[str] = (),
        other: str | None = None,
        floor: int | str | None = None,
        root: bool = False,
    ) -> "Hierarchy":
        """From {value: group}, {value: (group, coarser group, ...)} or rows of (value, group, coarser group, ...).

        >>> Hierarchy.mapping({"a": "vowel", "b": "consonant"}).level(1).label(pl.Series(["b"])).to_list()
        ['consonant']
        """
        rows: Any = groups
        return cls((ValueMapping(rows, names=tuple(names), other=other, floor=floor, root=root),))

    @classmethod
    def csv(
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
            text = system.stored(path).read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise DataError(f"No hierarchy file at {str(path)!r}.") from None
        except (OSError, UnicodeDecodeError):
            raise DataError(f"Cannot read the hierarchy file {str(path)!r}: it must be UTF-8 text.") from None
        first = text.partition("\n")[0]
        mark = delimiter or max(";,\t", key=first.count)
        try:
            rows = tuple(tuple(row) for row in csv.reader(text.splitlines(), delimiter=mark) if row)
        except csv.Error:
            raise DataError(f"The hierarchy file {str(path)!r} cannot be read: a label is too long.") from None
        if not rows:
            raise DataError(f"The hierarchy file {str(path)!r} is empty.")
        return cls((ValueMapping(rows, names=tuple(names), other=other, floor=floor, root=root),))

    @classmethod
    def hrc(
        cls,
        path: str | Path,
        *,
        lead: str = "@",
        strip: bool = True,
        other: str | None = None,
        floor: int | str | None = None,
        root: bool = False,
    ) -> "Hierarchy":
        """From a tau-ARGUS file: a code in each line, coarse before fine, deeper by one `lead` for each level.

        A code without finer ones stands for itself on the finer levels; a list without levels gets a total. Codes are
        padded with blanks there: they are taken off unless `strip=False`.
        """
        try:
            data = system.stored(path).read_bytes()
        except OSError:
            raise DataError(f"No hierarchy file at {str(path)!r}.") from None
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = data.decode("cp1252", errors="replace")
        rows = tree_rows(text.splitlines(), lead, strip)
        if rows is None:
            raise DataError(f"{str(path)!r} is not a tau-ARGUS hierarchy: it is empty, or a line is two levels deeper.")
        return cls((ValueMapping(rows, other=other, floor=floor, root=root),))

    @classmethod
    def prefix(
        cls, *lengths: int, pooled: Sequence[str] = (), pool: str | None = None, digits: int | None = None,
        floor: int | str | None = None, root: bool = False,
    ) -> "Hierarchy":  # fmt: skip
        """The first characters of a code, long to short; codes that begin with one of `pooled` become `pool`.

        Codes of fewer than `digits` digits get their leading zeros back.

        >>> Hierarchy.prefix(3, 1).level("1").label(pl.Series(["1017", "2600"])).to_list()
        ['1', '2']
        >>> zips = Hierarchy.prefix(3, pooled=["036"], pool="000", digits=5)
        >>> zips.level("3").label(pl.Series([3601, 10001])).to_list()
        ['000', '100']
        """
        branch = Prefix(tuple(lengths), pooled=tuple(pooled), pool=pool, digits=digits, floor=floor, root=root)
        return cls((branch,))

    @classmethod
    def dates(
        cls, *parts: Part, oldest: int | None = None, first: First | None = None, floor: int | str | None = None,
        root: bool = False,
    ) -> "Hierarchy":  # fmt: skip
        """Calendar periods: day, week, month, quarter, year, five years, decade; one for all up to `oldest`.

        `first`, "day" or "month", says what comes first in dates such as 03/04/2026; else only their year is read.
        """
        return cls((Dates(tuple(parts), oldest=oldest, first=first, floor=floor, root=root),))

    @classmethod
    def from_csv(cls, path: str | Path, **fields: Any) -> "Hierarchy":
        """The old name of `csv`, for one version more."""
        warn_renamed("Hierarchy.from_csv", "Hierarchy.csv")
        return cls.csv(path, **fields)

    @classmethod
    def from_hrc(cls, path: str | Path, **fields: Any) -> "Hierarchy":
        """The old name of `hrc`, for one version more."""
        warn_renamed("Hierarchy.from_hrc", "Hierarchy.hrc")
        return cls.hrc(path, **fields)

    def __post_init__(self) -> None:
        if not self.branches:
            raise ParameterError("A hierarchy needs at least one level.")
        _ = self.levels

    def __or__(self, other: "Hierarchy") -> "Hierarchy":
        if not isinstance(other, Hierarchy):
            return NotImplemented
        return Hierarchy((*self.branches, *other.branches))

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The original, then every level of every branch once."""
        level_by_name: dict[str, Level] = {ORIGINAL: OriginalLevel()}
        for branch in self.branches:
            for level in branch.levels():
                if level_by_name.setdefault(level.name, level) != level:
                    raise ParameterError(f"Two branches define level {level.name!r} differently: give other names.")
        return tuple(level_by_name.values())

    def level(self, which: int | str) -> Level:
        """A level by number or by name."""
        if isinstance(which, bool) or not isinstance(which, int | str):
            raise ParameterError(f"A level is named by its number or its name, got {shown(which)}.")
        names = [level.name for level in self.levels]
        if isinstance(which, str) and which in names:
            return self.levels[names.index(which)]
        number = int(which) if isinstance(which, int) or (which.isdecimal() and len(which) < 10) else -1
        if 0 <= number < len(names):
            return self.levels[number]
        listed = ", ".join(f"{i} {name!r}" for i, name in enumerate(names))
        raise ParameterError(f"No level {shown(which)}. There are: {listed}.")

    @cached_property
    def allowed(self) -> tuple[Level, ...]:
        """The levels that may be released: none finer than the floor."""
        finer = {
            level.name for branch in self.branches for level in (OriginalLevel(), *branch.levels())[: branch.finest()]
        }
        return tuple(level for level in self.levels if level.name not in finer)

    def to_plain(self) -> list[dict[str, Any]]:
        """Plain data for a TOML file: one table per branch."""
        return [plain_branch(branch) for branch in self.branches]


def kind_fields(kind: str) -> dict[str, Any]:
    """The fields of a kind of hierarchy and their types, the same in Python, files, command line and page.

    >>> list(kind_fields("dates"))
    ['parts', 'oldest', 'first', 'floor', 'root']
    """
    hints = get_type_hints(BRANCHES[kind] if kind in BRANCHES else getattr(Hierarchy, kind))
    return {name: hint for name, hint in hints.items() if name not in ("kind", "_", "return")}


def tree_rows(lines: Sequence[str], lead: str, strip: bool) -> tuple[tuple[str, ...], ...] | None:
    """The leaves of an indented list, each with its ancestors from fine to coarse; None for what is no such list.

    >>> tree_rows(["North", "@1", "@2", "3"], "@", True)
    (('1', 'North'), ('2', 'North'), ('3', '3'))
    """
    paths: list[tuple[str, ...]] = []
    for line in lines:
        if not line.strip():
            continue
        depth = (len(line) - len(line.lstrip(lead))) // len(lead)
        above = paths[-1] if paths else ()
        if depth > len(above):
            return None
        code = line[depth * len(lead) :]
        paths.append((*above[:depth], code.strip() if strip else code.rstrip("\r\n")))
    inner = {path[:-1] for path in paths}
    leaves = [path for path in paths if path not in inner]
    deep = max(map(len, leaves), default=0)
    full = [(*path, *(path[-1:] * (deep - len(path)))) for path in leaves]
    return tuple((*reversed(path), *(("Total",) if deep == 1 else ())) for path in full) or None
