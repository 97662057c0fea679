"""Nearest neighbours of one file among the records of another, numbers and categories together, exactly.

The squared distance of two records is that of their coordinates plus a penalty for every category they differ in. Equal
records are one point with a count, so that a file of categories is as small as its cells. Points are held by cell, the
combination of their categories; a cell has a tree of its coordinates when it is large. Cells are visited by what their
categories cost, the cheapest first (`visits`); what lies farther than the answer so far is never visited. No n x n
matrix: the memory needed is that of the files. Where categories are so many that the visits outnumber the pairs of
cells, the pairs are gone through instead, in parts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from equipoise.attacks._nearest.cell_pairs_by_cost import CHUNK, TIE, Costs, every_pair, meet, parts, visits
from equipoise.attacks._nearest.points import CellPoints, Cloud, distinct
from equipoise.ground.arrays import Floats, Integers

MOST = 11
"""Closer records are counted up to this many."""
PLACES = 3
"""Ties with the record looked for are counted exactly where fewer than this many records are closer."""
FIRST = 2
"""Neighbours asked for at first, then `MOST` + 1, then ever four times as many where the question is not settled."""
SMALL = 256
"""Two cells with at most this many pairs of points are compared pair by pair, without a tree."""
FEW = 4
"""And so are all queries with a cell of at most this many points."""
THREADS = 1 << 12
"""With this many questions to a tree all cores are used."""
DEARER, PATIENCE = 8, 1 << 16
"""How much dearer a cell is in a visit than in a pair; and pairs below which visits are not counted."""
BINS = 16
"""And they are asked in at least this many parts, by how far they look."""


@dataclass(frozen=True, eq=False, repr=False)
class NeighbourCounts:
    """For each record: how far its own is, how many are `closer` (11: more than 10), and how many are `tied` with it,
    itself among them (exact where fewer than three are closer).
    """

    distance: Floats
    closer: Integers
    tied: Integers


def count(released: Cloud, original: Cloud, penalties: Floats | Costs, own: Integers) -> NeighbourCounts:
    """Where the own record of every original one stands among all released ones, from the original's point of view.

    `own` is its row in the released file. A category with an infinite penalty must agree (a block). Cost: about
    O(n log n) in few dimensions; the number of cells that differ in few categories enters where there are many.

    >>> line = Cloud(np.array([[0.0], [1.0], [5.0]]), np.zeros((3, 0), dtype=int))
    >>> found = count(line, line, np.zeros(0), np.array([0, 1, 1]))
    >>> found.closer.tolist(), found.tied.tolist()
    ([0, 0, 1], [1, 1, 1])
    """
    points, queries, mine, asked = _both(released, original, own)
    costs = _costs(penalties)
    distance = _apart(points, queries, mine, costs)
    search = _NeighbourSearch(points, queries, costs, distance, mine)
    search.other[:] = 0.0
    search.run()
    return NeighbourCounts(distance[asked], np.minimum(search.closer, MOST)[asked], search.tied[asked])


def others(released: Cloud, original: Cloud, penalties: Floats | Costs, own: Integers) -> Floats:
    """How far the nearest released record is from each original one, its own left out; infinite if there is none.

    Dearer than `count` where records are well separated: it must look as far as the nearest stranger.

    >>> line = Cloud(np.array([[0.0], [1.0], [5.0]]), np.zeros((3, 0), dtype=int))
    >>> others(line, line, np.zeros(0), np.array([0, 1, 1])).tolist()
    [1.0, 1.0, 0.0]
    """
    points, queries, mine, asked = _both(released, original, own)
    search = _NeighbourSearch(points, queries, _costs(penalties), np.full(len(mine), -1.0), mine)
    search.run()
    return search.other[asked]


def _both(released: Cloud, original: Cloud, own: Integers) -> "tuple[CellPoints, CellPoints, Integers, Integers]":
    """Points, queries, the own point of every query, and the query of every original record."""
    points, place, _ = distinct(released)
    mine = place[own]
    queries, asked, first = distinct(original, mine)
    return points, queries, mine[first], asked


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """Which released rows are nearest to which original ones, an equal record standing for all of its kind.

    `query` numbers the distinct original records and `of` says which of them each record is; `row` is a released row,
    `times` how many records equal it, `first` the row of each distinct original record.
    """

    of: Integers
    first: Integers
    query: Integers
    row: Integers
    times: Integers


def nearest(released: Cloud, original: Cloud, penalties: Floats | Costs) -> Pairs:
    """All nearest released records of every original record; several where they tie.

    >>> line = Cloud(np.array([[0.0], [2.0], [5.0]]), np.zeros((3, 0), dtype=int))
    >>> found = nearest(line, Cloud(np.array([[1.0], [4.0]]), np.zeros((2, 0), dtype=int)), np.zeros(0))
    >>> sorted(zip(found.query.tolist(), found.row.tolist()))
    [(0, 0), (0, 1), (1, 2)]
    """
    points, _, rows = distinct(released)
    queries, of, first = distinct(original)
    nobody = np.full(len(first), -1)
    search = _NeighbourSearch(points, queries, _costs(penalties), np.full(len(first), -1.0), nobody)
    search.run()
    again = _NeighbourSearch(points, queries, _costs(penalties), search.other, nobody)
    again.other, again.kept = search.other.copy(), []
    again.run()
    empty = np.zeros(0, dtype=np.int64)
    query = np.concatenate([empty, *(i for i, _ in again.kept)])
    point = np.concatenate([empty, *(j for _, j in again.kept)])
    return Pairs(of, first, query, rows[point], points.counts[point])


def _costs(penalties: Floats | Costs) -> Costs:
    return penalties if isinstance(penalties, Costs) else Costs(penalties)


def _apart(points: CellPoints, queries: CellPoints, mine: Integers, costs: Costs) -> Floats:
    """The distance of each query from its own point; infinite across blocks."""
    gaps = queries.coordinates - points.coordinates[mine]
    cost = costs.between(queries.codes[queries.cell], points.codes[points.cell[mine]])
    found: Floats = np.sqrt(np.einsum("ij,ij->i", gaps, gaps) + cost)
    return found


class _NeighbourSearch:
    """Counts what is closer than `distance`, and what is as far, for all queries at once."""

    def __init__(self, points: CellPoints, queries: CellPoints, costs: Costs, distance: Floats, mine: Integers) -> None:
        self.points, self.queries, self.costs, self.mine = points, queries, costs, mine
        span = max((float(np.abs(side.coordinates).max(initial=0.0)) for side in (points, queries)), default=0.0)
        slack = np.where(np.isfinite(distance) & (distance >= 0), TIE * distance + 8 * np.finfo(float).eps * span, 0.0)
        self.below, self.above = distance - slack, distance + slack
        self.closer, self.tied = np.zeros(len(mine), dtype=np.int64), np.zeros(len(mine), dtype=np.int64)
        self.other = np.full(len(mine), np.inf)
        self.kept: list[tuple[Integers, Integers]] | None = None
        self.trees: dict[int, Any] = {}
        self.first = FIRST
        self.active = self.edges = np.zeros(0, dtype=np.int64)

    def run(self) -> None:
        first, cells = self.other.copy(), (len(self.points.codes), len(self.queries.codes))
        for done, (least, chosen) in enumerate(visits(self.costs)):
            if DEARER * done * sum(cells) > max(prod(cells), PATIENCE):
                self._run_all(first)
                return
            reach = self._reach(slice(None))
            if not (reach >= least).any():
                return
            for asking, asked, cost in meet(self.points, self.queries, self.costs, chosen, self._look(reach, least)):
                self._visit(asking, asked, cost)

    def _look(self, reach: Floats, least: float) -> Floats:
        """How far each cell of queries looks; those that still do so are active."""
        self.active = np.flatnonzero(reach >= least)
        self.edges = np.searchsorted(self.active, self.queries.start)
        found: Floats = np.maximum.reduceat(reach, self.queries.start[:-1])
        return found

    def _run_all(self, first: Floats) -> None:
        """Once more from the beginning, pair by pair: many categories have more combinations than there are pairs."""
        self.closer[:], self.tied[:], self.other[:] = 0, 0, first
        self.kept = None if self.kept is None else []
        reach = self._look(self._reach(slice(None)), 0.0)
        for asking, asked, cost in every_pair(self.points, self.queries, self.costs, reach):
            self._visit(asking, asked, cost)

    def _reach(self, rows: Any) -> Floats:
        """The squared distance up to which a query still has to look."""
        own = np.where(self.closer[rows] < MOST, np.maximum(self.above[rows], 0.0), 0.0)
        found: Floats = np.maximum(own, self.other[rows]) ** 2
        return found

    def _visit(self, asking: Integers, asked: Integers, cost: Floats) -> None:
        """Compare pairs of cells: the small ones at once, the others by the trees, with the queries still active."""
        work = np.diff(self.edges)[asking] * self.points.sizes[asked]
        few = (work <= SMALL) | (self.points.sizes[asked] <= FEW)
        small, large = np.flatnonzero(few), np.flatnonzero(~few)
        for part in parts(work[small]):
            self._compare(asking[small[part]], asked[small[part]], cost[small[part]])
        for one, two, penalty in zip(asking[large].tolist(), asked[large].tolist(), cost[large].tolist(), strict=True):
            for rows in self._alike(self.active[self.edges[one] : self.edges[one + 1]], penalty):
                self._ask(rows, two, penalty)

    def _alike(self, rows: Integers, penalty: float) -> Iterator[Integers]:
        """Active queries, many of them in parts that look about equally far: a tree is given one bound for all."""
        reach = self._reach(rows)
        rows, reach = rows[reach >= penalty], reach[reach >= penalty]
        if len(rows) < THREADS:
            yield rows
            return
        order = np.argsort(reach, kind="stable")
        for part in np.array_split(order, max(BINS, len(rows) // CHUNK)):
            yield rows[np.sort(part)]

    def _compare(self, asking: Integers, asked: Integers, cost: Floats) -> None:
        """All pairs of points of small cells."""
        wide, tall = self.points.sizes[asked], np.diff(self.edges)[asking]
        work = tall * wide
        pair = np.repeat(np.arange(len(work)), work)
        step = np.arange(len(pair)) - np.repeat(np.cumsum(work) - work, work)
        row = self.active[self.edges[asking][pair] + step // wide[pair]]
        point = self.points.start[asked][pair] + step % wide[pair]
        penalty = cost[pair]
        live = self._reach(row) >= penalty
        row, point, penalty = row[live], point[live], penalty[live]
        gaps = self.queries.coordinates[row] - self.points.coordinates[point]
        self._add(row, point, np.sqrt(penalty + np.einsum("ij,ij->i", gaps, gaps)))

    def _ask(self, rows: Integers, cell: int, penalty: float) -> None:
        """The neighbours of the queries in the tree of a cell, more and more of them until each query is settled."""
        start, size, many = self.points.start[cell], int(self.points.sizes[cell]), self.first
        while len(rows):
            many = min(many, size)
            bound = np.sqrt(max(0.0, float(self._reach(rows).max()) - penalty)) * (1 + TIE) + 1e-150
            reached, found = self._tree(cell).query(
                self.queries.coordinates[rows],
                k=range(1, many + 1),
                distance_upper_bound=bound,
                workers=-1 if len(rows) >= THREADS else 1,
            )
            distance = np.sqrt(penalty + reached**2)
            point = np.minimum(found, size - 1) + start
            settled = self._settled(rows, distance, point) | (many == size)
            met = settled[:, None] & np.isfinite(distance)
            self._add(np.repeat(rows, met.sum(axis=1)), point[met], distance[met])
            if many == FIRST and 2 * settled.sum() < len(rows):
                self.first = MOST + 1
            rows, many = rows[~settled], max(MOST + 1, many * 4)

    def _settled(self, rows: Integers, distance: Floats, point: Integers) -> Any:
        """No point beyond those found could matter."""
        last, below = distance[:, -1], self.below[rows]
        closer = self.closer[rows] + np.where(distance < below[:, None], self.points.counts[point], 0).sum(axis=1)
        return (last > self.above[rows]) | (closer >= MOST) | ((closer >= PLACES) & (last >= below))

    def _tree(self, cell: int) -> Any:
        from scipy.spatial import cKDTree

        if cell not in self.trees:
            inside = slice(self.points.start[cell], self.points.start[cell + 1])
            self.trees[cell] = cKDTree(self.points.coordinates[inside], balanced_tree=False)
        return self.trees[cell]

    def _add(self, row: Integers, point: Integers, distance: Floats) -> None:
        times = self.points.counts[point]
        closer, tied = distance < self.below[row], (distance >= self.below[row]) & (distance <= self.above[row])
        np.add.at(self.closer, row[closer], times[closer])
        np.add.at(self.tied, row[tied], times[tied])
        others = (self.mine[row] != point) | (times > 1)
        np.minimum.at(self.other, row[others], distance[others])
        if self.kept is not None:
            self.kept.append((row[tied], point[tied]))
