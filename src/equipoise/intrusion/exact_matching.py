"""Exact matching on any columns an intruder may know, and the most identifying combinations of keys."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, coded
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import RolesError
from equipoise.ground.packed_keys import MAX_PACKED_ID, Coded, group, pack, tally
from equipoise.intrusion import knowledge
from equipoise.methods.score import Score
from equipoise.presentation.style import Spec
from equipoise.risk import Prosecutor, Uniques

WITHHELD_ROLES = ("direct", "id", "weight", "household", "person", "sample")
"""Roles of columns that are withheld, or that nobody outside has."""
MIN_RECORDS_PER_CELL = 8
"""Keys are added up from the cells where there are so many times more records."""
MAX_COMBINED_KEYS, MAX_RECORD_TRIES = 3, 60_000_000
"""Combinations of up to so many keys are all tried, as long as records times combinations are not more."""
Known = tuple[str, ...]


@dataclass(frozen=True)
class Matching:
    """How an intruder fares who picks at random among the records that equal what he knows.

    `right` is the expected share of right picks, classes / records where no key is missing and matches anything;
    `alone` are the records without an equal, `smallest` the size of the smallest class.
    """

    records: int
    right: float
    alone: int
    smallest: int

    @classmethod
    def of(cls, sizes: Integers) -> "Matching":
        """From the sizes of the classes.

        >>> Matching.of(np.array([1, 3]))
        Matching(records=4, right=0.5, alone=1, smallest=1)
        """
        records = int(sizes.sum())
        return cls(records, len(sizes) / records, int((sizes == 1).sum()), int(sizes.min()))

    def plain(self) -> dict[str, Any]:
        return {**vars(self), "number": self.right * self.records, "share": self.alone / self.records}


def refuse_inner(records: Records, columns: Known) -> None:
    """Refuse columns that are not released, or whose role nobody outside knows."""
    schema, inner = records.schema(), inner_columns(records.roles)
    withheld = [column for column in columns if column not in schema or column in inner]
    if withheld:
        raise RolesError(f"The column {withheld[0]!r} is not one that somebody outside knows.")


def inner_columns(roles: Roles) -> set[str]:
    """The columns that an intruder does not know."""
    design = {roles.weight, roles.household, roles.person, roles.sample} - {
        *roles.keys,
        *roles.sensitive,
        *roles.numeric,
    }
    return {name for name in (*roles.direct, roles.id, *design) if name}


def matched(raw: Records, roles: Roles, columns: Known, cells: Callable[[], Cells]) -> Matching:
    """How somebody fares who knows these columns; `cells` are those of all keys, asked for where they may be used.

    Class sizes by one sort of packed codes; where nulls match anything, by the measures that know of it.
    """
    if not columns:
        return Matching.of(np.array([raw.height()]))
    wild = [column for column in columns if roles.missing == "any" and column in roles.keys]
    if not wild and set(columns) <= set(roles.keys):
        whole = cells()
        if len(whole) * MIN_RECORDS_PER_CELL < whole.records:
            return Matching.of(whole.cube.keep([whole.place(column) for column in columns]).n)
    parts = coded(raw, columns)
    if any(parts[columns.index(column)].values.null_count() for column in wild):
        return _open(Cells(columns, tally(parts), open=tuple(wild)))
    return Matching.of(class_sizes(parts))


def _open(cells: Cells) -> Matching:
    right, alone = Prosecutor("mean").measure(cells, cells), Uniques().measure(cells, cells)
    return Matching(cells.records, right.value, round(alone.number or 0), int(cells.alike[0].min()))


def class_sizes(parts: Sequence[Coded]) -> Integers:
    """How many records have each combination of values that occurs. O(n log n), a sort of one integer per record.

    >>> from equipoise.ground.packed_keys import code
    >>> sorted(class_sizes([code(pl.Series([1, 1, 2])), code(pl.Series(["a", "a", "a"]))]).tolist())
    [1, 2]
    """
    codes, sizes = [part.codes for part in parts], [part.size for part in parts]
    if prod(sizes) > MAX_PACKED_ID:
        return np.bincount(group(codes, sizes)[0])
    packed = pack(codes, sizes)
    if prod(sizes) <= len(packed):
        counts = np.bincount(packed)
        return counts[counts > 0]
    packed.sort()
    edges = np.flatnonzero(packed[1:] != packed[:-1])
    return np.diff(edges, prepend=-1, append=len(packed) - 1)


@dataclass(frozen=True)
class Combinations:
    """The worst combination of each number of keys, a table of all that were tried, and what was tried in words."""

    worst: tuple[tuple[Known, Matching], ...]
    table: pl.DataFrame
    words: str

    @property
    def chart(self) -> Spec | None:
        return _chart(self.table) if self.table.height > 1 else None


def combinations(keys: Known, records: int, match: Callable[[Known], Matching]) -> Combinations:
    """The combinations of keys that tell most; `match` says how somebody fares who knows some of them."""
    if not keys:
        raise RolesError("No column is a key yet: say which columns an intruder may know.")
    outcomes: dict[str, tuple[Known, Matching]] = {}

    def attempt(columns: Known) -> Score:
        matching = match(columns)
        outcomes[", ".join(columns)] = columns, matching
        return Score("matching", matching.right, "lower", baseline=1 / matching.records)

    plan = knowledge.KnowledgePlan.of(len(keys), MAX_COMBINED_KEYS, records, MAX_RECORD_TRIES)
    table = knowledge.sweep(keys, plan, attempt, None, None)
    worst = tuple(outcomes[name] for name in knowledge.growth(table)["known"])
    return Combinations(worst, table, plan.words())


def _chart(table: pl.DataFrame) -> Spec:
    """The chart of what must be known, as wide as its place; exact shares have no interval to tell of."""
    spec = knowledge.chart(table)
    layers = [layer for layer in spec["layer"] if not layer["name"].endswith("_error")]
    for layer in layers:
        for row in layer.get("data", {}).get("values", ()):
            if "told" in row:
                row["told"] = row["told"].partition(" (")[0]
    config = {**spec["config"], "background": "transparent"}
    return {**spec, "title": None, "width": "container", "height": 260, "layer": layers, "config": config}
