"""Released columns that single people out, alone and in pairs, beside the keys."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned, comparable
from equipoise.data.records import Law, Records
from equipoise.data.released_terms import computable
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import EngineError, require_columns
from equipoise.ground.packed_keys import Coded, code, group, group_coded
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score, not_applicable

MAX_PAIRED = 24
"""Columns that are tried in pairs: those with the most values."""
MAX_TARGETS = 10_000
"""People whose changed numbers are looked up in pairs: drawn by a public seed where there are more."""
NEGLIGIBLE_SHARE = 0.001
"""A pair of columns that cannot single out more is not counted."""
MIN_TOLD_SHARE, MIN_RECORDS_PER_VALUE = 0.99, 5
"""Share of the errors about a column that knowing a key avoids, from which on the key tells it; records per value."""
TIE = 1e-9
"""How far two distances may differ, as a share, and be equal."""
APART, MISSING = 1e7, 1e12
"""Distance between two categories, and of a missing number from any other: beyond that of any two numbers divided by
the scale of their noise."""
MAX_RESCALED = 20
"""Pairs with changed numbers that are tried in other scales too: those that single out most."""


@dataclass(frozen=True, slots=True)
class RevealingColumns:
    """Share of people singled out by one released column that is no key, or by two: the largest of all.

    The intruder knows a person's true values in these columns, and looks for the released records that agree with them:
    of a column that was recoded, or whose order was kept, those with the same code; of numbers and dates that were
    changed otherwise the nearest ones (in pairs by the distance divided by the standard deviation of the changes). That
    a value is missing is known too: it is a value. A person is singled out where fewer than `k` released records are
    left, theirs among them. value = max over columns and pairs of #{singled out} / n.

    Who knows a person's keys also knows a column that follows from one of them (the year of birth from the age: lambda
    of Goodman and Kruskal (1954) 0.99 or more). Where that key was coarsened or blanked, people are singled out by the
    released keys and that column together who are not by the keys alone.

    Keys, numbers given anew (`masks.Renumber`), what is withheld and the columns `unknown` are left out: of those the
    release assumes that nobody knows them. Where rows cannot be matched to people, every released value counts as if it
    were unchanged, which is never too low. The detail has a row per column and per pair, the largest share first.

    Source: the sample uniques of Willenborg and de Waal (2001), *Elements of Statistical Disclosure Control*, for other
    columns than keys. Misleads when three or more columns are known together: see `attacks.Nearest`. Exact for columns
    alone; pairs with changed numbers are tried on at most 10,000 people, pairs among the 24 columns with the most
    values. Cost: O(n log n) per column and pair.

    >>> records = eq.read(pl.DataFrame({"age": [1, 1, 1, 2], "rent": [310, 425, 425, 425]}), eq.Roles("age"))
    >>> RevealingColumns().measure(records, records).value
    0.25
    """

    k: int = 3
    unknown: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self, k=2)

    def measure(self, released: Records, original: Records) -> Score:
        if released.synthetic:
            return not_applicable(label(self), "lower")
        require_columns(self.unknown, original.schema())
        names = self._columns(released, original)
        columns = _looked_up(released, original, names)
        told = _told_by_keys(released, original, names, self.k)
        table = _table([*told, *self._shares(columns)], released.height())
        worst = table.row(0, named=True) if table.height else {"share": 0.0, "number": 0}
        return Score(
            label(self),
            float(worst["share"]),
            number=int(worst["number"]),
            unit="share of people",
            notes=(*_notes(table, len(columns)), *(f"Who knows the keys knows {row['column']!r}." for row in told)),
            cells=lambda: table,
        )

    def _columns(self, released: Records, original: Records) -> tuple[str, ...]:
        anew = {column for law in released.history if law.mask == "renumber" for column in law.columns}
        roles = (released.roles, original.roles)
        withheld = {name for r in roles for name in (r.id, r.sample, *r.direct, *r.keys)}
        schema, names = original.schema(), released.schema()
        return tuple(c for c in schema if c in names and c not in withheld and c not in anew and c not in self.unknown)

    def _shares(self, columns: list["_KnownColumn"]) -> Iterator[dict[str, Any]]:
        for column in columns:
            yield _row((column,), self.k)
        paired = sorted(columns, key=lambda column: -column.values)[:MAX_PAIRED]
        both = combinations([column for column in paired if column.values > 1], 2)
        pairs = [(_row(pair, self.k), pair) for pair in both if _most(*pair, self.k) > NEGLIGIBLE_SHARE]
        pairs.sort(key=lambda row_and_pair: -row_and_pair[0]["share"])
        yield from (row for row, _ in pairs)
        changed = [pair for _, pair in pairs if any(column.scales for column in pair)]
        for one, two in changed[:MAX_RESCALED]:
            for scale in sorted(one.scales.keys() | two.scales.keys()):
                yield _row((one.scales.get(scale, one), two.scales.get(scale, two)), self.k)


@dataclass(frozen=True, eq=False, repr=False)
class _KnownColumn:
    """A column of both files on one axis: what each person's value points to, and what each record shows.

    Codes point to those that are equal, missing ones too; numbers that were changed, divided by the scale of the
    changes, to the nearest. These have every scale by its name.
    """

    name: str
    sought: Floats
    shown: Floats
    changed: bool = False
    scales: dict[str, "_KnownColumn"] = field(default_factory=dict)

    @cached_property
    def values(self) -> int:
        return len(np.unique(self.shown))

    @cached_property
    def places(self) -> tuple[Floats, Integers, Integers]:
        """All values in order, and the place of each that is sought and shown among them."""
        axis, place = np.unique(np.concatenate([self.sought, self.shown]), return_inverse=True)
        return axis, place[: len(self.sought)], place[len(self.sought) :]


def _told_by_keys(released: Records, original: Records, names: tuple[str, ...], k: int) -> list[dict[str, object]]:
    """Columns that follow from a key that was coarsened or blanked, and whom they single out beside the keys."""
    keys = tuple(key for key in original.roles.keys if key in released.schema())
    try:
        new, old = aligned(released, original, tuple(dict.fromkeys((*keys, *names))))
    except EngineError:
        return []
    shown, true = ({key: code(table[key]) for key in keys} for table in (new, old))
    hidden = [key for key in keys if shown[key].size < true[key].size or new[key].null_count() > old[key].null_count()]
    if not hidden:
        return []
    classes, _ = group_coded(list(shown.values()))
    rows: list[dict[str, object]] = []
    safe = np.bincount(classes)[classes] >= k
    for name in names:
        column = code(new[name])
        if any(_tells(true[key], column) for key in hidden):
            finer, _ = group([classes, column.codes], [int(classes.max()) + 1, column.size])
            share = float((safe & (np.bincount(finer)[finer] < k)).mean())
            rows.append({"column": name, "beside": None, "share": share})
    return rows


def _tells(key: Coded, column: Coded) -> bool:
    """Whether the value of a key says that of a column: the errors that it leaves, of those without it."""
    groups = np.bincount(key.codes, minlength=key.size)
    if len(key.codes) < MIN_RECORDS_PER_VALUE * key.size:
        return False
    pairs, first = group_coded([key, column])
    many, largest = np.bincount(pairs), np.zeros(key.size, dtype=np.int64)
    np.maximum.at(largest, key.codes[first], many)
    left, without = int((groups - largest).sum()), len(key.codes) - int(np.bincount(column.codes).max(initial=0))
    return without > 0 and left <= (1 - MIN_TOLD_SHARE) * without


def _looked_up(released: Records, original: Records, names: tuple[str, ...]) -> list[_KnownColumn]:
    """The columns as an intruder looks people up by them. O(n log n) per column."""
    computed = _computed(released, original)
    try:
        new, old = aligned(released, original, names)
    except EngineError:
        columns = (*names, *computed)
        return [_unchanged(column) for column in released.collect(*columns)] if columns else []
    coarsened = {n: [_recodes(law) for law in released.history if n in law.columns] for n in names}
    others = aligned(released, released, computed)[0] if computed else ()
    return [_column(new[name], old[name], coarsened[name]) for name in names] + [_unchanged(c) for c in others]


def _computed(released: Records, original: Records) -> tuple[str, ...]:
    """New columns that follow from original ones."""
    schema, names = original.schema(), released.schema()
    outputs = (c for law in released.history if computable(law) for c in law.columns)
    return tuple(dict.fromkeys(c for c in outputs if c in names and c not in schema))


def _recodes(law: Law) -> bool:
    """Whether the true values tell the released ones."""
    return law.coarsens or computable(law)


def _column(new: pl.Series, old: pl.Series, coarsened: list[bool]) -> _KnownColumn:
    """A column after masks of which each coarsened it or not."""
    (shown, true), ordered = comparable(new, old)
    if all(coarsened) and (coarsened or not ordered or shown.equals(true)):
        return _unchanged(new)
    if not ordered:
        return _equal(new.name, shown, true)
    x, y = true.to_numpy(), shown.to_numpy()
    return _unchanged(new) if _keeps_order(x, y) else _changed(new.name, y, x)


def _keeps_order(true: Floats, shown: Floats) -> bool:
    """Whether nobody overtakes anybody: whoever sorts both files has the released value of each person."""
    told = ~np.isnan(true)
    if not np.array_equal(told, ~np.isnan(shown)):
        return False
    order = np.lexsort((shown[told], true[told]))
    return bool((np.diff(shown[told][order]) >= 0).all())


def _unchanged(column: pl.Series) -> _KnownColumn:
    shown = code(column).codes.astype(np.float64)
    return _KnownColumn(column.name, shown, shown)


def _equal(name: str, shown: pl.Series, true: pl.Series) -> _KnownColumn:
    """Categories that were changed at random: people are looked up by their own."""
    both = _unchanged(pl.concat([shown.alias(""), true.alias("")]))
    return _KnownColumn(name, both.sought[len(shown) :], both.shown[: len(shown)])


def _changed(name: str, shown: Floats, true: Floats) -> _KnownColumn:
    """Numbers that were changed: as they are, as logarithms, as ranks or brought to one line, whichever finds most."""
    scales = {scale: _KnownColumn(name, *_scaled(x, y), changed=True) for scale, (x, y) in _scales(true, shown).items()}
    return replace(max(scales.values(), key=lambda column: _found((column,), k=2).mean()), scales=scales)


def _scales(true: Floats, shown: Floats) -> dict[str, tuple[Floats, Floats]]:
    from scipy.stats import rankdata

    pairs = ~np.isnan(true) & ~np.isnan(shown)
    x, y = true[pairs], shown[pairs]
    scales = {"value": (true, shown)}
    if not len(x):
        return scales
    if min(x.min(), y.min()) > 0:
        scales["logarithm"] = np.log(true), np.log(shown)
    scales["rank"] = rankdata(true, nan_policy="omit"), rankdata(shown, nan_policy="omit")
    if x.std() > 0:
        slope = float(np.cov(x, y)[0, 1] / x.var(ddof=1))
        scales["line"] = y.mean() + slope * (true - x.mean()), shown
    return scales


def _scaled(sought: Floats, shown: Floats) -> tuple[Floats, Floats]:
    """Both divided by the root mean square of the changes; what is missing is far from the rest."""
    changes = (shown - sought)[~np.isnan(sought) & ~np.isnan(shown)]
    scale = float(np.sqrt(np.mean(changes**2))) if len(changes) else 0.0
    one, two = (np.nan_to_num(side / (scale or 1.0), nan=MISSING) for side in (sought, shown))
    return one, two


def _found(columns: tuple[_KnownColumn, ...], k: int) -> Integers:
    """Whether each person is singled out by these columns together: all, or those that were drawn."""
    if any(column.changed for column in columns):
        return _nearest(columns, k)
    sides = [np.concatenate([column.shown, column.sought]).astype(np.int64) for column in columns]
    ids, _ = group(sides, [int(side.max(initial=0)) + 1 for side in sides])
    own, target = ids[: len(ids) // 2], ids[len(ids) // 2 :]
    return (own == target) & (np.bincount(own, minlength=ids.max(initial=0) + 1)[own] < k)


def _nearest(columns: tuple[_KnownColumn, ...], k: int) -> Integers:
    """Whether fewer than k records are as near as a person's own is, and none is nearer; other categories are far."""
    from scipy.spatial import cKDTree

    sides = ("sought", "shown")
    targets = np.sort(np.random.default_rng(0).permutation(len(columns[0].sought))[:MAX_TARGETS])
    numbers, categories = ([c for c in columns if c.changed == changed] for changed in (True, False))
    if len(numbers) == 1 and all(c.sought is c.shown for c in categories):
        return _nearest_number(numbers[0], categories, targets, k)
    sought, shown = (np.column_stack([getattr(c, s) * (1 if c.changed else APART) for c in columns]) for s in sides)
    points, place, n = _distinct(shown)
    if not len(points):
        return np.zeros(0, dtype=np.bool_)
    nearest, _ = cKDTree(points, compact_nodes=False, balanced_tree=False).query(sought[targets])
    own = np.linalg.norm(shown[targets] - sought[targets], axis=1)
    return np.asarray((own <= nearest * (1 + TIE)) & (n[place[targets]] < k))


def _nearest_number(number: _KnownColumn, categories: list[_KnownColumn], targets: Integers, k: int) -> Integers:
    """The same for one number among the records of a person's own category: its neighbours in sorted order."""
    axis, sought, shown = number.places
    block = len(axis) * categories[0].places[2] if categories else np.zeros_like(shown)
    ordered = np.sort(block + shown)
    first, last = block[targets], block[targets] + len(axis)
    right = np.searchsorted(ordered, first + sought[targets])
    own = np.abs(number.shown - number.sought)[targets]
    nearest = np.full(len(targets), np.inf)
    for at in (right - 1, right):
        near = ordered[np.clip(at, 0, len(ordered) - 1)]
        inside = (at >= 0) & (at < len(ordered)) & (near >= first) & (near < last)
        gaps = np.abs(axis[np.where(inside, near - first, 0)] - number.sought[targets])
        nearest = np.minimum(nearest, np.where(inside, gaps, np.inf))
    n = np.diff(np.searchsorted(ordered, (first + shown[targets])[:, None] + [0, 1]), axis=1)[:, 0]
    return np.asarray((own <= nearest * (1 + TIE)) & (n < k))


def _distinct(points: Floats) -> tuple[Floats, Integers, Integers]:
    """Distinct rows in order, the number of each row among them, and how many there are: `np.unique` by columns."""
    order = np.lexsort(points.T[::-1])
    ordered = points[order]
    number = np.cumsum(np.append(False, (ordered[1:] != ordered[:-1]).any(axis=1)))
    place = np.empty_like(number)
    place[order] = number
    return ordered[np.flatnonzero(np.diff(number, prepend=-1))], place, np.bincount(number)


def _most(one: _KnownColumn, two: _KnownColumn, k: int) -> float:
    """A bound of the share that a pair singles out: all its combinations hold k - 1 people."""
    if one.changed or two.changed:
        return 1.0
    return (k - 1) * one.values * two.values / max(1, len(one.shown))


def _row(columns: tuple[_KnownColumn, ...], k: int) -> dict[str, Any]:
    names, share = [column.name for column in columns], float(_found(columns, k).mean())
    return {"column": names[0], "beside": names[1] if len(names) > 1 else None, "share": share}


def _table(rows: list[dict[str, Any]], people: int) -> pl.DataFrame:
    schema = {"column": pl.String, "beside": pl.String, "share": pl.Float64}
    table = pl.DataFrame(rows, schema=schema).sort("share", descending=True, maintain_order=True)
    table = table.unique(["column", "beside"], keep="first", maintain_order=True)
    return table.with_columns(number=(pl.col("share") * people).round().cast(pl.Int64))


def _notes(table: pl.DataFrame, columns: int) -> tuple[str, ...]:
    if not table.height:
        return ("No column but the keys is released.",)
    worst = table.row(0, named=True)
    pair = f" and {worst['beside']!r} together" if worst["beside"] else " alone"
    most = f"Most by {worst['column']!r}{pair}."
    return (most, f"Pairs of the {MAX_PAIRED} columns with the most values.") if columns > MAX_PAIRED else (most,)
