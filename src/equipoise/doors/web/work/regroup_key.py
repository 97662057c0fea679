"""Fast regrouping of one key: the cells with all other keys fixed at their chosen levels.

Rows are sorted by the other keys, then by the key itself: categories of neighbouring values are summed in one
pass, any others after a sort of packed integers. No record is read: O(cells) for each regrouping.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, bits
from equipoise.ground.arrays import Integers
from equipoise.ground.packed_keys import code, group, order_of

SMALL_CLASS_RECORDS = 3
"""Classes with fewer records than this are small."""


class Stage(Protocol):
    """Cells that can be regrouped by the categories of one key."""

    def classes(self, table: Integers) -> tuple[Integers, Integers]:
        """The size of each class and of matching records, when value v of the key is in category table[v]."""


@dataclass(frozen=True, eq=False, repr=False)
class PackedStage:
    """Cells: `others` numbers the combinations of the other keys, `codes` is the key's value, `n` its records."""

    others: Integers
    codes: Integers
    n: Integers

    @classmethod
    def of(cls, cells: Cells, column: str, labels: Mapping[str, pl.Series]) -> "PackedStage":
        """From counted cells, and the categories of the values of the other keys that are coarsened."""
        coded = [_axis(cells, name, labels.get(name)) for name in cells.by if name != column]
        ids = np.zeros(len(cells), dtype=np.int64)
        if coded:
            ids, _ = group([codes for codes, _ in coded], [size for _, size in coded])
        size = len(cells.values(column))
        ids *= size
        ids += cells.cube.codes[cells.place(column)]
        groups, n = _sum_by_id(ids, cells.n, in_order=False)
        return cls(groups // size, groups % size, n)

    def classes(self, table: Integers) -> tuple[Integers, Integers]:
        new = renumber(table)
        packed = self.others * (int(new.max(initial=0)) + 1) + new[self.codes]
        _, n = _sum_by_id(packed, self.n, in_order=bool((np.diff(new) >= 0).all()))
        return n, n


@dataclass(frozen=True, eq=False, repr=False)
class WildcardStage:
    """Cells in which missing keys match any value, or records repeat people: counted by Cells. O(patterns x cells)."""

    cells: Cells
    column: str

    @classmethod
    def of(cls, cells: Cells, column: str, labels: Mapping[str, pl.Series]) -> "WildcardStage":
        for name, new in labels.items():
            cells = cells.relabel(name, lambda values, n, new=new: new)  # type: ignore[misc]
        return cls(cells, column)

    def classes(self, table: Integers) -> tuple[Integers, Integers]:
        present = self.cells.values(self.column).is_not_null()
        new = pl.select(pl.when(present).then(pl.Series(table, dtype=pl.Int64))).to_series()
        rolled = self.cells.relabel(self.column, lambda values, n: new)
        return rolled.n, rolled.alike[0]


def stage_of(cells: Cells, column: str, labels: Mapping[str, pl.Series]) -> Stage:
    """The stage of a key; `labels` has the categories of the values of the other keys that are coarsened."""
    gaps = any(cells.values(name).null_count() for name in cells.open if name in cells.by)
    return WildcardStage.of(cells, column, labels) if gaps or cells.people else PackedStage.of(cells, column, labels)


def numbers(stage: Stage, table: Integers) -> dict[str, float]:
    """Risk and information of all keys with one of them regrouped: the measures of the recoded file.

    `unique` as Uniques, `small` as KAnonymity(3), `matches` as Marketer, `bits` as Entropy.
    """
    n, alike = stage.classes(table)
    return {
        "unique": int(n[alike <= 1].sum()),
        "small": int(n[alike < SMALL_CLASS_RECORDS].sum()),
        "matches": float(len(n)) if alike is n else float((n / alike).sum()),
        "classes": len(n),
        "bits": bits(n) if len(n) else 0.0,
    }


def renumber(codes: Integers) -> Integers:
    """Categories renumbered by first occurrence; fast where equal ones are adjacent.

    >>> renumber(np.array([7, 7, 2, 7, 9])).tolist()
    [0, 0, 1, 0, 2]
    """
    starts = np.flatnonzero(np.diff(codes, prepend=codes[:1] - 1))
    _, first, places = np.unique(codes[starts], return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.repeat(rank[places], np.diff(starts, append=len(codes)))


def _axis(cells: Cells, name: str, labels: pl.Series | None) -> tuple[Integers, int]:
    """The codes of a key in every cell, at its level, and the number of categories."""
    codes = cells.cube.codes[cells.place(name)]
    if labels is None:
        return codes, len(cells.values(name))
    new = code(labels)
    return new.codes[codes], new.size


def _sum_by_id(ids: Integers, n: Integers, *, in_order: bool) -> tuple[Integers, Integers]:
    """The distinct ids in order, and the sum of the records of each."""
    if not len(ids):
        return ids, n
    if not in_order:
        order = order_of(ids, int(ids.max()) + 1)
        ids, n = ids[order], n[order]
    starts = np.flatnonzero(np.diff(ids, prepend=ids[0] - 1))
    return ids[starts], np.add.reduceat(n, starts)
