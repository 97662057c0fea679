"""Cells: records counted by a set of columns. Every decision is made on this small table."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from equipoise.data import engines
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.missing_keys import alike
from equipoise.data.people import People
from equipoise.data.records import Records
from equipoise.data.roles import beside, names
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.errors import DataError, ParameterError, RolesError, require_columns, warn_renamed
from equipoise.ground.packed_keys import MAX_DENSE_PLACES, Coded, Cube, code, gather, group, merge, pack, tally

NON_KEY_COLUMNS = re.compile(r"n|total|value|top\d+|contributors|requested|holder|domain_[nN]")
"""Names of columns of a ready cell table that are not keys."""
OWN_RISK = "__eq_risk"
Relabel = Callable[[pl.Series, Integers], pl.Series]
"""Maps the distinct values of a column and their record counts to the new value of each."""


@dataclass(frozen=True, repr=False, eq=False)
class Cells:
    """One row per occupied combination of the columns `by`: `n` records, `total` their weight.

    `more` has other numbers of each cell, row by row: sums of a value, the largest contributions, its domain's sample
    and population. It is lost when cells are added up. In the columns `open` a missing value matches anything
    (`missing="any"` in the roles); elsewhere it is a value of its own. `people` says who is in which cell where several
    records are of one person (the role `person`): classes then count people.

    >>> table = pl.DataFrame({"sex": ["f", "f", "m"], "age": [30, 31, 30], "n": [2, 1, 4]})
    >>> cells = Cells.of(table)
    >>> cells.roll_up({"age": {30: "30s", 31: "30s"}}).table["n"].to_list()
    [3, 4]
    """

    by: tuple[str, ...]
    cube: Cube
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)
    more: pl.DataFrame = field(default_factory=pl.DataFrame)
    open: tuple[str, ...] = ()
    people: People | None = None
    memo: dict[Any, Any] = field(default_factory=dict, init=False)

    @classmethod
    def of(
        cls, table: pl.DataFrame, by: tuple[str, ...] = (), hierarchies: Mapping[str, Hierarchy] | None = None
    ) -> "Cells":
        """From a ready table with a column `n`, and `total` where it is not equal to n.

        Without `by`, every column is a key except those with a reserved name: value, top1, domain_n and so on.
        """
        if "n" not in table.columns:
            raise DataError("A cell table needs a column 'n' with the number of records in each cell.")
        by = by or tuple(c for c in table.columns if not NON_KEY_COLUMNS.fullmatch(c))
        total = table["total"] if "total" in table.columns else table["n"]
        cube = tally([code(table[c]) for c in by], total.cast(pl.Float64).to_numpy()) if by else None
        if cube is None or len(cube) != table.height:
            raise DataError("A cell table needs key columns, and each combination of them once.")
        order = table.with_row_index("__eq_at").sort(by, nulls_last=False)["__eq_at"].to_numpy()
        n = table["n"].cast(pl.Int64).to_numpy()[order]
        more = table.drop(*by, "n", "total", strict=False)[order]
        return cls(by, Cube(cube.axes, cube.codes, n, cube.total), dict(hierarchies or {}), more)

    def __len__(self) -> int:
        return len(self.cube)

    @property
    def n(self) -> Integers:
        return self.cube.n

    @property
    def total(self) -> Floats:
        return self.cube.total

    @cached_property
    def alike(self) -> tuple[Integers, Floats]:
        """Records in each cell's class and their weight: its own, and those that match it through missing keys.

        Class sizes are counted by these two everywhere, so that missing values mean the same in every risk and rule.
        Where records repeat people, it is the people of the cell and their mean weight for each; no other cell matches.
        """
        if self.people is not None:
            people = self.people.counts(self.cube)
            return people, self.total * people / np.maximum(self.n, 1)
        return alike(self.cube, [self.by.index(column) for column in self.open if column in self.by])

    @property
    def members(self) -> Integers:
        """People in each cell: its records, unless records repeat people."""
        return self.n if self.people is None else self.alike[0]

    @property
    def records(self) -> int:
        return int(self.cube.n.sum())

    @cached_property
    def keys(self) -> pl.DataFrame:
        """The key columns alone, sorted."""
        return pl.DataFrame(
            {
                name: values.gather(pl.Series(codes.astype(np.uint32)))
                for name, values, codes in zip(self.by, self.cube.axes, self.cube.codes, strict=True)
            }
        )

    @cached_property
    def table(self) -> pl.DataFrame:
        """The key columns, `n`, `total` and the columns of `more`, sorted by the keys."""
        return self.table_with()

    def table_with(self, **ours: Any) -> pl.DataFrame:
        """The table with columns of our own; a key that has the name of one gets an underscore."""
        columns = {"n": self.cube.n, "total": self.cube.total, **self.more.to_dict(), **ours}
        names = {c: beside(c, *columns, *(other for other in self.by if other != c)) for c in self.by if c in columns}
        keys = [self.keys[c].alias(names.get(c, c)) for c in self.by]
        return pl.DataFrame(keys).with_columns(**columns)

    def numbers(self, column: str) -> Floats:
        """What is known of each cell under this name, as numbers."""
        if column in ("n", "total"):
            return np.asarray(self.n if column == "n" else self.total, dtype=np.float64)
        if column not in self.more.columns:
            raise RolesError.missing(column, ("n", "total", *self.more.columns))
        return self.more[column].cast(pl.Float64).to_numpy()

    def known(self, column: str) -> Floats:
        """The old name of `numbers`, for one version more."""
        warn_renamed("Cells.known", "Cells.numbers")
        return self.numbers(column)

    def values(self, column: str) -> pl.Series:
        """The distinct values of a key."""
        return self.cube.axes[self.place(column)]

    def place(self, column: str) -> int:
        require_columns((column,), self.by)
        return self.by.index(column)

    def counts(self, column: str) -> Integers:
        """Records for each distinct value of a key."""
        place = self.place(column)
        sums = np.bincount(self.cube.codes[place], weights=self.n, minlength=self.cube.sizes[place])
        return np.rint(sums).astype(np.int64)

    def margin(self, by: tuple[str, ...]) -> "Cells":
        """Added up over the columns that are not in `by`. O(cells)."""
        by = (by,) if isinstance(by, str) else tuple(by)
        if by == self.by:
            return self
        if by not in self.memo:
            places = [self.place(column) for column in by]
            cube = self.cube.keep(places)
            hierarchies = {c: h for c, h in self.hierarchies.items() if c in by}
            people = self._people([self.cube.codes[place] for place in places])
            self.memo[by] = Cells(by, cube, hierarchies, open=self.open, people=people)
        return self.memo[by]

    def relabel(self, column: str, change: Relabel, keep_hierarchy: bool = False) -> "Cells":
        """Give each value of a column a new one and add up the cells that become equal. O(cells)."""
        place = self.place(column)
        new = code(change(self.values(column), self.counts(column)).alias(column))
        trees = dict(self.hierarchies) if keep_hierarchy else {c: h for c, h in self.hierarchies.items() if c != column}
        codes = [new.codes[c] if i == place else c for i, c in enumerate(self.cube.codes)]
        cube = self.cube.recode(place, new.values, new.codes)
        return Cells(self.by, cube, trees, open=self.open, people=self._people(codes))

    def _people(self, codes: list[Integers]) -> People | None:
        """The people of the cells that have become equal, in the order of the keys."""
        if self.people is None:
            return None
        if not codes:
            return self.people.moved(np.zeros(len(self), dtype=np.int64))
        return self.people.moved(group(codes, [int(c.max(initial=0)) + 1 for c in codes])[0])

    def roll_up(self, changes: Mapping[str, Any]) -> "Cells":
        """Recode and re-aggregate without touching records.

        For each column: a level of its hierarchy (number or name), a mapping of old to new values (values that are
        not listed stay), a function of one value, or None to add up over it.
        """
        rolled = self
        for column, change in changes.items():
            if change is None:
                rolled = rolled.margin(tuple(c for c in rolled.by if c != column))
            else:
                rolled = rolled.relabel(column, rolled._change(column, change))
        return rolled

    def _change(self, column: str, change: Any) -> Relabel:
        if isinstance(change, Mapping):
            return lambda values, n: _mapped(values, lambda value: change.get(value, value))
        if callable(change):
            return lambda values, n: _mapped(values, lambda value: None if value is None else change(value))
        level = self.hierarchy(column).level(change)
        return lambda values, n: level.label(values)

    def hierarchy(self, column: str) -> Hierarchy:
        self.place(column)
        return hierarchy(self.hierarchies, column)

    def __repr__(self) -> str:
        return f"Cells({len(self):,} cells, {self.records:,} records, by={list(self.by)})"


def hierarchy(hierarchies: Mapping[str, Hierarchy], column: str) -> Hierarchy:
    if column not in hierarchies:
        raise ParameterError(f"Column {column!r} has no hierarchy (or was recoded already): give one in the roles.")
    return hierarchies[column]


def _mapped(values: pl.Series, change: Callable[[Any], Any]) -> pl.Series:
    """New value of each value; text where they are of several types."""
    new = [change(value) for value in values.to_list()]
    kinds = {type(value) for value in new if value is not None}
    return pl.Series(values.name, new if len(kinds) <= 1 else [None if v is None else str(v) for v in new])


def count(records: Records, by: tuple[str, ...] | list[str] | str | None = None) -> Cells:
    """Count records by columns, the keys by default.

    On Polars the columns are coded once, packed into one integer and counted with `bincount`; data that is scanned is
    counted in batches of bounded size; on DuckDB and Spark the engine groups. Counting by some of the columns of an
    earlier count rolls that one up. Cost: O(records) once, O(cells) afterwards.

    Parameters
    ----------
    records
        What `eq.read` gives.
    by
        Columns to cross; `roles.keys` when not given.
    """
    keys = names(by, "by") or records.roles.keys
    if not keys:
        raise RolesError("There is nothing to count by: name at least one key in the roles.")
    schema = records.schema()
    require_columns(keys, schema)
    ready = next((c for c in _earlier_counts(records) if set(keys) <= set(c.by)), None)
    if ready is not None:
        return ready.margin(keys)
    cells = _count(records, keys)
    records.memo[("cells", keys)] = cells
    return cells


def _earlier_counts(records: Records) -> list[Cells]:
    """Earlier counts, the smallest first."""
    return sorted((v for k, v in records.memo.items() if k[0] == "cells"), key=len)


def _count(records: Records, by: tuple[str, ...]) -> Cells:
    trees = {c: h for c, h in records.roles.hierarchies.items() if c in by}
    wild = records.roles.keys if records.roles.missing == "any" else ()
    return Cells(by, _tally(records, by), trees, open=wild, people=_people_of(records, by))


def _people_of(records: Records, by: tuple[str, ...]) -> People | None:
    """Who is in which cell, cells in the order of the keys; None where nobody repeats. Collects these columns."""
    person = records.roles.person
    if not person:
        return None
    columns = (*by, person)
    table = records.collect(*dict.fromkeys(columns))
    if gaps := table[person].null_count():
        raise RolesError(f"{gaps:,} records have no person in {person!r}.")
    *keys, persons = [code(table[column]) for column in columns]
    cells, _ = group([key.codes for key in keys], [key.size for key in keys])
    return People.of(cells, persons.codes.astype(np.int64))


def _tally(records: Records, by: tuple[str, ...]) -> Cube:
    if not records.frame.implementation.is_polars():
        return _group_on_engine(records, by)
    weight = records.roles.weight
    if records.in_memory:
        return tally(coded(records, by), _weights(records, weight))
    needed = list(dict.fromkeys((*by, *((weight,) if weight else ()))))
    pieces = engines.batches(records.frame.select(needed))
    return merge(_batch(piece, by, weight) for piece in pieces)


def coded(records: Records, by: tuple[str, ...]) -> list[Coded]:
    """Codes of these columns, computed once for records in memory and cached."""
    missing = [c for c in by if ("coded", c) not in records.memo]
    if missing:
        fresh = records.collect(*missing)
        records.memo.update({("coded", c): code(fresh[c]) for c in missing})
    return [records.memo["coded", c] for c in by]


def _weights(records: Records, weight: str | None) -> Floats | None:
    if weight is None:
        return None
    if ("weight",) not in records.memo:
        records.memo["weight",] = records.collect(weight)[weight].cast(pl.Float64).to_numpy()
    return records.memo["weight",]


def _batch(piece: pl.DataFrame, by: tuple[str, ...], weight: str | None) -> Cube:
    return tally([code(piece[c]) for c in by], piece[weight].cast(pl.Float64).to_numpy() if weight else None)


def _group_on_engine(records: Records, by: tuple[str, ...]) -> Cube:
    """Count on the engine that holds the records."""
    schema, weight = records.schema(), records.roles.weight
    floats = [nw.col(c).fill_nan(None) for c in by if schema[c].is_float()]
    frame = records.frame.with_columns(*floats) if floats else records.frame
    total = nw.col("__eq_w").sum() if weight else nw.len()
    weighted = frame.with_columns(nw.col(weight).cast(nw.Float64()).alias("__eq_w")) if weight else frame
    groups = weighted.group_by(*by).agg(nw.len().alias("__eq_n"), total.alias("__eq_total"))
    typed = groups.with_columns(nw.col("__eq_n").cast(nw.Int64()), nw.col("__eq_total").cast(nw.Float64()))
    return _cube(engines.collect(typed), by)


def _cube(table: pl.DataFrame, by: tuple[str, ...]) -> Cube:
    coded = [code(table[c]) for c in by]
    axes, codes = tuple(c.values for c in coded), tuple(c.codes for c in coded)
    return gather(axes, codes, table["__eq_n"].to_numpy(), table["__eq_total"].to_numpy())


def cell_places(records: Records, cells: Cells) -> Integers | None:
    """Cell of every record, for records in memory and cells counted from them, else None. O(records)."""
    if not (records.in_memory and records.frame.implementation.is_polars()):
        return None
    columns: list[Coded] = [records.memo["coded", c] for c in cells.by if ("coded", c) in records.memo]
    if len(columns) < len(cells.by) or any(c.values is not a for c, a in zip(columns, cells.cube.axes, strict=True)):
        return None
    sizes = cells.cube.sizes
    if not columns or prod(sizes) > max(MAX_DENSE_PLACES, len(columns[0].codes)):
        return None
    at = np.zeros(prod(sizes), dtype=np.int64)
    at[pack(cells.cube.codes, sizes)] = np.arange(len(cells))
    return at[pack([c.codes for c in columns], sizes)]


def bits(counts: Integers) -> float:
    """Entropy of a distribution given by counts, in bits.

    >>> bits(np.array([1, 1, 2]))
    1.5
    """
    p = counts[counts > 0] / counts.sum()
    return max(0.0, -float((p * np.log2(p)).sum()))


def as_cells(data: Records | Cells, by: tuple[str, ...]) -> Cells:
    """Cells by these columns, counted from records or added up from finer cells."""
    return data.margin(by) if isinstance(data, Cells) else count(data, by)


def amount(cells: Cells) -> Floats:
    """The number that a table publishes of each cell: its value, or its weight in a table of counts."""
    return cells.numbers("value" if "value" in cells.more.columns else "total")


def gross(cells: Cells) -> Floats:
    """What the contributions to each cell add up to without their signs; its amount where none is negative."""
    return cells.numbers("gross") if "gross" in cells.more.columns else amount(cells)


def may_be_negative(cells: Cells) -> Booleans:
    """Cells that may be below 0 as far as anybody knows: all with records where a value is, or a relation takes off."""
    if "signed" not in cells.more.columns:
        return np.zeros(len(cells), dtype=np.bool_)
    return cells.more["signed"].fill_null(value=False).to_numpy()


def by_record(records: Records, cells: Cells, risk: Floats) -> pl.DataFrame:
    """The risk of every record from the risk of its cell: the id (or `record`, the row number) and `risk`.

    In input order for frames in memory. On Spark the join runs there and only ids and risks leave it.
    """
    name = records.roles.id
    row_name, values = beside(name or "record", "risk"), np.asarray(risk, dtype=np.float64)
    if records.kind != "pyspark":
        places = cell_places(records, cells)
        columns = dict.fromkeys((*(cells.by if places is None else ()), *((name,) if name else ())))
        table = records.collect(*columns) if columns else pl.DataFrame()
        places = cell_of(table, cells) if places is None else places
        ids = table[name] if name else pl.int_range(len(places), dtype=pl.UInt32, eager=True)
        return pl.DataFrame({row_name: ids, "risk": values[places]})
    if not name:
        raise RolesError("Records on Spark have no order: name an id role to see the risk of each record.")
    return _by_record_on_spark(records, cells, values).rename({name: row_name}).rename({OWN_RISK: "risk"})


def _by_record_on_spark(records: Records, cells: Cells, risk: Floats) -> pl.DataFrame:
    key, schema = str(records.roles.id), records.schema()
    table = cells.keys.with_columns(pl.Series(OWN_RISK, risk))
    plain = {c: nw.col(c).fill_nan(None) + 0.0 if schema[c].is_float() else nw.col(c) for c in cells.by}  # -0.0 is 0.0
    texts = [plain[c].cast(nw.String()).fill_null("\x00").alias(f"__eq_{c}") for c in cells.by]
    joints = [f"__eq_{c}" for c in cells.by]
    plan = engines.like(records.frame, table).with_columns(*texts).select(*joints, OWN_RISK)
    joined = records.frame.with_columns(*texts).select(*dict.fromkeys((key, *joints))).join(plan, on=joints, how="left")
    return engines.collect(joined.select(key, OWN_RISK)).sort(key)


def cell_of(table: pl.DataFrame, cells: Cells) -> Integers:
    """The cell of every record of a table, null keys included."""
    index = cells.keys.with_row_index("__eq_cell")
    rows = table.select(cells.by).with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None))
    index = index.cast({c: rows.schema[c] for c in cells.by})
    places = rows.join(index, on=cells.by, how="left", nulls_equal=True, maintain_order="left")["__eq_cell"]
    return places.to_numpy().astype(np.int64)
