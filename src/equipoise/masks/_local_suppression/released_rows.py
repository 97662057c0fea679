"""Rows as they are released: a blank is a value, and records whose rows are identical are one class."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import MAX_PACKED_ID, group
from equipoise.masks._local_suppression.problem import FREE, KeyRows

MAX_COUNTED_KEYS = 12
"""Up to this many keys blanks are counted by their set of keys first."""
SEED = 20021
"""The search draws from this public seed: which cells lose which keys depends on the file alone."""


@dataclass(frozen=True, eq=False, repr=False)
class Shares:
    """How many records (`many`) of which cells lose which keys (`masks`, as bits)."""

    cells: Integers
    masks: Integers
    many: Integers

    @classmethod
    def joined(cls, parts: "list[Shares]") -> "Shares":
        columns = [[getattr(part, name) for part in parts] for name in ("cells", "masks", "many")]
        return cls(*(np.concatenate([np.zeros(0, dtype=np.int64), *column]) for column in columns))

    def __getitem__(self, rows: Integers) -> "Shares":
        return Shares(self.cells[rows], self.masks[rows], self.many[rows])

    def ordered(self) -> "Shares":
        """By cell, then by mask. Most cells stand once, and their place is known without a sort."""
        if (self.cells[1:] > self.cells[:-1]).all():
            return self
        many = np.bincount(self.cells)
        place = (np.cumsum(many) - many)[self.cells]
        several = np.flatnonzero(many[self.cells] > 1)
        several = several[np.lexsort((self.masks[several], self.cells[several]))]
        place[several] += np.arange(len(several)) - np.searchsorted(self.cells[several], self.cells[several])
        order = np.empty(len(place), dtype=np.int64)
        order[place] = np.arange(len(place))
        return self[order]


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedRows(KeyRows):
    """Cells of key codes (0 where missing), their records, the records `k` of a class, price and cap of each key."""

    codes: Integers
    n: Integers
    k: int
    price: Floats
    caps: Integers

    @cached_property
    def allowed(self) -> int:
        """The keys that may be blanked at all, as bits."""
        return sum(1 << key for key in range(self.keys) if self.caps[key] > 0)

    @cached_property
    def span(self) -> int:
        """The numbers of all rows are below this, unless they are drawn."""
        return min(prod(self.sizes), MAX_PACKED_ID)

    @property
    def hashed(self) -> bool:
        """Whether keys have too many values for their codes to be packed."""
        return self.span == MAX_PACKED_ID

    @cached_property
    def _place_values(self) -> list[int]:
        """What a code of each key adds to the number of a row: its place value, or a multiplier drawn once."""
        if not self.hashed:
            return [prod(self.sizes[:key]) for key in range(self.keys)]
        drawn = np.random.default_rng(SEED).integers(1 << 61, 1 << 62, self.keys, dtype=np.int64) | 1
        return [int(value) for value in drawn]

    def _part(self, key: int, cells: Integers | slice) -> Integers:
        """What a key adds to the numbers of the cells' rows."""
        return self.codes[key][cells] * np.int64(self._place_values[key])

    @cached_property
    def whole(self) -> Integers:
        """The number of each cell's row as it came."""
        whole = np.zeros(len(self.n), dtype=np.int64)
        for key in range(self.keys):
            whole += self._part(key, np.s_[:])
        return whole

    def ids(self, cells: Integers, masks: Integers | int) -> Integers:
        """A number for each cell's row without the keys of a mask: identical rows, equal numbers.

        Different rows have different numbers, but for a chance of 2^-60 where the keys have too many values to be
        packed; `smallest` compares the rows themselves.
        """
        if isinstance(masks, int):
            return self.without(self.whole[cells], cells, masks)
        ids = self.whole[cells]
        for key in range(self.keys):
            lacking = np.flatnonzero(masks >> key & 1)
            ids[lacking] -= self._part(key, cells[lacking])
        return np.asarray(ids, dtype=np.int64)

    def without(self, ids: Integers, cells: Integers, mask: int) -> Integers:
        """The numbers of these cells' rows, from those as they came, without the keys of a mask."""
        for key in range(self.keys):
            ids = ids - self._part(key, cells) if mask >> key & 1 else ids
        return ids

    def priced(self, masks: Integers) -> Floats:
        """The sum of the prices of the keys in each mask."""
        price = np.zeros(masks.shape)
        for key, one in enumerate(self.price):
            price += (masks >> key & 1) * one
        return price

    def cost(self, shares: Shares) -> float:
        """What these blanks cost; a value that was missing before costs nothing."""
        return float(self.used(shares) @ self.price)

    def used(self, shares: Shares) -> Integers:
        """Values blanked, for each key."""
        blanks = shares.masks & self.present[shares.cells]
        if self.keys > MAX_COUNTED_KEYS:
            return np.array([int((blanks >> key & 1) @ shares.many) for key in range(self.keys)], dtype=np.int64)
        many = np.bincount(blanks, shares.many, 1 << self.keys)
        return np.array([many[np.arange(len(many)) >> key & 1 == 1].sum() for key in range(self.keys)], dtype=np.int64)

    def fits(self, shares: Shares) -> bool:
        return bool((self.used(shares) <= self.caps).all())

    def remaining(self, shares: Shares) -> Integers:
        """The records of each cell that lose nothing."""
        return self.n - np.bincount(shares.cells, shares.many, len(self.n)).astype(np.int64)

    def everyone(self, shares: Shares) -> Shares:
        """The shares and, without blanks, all other records."""
        rest = self.remaining(shares)
        cells = np.flatnonzero(rest)
        return Shares.joined([shares, Shares(cells, np.zeros_like(cells), rest[cells])])

    def smallest(self, shares: Shares, keys: tuple[int, ...] | None = None) -> int:
        """The records of the smallest class on these keys; all records are counted, and rows compared exactly."""
        every = self.everyone(shares)
        chosen = range(self.keys) if keys is None else keys
        masks = every.masks.astype(np.min_scalar_type((1 << self.keys) - 1))
        columns = [np.where(masks & masks.dtype.type(1 << key), 0, self.codes[key][every.cells]) for key in chosen]
        ids, _ = group(columns, [self.sizes[key] for key in chosen])
        return int(np.bincount(ids, every.many).min(initial=FREE))

    def narrowed(self, shares: Shares) -> Shares:
        """Without blanks of keys on which all records of a class agree: the rows stay identical. In order.

        Where no value is missing the records of a class lost the same keys; if that is one key, its cells differ on it.
        """
        if not self._complete:
            every = self.everyone(shares)
            masks = self._narrowed(every)
            return replace(every, masks=masks)[masks & self.present[every.cells] != 0].ordered()
        several = np.flatnonzero(shares.masks & (shares.masks - 1))
        if not len(several):
            return shares.ordered()
        masks = shares.masks.copy()
        masks[several] = self._narrowed(shares[several])
        return replace(shares, masks=masks)[masks != 0].ordered()

    @cached_property
    def _complete(self) -> bool:
        return bool((self.present == (1 << self.keys) - 1).all())

    def _narrowed(self, every: Shares) -> Integers:
        """The masks of shares that are whole classes, without keys on which a class agrees."""
        ids, rows = group([self.ids(every.cells, every.masks)], [self.span])
        masks, absent = every.masks.copy(), every.masks | ~self.present[every.cells]
        for key, codes in enumerate(self.codes):
            lacking = np.flatnonzero(absent >> key & 1)
            own, its = codes[every.cells[lacking]], ids[lacking]
            some, differ = np.zeros(len(rows), dtype=codes.dtype), np.zeros(len(rows), dtype=np.bool_)
            some[its] = own
            differ[its[own != some[its]]] = True
            masks[lacking[(own != 0) & ~differ[its]]] &= ~(1 << key)
        return masks
