"""Which key values to blank so that every class is large enough: the question, and how classes are counted.

A blanked value matches anything, in both directions. So blanking can only add records to a class and never takes one
away: what is satisfied stays satisfied, and demands on several sets of keys can be met one after the other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import common_ids

FREE = np.iinfo(np.int64).max
"""The cap of a key that has none."""


@dataclass(frozen=True, slots=True)
class Demand:
    """On these keys (places) the class of every record must have at least `k` records."""

    keys: tuple[int, ...]
    k: int

    @property
    def bits(self) -> int:
        return bits(self.keys)


class KeyRows:
    """Rows of key codes, 0 where a value is missing: mixin of the problems of local suppression."""

    codes: Integers

    @property
    def keys(self) -> int:
        return len(self.codes)

    @cached_property
    def sizes(self) -> list[int]:
        return [int(row.max(initial=0)) + 1 for row in self.codes]

    @cached_property
    def present(self) -> Integers:
        """The set of keys that each row has, as bits."""
        return np.full(self.codes.shape[1], (1 << self.keys) - 1) if self.complete else patterns(self.codes)

    @cached_property
    def complete(self) -> bool:
        """Whether no row lacks a key."""
        return bool(self.codes.all())


@dataclass(frozen=True, eq=False, repr=False)
class SuppressionProblem(KeyRows):
    """Rows of key codes (a row for each key, 0 where missing), the records of each row, and what is asked of them.

    `price` is what blanking a value of each key costs, `caps` how many values of it may be blanked.
    """

    codes: Integers
    n: Integers
    demands: tuple[Demand, ...]
    price: Floats
    caps: Integers

    @cached_property
    def largest(self) -> int:
        return max(demand.k for demand in self.demands)

    def blanked(self, masks: Integers) -> "SuppressionProblem":
        """The rows after the values of each row's mask were blanked."""
        blanks = (masks[None, :] >> np.arange(self.keys)[:, None]) & 1
        return replace(self, codes=np.where(blanks, 0, self.codes))

    def matched(self, rows: Integers, keys: Sequence[int]) -> Integers:
        """For each of the rows `here` the records that match it on these keys.

        Rows are taken by the set of keys they have; those that share the same keys with the rows here are added up
        together. Cost: O(rows) for each two sets.
        """
        present = self.present & bits(keys)
        sizes = np.zeros(len(rows), dtype=np.int64)
        for own in np.unique(present[rows]):
            spots = np.flatnonzero(present[rows] == own)
            both = present & own
            order = np.argsort(both, kind="stable")
            starts = np.flatnonzero(np.diff(both[order], prepend=-1))
            for others in np.split(order, starts[1:]):
                compared = [key for key in keys if both[others[0]] >> key & 1]
                sizes[spots] += self._added(rows[spots], others, compared)
        return sizes

    def _added(self, rows: Integers, others: Integers, keys: Sequence[int]) -> Integers:
        if not keys:
            return np.full(len(rows), self.n[others].sum())
        row_ids, right = self.ids(rows, others, keys)
        values, ids = np.unique(row_ids, return_inverse=True)
        spot = np.minimum(np.searchsorted(values, right), len(values) - 1)
        met = values[spot] == right
        return np.bincount(spot[met], self.n[others[met]], len(values)).astype(np.int64)[ids]

    def ids(self, first: Integers, second: Integers, keys: Sequence[int]) -> tuple[Integers, Integers]:
        """A number for the values of each row on these keys: equal numbers, equal values."""
        return common_ids([self.codes[key] for key in keys], [self.sizes[key] for key in keys], first, second)

    def cost(self, masks: Integers) -> float:
        """What these blanks cost; a value that was missing before costs nothing."""
        return float(self.priced(masks & self.present).sum())

    def priced(self, masks: Integers) -> Floats:
        """The sum of the prices of the keys in each mask."""
        each = ((masks[..., None] >> np.arange(self.keys)) & 1) @ self.price
        return np.asarray(each, dtype=np.float64)

    def used(self, masks: Integers) -> Integers:
        """Values blanked, for each key."""
        blanks = masks & self.present
        return np.array([int((blanks >> key & 1).sum()) for key in range(self.keys)], dtype=np.int64)

    def short(self) -> Integers:
        """The rows with a class that is too small."""
        small = np.zeros(len(self.n), dtype=np.bool_)
        for demand in self.demands:
            fine = np.flatnonzero(~small)
            small[fine] = self.matched(fine, demand.keys) < demand.k
        return np.flatnonzero(small)

    def lacking(self, rows: Integers, masks: Integers) -> Integers:
        """Which of the rows are too small after these blanks of all rows."""
        after = self.blanked(masks)
        return np.any([after.matched(rows, demand.keys) < demand.k for demand in self.demands], axis=0)

    def exposed(self, rows: Integers, masks: Integers) -> Integers:
        """Which of the rows are too small, each after its own blanks (a mask for each of them) among the others as
        they were.
        """
        own = replace(self, codes=self.codes[:, rows]).blanked(masks).codes
        none = np.zeros(len(rows), dtype=np.int64)
        both = replace(self, codes=np.concatenate([self.codes, own], axis=1), n=np.concatenate([self.n, none]))
        new_rows = np.arange(len(self.n), len(both.n))
        return np.any([both.matched(new_rows, demand.keys) < demand.k for demand in self.demands], axis=0)


def bits(keys: Sequence[int]) -> int:
    """A set of places as one integer.

    >>> bits([0, 2])
    5
    """
    return sum(1 << key for key in keys)


def places(mask: int) -> tuple[int, ...]:
    """The places in an integer.

    >>> places(5)
    (0, 2)
    """
    return tuple(key for key in range(mask.bit_length()) if mask >> key & 1)


def patterns(codes: Integers) -> Integers:
    """The set of keys that each row has, as bits."""
    sets = np.zeros(codes.shape[1], dtype=np.int64)
    for key, row in enumerate(codes):
        sets |= (row != 0).astype(np.int64) << key
    return sets


def cheapest_first(price: Floats) -> Iterator[int]:
    """All sets of keys but the empty one, the cheapest first, ties the same way each time.

    >>> [places(mask) for mask in cheapest_first(np.array([1.0, 3.0]))]
    [(0,), (1,), (0, 1)]
    """
    order = np.argsort(price, kind="stable")
    heap: list[tuple[float, tuple[int, ...]]] = [(float(price[order[0]]), (0,))]
    while heap:
        cost, chosen = heappop(heap)
        yield sum(1 << int(order[rank]) for rank in chosen)
        last = chosen[-1]
        if last + 1 < len(order):
            more = float(price[order[last + 1]])
            heappush(heap, (cost + more, (*chosen, last + 1)))
            heappush(heap, (cost + more - float(price[order[last]]), (*chosen[:-1], last + 1)))
