"""Grouping: records in groups of at least k that are alike. Ties go to the record that stands first.

Three ways: MDAV as published, exact; the optimum in one dimension; and cuts at medians for very large files. All take
an array with a row per record and give the number of each record's group. The answer depends on row order only where
distances tie (to a share of `TIE`): callers sort the records by content first.
"""

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import InfeasibleError

TIE = 1e-9
"""Squared distances that differ by less than this share are equal: rounding must not choose between records."""
SAMPLE = 512
"""Records looked at first when the farthest is wanted, all through the file: they say how far the search must go."""
FRESH = 16
"""Groups taken, at least, between two sortings of the records by their distance from the centre; more in large files,
one for each so many records, so that sorting never costs most."""
SPARE = 10
"""Neighbours asked for beyond those wanted: some have a group by now."""
AHEAD = 16
"""Columns times k up to which neighbours are looked up for many records at once, though most are never asked for: there
the search costs less than the call."""
BLOCK = 1 << 16
"""Records whose groups of every size are priced at a time."""


def mdav(points: Floats, size: int) -> Integers:
    """Maximum distance to average vector: fixed-size groups peeled off from the outside.

    While 3k or more records are left: the one farthest from their centroid with its k - 1 nearest, then the one
    farthest from that with its k - 1 nearest. With 2k to 3k - 1 left one more group is taken in the same way; the rest
    (k to 2k - 1 records) is the last. Exact: neighbours come from a k-d tree of the records left (rebuilt when half of
    them are gone), the farthest from one pass over those that the triangle inequality does not exclude, in order of
    distance from an earlier centroid. Cost: n/k times about 60 microseconds for 100,000 records in 2 or 3 dimensions
    (2 s in groups of 3), O(n) memory; towards O(n^2/k) with more records, many columns or many equal records.

    Source: Domingo-Ferrer and Mateo-Sanz (2002); Domingo-Ferrer and Torra (2005), algorithm MDAV-generic.

    >>> mdav(np.array([[0.0], [1.0], [10.0], [11.0], [12.0], [30.0], [31.0]]), 2).tolist()
    [1, 1, 2, 2, 2, 0, 0]
    """
    _refuse_few(len(points), size)
    remaining = _Ungrouped(points, size)
    groups, number = np.empty(len(points), dtype=np.int64), 0
    while remaining.count >= 3 * size:
        first = remaining.farthest(remaining.centre)
        groups[remaining.take(first)] = number
        second = remaining.farthest(points[first])
        groups[remaining.take(second)] = number + 1
        number += 2
    if remaining.count >= 2 * size:
        groups[remaining.take(remaining.farthest(remaining.centre))] = number
        number += 1
    groups[remaining.alive] = number
    return groups


@dataclass(eq=False, repr=False)
class _Ungrouped:
    """The records that have no group yet, ready to be asked for the farthest from a point and a group's worth of near.

    With x and p measured from c, the centre at the last sorting, |x - p|^2 = |p|^2 + (-2p, 1) . (x, |x|^2): `lifted`
    holds a column (x, |x|^2) for each record, the farthest from c first, so one product gives all distances. Whoever
    leaves has |x|^2 = -inf there. `total` sums x, not the values: a far origin must not cost the centre its digits.
    """

    points: Floats
    size: int
    alive: Any = field(init=False)
    count: int = field(init=False)
    total: Floats = field(init=False)
    sorted_by: Floats = field(init=False)
    planted: Integers = field(init=False)
    asked: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.count = len(self.points)
        self.alive = np.ones(self.count, dtype=np.bool_)
        self._sort()
        self._plant()

    @property
    def centre(self) -> Floats:
        return self.sorted_by + self.total / self.count

    def farthest(self, point: Floats) -> int:
        """The farthest from a point; only those with |x| >= |farthest of a sample - p| - |p| can be it."""
        head = self._head()
        away = point - self.sorted_by
        square = float(away @ away)
        reach = sqrt(square)
        self.weights[:-1] = -2.0 * away
        slack = 2 * TIE * (reach - float(self.inward[head])) ** 2
        step = max(1, (len(self.outward) - head) // SAMPLE)
        sample_distance = square + float((self.weights @ self.lifted[:, head::step]).max())
        end = int(self.inward.searchsorted(reach - sqrt(max(0.0, sample_distance - slack)), side="right"))
        far = self.weights @ self.lifted[:, head:end]
        best = (far >= far.max() - slack).nonzero()[0] + head
        return int(self.outward[best[0]]) if len(best) == 1 else self._farthest_of(self.outward[best], point)

    def take(self, row: int) -> Integers:
        """Take a record and its nearest out, and say which they are."""
        self.alive[row] = False
        rows = np.concatenate((self._nearest(row, self.size - 1), [row]))
        self.alive[rows] = False
        places = self.place[rows]
        self.total -= np.add.reduce(self.lifted[:-1, places], axis=1)
        self.lifted[-1, places] = -np.inf
        self.count -= self.size
        self.taken += 1
        if self.taken >= max(FRESH, self.count // FRESH):
            self._sort()
        if 2 * self.count < self.tree.n:
            self._plant()
        return rows

    def _head(self) -> int:
        while self.lifted[-1, self.head] == -np.inf:
            self.head += 1
        return self.head

    def _farthest_of(self, rows: Integers, point: Floats) -> int:
        away = self.points[rows] - point
        distance = np.einsum("ij,ij->i", away, away)
        return int(rows[distance >= distance.max() * (1 - TIE)].min())

    def _nearest(self, row: int, number: int) -> Integers:
        if number == 0:
            return np.zeros(0, dtype=np.int64)
        spot, many = self.spot[row], max(number + SPARE, self.asked // 2)
        reached, neighbours = self.ahead
        chosen = self._chosen(reached[spot], neighbours[spot], number) if spot < len(neighbours) else None
        while chosen is None:
            reached, neighbours = self.tree.query(self.points[row], k=min(many, self.tree.n))
            chosen = self._chosen(reached, neighbours, number)
            self.asked, many = many, 2 * many
        return chosen

    def _chosen(self, reached: Floats, neighbours: Integers, number: int) -> Integers | None:
        """The `wanted` nearest of those found that are left, ties to who stands first; None if more must be found."""
        rows: Integers = self.planted[neighbours]
        ungrouped = self.alive[rows]
        rows, distance = rows[ungrouped], reached[ungrouped]
        if len(rows) > number and distance[number] > distance[number - 1] * (1 + TIE):
            return rows[:number]
        if len(rows) < number or (distance[number - 1] * (1 + TIE) >= reached[-1] and len(neighbours) < self.tree.n):
            return None
        return _first(rows, distance, distance[number - 1], number)

    def _plant(self) -> None:
        """The tree of those left, and the neighbours of the outer half: nearly all who are asked before the next."""
        from scipy.spatial import cKDTree

        self.planted = self.outward[self.alive[self.outward]]
        points = self.points[self.planted]
        self.tree = cKDTree(points, balanced_tree=False, compact_nodes=False)
        self.spot = np.empty(len(self.points), dtype=np.int64)
        self.spot[self.planted] = np.arange(len(points))
        many = len(points) // 2 if self.size * points.shape[1] <= AHEAD else 0
        self.ahead = self.tree.query(points[:many], k=range(1, min(self.size + SPARE, len(points)) + 1))

    def _sort(self) -> None:
        """Order the records by their distance from the centre, the farthest first."""
        rows = np.flatnonzero(self.alive)
        points = self.points[rows]
        self.sorted_by = points.mean(axis=0)
        points -= self.sorted_by
        self.total, self.taken, self.head = points.sum(axis=0), 0, 0
        square = np.einsum("ij,ij->i", points, points)
        order = np.argsort(-square, kind="stable")
        self.lifted = np.vstack([points.T, square])[:, order]
        self.weights = np.ones(len(self.lifted))
        self.outward, self.inward = rows[order], -np.sqrt(self.lifted[-1])
        self.place = np.empty(len(self.points), dtype=np.int64)
        self.place[self.outward] = np.arange(len(rows))


def _first(rows: Integers, distance: Floats, limit: float, number: int) -> Integers:
    """The `wanted` nearest; those that tie at the limit in the order they stand in. Half the share: no squares here."""
    inside = distance < limit * (1 - TIE / 2)
    edge = np.sort(rows[~inside & (distance <= limit * (1 + TIE / 2))])
    chosen = rows[inside]
    return np.concatenate([chosen, edge[: number - len(chosen)]])


def optimal(values: Floats, size: int) -> Integers:
    """The groups of at least k numbers with the smallest sum of squares within, exactly.

    Optimal groups are runs of k to 2k - 1 sorted values, so with C(0) = 0
    C(j) = min over s in k..2k-1 of C(j - s) + SSE(the s values up to j), each SSE by Welford's update, never as a
    difference of large sums. Between equally good groupings the last group is the smaller one.
    Cost: O(n log n + n k), k values at a time. Values must be sorted.

    Source: Hansen and Mukherjee (2003), *A polynomial algorithm for optimal univariate microaggregation*.

    >>> optimal(np.array([1.0, 2.0, 9.0, 10.0, 11.0]), 2).tolist()
    [0, 0, 1, 1, 1]
    """
    n = len(values)
    _refuse_few(n, size)
    cost, last = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=np.int64)
    cost[0] = 0.0
    for start in range(size, n + 1, BLOCK // size * size or size):
        stop = min(n + 1, start + (BLOCK // size * size or size))
        _price(values, size, cost, last, start, stop)
    return _runs(last, n)


def _price(values: Floats, size: int, cost: Floats, last: Integers, start: int, stop: int) -> None:
    """C(j) for j in start..stop-1: k of them at a time, for C(j) needs none nearer than C(j - k)."""
    within = _within(values, size, start, stop)
    back = np.arange(size)[:, None] - np.arange(size, 2 * size)
    for j in range(start, stop, size):
        many = min(size, stop - j)
        before = j + back[:many]
        costs = cost[np.maximum(before, 0)] + within[j - start : j - start + many]
        costs[before < 0] = np.inf
        best = costs.argmin(axis=1)
        cost[j : j + many] = costs[np.arange(many), best]
        last[j : j + many] = best + size


def _within(values: Floats, size: int, start: int, stop: int) -> Floats:
    """The sum of squares of the s values up to each j, for s = k..2k-1 (a column each)."""
    ends = np.arange(start, stop)
    mean, squares = np.zeros(len(ends)), np.zeros(len(ends))
    sums = np.empty((len(ends), size))
    for s in range(1, 2 * size):
        value = values[np.maximum(ends - s, 0)]
        ahead = value - mean
        mean += ahead / s
        squares += ahead * (value - mean)
        if s >= size:
            sums[:, s - size] = squares
    return sums


def _runs(last: Integers, n: int) -> Integers:
    """Group numbers from the length of the last group at each place."""
    lengths = []
    while n > 0:
        lengths.append(int(last[n]))
        n -= lengths[-1]
    return np.repeat(np.arange(len(lengths)), lengths[::-1])


def tree(points: Floats, size: int) -> Integers:
    """Cut the widest column in two, at a multiple of k near the median, until no part has 2k records or more.

    The width is the variance within the part; a part of m records leaves k floor(floor(m/k)/2) on the lower side, so
    nearly all groups have exactly k. Cost: O(n log n log(n/k)), all parts of a level at once.

    Source: LeFevre, DeWitt and Ramakrishnan (2006), *Mondrian multidimensional k-anonymity*, with this cut.

    >>> tree(np.array([[3.0], [1.0], [2.0], [9.0], [8.0]]), 2).tolist()
    [1, 0, 0, 1, 1]
    """
    _refuse_few(len(points), size)
    columns = np.ascontiguousarray((points - points.mean(axis=0)).T)
    ranked = np.argsort(columns, axis=1, kind="stable")
    ranks = np.argsort(ranked, axis=1)
    order, starts = np.arange(len(points)), np.array([0])
    while True:
        lengths = np.diff(np.append(starts, len(points)))
        if (lengths < 2 * size).all():
            break
        order = _sort_parts(columns, ranked, ranks, order, starts)
        cuts = starts + lengths // size // 2 * size
        starts = np.sort(np.concatenate([starts, cuts[lengths >= 2 * size]]))
    groups = np.empty(len(points), dtype=np.int64)
    groups[order] = np.repeat(np.arange(len(starts)), lengths)
    return groups


def _sort_parts(columns: Floats, ranked: Integers, ranks: Integers, order: Integers, starts: Integers) -> Integers:
    """Each part sorted by its widest column: part and rank sorted as one integer, then turned back into records."""
    n, lengths = len(order), np.diff(np.append(starts, len(order)))
    spread = np.empty((len(columns), len(starts)))
    for column, values in enumerate(columns):
        sorted_values = values[order]
        spread[column] = (
            np.add.reduceat(sorted_values * sorted_values, starts)
            - np.add.reduceat(sorted_values, starts) ** 2 / lengths
        )
    part = np.repeat(np.arange(len(starts)), lengths)
    by = spread.argmax(axis=0)[part]
    packed = part * n + ranks[by, order]
    packed.sort()
    return ranked[by, packed - part * n]


def means(points: Floats, groups: Integers) -> Floats:
    """Each record's group mean, in every column."""
    counts = np.maximum(1, np.bincount(groups))
    centres = np.stack([np.bincount(groups, weights=column) for column in points.T], axis=1) / counts[:, None]
    return centres[groups]


def _refuse_few(records: int, size: int) -> None:
    if records < size:
        raise InfeasibleError(f"Groups of {size:,} cannot be made of {records:,} records.")
