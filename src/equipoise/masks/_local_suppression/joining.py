"""Small cells joined by the blanks that serve most of them for the least: a greedy choice of sets of keys.

Without a set of keys the rows of some cells are identical. If these have k records together, all of them are safe for
the price of the set; if they have fewer, large cells lend what they can spare, and pay too. Sets are taken in the order
of what a record of a small cell then costs. Cost: one sort of the cells that are not yet safe for each set and level.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import representatives, spread, steps, sums_of_equal
from equipoise.masks._local_suppression.released_rows import MAX_TABLE_BITS, ReleasedRows, Shares

LEVELS = (1.0, 0.67, 0.5, 0.34, 0.0)
"""Shares of k that the small cells of a class must have themselves, the rest being lent; 0: one record."""
MIN_FILTERED = 1 << 12
"""Waiting cells from which those without hope are ruled out first."""
MIN_SAMPLED = 1 << 17
"""Waiting cells from which a set of keys is tried on a part of them first, unless the one before it joined many."""
SAMPLE_BITS = 5
MIN_JOINED = 1 / 512
"""Share of these cells that a set of keys must join: the others find a class without one key more."""
MAX_ABSORBING = 1 << 14
"""Shares of the classes that the last few cells may be put into."""
RICH = 4
"""So many times that share makes the next set worth a try without a sample."""
MAX_DIRECT_BITS, SPARSE_BITS = 24, 4
"""Bits of the numbers of rows that are counted in a table of that size, and how many more than their own."""
MAX_SETTLED = 1 / 6
"""Share of cells that were settled, up to which they stay among the others with no records."""
MAX_SMALL_COUNT, MAX_WIDE_BITS = 1 << 12, 12
"""Up to this k records are counted in 16 bits, which are fastest, but in 64 where few places have many records each. A
sum of 2^16 and a few goes unseen: such a class is found without one key more, at last without any.
"""


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
        self.n, self.settled, self.poor = self.rows.n[self.waiting].astype(kind), 0, True
        self.whole = self.rows.whole[self.waiting]
        self.counts, self.places = np.zeros(0, dtype=kind), np.empty(len(self.n), dtype=np.intp)
        self.open_bits = min(MAX_TABLE_BITS, len(self.rows.n).bit_length() + 3)
        if not self.rows.complete:
            self.open = np.full(1 << self.open_bits, -1, dtype=np.int64)
            self._opened(self.rows.whole[self.large])
        self._spare(np.flatnonzero(self.spare))

    def _spare(self, lenders: Integers) -> None:
        """Keep the large cells that can still spare records."""
        self.large, self.spare = self.large[lenders], self.spare[lenders]
        self.large_whole = self.rows.whole[self.large]

    def _ids(self, waiting: Integers | slice, mask: int) -> Integers:
        return self.rows.without(self.whole[waiting], self.waiting[waiting], mask)

    def take(self, mask: int, least: int) -> None:
        """Join those whose rows without these keys are in a class, or in `least` of the small cells.

        Once all classes of k are taken, only those with a lender can have fewer of them.
        """
        if least < self.rows.k:
            if len(self.large):
                self._borrow(mask, least)
            return
        width = self.rows.width(mask)
        if not self.rows.hashed and width <= min(MAX_DIRECT_BITS, len(self.n).bit_length() + SPARSE_BITS):
            size = self._counted(self.n, width, lambda step: self.rows.places(self.whole[step], mask))
            near = np.flatnonzero(size >= self.rows.k)
        elif self.poor and len(self.n) >= MIN_SAMPLED and not self._pays(mask):
            near = np.zeros(0, dtype=np.int64)
        else:
            near = self._in_classes(mask)
        if not self.rows.complete:
            near = self._with_ready(near, mask)
        self._settle(near[self.n[near] != 0], mask)

    def _with_ready(self, near: Integers, mask: int) -> Integers:
        """Those near, and those whose rows without these keys are in a class of others, which have missing values."""
        joins = np.zeros(len(self.n), dtype=np.bool_)
        for step in steps(len(joins)):
            ids = self._ids(step, mask)
            joins[step] = self.open.take(spread(ids, self.open_bits), mode="clip") == ids
        joins[near] = True
        return np.flatnonzero(joins)

    def _opened(self, ids: Integers) -> None:
        """Keep these classes; of two in one place the last is kept, so that who may join the other has to wait."""
        self.open[spread(ids, self.open_bits)] = ids

    def _pays(self, mask: int) -> bool:
        """Whether enough cells are in a class of k without these keys, by all rows of a part of the table."""
        parts = [spread(self._ids(step, mask), SAMPLE_BITS, 2) for step in steps(len(self.n))]
        part = np.flatnonzero(np.concatenate([place == 0 for place in parts]))
        size = sums_of_equal(self._ids(part, mask), self.n[part])
        return bool(np.count_nonzero(size >= self.rows.k) >= MIN_JOINED * len(part))

    def _in_classes(self, mask: int) -> Integers:
        """The places of those in classes of k without these keys; most others are ruled out by a table of counts."""
        near, ids = np.arange(len(self.n)), self._ids(np.s_[:], mask)
        for turn in range(2):
            if len(near) >= MIN_FILTERED:
                near = near[self._upper_sums(ids, self.n[near], turn) >= self.rows.k]
                ids = self._ids(near, mask)
        return near[sums_of_equal(ids, self.n[near]) >= self.rows.k]

    def _upper_sums(self, ids: Integers, n: Integers, turn: int) -> Integers:
        """For each id the sum of `n` over all that are equal, and over others that share a place with them."""
        bits = min(MAX_TABLE_BITS, len(n).bit_length() + 1)
        return self._counted(n, bits, lambda step: spread(ids[step], bits, turn))

    def _counted(self, n: Integers, bits: int, places_of: Callable[[slice], Integers]) -> Integers:
        """The records at the place of each in a table, part by part: what is made stays in the processor's cache."""
        if bits > MAX_WIDE_BITS and len(self.counts) < 1 << bits:
            self.counts = np.zeros(1 << bits, dtype=n.dtype)
        n = n if bits > MAX_WIDE_BITS else n.astype(np.int64)
        counts = self.counts[: 1 << bits] if bits > MAX_WIDE_BITS else np.zeros(1 << bits, dtype=np.int64)
        places, size = self.places[: len(n)], np.empty_like(n)
        for step in steps(len(n)):
            places[step] = places_of(step)
            np.add.at(counts, places[step], n[step])
        for step in steps(len(n)):
            counts.take(places[step], mode="clip", out=size[step])
        counts.fill(0)
        return size

    def _settle(self, places: Integers, mask: int) -> None:
        self.poor = len(places) < RICH * MIN_JOINED * len(self.n)
        if not len(places):
            return
        self.shares.append(Shares(self.waiting[places], np.full(len(places), mask), self.n[places]))
        if not self.rows.complete:
            self._opened(self._ids(places, mask))
        self.n[places] = 0
        self.settled += len(places)
        if self.settled > MAX_SETTLED * len(self.n):
            waits = np.flatnonzero(self.n)
            self.waiting, self.whole, self.n = self.waiting[waits], self.whole[waits], self.n[waits]
            self.settled = 0

    def _borrow(self, mask: int, least: int) -> None:
        """Join those whose rows without these keys are in `least` of the small cells, and the rest lent."""
        lenders = self.rows.without(self.large_whole, self.large, mask)
        near = np.flatnonzero(_marked(lenders, self._ids(np.s_[:], mask)))
        near = near[self.n[near] != 0]
        ids = self._ids(near, mask)
        alike = representatives(ids)
        size = np.bincount(alike, self.n.take(near), len(near)).astype(np.int64)
        needy = np.flatnonzero(size >= least)
        if len(needy):
            enough = np.zeros(len(near), dtype=np.bool_)
            enough[needy] = self._lend(mask, ids[needy], np.maximum(self.rows.k - size[needy], 0), lenders)
            self._settle(near[enough.take(alike)], mask)

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
    bits = min(MAX_TABLE_BITS, max(len(some), 1).bit_length() + 4)
    marked = np.zeros(1 << bits, dtype=np.bool_)
    marked[spread(some, bits)] = True
    near = np.empty(len(ids), dtype=np.bool_)
    for step in steps(len(ids)):
        marked.take(spread(ids[step], bits), mode="clip", out=near[step])
    return near


def joined(rows: ReleasedRows, masks: Integers, prices: Floats) -> tuple[Shares, Integers]:
    """The blanks of a greedy choice among sets of keys, at these prices, and the small cells that are left over."""
    small, large = rows.n < rows.k, np.flatnonzero(rows.n >= rows.k)
    state = _Joining(rows, np.flatnonzero(small), large, rows.n[large] - rows.k)
    for mask, least in _steps(masks, prices, rows.k):
        if state.settled == len(state.waiting):
            break
        state.take(mask, least)
    return Shares.joined(state.shares), state.waiting[state.n != 0]


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
    others, far = _candidates(rows, shares, cells)
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
    merged = Shares.joined([far, Shares(others.cells, wider, others.many), new])
    return merged[merged.masks & rows.present[merged.cells] != 0]


def _candidates(rows: ReleasedRows, shares: Shares, cells: Integers) -> tuple[Shares, Shares]:
    """All records of classes that cells may be put into, and the shares of other classes.

    Where there are many, the classes that were joined last: they have lost most keys already.
    """
    if len(shares.cells) <= MAX_ABSORBING:
        every = rows.everyone(shares)
        return every[~np.isin(every.cells, cells)], Shares.joined([])
    ids = rows.ids(shares.cells, shares.masks)
    last = np.unique(ids[-MAX_ABSORBING:])
    near = _marked(last, ids)
    near[near] = member(ids[near], last)
    return shares[near], shares[~near]


def member(values: Integers, ordered: Integers) -> Integers:
    """Which of the values stand in an ordered array."""
    if not len(ordered):
        return np.zeros(len(values), dtype=np.bool_)
    return np.asarray(ordered[np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)] == values)
