"""Rows as they are released: a blank is a value, and records whose rows are identical are one class."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import group, representatives
from equipoise.masks._local_suppression.problem import FREE, KeyRows

MAX_PACKED_BITS = 62
MAX_COUNTED_KEYS = 12
"""Up to this many keys there is a table of all sets of them."""
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
    def _widths(self) -> list[int]:
        """The bits of each key in the number of a row."""
        return [(size - 1).bit_length() for size in self.sizes]

    @cached_property
    def hashed(self) -> bool:
        """Whether keys have too many values for their codes to be packed."""
        return sum(self._widths) > MAX_PACKED_BITS

    @cached_property
    def _multipliers(self) -> list[int]:
        """What a code of each key adds to the number of a row: its own bits, or a multiple of a number drawn once."""
        if not self.hashed:
            return [1 << sum(self._widths[:key]) for key in range(self.keys)]
        drawn = np.random.default_rng(SEED).integers(1 << 61, 1 << 62, self.keys, dtype=np.int64) | 1
        return [int(value) for value in drawn]

    @cached_property
    def whole(self) -> Integers:
        """The number of each cell's row as it came."""
        whole = np.zeros(len(self.n), dtype=np.int64)
        for codes, multiplier in zip(self.codes, self._multipliers, strict=True):
            whole += codes * np.int64(multiplier)
        return whole

    @cached_property
    def _kept(self) -> Integers:
        """For each set of keys the bits that stay of a row's number without them."""
        kept = np.array([-1], dtype=np.int64)
        for width, multiplier in zip(self._widths, self._multipliers, strict=True):
            kept = np.concatenate([kept, kept & ~(((1 << width) - 1) * multiplier)])
        return kept

    def ids(self, cells: Integers, masks: Integers | int) -> Integers:
        """A number for each cell's row without the keys of a mask: identical rows, equal numbers.

        Different rows have different numbers, but for a chance of 2^-60 where the keys have too many values to be
        packed; `smallest` compares the rows themselves.
        """
        return self.without(self.whole[cells], cells, masks)

    def without(self, ids: Integers, cells: Integers, masks: Integers | int) -> Integers:
        """The numbers of these cells' rows, from those as they came, without the keys of a mask."""
        if not self.hashed and self.keys <= MAX_COUNTED_KEYS:
            return ids & self._kept[masks]
        for key, multiplier in enumerate(self._multipliers):
            ids = ids - (masks >> key & 1) * np.int64(multiplier) * self.codes[key][cells]
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
        if (keys is None or len(keys) == self.keys) and not self.hashed:
            alike = representatives(self.ids(every.cells, every.masks))
        else:
            chosen = range(self.keys) if keys is None else keys
            columns = [np.where(every.masks >> key & 1, 0, self.codes[key][every.cells]) for key in chosen]
            alike, _ = group(columns, [self.sizes[key] for key in chosen])
        return int(np.bincount(alike, every.many)[alike].min(initial=FREE))

    def narrowed(self, shares: Shares) -> Shares:
        """Without blanks of keys on which all records of a class agree: the rows stay identical. In order.

        Where no value is missing the records of a class lost the same keys; if that is one key, its cells differ on it.
        """
        if not self.complete:
            every = self.everyone(shares)
            masks = self._narrowed(every)
            return replace(every, masks=masks)[masks & self.present[every.cells] != 0].ordered()
        several = np.flatnonzero(shares.masks & (shares.masks - 1))
        if not len(several):
            return shares.ordered()
        masks = shares.masks.copy()
        masks[several] = self._narrowed(shares[several])
        return replace(shares, masks=masks)[masks != 0].ordered()

    def _narrowed(self, every: Shares) -> Integers:
        """The masks of shares that are whole classes, without keys on which a class agrees."""
        ids = representatives(self.ids(every.cells, every.masks))
        masks, absent = every.masks.copy(), every.masks | ~self.present[every.cells]
        for key, codes in enumerate(self.codes):
            lacking = np.flatnonzero(absent >> key & 1)
            own, its = codes[every.cells[lacking]], ids[lacking]
            some, differ = np.zeros(len(ids), dtype=codes.dtype), np.zeros(len(ids), dtype=np.bool_)
            some[its] = own
            differ[its[own != some[its]]] = True
            masks[lacking[(own != 0) & ~differ[its]]] &= ~(1 << key)
        return masks
