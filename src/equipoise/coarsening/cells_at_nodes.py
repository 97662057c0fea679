"""Equivalence classes at any node of a generalization lattice, each rolled up from a finer cached one ("fold").

A class is one packed integer (mixed radix, a digit for each key) with one record that represents it. Coarsening some
keys adds a look-up to each integer and joins those that have become equal: O(classes) where the order stays, which it
does for the last key of a tree, O(classes log classes) otherwise. Results are cached while there is room.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import polars as pl

from equipoise.coarsening.coded_levels import CodedLevels
from equipoise.data.equivalence_classes import Classes
from equipoise.data.hierarchy import Hierarchy
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import MAX_PACKED_ID, group, order_of

MAX_KEPT_CLASSES = 10_000_000
"""Classes of all cached folds together."""
MIN_STAGED_CLASSES, FIRST_KEYS = 50_000, 2
"""Folds of more classes than the first number are rolled up in two stages, the second number of keys first."""
MAX_KEPT_FOLDS = 400
"""Folds in the cache."""
Levels = tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Fold:
    """The classes at one node, by sensitive values where there are any: packed, in order, each with its records.

    `levels` are -1 where the values are as they were counted; `stand` is the counted cell that represents each row.
    """

    levels: Levels
    ids: Integers
    stand: Integers
    n: Integers
    total: Floats | None = None

    def __len__(self) -> int:
        return len(self.n)


class Folds:
    """Counted cells of the keys (and of sensitive columns), and the folds computed from them so far."""

    def __init__(
        self,
        ladders: Sequence[CodedLevels],
        codes: Sequence[Integers],
        n: Integers,
        sensitive: Mapping[str, tuple[Integers, pl.Series]] | None = None,
        trees: Mapping[str, Hierarchy] | None = None,
        total: Floats | None = None,
    ) -> None:
        self.ladders, self.codes = tuple(ladders), np.array(codes, dtype=np.intp)
        self.sensitive, self.trees = dict(sensitive or {}), dict(trees or {})
        self.splits = prod(len(values) for _, values in self.sensitive.values())
        self.size = prod(ladder.size for ladder in ladders) * self.splits
        self.wide = self.size > MAX_PACKED_ID
        self.order = sorted(range(len(self.ladders)), key=lambda j: (len(ladders[j]), ladders[j].size))
        self.strides = self._strides()
        levels = tuple(0 if int(ladder.steps[0].max()) + 1 == ladder.size else -1 for ladder in ladders)
        everyone = np.arange(len(n))
        self.base = self._joined(levels, self._packed(everyone), everyone, n, total)
        self.cache = _FoldCache(self.ladders, self.base)

    def _strides(self) -> list[int]:
        """Stride of each key in the packed integer: keys of few levels first, as changes of the last keep the order."""
        strides, step = [0] * len(self.ladders), self.splits
        for j in reversed(self.order):
            strides[j] = step
            step *= self.ladders[j].size
        return strides

    def _packed(self, stand: Integers) -> Integers:
        if self.wide:
            return self._grouped(stand, (-1,) * len(self.ladders))
        ids = self._inner(stand)
        for codes, stride in zip(self.codes, self.strides, strict=True):
            ids = ids + codes * stride
        return ids

    def _inner(self, stand: Integers) -> Integers:
        """The sensitive values of some cells as one integer."""
        inner = np.zeros(len(stand), dtype=np.int64)
        for codes, values in self.sensitive.values():
            inner = inner * len(values) + codes[stand]
        return inner

    def at(self, levels: Levels) -> Fold:
        """The classes at a node, from the smallest cached fold that is finer."""
        start = self.cache.nearest(levels)
        if start.levels == levels:
            return start
        changed = [j for j, (old, new) in enumerate(zip(start.levels, levels, strict=True)) if old != new]
        if len(start) > MIN_STAGED_CLASSES and len(changed) > FIRST_KEYS and not self.wide:
            start = self._half_way(start, levels, changed)
        fold = self.up(start, levels)
        self.cache.add(fold)
        return fold

    def _half_way(self, start: Fold, levels: Levels, changed: list[int]) -> Fold:
        """A large fold with the keys coarsened first that shrink it most: many nodes share the result."""
        shrink = lambda j: len(self.ladders[j].labels[levels[j]]) / len(self.ladders[j].labels[max(0, start.levels[j])])
        first = sorted(changed, key=shrink)[:FIRST_KEYS]
        half = self.up(start, tuple(new if j in first else start.levels[j] for j, new in enumerate(levels)))
        self.cache.add(half)
        return half

    def part(self, key: int, values: Integers) -> "Folds":
        """Folds of the cells that have one of these counted values of a key."""
        rows = np.flatnonzero(values[self.codes[key][self.base.stand]])
        stand = self.base.stand[rows]
        sensitive = {column: (codes[stand], domain) for column, (codes, domain) in self.sensitive.items()}
        total = None if self.base.total is None else self.base.total[rows]
        return Folds(self.ladders, list(self.codes[:, stand]), self.base.n[rows], sensitive, self.trees, total)

    def forget(self) -> None:
        """Clear the cache except for the first fold."""
        self.cache = _FoldCache(self.ladders, self.base)

    def up(self, start: Fold, levels: Levels) -> Fold:
        """A fold rolled up to coarser levels."""
        if self.wide:
            ids = self._grouped(start.stand, levels)
        else:
            ids = start.ids
            for j, (old, new) in enumerate(zip(start.levels, levels, strict=True)):
                if old != new:
                    ids = ids + self._change(j, old, new).take(self.codes[j].take(start.stand))
        return self._joined(levels, ids, start.stand, start.n, start.total)

    def _change(self, j: int, old: int, new: int) -> Integers:
        """Change of the packed integer of a class when a key is coarsened, by its counted value."""
        ladder = self.ladders[j]
        before = np.arange(ladder.size) if old < 0 else ladder.steps[old]
        return (ladder.steps[new] - before) * self.strides[j]

    def _grouped(self, stand: Integers, levels: Levels) -> Integers:
        """Packed integers where all digits do not fit in one: the classes are numbered first."""
        codes, sizes = [], []
        for j, level in enumerate(levels):
            own = self.codes[j][stand]
            codes.append(own if level < 0 else self.ladders[j].steps[level][own])
            sizes.append(int(codes[-1].max()) + 1)
        ids, _ = group(codes, sizes)
        return ids * self.splits + self._inner(stand)

    def _joined(self, levels: Levels, ids: Integers, stand: Integers, n: Integers, total: Floats | None) -> Fold:
        """Rows of equal integers added up."""
        if not (ids[1:] >= ids[:-1]).all():
            order = order_of(ids, self.size)
            ids, stand, n = ids[order], stand[order], n[order]
            total = None if total is None else total[order]
        new = np.empty(len(ids), dtype=np.bool_)
        new[0] = True
        np.not_equal(ids[1:], ids[:-1], out=new[1:])
        if new.all():
            return Fold(levels, ids, stand, n, total)
        first = np.flatnonzero(new)
        summed = None if total is None else np.add.reduceat(total, first)
        return Fold(levels, ids[first], stand[first], np.add.reduceat(n, first), summed)

    def classes(self, fold: Fold) -> tuple[Classes, Integers]:
        """The classes at a node, and the counted cell that represents each."""
        if not self.sensitive:
            return Classes(fold.n, np.arange(len(fold)), fold.n), fold.stand
        own = fold.ids // self.splits
        new = np.append(True, own[1:] != own[:-1])
        first = np.flatnonzero(new)
        codes = {c: column[fold.stand].astype(np.int64) for c, (column, _) in self.sensitive.items()}
        values = {c: values for c, (_, values) in self.sensitive.items()}
        classes = Classes(np.add.reduceat(fold.n, first), np.cumsum(new) - 1, fold.n, codes, values, self.trees)
        return classes, fold.stand[first]


class _FoldCache:
    """Cache of folds: the first always, of the others the newest."""

    def __init__(self, ladders: tuple[CodedLevels, ...], base: Fold) -> None:
        most = max(len(ladder) for ladder in ladders)
        self.fits = np.zeros((len(ladders), most + 1, most), dtype=np.bool_)
        for j, ladder in enumerate(ladders):
            self.fits[j, : len(ladder), : len(ladder)] = ladder.within
            self.fits[j, -1, : len(ladder)] = True
        self.keys = np.arange(len(ladders))
        self.levels = np.full((MAX_KEPT_FOLDS, len(ladders)), -1)
        self.sizes = np.full(MAX_KEPT_FOLDS, np.iinfo(np.int64).max)
        self.folds: list[Fold | None] = [None] * MAX_KEPT_FOLDS
        self.room, self.next = MAX_KEPT_CLASSES, 0
        self._set(0, base)

    def nearest(self, levels: Levels) -> Fold:
        """The smallest fold that can be rolled up to these levels."""
        fits = self.fits[self.keys, self.levels, levels].all(axis=1)
        fold = self.folds[int(np.argmin(np.where(fits, self.sizes, np.iinfo(np.int64).max)))]
        assert fold is not None
        return fold

    def add(self, fold: Fold) -> None:
        """Cache a fold in place of the oldest ones."""
        if len(fold) > MAX_KEPT_CLASSES // 4:
            return
        self.room -= len(fold)
        for _ in range(MAX_KEPT_FOLDS):
            self.next = self.next % (MAX_KEPT_FOLDS - 1) + 1
            self._clear(self.next)
            if self.room >= 0:
                break
        self._set(self.next, fold)

    def _clear(self, place: int) -> None:
        old = self.folds[place]
        if old is not None:
            self.room += len(old)
            self.folds[place], self.sizes[place] = None, np.iinfo(np.int64).max

    def _set(self, place: int, fold: Fold) -> None:
        self.folds[place], self.levels[place], self.sizes[place] = fold, fold.levels, len(fold)
