"""Spans: what it costs to release several values of a key as one, their lowest common category.

The values of a key stand on a line that follows its tree, so that the lowest common category of a set of values is that
of the first and the last of them: a set of records is a box, a first and a last place for each key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
import polars as pl

from equipoise.coarsening.coded_levels import CodedLevels
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import MAX_PACKED_ID

Worth = Literal["granularity", "entropy"]
TABLE = 1500
"""Values of a key up to which the cost of every pair of places is tabulated."""


@dataclass(frozen=True, eq=False, repr=False)
class Span:
    """A key's places on the line and its rungs, from fine to coarse: levels that nest.

    `steps[r][p]` is the category of place p at rung r, `texts[r][p]` its label, `worth[r][p]` what a record loses when
    it is released so: by granularity the share of the domain under the category, 0 for one leaf and 1 for all of them;
    by entropy the bits, log2 of the records in it.

    >>> tree = eq.Hierarchy.mapping({"a": "vowel", "b": "consonant", "c": "consonant", "e": "vowel"}, root=True)
    >>> ladder, place = CodedLevels.of("letter", pl.Series(["a", "b", "c"]), np.array([5, 1, 1]), tree)
    >>> span, line = Span.of(ladder, "granularity")
    >>> a, b, c = line[place]
    >>> span.cost(np.array([b, min(b, c), min(a, b)]), np.array([b, max(b, c), max(a, b)])).round(3).tolist()
    [0.0, 0.333, 1.0]
    """

    key: str
    steps: tuple[Integers, ...]
    texts: tuple[pl.Series, ...]
    worth: tuple[Floats, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, ladder: CodedLevels, worth: Worth, levels: Sequence[str] = ()) -> tuple["Span", Integers]:
        """The span of a ladder (or of some levels, that nest), and the place of each of the ladder's codes on it."""
        rungs = [i for i, name in enumerate(ladder.names) if not levels or name in levels]
        order = np.lexsort([ladder.steps[level] for level in rungs])
        line = np.empty(ladder.size, dtype=np.int32)
        line[order] = np.arange(ladder.size, dtype=np.int32)
        steps = tuple(ladder.steps[level][order] for level in rungs)
        texts = tuple(ladder.labels[level].gather(step) for level, step in zip(rungs, steps, strict=True))
        priced = tuple(_worth(ladder, level, worth)[order] for level in rungs)
        return cls(ladder.key, steps, texts, priced, tuple(ladder.names[level] for level in rungs)), line

    @property
    def size(self) -> int:
        return len(self.steps[0])

    @cached_property
    def _table(self) -> Floats | None:
        if self.size > TABLE:
            return None
        low, high = np.indices((self.size, self.size))
        return self._by_rungs(low.ravel(), high.ravel())

    def cost(self, low: Integers, high: Integers) -> Floats:
        """What a record loses when places from `low` to `high` are released as one. They have a common category."""
        if self._table is None:
            return self._by_rungs(low, high)
        return self._table.take(low * self.size + high)

    def rung(self, low: Integers, high: Integers) -> Integers:
        """The lowest rung at which they agree."""
        rungs = np.full(len(low), len(self.steps) - 1)
        for r in range(len(self.steps) - 2, -1, -1):
            rungs[self.steps[r][low] == self.steps[r][high]] = r
        return rungs

    @cached_property
    def reach(self) -> float:
        """The mean cost of two places that differ."""
        inside = [np.bincount(step)[step] for step in self.steps]
        more = [inside[0] - 1, *(b - a for a, b in pairwise(inside))]
        whole = float(sum(m @ worth for m, worth in zip(more, self.worth, strict=True)))
        return whole / max(1, self.size * (self.size - 1))

    def _by_rungs(self, low: Integers, high: Integers) -> Floats:
        costs = self.worth[-1][low]
        for step, worth in zip(self.steps[-2::-1], self.worth[-2::-1], strict=True):
            costs = np.where(step[low] == step[high], worth[low], costs)
        return costs


Spans = tuple[Span, ...]
Boxes = tuple[Integers, Integers]
"""The first and the last place of some sets of records: an array of keys x sets each."""


def cost(spans: Spans, boxes: Boxes) -> Floats:
    """What each record of a set loses, summed over the keys."""
    costs = np.zeros(boxes[0].shape[1])
    for span, low, high in zip(spans, *boxes, strict=True):
        costs += span.cost(low, high)
    return costs


def joint(spans: Spans, first: Boxes, at: Integers, second: Boxes, to: Integers) -> Floats:
    """What each record of a set would lose if sets `at` of the first and `to` of the second boxes were joined."""
    costs = np.zeros(len(at))
    for j, span in enumerate(spans):
        low = np.minimum(first[0][j].take(at), second[0][j].take(to))
        costs += span.cost(low, np.maximum(first[1][j].take(at), second[1][j].take(to)))
    return costs


def ranked(columns: Sequence[Integers], sizes: Sequence[int]) -> Integers:
    """What sorts by the columns, the first foremost, then by place; columns that do not fit in 62 bits are left out."""
    bits = len(columns[0]).bit_length()
    ids, room = columns[0].astype(np.int64), (MAX_PACKED_ID >> bits) // max(1, sizes[0])
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        if size > room:
            break
        room //= max(1, size)
        ids *= size
        ids += column
    ids <<= bits
    ids |= np.arange(len(ids))
    ids.sort()
    ids &= (1 << bits) - 1
    return ids


def _worth(ladder: CodedLevels, level: int, worth: Worth) -> Floats:
    if worth == "entropy":
        step = ladder.steps[level]
        return np.log2(np.maximum(np.bincount(step, weights=ladder.counts)[step], 1))
    if ladder.domain == 1:
        return np.zeros(ladder.size)
    least = 1 / ladder.domain
    return np.maximum((ladder.shares[level] - least) / (1 - least), 0.0)
