"""Rows as they are released: a blank is a value, and records whose rows are identical are one class."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import group, representatives, steps, sums_of_equal
from equipoise.masks._local_suppression.problem import FREE, KeyRows

MAX_PACKED_BITS, MAX_SHORT_BITS = 63, 31
"""Bits of a row that a word holds, and half a word, which takes half the time."""
MAX_PACKED_KEYS = 12
"""Up to this many keys there is a table of all sets of them."""
MAX_TABLE_BITS = 21
"""Bits of the numbers of rows that are counted in a table of that size."""
MAX_RUNS, MIN_RUN = 4096, 4096
"""Runs of shares with the same keys up to which each set of keys is counted by itself, if it has so many shares."""
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
        parts = parts or [cls(*np.zeros((3, 0), dtype=np.int64))]
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("cells", "masks", "many")))

    def __getitem__(self, rows: Integers | slice) -> "Shares":
        return Shares(self.cells[rows], self.masks[rows], self.many[rows])

    @cached_property
    def starts(self) -> Integers:
        """Where runs of shares with the same mask begin."""
        return np.flatnonzero(np.append(True, self.masks[1:] != self.masks[:-1])[: len(self.masks)])

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
    def small(self) -> Integers:
        """The cells that are too small for a class."""
        return np.flatnonzero(self.n < self.k)

    @cached_property
    def _lowest(self) -> list[int]:
        """The lowest code of each key: 0 where values are missing, else 1."""
        return [int(codes.min(initial=1)) for codes in self.codes]

    @cached_property
    def gappy(self) -> int:
        """The keys with missing values, as bits."""
        return sum(1 << key for key, low in enumerate(self._lowest) if low == 0)

    @cached_property
    def _widths(self) -> list[int]:
        """The bits of each key in the number of a row."""
        return [(size - 1 - low).bit_length() for size, low in zip(self.sizes, self._lowest, strict=True)]

    @cached_property
    def hashed(self) -> bool:
        """Whether there are too many keys, or values of them, for their codes to be packed."""
        return self.keys > MAX_PACKED_KEYS or sum(self._widths) > MAX_PACKED_BITS

    @cached_property
    def tagged(self) -> bool:
        """Whether there is also room for a bit of each key that says that a row lost it."""
        return not self.hashed and sum(self._widths) + self.keys <= MAX_PACKED_BITS

    @cached_property
    def _multipliers(self) -> list[int]:
        """What a code of each key adds to the number of a row: its own bits, or a multiple of a number drawn once.

        The first key has the highest bits: cells in the order of their keys are near each other in a table, too.
        """
        if not self.hashed:
            return [1 << sum(self._widths[key + 1 :]) for key in range(self.keys)]
        return _random_tags(self.keys)

    @cached_property
    def whole(self) -> Integers:
        """The number of each cell's row as it came."""
        kind = np.int64 if self.hashed or sum(self._widths) > MAX_SHORT_BITS else np.int32
        whole: Any = np.zeros(len(self.n), dtype=kind)
        for step in steps(len(whole)):
            for codes, low, multiplier in zip(self.codes, self._lowest, self._multipliers, strict=True):
                whole[step] += (codes[step] - (0 if self.hashed else low)) * kind(multiplier)
        return whole

    @cached_property
    def _packs(self) -> list[list[int]]:
        """The keys of each word: as many as have room."""
        packs: list[list[int]] = [[]]
        for key, width in enumerate(self._widths):
            if sum(self._widths[other] for other in packs[-1]) + width > MAX_PACKED_BITS:
                packs.append([])
            packs[-1].append(key)
        return packs

    def _shift(self, key: int) -> int:
        """The bits behind a key in its word."""
        pack = next(pack for pack in self._packs if key in pack)
        return sum(self._widths[other] for other in pack if other > key)

    @cached_property
    def words(self) -> list[Integers]:
        """Each cell's row in one or more words of 63 bits: all keys have bits of their own."""
        if not self.hashed:
            return [self.whole]
        words = [np.zeros(len(self.n), dtype=np.int64) for _ in self._packs]
        for word, pack in zip(words, self._packs, strict=True):
            for key in pack:
                word += (self.codes[key].astype(np.int64) - self._lowest[key]) << self._shift(key)
        return words

    def staying(self, mask: int) -> list[int]:
        """The bits of each word that stay without the keys of a mask."""
        if not self.hashed:
            return [int(self._bits[0][mask])]
        return [
            sum((1 << self._widths[key]) - 1 << self._shift(key) for key in pack if not mask >> key & 1)
            for pack in self._packs
        ]

    @cached_property
    def _bits(self) -> tuple[Integers, Integers]:
        """For each set of keys the bits that stay of a row's number, and what says that it lost them.

        That is a bit for each key, or where there is no room a number drawn once. Keys with missing values have none:
        their blanks are like the missing ones.
        """
        kept, lost = np.array([-1], dtype=np.int64), np.array([0], dtype=np.int64)
        tags = (
            _random_tags(self.keys) if not self.tagged else [1 << sum(self._widths) + key for key in range(self.keys)]
        )
        for width, multiplier, low, tag in zip(self._widths, self._multipliers, self._lowest, tags, strict=True):
            kept = np.concatenate([kept, kept & ~(((1 << width) - 1) * multiplier)])
            lost = np.concatenate([lost, lost + low * tag])
        return kept, lost

    def ids(self, cells: Integers, masks: Integers | int) -> Integers:
        """A number for each cell's row without the keys of a mask: identical rows, equal numbers.

        Different rows have different numbers, but for a chance of 2^-60 where the keys have too many values to be
        packed with their tags; `smallest` compares the rows themselves.
        """
        ids = self.whole[cells]
        if not self.hashed:
            return (ids & self._bits[0][masks]) + self._bits[1][masks]
        for key, multiplier in enumerate(self._multipliers):
            ids = ids - (masks >> key & 1) * np.int64(multiplier) * self.codes[key][cells]
        return ids

    def places(self, ids: Integers, mask: int) -> Integers:
        """The rows that came with these numbers without the keys of a mask, numbered without gaps between the keys."""
        places = np.zeros_like(ids)
        for shift, bits in self.fields(mask):
            places |= ids >> shift & bits
        return places

    def fields(self, mask: int) -> list[tuple[int, int]]:
        """How far each run of keys that stays is shifted in such a number, and the bits it then has."""
        if mask in self._fields:
            return self._fields[mask]
        fields: list[tuple[int, int]] = []
        start = end = 0
        for key in reversed(range(self.keys)):
            width = self._widths[key]
            if not mask >> key & 1:
                bits = ((1 << width) - 1) << end
                if fields and fields[-1][0] == start - end:
                    bits |= fields.pop()[1]
                fields.append((start - end, bits))
                end += width
            start += width
        self._fields[mask] = fields
        return fields

    @cached_property
    def _fields(self) -> dict[int, list[tuple[int, int]]]:
        return {}

    def width(self, mask: int) -> int:
        """The bits of those numbers."""
        return int(self._kept_widths[mask]) if self.keys <= MAX_PACKED_KEYS else 64

    @cached_property
    def _kept_widths(self) -> Integers:
        widths = np.array([sum(self._widths)])
        for width in self._widths:
            widths = np.concatenate([widths, widths - width])
        return widths

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
        if self.complete:
            blanks, many = shares.masks[shares.starts], np.add.reduceat(shares.many, shares.starts, dtype=np.int64)
        else:
            blanks, many = shares.masks & self.present[shares.cells], shares.many
        return np.array([int((blanks >> key & 1) @ many) for key in range(self.keys)], dtype=np.int64)

    def fits(self, shares: Shares) -> bool:
        return bool((self.used(shares) <= self.caps).all())

    def remaining(self, shares: Shares) -> Integers:
        """The records of each cell that lose nothing."""
        rest = self.n.copy()
        for step in steps(len(shares.cells)):  # numbers of one type: much the fastest
            np.subtract.at(rest, shares.cells[step], shares.many[step].astype(rest.dtype, copy=False))
        return rest

    def everyone(self, shares: Shares) -> Shares:
        """The shares and, without blanks, all other records."""
        rest = self.remaining(shares)
        cells = np.flatnonzero(rest)
        return Shares.joined([shares, Shares(cells, np.zeros_like(cells), rest[cells])])

    def smallest(self, shares: Shares, keys: tuple[int, ...] | None = None) -> int:
        """The records of the smallest class on these keys; all records are counted, and rows compared exactly."""
        whole = keys is None or len(keys) == self.keys
        if whole and self.complete and not self.hashed and len(shares.starts) <= MAX_RUNS:
            return self._smallest_of_runs(shares)
        every = self.everyone(shares)
        if whole and self.tagged:
            return self._smallest(self.ids(every.cells, every.masks), every.many)
        chosen = range(self.keys) if keys is None else keys
        columns = [np.where(every.masks >> key & 1, 0, self.codes[key][every.cells]) for key in chosen]
        alike, _ = group(columns, [self.sizes[key] for key in chosen])
        return int(np.bincount(alike, every.many)[alike].min(initial=FREE))

    def _smallest_of_runs(self, shares: Shares) -> int:
        """`smallest` where no value was missing: who lost other keys, or none, is in another class."""
        rest, runs = self.remaining(shares), dict[int, list[Shares]]()
        for start, end in pairwise([*shares.starts.tolist(), len(shares.masks)]):
            runs.setdefault(int(shares.masks[start]), []).append(shares[slice(start, end)])
        sets = [Shares.joined(parts) for parts in runs.values()]
        many, few = ([some for some in sets if (len(some.cells) < MIN_RUN and self.tagged) == less] for less in (0, 1))
        others, counts = Shares.joined(few), np.zeros(1 << MAX_TABLE_BITS, dtype=np.int32)
        least = [self._smallest(self.ids(others.cells, others.masks), others.many), rest[rest != 0].min(initial=FREE)]
        return int(min(*least, *(self._smallest_without(int(some.masks[0]), some, counts) for some in many)))

    def _smallest_without(self, mask: int, shares: Shares, counts: Integers) -> int:
        """The records of the smallest class of shares that all lost these keys."""
        if self.width(mask) > min(MAX_TABLE_BITS, len(shares.cells).bit_length() + 2):
            return self._smallest(self.whole[shares.cells] & self._bits[0][mask], shares.many)
        for step in steps(len(shares.cells)):
            places = self.places(self.whole[shares.cells[step]], mask).astype(np.intp, copy=False)
            np.add.at(counts, places, shares.many[step].astype(counts.dtype))
        sums = counts[: 1 << self.width(mask)]
        least = int(sums[sums != 0].min())
        sums.fill(0)
        return least

    @staticmethod
    def _smallest(ids: Integers, many: Integers) -> int:
        """The least records of equal ids."""
        return int(sums_of_equal(ids, many).min(initial=FREE))

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


def _random_tags(many: int) -> list[int]:
    """Odd numbers of 62 bits, the same each time."""
    drawn = np.random.default_rng(SEED).integers(1 << 61, 1 << 62, many, dtype=np.int64) | 1
    return [int(value) for value in drawn]
