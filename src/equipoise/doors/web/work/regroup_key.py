"""A stage: the cells with all keys but one at their chosen levels, arranged so that the one is regrouped at once.

Rows stand in the order of the other keys, then of the key itself: categories of neighbouring values are added up in one
pass, any others after a sort of packed integers. No record is touched: O(cells) for each regrouping.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, bits
from equipoise.ground.arrays import Integers
from equipoise.ground.packed_keys import code, group, order_of

SMALL = 3
"""Classes of fewer records are small."""


class Stage(Protocol):
    """What can be regrouped by the categories of one key."""

    def classes(self, table: Integers) -> tuple[Integers, Integers]:
        """The records of each class, and those that look alike, when value v of the key is in category table[v]."""


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """`others` numbers the combinations of the other keys; `codes` is the value of the key, `n` the records there."""

    others: Integers
    codes: Integers
    n: Integers

    @classmethod
    def of(cls, cells: Cells, column: str, labels: Mapping[str, pl.Series]) -> "Rows":
        """From counted cells, and the category of every value of those other keys that are coarsened."""
        coded = [_axis(cells, name, labels.get(name)) for name in cells.by if name != column]
        ids = np.zeros(len(cells), dtype=np.int64)
        if coded:
            ids, _ = group([codes for codes, _ in coded], [size for _, size in coded])
        size = len(cells.values(column))
        ids *= size
        ids += cells.cube.codes[cells.place(column)]
        found, n = _added(ids, cells.n, in_order=False)
        return cls(found // size, found % size, n)

    def classes(self, table: Integers) -> tuple[Integers, Integers]:
        new = first_met(table)
        packed = self.others * (int(new.max(initial=0)) + 1) + new[self.codes]
        _, n = _added(packed, self.n, in_order=bool((np.diff(new) >= 0).all()))
        return n, n


@dataclass(frozen=True, eq=False, repr=False)
class Wild:
    """The same where missing keys match anything: who is alike is counted by the cells. O(patterns x cells)."""

    cells: Cells
    column: str

    @classmethod
    def of(cls, cells: Cells, column: str, labels: Mapping[str, pl.Series]) -> "Wild":
        for name, new in labels.items():
            cells = cells.relabel(name, lambda values, n, new=new: new)  # type: ignore[misc]
        return cls(cells, column)

    def classes(self, table: Integers) -> tuple[Integers, Integers]:
        known = self.cells.values(self.column).is_not_null()
        new = pl.select(pl.when(known).then(pl.Series(table, dtype=pl.Int64))).to_series()
        rolled = self.cells.relabel(self.column, lambda values, n: new)
        return rolled.n, rolled.alike[0]


def stage_of(cells: Cells, column: str, labels: Mapping[str, pl.Series]) -> Stage:
    """The stage of a key; `labels` has the categories of the values of other keys that are coarsened."""
    gaps = any(cells.values(name).null_count() for name in cells.open if name in cells.by)
    return Wild.of(cells, column, labels) if gaps else Rows.of(cells, column, labels)


def numbers(stage: Stage, table: Integers) -> dict[str, float]:
    """Risk and information of all keys with one of them regrouped: what the measures say of the recoded file.

    `unique` as Uniques, `small` as KAnonymity(3), `matches` as Marketer, `bits` as Entropy.
    """
    n, alike = stage.classes(table)
    return {
        "unique": int(n[alike <= 1].sum()),
        "small": int(n[alike < SMALL].sum()),
        "matches": float(len(n)) if alike is n else float((n / alike).sum()),
        "classes": len(n),
        "bits": bits(n) if len(n) else 0.0,
    }


def first_met(codes: Integers) -> Integers:
    """Categories numbered by where they are first met; equal ones mostly stand together.

    >>> first_met(np.array([7, 7, 2, 7, 9])).tolist()
    [0, 0, 1, 0, 2]
    """
    starts = np.flatnonzero(np.diff(codes, prepend=codes[:1] - 1))
    _, first, found = np.unique(codes[starts], return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.repeat(rank[found], np.diff(starts, append=len(codes)))


def _axis(cells: Cells, name: str, labels: pl.Series | None) -> tuple[Integers, int]:
    """The codes of a key in every cell, at its level, and how many there are."""
    codes = cells.cube.codes[cells.place(name)]
    if labels is None:
        return codes, len(cells.values(name))
    new = code(labels)
    return new.codes[codes], new.size


def _added(ids: Integers, n: Integers, *, in_order: bool) -> tuple[Integers, Integers]:
    """Each id once, in order, and the sum of its records."""
    if not len(ids):
        return ids, n
    if not in_order:
        order = order_of(ids, int(ids.max()) + 1)
        ids, n = ids[order], n[order]
    starts = np.flatnonzero(np.diff(ids, prepend=ids[0] - 1))
    return ids[starts], np.add.reduceat(n, starts)
