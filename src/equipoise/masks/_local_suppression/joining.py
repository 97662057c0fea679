"""Small cells joined by the blanks that serve most of them for the least: a greedy choice of sets of keys.

Without a set of keys the rows of some cells are identical. If these have k records together, all of them are safe for
the price of the set; if they have fewer, large cells lend what they can spare, and pay too. Sets are tried in the order
of what a record of a small cell then costs. Cost: one sort of the cells that are not yet safe for each set and level.
"""

from dataclasses import dataclass, field

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import representatives, spread, steps, sums_of_equal
from equipoise.masks._local_suppression.packed_rows import PackedRows, Places
from equipoise.masks._local_suppression.released_rows import MAX_TABLE_BITS, ReleasedRows, Shares

LEVELS = (1.0, 0.67, 0.5, 0.34, 0.0)
"""Shares of k that the small cells of a class must have themselves, the rest being lent; 0: one record."""
MIN_FILTERED = 1 << 12
"""Waiting cells from which those without hope are ruled out first."""
MIN_SAMPLED = 1 << 17
"""Waiting cells from which a set of keys is tried on a part of them first, unless the one before it joined many."""
SAMPLE_BITS = 5
MAX_LOST = 1 / 500
"""Share of the cells, for each key of a set, that sets so far may leave out: they find a class without one key more."""
MAX_ABSORBING = 1 << 14
"""Shares of the classes that the last few cells may be put into."""
MIN_RICH = 1 / 128
"""Share of these cells that makes the next set worth a try without a sample."""
MAX_DIRECT_BITS, SPARSE_BITS = 22, 4
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
        self.n, self.settled, self.poor = self.rows.n.astype(kind)[self.waiting], 0, True
        self.mask_kind = np.int16 if self.rows.keys < 15 else np.int64
        self.own = PackedRows.of(self.rows, self.waiting)
        self.counts, self.places = np.zeros(0, dtype=kind), np.empty(len(self.n), dtype=np.intp)
        self.open: dict[int, list[Integers]] = {}
        self.none = PackedRows.of(self.rows, self.waiting[:0])
        self.cells, self.lost = len(self.n), 0.0
        self._opened(self.large, 0)
        self._spare(np.flatnonzero(self.spare))

    def _spare(self, lenders: Integers) -> None:
        """Keep the large cells that can still spare records."""
        self.large, self.spare = self.large[lenders], self.spare[lenders]
        self.lenders = PackedRows.of(self.rows, self.large)

    def take(self, mask: int, least: int) -> None:
        """Join those whose rows without these keys are in a class, or in `least` of the small cells.

        Once all classes of k are taken, only those with a lender can have fewer of them.
        """
        if least < self.rows.k:
            if len(self.large):
                self._borrow(mask, least)
            return
        unsure = self.poor and len(self.n) >= MIN_SAMPLED and not self._direct(mask, len(self.n))
        near = self._in_classes(mask) if not unsure or self._pays(mask) else np.zeros(0, dtype=np.int64)
        self._settle(near[self.n[near] != 0] if self.settled else near, mask)

    def _direct(self, mask: int, many: int) -> bool:
        """Whether each row has a place of its own in a table that is worth it for so many."""
        bits = min(MAX_DIRECT_BITS, many.bit_length() + SPARSE_BITS)
        return not self.rows.hashed and self.rows.width(mask) <= bits

    def _opened(self, cells: Integers, mask: int) -> None:
        """Keep the classes of cells that lost these keys and came without others: those who have these may join."""
        if self.rows.complete:
            return
        blank = mask | (~self.rows.present[cells] & (1 << self.rows.keys) - 1)
        order = np.argsort(blank, kind="stable")
        order = order[blank[order] != mask]
        starts = np.flatnonzero(np.diff(blank[order], prepend=-1))
        for some in np.split(order, starts[1:]) if len(order) else ():
            self.open.setdefault(int(blank[some[0]]), []).append(cells[some])

    def _ready(self, mask: int) -> PackedRows:
        """The classes that have no values of these keys, and of others only where values are missing elsewhere too."""
        blanks = [blank for blank in self.open if not mask & ~blank and not blank & ~mask & ~self.rows.gappy]
        if not blanks:
            return self.none
        return PackedRows.joined(self.rows, [(np.concatenate(self.open[blank]), blank) for blank in blanks])

    def _pays(self, mask: int) -> bool:
        """Whether too many cells would be lost if these keys were not tried."""
        joins = self._share(mask) * len(self.n)
        if self.lost + joins > MAX_LOST * self.cells * mask.bit_count():
            return True
        self.lost += joins
        return False

    def _share(self, mask: int) -> float:
        """The share of the cells in classes of k without these keys, by all rows of a part of the table."""
        place, parts = self.own.spread(mask, SAMPLE_BITS, 2), []
        for step in steps(len(self.n)):
            place(step, self.places[step])
            parts.append(np.flatnonzero(self.places[step] == 0) + step.start)
        part = np.concatenate(parts)
        size = sums_of_equal(self.own.ids(mask, part), self.n[part])
        return np.count_nonzero(size >= self.rows.k) / max(1, len(part))

    def _in_classes(self, mask: int) -> Integers:
        """The places of those in classes of k without these keys."""
        ready = self._ready(mask)
        if self._direct(mask, len(self.n)):
            return self._crowded(self.rows.width(mask), self.own.exact(mask), ready.exact(mask), len(ready))
        return self._apart(mask, ready)

    def _apart(self, mask: int, ready: PackedRows) -> Integers:
        """Those in classes of k where rows share places of a table; it rules out most others."""
        bits = min(MAX_TABLE_BITS, len(self.n).bit_length() + 1)
        near = self._crowded(bits, self.own.spread(mask, bits), ready.spread(mask, bits), len(ready))
        full = np.full(len(ready), self.rows.k, dtype=self.n.dtype)
        ids, n = np.append(self.own.ids(mask, near), ready.ids(mask)), np.append(self.n[near], full)
        hopeful = np.arange(len(near))
        if len(ids) >= MIN_FILTERED:
            spot = spread(ids, min(MAX_TABLE_BITS, len(ids).bit_length() + 1), 1)
            hopes = np.flatnonzero(np.bincount(spot, n).take(spot) >= self.rows.k)
            ids, n, hopeful = ids[hopes], n[hopes], hopes[hopes < len(near)]
        size = sums_of_equal(ids, n)[: len(hopeful)]
        return near[hopeful[size >= self.rows.k]]

    def _crowded(self, bits: int, place: Places, place_ready: Places, ready: int) -> Integers:
        """Those at places of a table with k records, or with a class that is ready, part by part.

        What is made stays in the processor's cache; the answer is written over the places, until they are next made.
        """
        if bits > MAX_WIDE_BITS and len(self.counts) < 1 << bits:
            self.counts = np.zeros(1 << bits, dtype=self.n.dtype)
        counts: Integers = self.counts[: 1 << bits] if bits > MAX_WIDE_BITS else np.zeros(1 << bits, dtype=np.int64)
        n = self.n if bits > MAX_WIDE_BITS else self.n.astype(np.int64)
        for step in steps(ready):
            spots = np.empty(min(step.stop, ready) - step.start, dtype=np.intp)
            place_ready(step, spots)
            counts[spots] = self.rows.k
        for step in steps(len(n)):
            place(step, self.places[step])
            np.add.at(counts, self.places[step], n[step])
        end = 0
        for step in steps(len(n)):
            near = np.flatnonzero(counts.take(self.places[step], mode="clip") >= self.rows.k)
            np.add(near, step.start, out=self.places[end : end + len(near)])
            end += len(near)
        counts.fill(0)
        return self.places[:end]

    def _settle(self, near: Integers, mask: int) -> None:
        self.poor = len(near) < MIN_RICH * len(self.n)
        if not len(near):
            return
        self._share_out(self.waiting[near], mask, self.n[near])
        self._opened(self.shares[-1].cells, mask)
        self.n[near] = 0
        self.settled += len(near)
        if self.settled > MAX_SETTLED * len(self.n):
            waits = np.flatnonzero(self.n != 0)  # of truths: five times as fast as of numbers
            self.own, self.n = self.own[waits], self.n[waits]
            self.waiting, self.places, self.settled = self.own.cells, self.places[: len(waits)], 0

    def _share_out(self, cells: Integers, mask: int, many: Integers) -> None:
        """So many records of these cells lose these keys."""
        self.shares.append(Shares(cells, np.full(len(cells), mask, dtype=self.mask_kind), many))

    def _borrow(self, mask: int, least: int) -> None:
        """Join those whose rows without these keys are in `least` of the small cells, and the rest lent."""
        near = np.flatnonzero(self.n != 0) if len(self.n) <= len(self.large) else self._met(mask)
        near = near[self.n[near] != 0]
        ids = self.own.ids(mask, near)
        alike = representatives(ids)
        size = np.bincount(alike, self.n.take(near), len(near)).astype(np.int64)
        needy = np.flatnonzero(size >= least)
        if len(needy):
            enough = np.zeros(len(near), dtype=np.bool_)
            enough[needy] = self._lend(mask, ids[needy], np.maximum(self.rows.k - size[needy], 0))
            self._settle(near[enough.take(alike)], mask)

    def _met(self, mask: int) -> Integers:
        """Those at places of a table where there are large cells without these keys."""
        bits, near = min(MAX_TABLE_BITS, len(self.large).bit_length() + 4), []
        lent, place = self.lenders.spread(mask, bits), self.own.spread(mask, bits)
        some = np.zeros(1 << bits, dtype=np.bool_)
        for step in steps(len(self.large)):
            lent(step, spots := np.empty(len(self.large[step]), dtype=np.intp))
            some[spots] = True
        for step in steps(len(self.n)):
            place(step, self.places[step])
            near.append(np.flatnonzero(some.take(self.places[step], mode="clip")) + step.start)
        return np.concatenate(near)

    def _lend(self, mask: int, values: Integers, need: Integers) -> Integers:
        """Take what classes need from large cells, those that can spare most first; which classes have enough."""
        lenders = self.lenders.ids(mask)
        near = np.flatnonzero(marked(values, lenders))
        if not len(near):
            return need == 0
        order = np.argsort(values)
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
            self._share_out(self.large[near], mask, loan)
            self.spare[near] -= loan
            if not self.spare[near].all():
                self._spare(np.flatnonzero(self.spare))
        return enough


def marked(some: Integers, ids: Integers) -> Integers:
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
    large = np.flatnonzero(rows.n >= rows.k)
    state = _Joining(rows, rows.small, large, rows.n[large] - rows.k)
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
    near = marked(last, ids)
    near[near] = member(ids[near], last)
    return shares[near], shares[~near]


def member(values: Integers, ordered: Integers) -> Integers:
    """Which of the values stand in an ordered array."""
    if not len(ordered):
        return np.zeros(len(values), dtype=np.bool_)
    return np.asarray(ordered[np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)] == values)
