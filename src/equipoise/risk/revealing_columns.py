"""Released columns that single people out, alone and in pairs, beside the keys."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned, comparable, released_people
from equipoise.data.people import People
from equipoise.data.records import Law, Records
from equipoise.data.released_terms import computable
from equipoise.data.repeated_values import unit_columns
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import EngineError, require_columns
from equipoise.ground.packed_keys import Coded, code, group, group_coded
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score, not_applicable
from equipoise.methods.share_interval import wilson
from equipoise.risk._links_of_all import distinct, linked_points
from equipoise.risk._scales_of_changes import scaled, scales, uncorrelated

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
APART = 1e7
"""Distance between two categories: beyond that of any two numbers divided by the scale of their noise."""
MAX_RESCALED = 20
"""Changed columns and pairs that are tried in other scales too: those that single out most."""
MAX_LINKS, MAX_LINKED_RECORDS = 5, 100_000
"""Times that everybody is linked at once, by the columns and scales that single out most; records in all of them."""


@dataclass(frozen=True, slots=True)
class RevealingColumns:
    """Share of people singled out by one released column that is no key, or by two: the largest of all.

    The intruder knows a person's true values in these columns, and looks for the released records that agree with them:
    of a column that was recoded, or whose order was kept, those with the same code; of numbers and dates that were
    changed otherwise the nearest ones (in pairs by the distance divided by the standard deviation of the changes), or
    the likeliest where everybody is linked at once and no record is given to two. That a value is missing is known too:
    it is a value. A person is singled out where fewer than `k` released records are
    left, theirs among them. Where people have several records, or live in households, `k` people or households must be
    left: three stays of one patient hide nobody. value = max over columns and pairs of #{singled out} / n.

    Who knows a person's keys also knows a column that follows from one of them (the year of birth from the age: lambda
    of Goodman and Kruskal (1954) 0.99 or more). Where that key was coarsened or blanked, people are singled out by the
    released keys and that column together who are not by the keys alone.

    Where values were changed at random, how many are found depends on luck: the interval (Wilson, 95 %, over the people
    `tried`, households or persons where rows repeat them) holds who links equally well by another distance. Shares of
    unchanged and recoded columns are exact.

    Keys, numbers given anew (`masks.Renumber`), what is withheld and the columns `unknown` are left out: of those the
    release assumes that nobody knows them. Where rows cannot be matched to people, every released value counts as if it
    were unchanged, which is never too low. The detail has a row per column and per pair, the largest share first.

    Source: the sample uniques of Willenborg and de Waal (2001), *Elements of Statistical Disclosure Control*, for other
    columns than keys. Misleads when three or more columns are known together: see `attacks.Nearest`. Exact for columns
    alone; pairs with changed numbers are tried on at most 10,000 people, pairs among the 24 columns with the most
    values. Everybody is linked at once by the 5 columns, pairs and scales that find most, by fewer above 20,000 records
    (100,000 in all) and by none above 100,000: a note then says so. Cost: O(n log n) per column and pair.

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
        table, notes = self._tried(released, original)
        worst = table.row(0, named=True) if table.height else {"share": 0.0, "number": 0}
        return Score(
            label(self),
            float(worst["share"]),
            interval=_interval(table),
            number=int(worst["number"]),
            unit="share of people",
            notes=notes,
            cells=lambda: table,
        )

    def table(self, released: Records, original: Records, alone: float = 1.0) -> tuple[pl.DataFrame, tuple[str, ...]]:
        """Columns, shares and numbers, without pairs that reveal more than the share `alone`; and the notes."""
        table, notes = self._tried(released, original, alone)
        return table.drop("tried"), notes

    def _tried(self, released: Records, original: Records, alone: float = 1.0) -> tuple[pl.DataFrame, tuple[str, ...]]:
        """The detail: the same with the people tried where luck enters; and the notes."""
        require_columns(self.unknown, original.schema())
        original = released_people(released, original)
        names = self._columns(released, original)
        owner = _owners(released, original, names)
        columns = _looked_up(released, original, names, owner)
        keyed = _told_by_keys(released, original, names, owner, self.k)
        rows = [*keyed, *self._shares(columns, owner, alone)]
        table = _table(rows, released.height())
        return table, (*_notes(table, columns), *(f"Who knows the keys knows {row['column']!r}." for row in keyed))

    def _columns(self, released: Records, original: Records) -> tuple[str, ...]:
        anew = {column for law in released.history if law.mask == "renumber" for column in law.columns}
        roles = (released.roles, original.roles)
        withheld = {name for r in roles for name in (r.id, r.sample, *r.direct, *r.keys)}
        schema, names = original.schema(), released.schema()
        return tuple(c for c in schema if c in names and c not in withheld and c not in anew and c not in self.unknown)

    def _shares(
        self, columns: list["_KnownColumn"], owner: Integers | None, alone: float
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        rows: list[tuple[dict[str, Any], _Known]] = [(_row((each,), self.k, owner), (each,)) for each in columns]
        few = {row["column"] for row, _ in rows if row["share"] <= alone}
        paired = sorted(columns, key=lambda column: -column.values)[:MAX_PAIRED]
        both = combinations([column for column in paired if column.values > 1 and column.name in few], 2)
        pairs = (pair for pair in both if _most(*pair, self.k, owner) > NEGLIGIBLE_SHARE)
        rows += [(_row(pair, self.k, owner), pair) for pair in pairs]
        yield from (row for row, _ in rows)
        changed = [each for _, each in sorted(rows, key=_share_found) if any(column.changed for column in each)]
        others = [other for each in changed[:MAX_RESCALED] for other in _rescaled(each)]
        rows = sorted(((_row(each, self.k, owner), each) for each in others), key=_share_found)
        yield from (row for row, _ in rows)
        records = len(columns[0].shown) if columns else 0
        for _, each in rows[: min(MAX_LINKS, MAX_LINKED_RECORDS // max(1, records))]:
            yield _row(each, self.k, owner, at_once=True)


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


_Known = tuple[_KnownColumn, ...]
"""Columns that are known together."""


def _told_by_keys(
    released: Records, original: Records, names: tuple[str, ...], owner: Integers | None, k: int
) -> list[dict[str, object]]:
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
    safe = _many(classes, owner)[classes] >= k
    for name in names:
        column = code(new[name])
        if any(_tells(true[key], column) for key in hidden):
            finer, _ = group([classes, column.codes], [int(classes.max()) + 1, column.size])
            share = float((safe & (_many(finer, owner)[finer] < k)).mean())
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


def _owners(released: Records, original: Records, names: tuple[str, ...]) -> Integers | None:
    """The household or person of each record, as a number; None where every record is its own."""
    units = (unit_columns(original) or unit_columns(released))[:1]
    if not units or not names:
        return None
    try:
        aligned(released, original, names[:1])
        column = aligned(original, original, units)[0].to_series()
    except EngineError:
        if units[0] not in released.schema():
            return None
        column = released.collect(*units).to_series()
    return np.where(column.is_null(), len(column) + np.arange(len(column)), code(column).codes)


def _looked_up(
    released: Records, original: Records, names: tuple[str, ...], owner: Integers | None
) -> list[_KnownColumn]:
    """The columns as an intruder looks people up by them. O(n log n) per column."""
    computed = _computed(released, original)
    try:
        new, old = aligned(released, original, names)
    except EngineError:
        columns = (*names, *computed)
        return [_unchanged(column) for column in released.collect(*columns)] if columns else []
    coarsened = {n: [_recodes(law) for law in released.history if n in law.columns] for n in names}
    others = aligned(released, released, computed)[0] if computed else ()
    return [_column(new[c], old[c], coarsened[c], owner) for c in names] + [_unchanged(c) for c in others]


def _computed(released: Records, original: Records) -> tuple[str, ...]:
    """New columns that follow from original ones."""
    schema, names = original.schema(), released.schema()
    outputs = (c for law in released.history if computable(law) for c in law.columns)
    return tuple(dict.fromkeys(c for c in outputs if c in names and c not in schema))


def _recodes(law: Law) -> bool:
    """Whether the true values tell the released ones."""
    return law.coarsens or computable(law)


def _column(new: pl.Series, old: pl.Series, coarsened: list[bool], owner: Integers | None) -> _KnownColumn:
    """A column after masks of which each coarsened it or not."""
    whole = new.dtype.is_numeric() or new.dtype.is_nested() or new.dtype == pl.Binary
    if not coarsened and whole and new.equals(old):
        return _unchanged(new)
    (shown, true), ordered = comparable(new, old)
    if all(coarsened) and (coarsened or not ordered or shown.equals(true)):
        return _unchanged(new)
    if not ordered:
        return _equal(new.name, shown, true)
    x, y = true.to_numpy(), shown.to_numpy()
    return _unchanged(new) if _keeps_order(x, y) else _changed(new.name, y, x, owner)


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


def _changed(name: str, shown: Floats, true: Floats, owner: Integers | None) -> _KnownColumn:
    """Numbers that were changed: as they are, as logarithms, as ranks or brought to one line, whichever finds most."""
    each = {scale: _KnownColumn(name, *scaled(x, y), changed=True) for scale, (x, y) in scales(true, shown).items()}
    return replace(max(each.values(), key=lambda column: _found((column,), 2, owner).mean()), scales=each)


def _found(columns: _Known, k: int, owner: Integers | None) -> Integers:
    """Whether each person is singled out by these columns together: all, or those that were drawn."""
    if any(column.changed for column in columns):
        return _nearest(columns, k, owner)
    sides = [np.concatenate([column.shown, column.sought]).astype(np.int64) for column in columns]
    ids, _ = group(sides, [int(side.max(initial=0)) + 1 for side in sides])
    own, target = ids[: len(ids) // 2], ids[len(ids) // 2 :]
    return (own == target) & (_many(own, owner)[own] < k)


def _many(places: Integers, owner: Integers | None) -> Integers:
    """How many records, or owners of records, are at each place."""
    return np.bincount(places if owner is None else People.of(places, owner).cells)


def _nearest(columns: _Known, k: int, owner: Integers | None) -> Integers:
    """Whether the records nearest to a person's values are theirs and of fewer than k owners; ties are theirs."""
    targets = np.sort(np.random.default_rng(0).permutation(len(columns[0].sought))[:MAX_TARGETS])
    if not len(targets):
        return np.zeros(0, dtype=np.bool_)
    numbers, categories = ([c for c in columns if c.changed == changed] for changed in (True, False))
    one = len(numbers) == 1 and all(c.sought is c.shown for c in categories)
    place, at = _nearest_number(numbers[0], categories, targets) if one else _nearest_point(columns, targets)
    return _right(place, at, targets, k, owner)


def _linked(columns: _Known, k: int, owner: Integers | None) -> Integers:
    """The same where everybody is linked at once, by the way that finds most."""
    everybody = np.arange(len(columns[0].sought))
    links = linked_points(*_points(columns))
    return max((_right(place, at, everybody, k, owner) for place, at in links), key=np.mean)


def _right(place: Integers, at: Integers, targets: Integers, k: int, owner: Integers | None) -> Integers:
    """Whether the point that a target was linked to is theirs, and of fewer than k owners."""
    right = at == place[targets]
    if owner is not None:
        size = int(owner.max()) + 1
        right |= np.isin(at * size + owner[targets], place * size + owner)
    return np.asarray(right & (_many(place, owner)[at] < k))


def _points(columns: _Known) -> list[Floats]:
    """What is known of people and what records show, as points; other categories are far."""
    sides = ("sought", "shown")
    return [np.column_stack([getattr(c, s) * (1 if c.changed else APART) for c in columns]) for s in sides]


def _nearest_point(columns: _Known, targets: Integers) -> tuple[Integers, Integers]:
    """The point of each record, and the one nearest to each target."""
    from scipy.spatial import cKDTree

    sought, shown = _points(columns)
    points, place = distinct(shown)
    distance, at = cKDTree(points, compact_nodes=False, balanced_tree=False).query(sought[targets])
    own = np.linalg.norm(shown[targets] - sought[targets], axis=1)
    return place, np.where(own <= distance * (1 + TIE), place[targets], np.minimum(at, len(points) - 1))


def _nearest_number(
    number: _KnownColumn, categories: list[_KnownColumn], targets: Integers
) -> tuple[Integers, Integers]:
    """The same for one number among the records of a person's own category: its neighbours in sorted order."""
    axis, sought, shown = number.places
    block = len(axis) * categories[0].places[2] if categories else np.zeros_like(shown)
    points, place = np.unique(block + shown, return_inverse=True)
    first, last = block[targets], block[targets] + len(axis)
    right = np.searchsorted(points, first + sought[targets])
    at, gap = place[targets], np.abs(number.shown - number.sought)[targets]
    for side in (right - 1, right):
        near = points[np.clip(side, 0, len(points) - 1)]
        inside = (side >= 0) & (side < len(points)) & (near >= first) & (near < last)
        gaps = np.abs(axis[np.where(inside, near - first, 0)] - number.sought[targets])
        closer = inside & (gaps * (1 + TIE) < gap)
        at, gap = np.where(closer, side, at), np.where(closer, gaps, gap)
    return place, at


def _most(one: _KnownColumn, two: _KnownColumn, k: int, owner: Integers | None) -> float:
    """A bound of the share that a pair singles out: all its combinations hold the records of k - 1 people."""
    if one.changed or two.changed:
        return 1.0
    records_of_one = 1 if owner is None else int(np.bincount(owner).max(initial=1))
    return (k - 1) * records_of_one * one.values * two.values / max(1, len(one.shown))


def _rescaled(columns: _Known) -> Iterator[_Known]:
    """The same columns in every scale, and their values without the correlation of the changes."""
    for scale in sorted({scale for column in columns for scale in column.scales}):
        together = tuple(column.scales.get(scale, column) for column in columns)
        yield together
        if scale == "value" and len(together) == 2 and all(column.changed for column in together):
            one, two = together
            sides = uncorrelated((one.sought, one.shown), (two.sought, two.shown))
            yield from [(one, _KnownColumn(two.name, *sides, changed=True))] if sides else []


def _share_found(row_and_columns: tuple[dict[str, Any], _Known]) -> float:
    return -float(row_and_columns[0]["share"])


def _row(columns: _Known, k: int, owner: Integers | None, *, at_once: bool = False) -> dict[str, Any]:
    find = _linked if at_once else _found
    names, right = [column.name for column in columns], find(columns, k, owner)
    people = len(right) if owner is None else min(len(right), len(np.unique(owner)))
    row = {"column": names[0], "beside": names[1] if len(names) > 1 else None, "share": float(right.mean())}
    return row | ({} if all(column.sought is column.shown for column in columns) else {"tried": people})


def _interval(table: pl.DataFrame) -> tuple[float, float] | None:
    """Wilson's interval of the largest share that depends on chance; None where no share does."""
    rows: list[tuple[float, int | None]] = table.select("share", "tried").rows()
    exact = max((share for share, people in rows if not people), default=0.0)
    ends = [wilson(share, people) for share, people in rows if people]
    if not ends:
        return None
    low, high = (max(exact, *side) for side in zip(*ends, strict=True))
    return low, high


def _table(rows: list[dict[str, Any]], people: int) -> pl.DataFrame:
    schema = {"column": pl.String, "beside": pl.String, "share": pl.Float64, "tried": pl.Int64}
    table = pl.DataFrame(rows, schema=schema).sort("share", descending=True, maintain_order=True)
    table = table.unique(["column", "beside"], keep="first", maintain_order=True)
    return table.with_columns(number=(pl.col("share") * people).round().cast(pl.Int64))


def _notes(table: pl.DataFrame, columns: list[_KnownColumn]) -> tuple[str, ...]:
    if not table.height:
        return ("No column but the keys is released.",)
    worst = table.row(0, named=True)
    pair = f" and {worst['beside']!r} together" if worst["beside"] else " alone"
    notes = [f"Most by {worst['column']!r}{pair}."]
    if len(columns) > MAX_PAIRED:
        notes.append(f"Pairs of the {MAX_PAIRED} columns with the most values.")
    if any(column.changed and len(column.shown) > MAX_LINKED_RECORDS for column in columns):
        notes.append("Changed numbers: each person is linked alone; whoever links all at once may find more.")
    return tuple(notes)
