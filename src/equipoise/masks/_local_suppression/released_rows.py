"""Rows as they are released: a blank is a value, and records whose rows are identical are one class."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import MAX_PACKED_ID, group
from equipoise.masks._local_suppression.problem import FREE, patterns

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


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedRows:
    """Cells of key codes (0 where missing), their records, the records `k` of a class, price and cap of each key."""

    codes: Integers
    n: Integers
    k: int
    price: Floats
    caps: Integers

    @property
    def keys(self) -> int:
        return len(self.codes)

    @cached_property
    def sizes(self) -> list[int]:
        return [int(row.max(initial=0)) + 1 for row in self.codes]

    @cached_property
    def present(self) -> Integers:
        """The keys that each cell has, as bits."""
        return patterns(self.codes)

    @cached_property
    def allowed(self) -> int:
        """The keys that may be blanked at all, as bits."""
        return sum(1 << key for key in range(self.keys) if self.caps[key] > 0)

    @cached_property
    def _parts(self) -> Integers:
        """What each key adds to the number of a row: its place value, or a multiplier that was drawn once."""
        if prod(self.sizes) < MAX_PACKED_ID:
            places = np.cumprod([1, *self.sizes[:-1]], dtype=np.int64)
        else:
            places = np.random.default_rng(SEED).integers(1 << 61, 1 << 62, self.keys, dtype=np.int64) | 1
        return np.asarray(self.codes.astype(np.int64) * places[:, None], dtype=np.int64)

    @cached_property
    def whole(self) -> Integers:
        """The number of each cell's row as it came."""
        return np.asarray(self._parts.sum(axis=0), dtype=np.int64)

    def ids(self, cells: Integers, masks: Integers | int) -> Integers:
        """A number for each cell's row without the keys of a mask: identical rows, equal numbers.

        Different rows have different numbers, but for a chance of 2^-60 where the keys have too many values to be
        packed; `smallest` compares the rows themselves.
        """
        ids = self.whole[cells]
        for key in range(self.keys):
            if isinstance(masks, int):
                ids = ids - self._parts[key][cells] if masks >> key & 1 else ids
            else:
                ids = ids - self._parts[key][cells] * (masks >> key & 1)
        return np.asarray(ids, dtype=np.int64)

    def priced(self, masks: Integers) -> Floats:
        """The sum of the prices of the keys in each mask."""
        return np.asarray(((masks[..., None] >> np.arange(self.keys)) & 1) @ self.price, dtype=np.float64)

    def cost(self, shares: Shares) -> float:
        """What these blanks cost; a value that was missing before costs nothing."""
        return float(self.priced(shares.masks & self.present[shares.cells]) @ shares.many)

    def used(self, shares: Shares) -> Integers:
        """Values blanked, for each key."""
        blanks = shares.masks & self.present[shares.cells]
        return np.array([int((blanks >> key & 1) @ shares.many) for key in range(self.keys)], dtype=np.int64)

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
        columns = [np.where(every.masks >> key & 1, 0, self.codes[key][every.cells]) for key in chosen]
        ids, _ = group(columns, [self.sizes[key] for key in chosen])
        return int(np.bincount(ids, every.many).min(initial=FREE))

    def narrowed(self, shares: Shares) -> Shares:
        """Without blanks of keys on which all records of a class agree: the rows stay identical. In order."""
        whole = (1 << self.keys) - 1
        every = shares if (self.present == whole).all() else self.everyone(shares)
        _, rows, ids = np.unique(self.ids(every.cells, every.masks), return_index=True, return_inverse=True)
        masks = every.masks.copy()
        for key, codes in enumerate(self.codes):
            own = codes[every.cells]
            agree = np.bincount(ids, own != own[rows][ids], len(rows)) == 0
            masks &= ~((agree[ids] & (own != 0)).astype(np.int64) << key)
        order = np.lexsort((masks, every.cells))
        return replace(every, masks=masks)[order[(masks & self.present[every.cells] != 0)[order]]]
