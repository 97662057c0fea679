"""Small cells joined by the blanks that serve most of them for the least: a greedy choice of sets of keys.

Without a set of keys the rows of some cells are identical. If these have k records together, all of them are safe for
the price of the set; if they have fewer, large cells lend what they can spare, and pay too. Sets are taken in the order
of what a record of a small cell then costs. Cost: one sort of the cells that are not yet safe for each set and level.
"""

from dataclasses import dataclass, field

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import representatives, spread, steps
from equipoise.masks._local_suppression.released_rows import ReleasedRows, Shares

LEVELS = (1.0, 0.67, 0.5, 0.34, 0.0)
"""Shares of k that the small cells of a class must have themselves, the rest being lent; 0: one record."""
MIN_FILTERED = 1 << 12
"""Waiting cells from which those without hope are ruled out first."""
MAX_SETTLED = 1 / 6
"""Share of cells that were settled, up to which they stay among the others with no records."""
TABLE_BITS = 21
MAX_SMALL_COUNT = 1 << 12
"""Up to this k records are counted in 16 bits; a sum of 2^16 and a few would go unseen until the next set of keys."""


@dataclass(eq=False, repr=False)
class _Joining:
    """What is settled so far: who waits for a class, what large cells can spare, and the classes there are."""

    rows: ReleasedRows
    waiting: Integers
    large: Integers
    spare: Integers
    shares: list[Shares] = field(default_factory=list)

    def __post_init__(self) -> None:
        kind = np.uint16 if self.rows.k <= MAX_SMALL_COUNT else np.int32
        self.n, self.settled = self.rows.n[self.waiting].astype(kind), 0
        self.whole = self.rows.whole[self.waiting]
        self.counts, self.places = np.zeros(1 << TABLE_BITS, dtype=kind), np.empty(len(self.n), dtype=np.intp)
        self.open = np.zeros(0, dtype=np.int64)
        self._spare(np.flatnonzero(self.spare))
        if not self.rows.complete:
            self.open = np.sort(self.rows.whole[self.rows.n >= self.rows.k])
            self.is_open = np.zeros(1 << TABLE_BITS, dtype=np.bool_)
            self.is_open[spread(self.open, TABLE_BITS)] = True

    def _spare(self, lenders: Integers) -> None:
        """Keep the large cells that can still spare records."""
        self.large, self.spare = self.large[lenders], self.spare[lenders]
        self.large_whole = self.rows.whole[self.large]

    def take(self, mask: int, least: int) -> None:
        """Join those whose rows without these keys are in a class, or in `least` of the small cells."""
        k = self.rows.k
        if least < k and not len(self.large) and self.rows.complete:
            return
        lenders = self.rows.without(self.large_whole, self.large, mask) if least < k else None
        near = self._hopeful(mask, least, lenders)
        ids, n = self._ids(near, mask), self.n.take(near)
        hope = n > 0
        if len(near) >= MIN_FILTERED and not len(self.open):
            hope &= self._counted(ids, n, 1) >= least
        near, ids, n = near[hope], ids[hope], n[hope]
        if not len(near):
            return
        alike = representatives(ids)
        size = np.bincount(alike, n, len(near))
        good = size >= k
        if len(self.open):
            good |= member(ids, self.open)
        if lenders is not None:
            needy = np.flatnonzero(~good & (size >= least))
            if len(needy):
                good[needy] = self._lend(mask, ids[needy], (k - size[needy]).astype(np.int64), lenders)
        joining = np.flatnonzero(good.take(alike))
        self._settle(near[joining], ids[joining], mask)

    def _ids(self, waiting: Integers | slice, mask: int) -> Integers:
        return self.rows.without(self.whole[waiting], self.waiting[waiting], mask)

    def _hopeful(self, mask: int, least: int, lenders: Integers | None) -> Integers:
        """The places of those who may find a class: where many wait, most are ruled out without a look at their rows.

        Once all classes of k are taken, only those with a lender are left, and those that are open.
        """
        if len(self.n) < MIN_FILTERED:
            return np.arange(len(self.n))
        ids = self._ids(np.s_[:], mask)
        if lenders is None:
            hopeful = self._counted(ids, self.n) >= least
        else:
            hopeful = _marked(lenders, ids)
        if len(self.open):
            hopeful |= self.is_open.take(spread(ids, TABLE_BITS), mode="clip")
        return np.flatnonzero(hopeful)

    def _counted(self, ids: Integers, n: Integers, turn: int = 0) -> Integers:
        """The records of each row, or more: rows are counted in a table, where different ones may share a place."""
        bits = min(TABLE_BITS, len(ids).bit_length() + 1)
        counts, places = self.counts[: 1 << bits], self.places[: len(ids)]
        for step in steps(len(ids)):
            places[step] = spread(ids[step], bits, turn)
            np.add.at(counts, places[step], n[step])
        size = counts.take(places, mode="clip")
        counts.fill(0)
        return size

    def _settle(self, places: Integers, ids: Integers, mask: int) -> None:
        if not len(places):
            return
        cells = self.waiting[places]
        self.shares.append(Shares(cells, np.full(len(cells), mask), self.rows.n[cells]))
        self.n[places] = 0
        self.settled += len(places)
        if self.settled > MAX_SETTLED * len(self.n):
            waits = self.n > 0
            self.waiting, self.whole, self.n = self.waiting[waits], self.whole[waits], self.n[waits]
            self.settled = 0
        if not self.rows.complete:
            classes = np.unique(ids)
            self.is_open[spread(classes, TABLE_BITS)] = True
            classes = classes[~member(classes, self.open)]
            self.open = np.insert(self.open, np.searchsorted(self.open, classes), classes)

    def _lend(self, mask: int, values: Integers, need: Integers, lenders: Integers) -> Integers:
        """Take what classes need from large cells, those that can spare most first; which classes have enough."""
        order = np.argsort(values)
        near = np.flatnonzero(_marked(values, lenders))
        place = np.minimum(np.searchsorted(values, lenders[near], sorter=order), len(values) - 1)
        place = order[place]
        met = values[place] == lenders[near]
        near, place = near[met], place[met]
        order = np.lexsort((near, -self.spare[near], place))
        near, place = near[order], place[order]
        before = np.cumsum(self.spare[near]) - self.spare[near]
        before -= before[np.searchsorted(place, place)]
        loan = np.clip(need[place] - before, 0, self.spare[near])
        enough = np.bincount(place, loan, len(values)) >= need
        lent = (loan > 0) & enough[place]
        near, loan = near[lent], loan[lent]
        if len(near):
            self.shares.append(Shares(self.large[near], np.full(len(near), mask), loan))
            self.spare[near] -= loan
            if not self.spare[near].all():
                self._spare(np.flatnonzero(self.spare))
        return enough


def _marked(some: Integers, ids: Integers) -> Integers:
    """Which ids may be among some others: all that are, and a few more."""
    bits = min(TABLE_BITS, max(len(some), 1).bit_length() + 4)
    marked = np.zeros(1 << bits, dtype=np.bool_)
    marked[spread(some, bits)] = True
    return marked.take(spread(ids, bits), mode="clip")


def joined(rows: ReleasedRows, masks: Integers, prices: Floats) -> tuple[Shares, Integers]:
    """The blanks of a greedy choice among sets of keys, at these prices, and the small cells that are left over."""
    small, large = rows.n < rows.k, np.flatnonzero(rows.n >= rows.k)
    state = _Joining(rows, np.flatnonzero(small), large, rows.n[large] - rows.k)
    for mask, least in _steps(masks, prices, rows.k):
        if state.settled == len(state.waiting):
            break
        state.take(mask, least)
    return Shares.joined(state.shares), state.waiting[state.n > 0]


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
