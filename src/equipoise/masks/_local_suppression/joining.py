"""Small cells joined by the blanks that serve most of them for the least: a greedy choice of sets of keys.

Without a set of keys the rows of some cells are identical. If these have k records together, all of them are safe for
the price of the set; if they have fewer, large cells lend what they can spare, and pay too. Sets are taken in the order
of what a record of a small cell then costs. Cost: one sort of the cells that are not yet safe for each set and level.
"""

from dataclasses import dataclass, field
from math import prod

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import group
from equipoise.masks._local_suppression.released_rows import ReleasedRows, Shares

LEVELS = (1.0, 0.67, 0.5, 0.34, 0.0)
"""Shares of k that the small cells of a class must have themselves, the rest being lent; 0: one record."""
MIN_FILTERED = 1 << 15
"""Waiting cells from which those without hope are ruled out first."""
MAX_PLACES_PER_CELL = 1
"""Unless the keys that stay have at most so many combinations for each waiting cell: then most cells find a class."""
TABLE_BITS = 21
TABLE = 1 << TABLE_BITS
SPREADING = np.uint64(0x9E3779B97F4A7C15)
"""Multiplier that spreads the numbers of rows over a table (Knuth, vol. 3, 6.4: 2^64 / golden ratio)."""


@dataclass(eq=False, repr=False)
class _Joining:
    """What is settled so far: who waits for a class, what large cells can spare, and the classes there are."""

    rows: ReleasedRows
    waiting: Integers
    large: Integers
    spare: Integers
    open: Integers
    shares: list[Shares] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.n = self.rows.n[self.waiting].astype(np.int32)
        self.whole = self.rows.whole[self.waiting]
        self.counts, self.is_open = np.zeros(TABLE, dtype=np.int32), np.zeros(TABLE, dtype=np.bool_)
        self.is_open[_places(self.open)] = True

    def take(self, mask: int, least: int) -> None:
        """Join those whose rows without these keys are in a class, or in `least` of the small cells."""
        ids = self.rows.without(self.whole, self.waiting, mask)
        near, numbers, first = self._classes(ids, mask, least)
        if not len(near):
            return
        values = ids[near[first]]
        size = np.bincount(numbers, self.n[near]).astype(np.int64)
        ready = member(values, self.open)
        need = np.where(ready, 0, np.maximum(self.rows.k - size, 0))
        good = ready | (size >= least)
        if (need[good] > 0).any():
            good &= self._lend(mask, values, np.where(good, need, 0))
        self._settle(near[good[numbers]], values[good & ~ready], mask)

    def _classes(self, ids: Integers, mask: int, least: int) -> tuple[Integers, Integers, Integers]:
        """The places of those who may find a class, its number for each, and where in them each class stands first.

        Numbers follow the order of ids.
        """
        keys = [key for key in reversed(range(self.rows.keys)) if not mask >> key & 1]
        sizes = [self.rows.sizes[key] for key in keys]
        if not keys or len(ids) < MIN_FILTERED or self.rows.hashed or prod(sizes) > MAX_PLACES_PER_CELL * len(ids):
            near = self._hopeful(ids, mask, least)
            return near, *group([ids[near]], [self.rows.span])
        return np.arange(len(ids)), *group([self.rows.codes[key][self.waiting] for key in keys], sizes)

    def _hopeful(self, ids: Integers, mask: int, least: int) -> Integers:
        """The places of those who may find a class: where many wait, most are ruled out without a sort.

        Rows are counted in a small table, where different rows may share a place: never too few.
        """
        if len(ids) < MIN_FILTERED:
            return np.arange(len(ids))
        places = _places(ids)
        np.add.at(self.counts, places, self.n)
        size = self.counts[places]
        self.counts[places] = 0
        hopeful = self.is_open[places] | (size >= self.rows.k)
        if least < self.rows.k:
            lends = np.zeros(TABLE, dtype=np.bool_)
            lends[_places(self.rows.ids(self.large[self.spare > 0], mask))] = True
            hopeful |= lends[places] & (size >= least)
        return np.flatnonzero(hopeful)

    def _settle(self, places: Integers, classes: Integers, mask: int) -> None:
        if not len(places):
            return
        cells = self.waiting[places]
        self.shares.append(Shares(cells, np.full(len(cells), mask), self.rows.n[cells]))
        waits = np.ones(len(self.waiting), dtype=np.bool_)
        waits[places] = False
        self.waiting, self.whole, self.n = self.waiting[waits], self.whole[waits], self.n[waits]
        self.is_open[_places(classes)] = True
        self.open = np.insert(self.open, np.searchsorted(self.open, classes), classes)

    def _lend(self, mask: int, values: Integers, need: Integers) -> Integers:
        """Take what classes need from large cells, those that can spare most first; which classes have enough."""
        spare, ids = self.spare, self.rows.ids(self.large, mask)
        needy = np.flatnonzero(need > 0)
        place = np.minimum(np.searchsorted(values[needy], ids), len(needy) - 1)
        near = np.flatnonzero((values[needy[place]] == ids) & (spare > 0))
        place = needy[place[near]]
        order = np.lexsort((near, -spare[near], place))
        near, place = near[order], place[order]
        before = np.cumsum(spare[near]) - spare[near]
        before -= before[np.searchsorted(place, place)]
        loan = np.clip(need[place] - before, 0, spare[near])
        enough = np.bincount(place, loan, len(values)) >= need
        lent = (loan > 0) & enough[place]
        self.shares.append(Shares(self.large[near[lent]], np.full(int(lent.sum()), mask), loan[lent]))
        spare[near[lent]] -= loan[lent]
        return enough


def _places(ids: Integers) -> Integers:
    """The place of each number of a row in the table."""
    return (ids.view(np.uint64) * SPREADING >> np.uint64(64 - TABLE_BITS)).astype(np.intp)


def joined(rows: ReleasedRows, masks: Integers, prices: Floats) -> tuple[Shares, Integers]:
    """The blanks of a greedy choice among sets of keys, at these prices, and the small cells that are left over."""
    small, large = rows.n < rows.k, np.flatnonzero(rows.n >= rows.k)
    state = _Joining(rows, np.flatnonzero(small), large, rows.n[large] - rows.k, np.sort(rows.whole[large]))
    for mask, least in _steps(masks, prices, rows.k):
        if not len(state.waiting):
            break
        state.take(mask, least)
    return Shares.joined(state.shares), state.waiting


def _steps(masks: Integers, prices: Floats, k: int) -> list[tuple[int, int]]:
    """Sets of keys and the records that small cells must have themselves, the cheapest for each of these first."""
    levels = np.unique([max(1, int(np.ceil(level * k))) for level in LEVELS])
    ratio = (prices[:, None] * (k / levels)[None, :]).ravel()
    order = np.lexsort((np.tile(-levels, len(masks)), ratio))
    return [(int(masks[at // len(levels)]), int(levels[at % len(levels)])) for at in order]


def absorbed(rows: ReleasedRows, shares: Shares, cells: Integers) -> Shares | None:
    """Cells that are too few for a class of their own, put into the class where that costs least; None without one."""
    if not len(cells):
        return shares
    every = rows.everyone(shares)
    others = every[~np.isin(every.cells, cells)]
    if not len(others.cells):
        return None
    ids, first, place = np.unique(rows.ids(others.cells, others.masks), return_index=True, return_inverse=True)
    own = rows.codes[:, cells]
    price, masks = np.zeros(len(ids)), np.zeros(len(ids), dtype=np.int64)
    for key, codes in enumerate(rows.codes):
        released = np.where(others.masks >> key & 1, 0, codes[others.cells])
        differ = (own[key] != own[key][0]).any() | (released[first] != own[key][0])
        many = np.bincount(place, others.many * (released != 0)) + ((own[key] != 0) @ rows.n[cells])
        price += np.where(differ, many * rows.price[key] if rows.allowed >> key & 1 else np.inf, 0.0)
        masks |= differ.astype(np.int64) << key
    best = int(np.argmin(price))
    if not np.isfinite(price[best]):
        return None
    wider = np.where(place == best, others.masks | masks[best], others.masks)
    new = Shares(cells, np.full(len(cells), masks[best]), rows.n[cells])
    merged = Shares.joined([Shares(others.cells, wider, others.many), new])
    return merged[merged.masks & rows.present[merged.cells] != 0]


def member(values: Integers, ordered: Integers) -> Integers:
    """Which of the values stand in an ordered array."""
    if not len(ordered):
        return np.zeros(len(values), dtype=np.bool_)
    return np.asarray(ordered[np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)] == values)
