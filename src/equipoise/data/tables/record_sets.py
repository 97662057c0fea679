"""Who is in the cells of linked tables: records by number, whatever file, column, label or hierarchy a table has.

A cell is the set of records that it holds. Tables counted from records know these, so that cells of several tables can
be compared as sets. Records of one file are told by their row; those of different files by their id, by standing in the
same row of files that agree, or by their content. What is compared is a record with what it adds to its cell: the same
person with a revised value is another unit, and so are counts and amounts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from equipoise.data.aligned_files import in_order
from equipoise.data.records import Records
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import MAX_DENSE_PLACES, Coded, code, group
from equipoise.ground.randomness import Draws, new_seed

MIN_SHARED = 0.5
"""Share of the records that two files must have in common to be of the same people, and of equal amounts that make two
columns one quantity."""
Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False, repr=False)
class CountedRecords:
    """The records that a table was counted from, and what each adds to its cell: a `value`, a `weight`, or one.

    `holding` says who contributes it, where that is not the record itself.
    """

    records: Records
    value: str | None
    weight: str | None
    holding: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for column in (self.value, self.weight, self.holding) if column)


@dataclass(frozen=True, eq=False, repr=False)
class Members:
    """Who is in a table: for each record its `unit`, the row of its inner cell, and the bits of what it adds.

    Units are comparable in one `space`: a file, or a register. `values` is what each adds, where that is known, and
    `own` what of it the contributor knows: not how often a weight repeats it. `holders` are numbers of the holdings,
    where there are any; `owners`, once tables are compared, says whose each is.
    """

    units: Integers
    cells: Integers
    amounts: Words
    values: Floats | None
    space: object
    own: Floats | None = None
    holders: Any = None
    owners: Integers | None = None

    def at(self, rows: Integers, units: Integers, space: object) -> "Members":
        """Some of the records, as units of another space."""
        parts = (None if part is None else part[rows] for part in (self.values, self.own, self.holders))
        values, own, holders = parts
        return Members(units, self.cells[rows], self.amounts[rows], values, space, own, holders)


def members_of(tables: Sequence[Table]) -> list[Members | None]:
    """The members of each table in a common space; None for tables whose records are not known, or not comparable.

    Files are compared with larger ones, so that tables of parts of a file are known as such in any order.
    """
    spaces: list[_File] = []
    members: list[Members | None] = [None] * len(tables)
    for place, table in sorted(enumerate(tables), key=lambda one: -one[1].records):
        if isinstance(table.behind, CountedRecords):
            members[place] = _file_of(spaces, table.behind.records, tables).members(table)
        else:
            members[place] = table.behind
    known = [one for one in members if one is not None]
    space = known[0].space if known else None
    return [one if one is not None and one.space is space else None for one in members]


def _file_of(spaces: "list[_File]", records: Records, tables: Sequence[Table]) -> "_File":
    for file in spaces:
        if file.records.frame is records.frame:
            return file
    columns = [
        (*table.by, *table.behind.columns)
        for table in tables
        if isinstance(table.behind, CountedRecords) and table.behind.records.frame is records.frame
    ]
    file = _File.of(records, tuple(dict.fromkeys(name for names in columns for name in names)))
    for other in spaces:
        rows = same_rows(other.records, records)
        least = 0.0 if other.records.roles.id and records.roles.id else MIN_SHARED
        if rows is not None and (rows >= 0).any() and (rows >= 0).mean() >= least:
            units = np.where(rows >= 0, other.units[rows], other.next + np.arange(file.height))
            other.space.size = max(other.space.size, other.next + file.height)
            file = replace(file, units=units, space=other.space)
            break
    spaces.append(file)
    return file


class _Space:
    """Numbers of units: `size` are in use."""

    def __init__(self, size: int) -> None:
        self.size = size


@dataclass(frozen=True, eq=False, repr=False)
class _File:
    """A file that tables were counted from: the columns they need, the unit of each record."""

    records: Records
    frame: pl.DataFrame
    units: Integers
    space: _Space

    @classmethod
    def of(cls, records: Records, columns: tuple[str, ...]) -> "_File":
        frame = records.collect(*columns)
        return cls(records, frame, np.arange(frame.height), _Space(frame.height))

    @property
    def height(self) -> int:
        return self.frame.height

    @property
    def next(self) -> int:
        return self.space.size

    @cached_property
    def memo(self) -> dict[Any, Any]:
        return {}

    def codes(self, column: str) -> Coded:
        if column not in self.memo:
            self.memo[column] = code(self.frame[column])
        coded: Coded = self.memo[column]
        return coded

    def amounts(self, source: CountedRecords) -> tuple[Floats, Words]:
        """What each record adds, and its bits."""
        key = ("amounts", source.value, source.weight)
        if key not in self.memo:
            self.memo[key] = contributions(self.frame, source)
        amounts: tuple[Floats, Words] = self.memo[key]
        return amounts

    def members(self, table: Table) -> Members | None:
        """Who is in the table; None where the records are not those that it was counted from any more."""
        assert isinstance(table.behind, CountedRecords)
        cells = cells_of_rows(table, [self.codes(column) for column in table.by])
        if cells is None:
            return None
        values, amounts = self.amounts(table.behind)
        source = table.behind
        holders = self.codes(source.holding).codes if source.holding else None
        own = values
        if source.weight is not None and source.holding is None:
            own = values / np.maximum(self.frame[source.weight].cast(pl.Float64).to_numpy(), 1.0)
        return Members(self.units, cells, amounts, values, self.space, own, holders)


def contributions(frame: pl.DataFrame, source: CountedRecords) -> tuple[Floats, Words]:
    """What each record adds to its cell, and its bits."""
    parts = [frame[column].cast(pl.Float64).to_numpy() for column in (source.value, source.weight) if column]
    values = np.prod(parts, axis=0) + 0.0 if parts else np.ones(frame.height)
    return values, values.view(np.uint64)


def counted_members(table: Table, ids: pl.Series | None = None) -> Members | None:
    """The members of a table that was counted from records, a unit for each row; or for each of these ids, in order."""
    source = table.behind
    if not isinstance(source, CountedRecords):
        return None
    name = source.records.roles.id if ids is not None else None
    file = _File.of(source.records, tuple(dict.fromkeys((*table.by, *source.columns, *([name] if name else [])))))
    members = file.members(table)
    if members is None or ids is None:
        return members
    rows = _matched(_texts(file.frame.select(name)).to_series(), _texts(ids.to_frame()).to_series()) if name else None
    return None if rows is None or (rows < 0).any() else members.at(rows, members.units, members.space)


def cells_of_rows(table: Table, columns: Sequence[Coded]) -> Integers | None:
    """The row of the table that each record is in, by the codes of its values; None where they do not fit."""
    if any(coded.size != axis.leaves for coded, axis in zip(columns, table.axes, strict=True)):
        return None
    keys, strides = table.packed
    wanted = sum(
        (axis.places * stride)[coded.codes] for axis, stride, coded in zip(table.axes, strides, columns, strict=True)
    )
    places = prod(len(axis) for axis in table.axes)
    if places <= MAX_DENSE_PLACES:
        row_of = np.zeros(places, dtype=np.int64)
        row_of[keys] = np.arange(len(keys))
        rows = row_of[wanted]
    else:
        order = np.argsort(keys, kind="stable")
        rows = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)]
    if (keys[rows] != wanted).any() or (np.bincount(rows, minlength=len(keys)) != table.n)[table.inner].any():
        return None
    return rows.astype(np.int32 if len(keys) < 1 << 31 else np.int64)


def same_rows(one: Records, two: Records) -> Integers | None:
    """The row of the first file of each record of the second, -1 for none; None where nothing tells."""
    if one.roles.id and two.roles.id:
        ids = [_texts(records.collect(str(records.roles.id))).to_series() for records in (one, two)]
        return _matched(*ids) if not any(text.null_count() or text.is_duplicated().any() for text in ids) else None
    if not in_order(one) or not in_order(two):
        return None
    first, second = one.collect(), two.collect()
    shared = [c for c in first.columns if c in second.columns]
    if first.height == second.height:
        texts = [_texts(frame.select(shared)) for frame in (first, second)]
        equal = [c for c in shared if texts[0][c].equals(texts[1][c], null_equal=True)]
        if equal and texts[0].select(pl.struct(equal).n_unique() > 1).item():
            return np.arange(first.height)
    return _by_content(first, second)


def _by_content(first: pl.DataFrame, second: pl.DataFrame) -> Integers | None:
    """Records of the same values in any order of rows and columns, whatever the columns are called."""
    if first.width != second.width:
        return None
    draws = Draws(new_seed())
    keys = [_content(frame, draws) for frame in (first, second)]
    return _matched(*keys)


def _content(frame: pl.DataFrame, draws: Draws) -> pl.Series:
    """A key of the values of each row, and its number among equal ones."""
    total = np.zeros(frame.height, dtype=np.uint64)
    for text in _texts(frame).iter_columns():
        coded = code(text)
        total += draws.tokens(coded.values.fill_null(""))[coded.codes]
    rows = pl.DataFrame({"sum": total}).with_columns(time=pl.int_range(pl.len()).over("sum"))
    return rows.select(pl.concat_str("sum", "time", separator=":")).to_series()


def _texts(frame: pl.DataFrame) -> pl.DataFrame:
    """Values as text, whole numbers and decimals alike."""
    return frame.select(
        (pl.col(c).cast(pl.Float64) if kind.is_numeric() else pl.col(c)).cast(pl.String, strict=False)
        for c, kind in frame.schema.items()
    )


def _matched(one: pl.Series, two: pl.Series) -> Integers:
    """The place of each text of the second among those of the first, -1 where it is not there."""
    place = pl.DataFrame({"text": one, "place": np.arange(len(one))})
    rows = pl.DataFrame({"text": two}).join(place, on="text", how="left", maintain_order="left")
    return rows["place"].fill_null(-1).to_numpy()


def with_owners(members: Sequence[Members | None]) -> list[Members | None]:
    """The members with the number of who contributes each: a record itself, or all of a holding in any of the tables.

    A holding that one table knows is one in the others as well. O(records).
    """
    identified = [one for one in members if one is not None]
    if all(one.holders is None for one in identified):
        return [None if one is None else replace(one, owners=one.units) for one in members]
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    start = 1 + max((int(one.units.max(initial=-1)) for one in identified), default=-1)
    ends: list[tuple[Integers, Integers]] = []
    for one in identified:
        if one.holders is not None:
            holdings, number = np.unique(one.holders, return_inverse=True)
            ends.append((one.units, start + number))
            start += len(holdings)
    units, holders = (np.concatenate(side) for side in zip(*ends, strict=True))
    graph = coo_array((np.ones(len(units), dtype=np.bool_), (units, holders)), shape=(start, start))
    owner = connected_components(graph, directed=False)[1]
    return [None if one is None else replace(one, owners=owner[one.units]) for one in members]


def numbered_units(tables: Sequence[Table], members: Sequence[Members | None]) -> list[Members | None]:
    """Members whose units are a record with what it adds, numbered from 0 without gaps."""
    known = [one for one in members if one is not None]
    if not known:
        return list(members)
    quantity = _quantities(tables, members)
    alike = all(one.units is known[0].units and one.amounts is known[0].amounts for one in known)
    if alike and len(set(quantity)) == 1:
        return list(members)
    columns: list[list[Any]] = [[], [], []]
    for one, number in zip(members, quantity, strict=True):
        if one is not None:
            for column, part in zip(columns, (one.units, one.amounts, np.full(len(one.units), number)), strict=True):
                column.append(part)
    coded = [code(pl.Series(np.concatenate(column))) for column in columns]
    ids = group([c.codes for c in coded], [c.size for c in coded])[0]
    numbers = iter(np.split(ids, np.cumsum([len(one.units) for one in known])[:-1]))
    return [None if one is None else replace(one, units=next(numbers)) for one in members]


def _quantities(tables: Sequence[Table], members: Sequence[Members | None]) -> list[int]:
    """Which tables add up the same: 0 for counts, else a number for each column, recognised by its values too."""
    quantity: list[int] = []
    for place, (table, one) in enumerate(zip(tables, members, strict=True)):
        if table.measured is None or one is None:
            quantity.append(0)
            continue
        others = ((i, tables[i], members[i]) for i in range(place) if tables[i].measured is not None)
        same = (quantity[i] for i, t, m in others if m is not None and (t.measured == table.measured or _equal(m, one)))
        quantity.append(next(same, place + 1))
    return quantity


def _equal(one: Members, two: Members) -> bool:
    """Whether most records that both have add the same to both, and not all the same."""
    _, first, second = np.intersect1d(one.units, two.units, return_indices=True)
    equal = one.amounts[first] == two.amounts[second]
    return len(equal) > 0 and equal.mean() >= MIN_SHARED and len(np.unique(one.amounts[first][equal])) > 1
