"""Exact nearest neighbours of one file among the records of another, numbers and categories together.

The squared distance of two records is that of their coordinates plus a penalty for every category they differ in. Equal
records are one point with a count, so that a file of categories is as small as its cells. Points are grouped by cell,
the combination of their categories; a large cell has a k-d tree of its coordinates. Cells are visited by the cost of
their categories, the cheapest first (`visits`); what lies farther than the answer so far is never visited. No n x n
matrix: the memory needed is that of the files. If there are so many categories that visits outnumber the pairs of
cells, all pairs are compared instead, in parts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from equipoise.attacks._nearest import cell_pairs_by_cost
from equipoise.attacks._nearest.cell_pairs_by_cost import TIE_TOLERANCE, Costs, every_pair, meet, parts, visits
from equipoise.attacks._nearest.points import CellPoints, Cloud, distinct
from equipoise.ground.arrays import Floats, Integers, runs

MAX_CLOSER = 11
"""Closer records are counted up to this number."""
EXACT_TIE_RANKS = 3
"""Ties with the own record are counted exactly if fewer records than this are closer."""
FIRST_NEIGHBOURS = 2
"""Neighbours queried at first, then `MAX_CLOSER` + 1, then four times as many each time until the query is settled."""
MAX_DIRECT_PAIRS = 256
"""Pairs of points up to which two cells are compared pair by pair, without a tree."""
MAX_DIRECT_POINTS = 4
"""Points of a cell up to which all queries are compared with it directly, too."""
MIN_THREADED_QUERIES = 1 << 12
"""Queries of a tree from which on all cores are used."""
VISIT_COST, MIN_PAIRS_FOR_SWITCH = 8, 1 << 16
"""Cost of a cell in a visit, in pairs of cells; and pairs below which the search never switches to all pairs."""
MIN_REACH_BINS = 16
"""Parts, by reach, that so many queries of a tree are split into at least."""


@dataclass(frozen=True, eq=False, repr=False)
class NeighbourCounts:
    """Distance of each record's own record, the number `closer` (11: more than 10) and the number `tied` with it.

    `tied` includes the own record and is exact where fewer than three are closer.
    """

    distance: Floats
    closer: Integers
    tied: Integers


def count(released: Cloud, original: Cloud, penalties: Floats | Costs, own: Integers) -> NeighbourCounts:
    """Rank of the own released record of every original record among all released ones, by distance.

    `own` is its row in the released file. A category with an infinite penalty must agree (a block). Cost: about
    O(n log n) in few dimensions; the number of cells that differ in few categories enters where there are many.

    >>> line = Cloud(np.array([[0.0], [1.0], [5.0]]), np.zeros((3, 0), dtype=int))
    >>> neighbours = count(line, line, np.zeros(0), np.array([0, 1, 1]))
    >>> neighbours.closer.tolist(), neighbours.tied.tolist()
    ([0, 0, 1], [1, 1, 1])
    """
    points, queries, mine, query_of = _both(released, original, own)
    costs = _costs(penalties)
    distance = _own_distance(points, queries, mine, costs)
    search = _NeighbourSearch(points, queries, costs, distance, mine)
    search.other[:] = 0.0
    search.run()
    return NeighbourCounts(distance[query_of], np.minimum(search.closer, MAX_CLOSER)[query_of], search.tied[query_of])


def others(released: Cloud, original: Cloud, penalties: Floats | Costs, own: Integers) -> Floats:
    """Distance of each original record from the nearest released one that is not its own; infinite if there is none.

    More costly than `count` if records are well separated: it must search as far as the nearest other record.

    >>> line = Cloud(np.array([[0.0], [1.0], [5.0]]), np.zeros((3, 0), dtype=int))
    >>> others(line, line, np.zeros(0), np.array([0, 1, 1])).tolist()
    [1.0, 1.0, 0.0]
    """
    points, queries, mine, query_of = _both(released, original, own)
    search = _NeighbourSearch(points, queries, _costs(penalties), np.full(len(mine), -1.0), mine)
    search.run()
    return search.other[query_of]


def _both(released: Cloud, original: Cloud, own: Integers) -> "tuple[CellPoints, CellPoints, Integers, Integers]":
    """Distinct points and queries, the own point of every query, and the query of every original record."""
    points, place, _ = distinct(released)
    mine = place[own]
    queries, query_of, first = distinct(original, mine)
    return points, queries, mine[first], query_of


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """Nearest released rows of the original records, one row standing for all equal records.

    `query` numbers the distinct original records and `of` gives that number for each record; `row` is a released row,
    `times` the number of records equal to it, `first` the row of each distinct original record.
    """

    of: Integers
    first: Integers
    query: Integers
    row: Integers
    times: Integers


def nearest(released: Cloud, original: Cloud, penalties: Floats | Costs) -> Pairs:
    """All nearest released records of every original record; several where they tie.

    >>> line = Cloud(np.array([[0.0], [2.0], [5.0]]), np.zeros((3, 0), dtype=int))
    >>> pairs = nearest(line, Cloud(np.array([[1.0], [4.0]]), np.zeros((2, 0), dtype=int)), np.zeros(0))
    >>> sorted(zip(pairs.query.tolist(), pairs.row.tolist()))
    [(0, 0), (0, 1), (1, 2)]
    """
    points, _, rows = distinct(released)
    queries, of, first = distinct(original)
    nobody = np.full(len(first), -1)
    search = _NeighbourSearch(points, queries, _costs(penalties), np.full(len(first), -1.0), nobody)
    search.run()
    again = _NeighbourSearch(points, queries, _costs(penalties), search.other, nobody)
    again.other, again.tied_pairs = search.other.copy(), []
    again.run()
    empty = np.zeros(0, dtype=np.int64)
    query = np.concatenate([empty, *(i for i, _ in again.tied_pairs)])
    point = np.concatenate([empty, *(j for _, j in again.tied_pairs)])
    return Pairs(of, first, query, rows[point], points.counts[point])


def _costs(penalties: Floats | Costs) -> Costs:
    return penalties if isinstance(penalties, Costs) else Costs(penalties)


def _own_distance(points: CellPoints, queries: CellPoints, mine: Integers, costs: Costs) -> Floats:
    """Distance of each query from its own point; infinite across blocks."""
    gaps = queries.coordinates - points.coordinates[mine]
    cost = costs.between(queries.codes[queries.cell], points.codes[points.cell[mine]])
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", gaps, gaps) + cost))


class _NeighbourSearch:
    """Search that counts the points closer than `distance`, and those as far, for all queries at once."""

    def __init__(self, points: CellPoints, queries: CellPoints, costs: Costs, distance: Floats, mine: Integers) -> None:
        self.points, self.queries, self.costs, self.mine = points, queries, costs, mine
        span = max((float(np.abs(side.coordinates).max(initial=0.0)) for side in (points, queries)), default=0.0)
        slack = TIE_TOLERANCE * distance + 8 * np.finfo(float).eps * span
        slack = np.where(np.isfinite(distance) & (distance >= 0), slack, 0.0)
        self.below, self.above = distance - slack, distance + slack
        self.closer, self.tied = np.zeros(len(mine), dtype=np.int64), np.zeros(len(mine), dtype=np.int64)
        self.other = np.full(len(mine), np.inf)
        self.tied_pairs: list[tuple[Integers, Integers]] | None = None
        self.trees: dict[int, Any] = {}
        self.first = FIRST_NEIGHBOURS
        self.active = self.edges = np.zeros(0, dtype=np.int64)

    def run(self) -> None:
        first, cells = self.other.copy(), (len(self.points.codes), len(self.queries.codes))
        for visited, (least, chosen) in enumerate(visits(self.costs)):
            if VISIT_COST * visited * sum(cells) > max(prod(cells), MIN_PAIRS_FOR_SWITCH):
                self._run_all(first)
                return
            reach = self._reach(slice(None))
            if not (reach >= least).any():
                return
            for pairs in meet(self.points, self.queries, self.costs, chosen, self._look(reach, least)):
                self._visit(*pairs)

    def _look(self, reach: Floats, least: float) -> Floats:
        """Reach of each cell of queries; queries that still search become active."""
        self.active = np.flatnonzero(reach >= least)
        self.edges = np.searchsorted(self.active, self.queries.start)
        return np.asarray(np.maximum.reduceat(reach, self.queries.start[:-1]))

    def _run_all(self, first: Floats) -> None:
        """Start again, pair by pair, because there are more combinations of categories than pairs."""
        self.closer[:], self.tied[:], self.other[:] = 0, 0, first
        self.tied_pairs = None if self.tied_pairs is None else []
        reach = self._look(self._reach(slice(None)), 0.0)
        for pairs in every_pair(self.points, self.queries, self.costs, reach):
            self._visit(*pairs)

    def _reach(self, rows: Any) -> Floats:
        """Squared distance up to which a query still has to search."""
        own = np.where(self.closer[rows] < MAX_CLOSER, np.maximum(self.above[rows], 0.0), 0.0)
        return np.asarray(np.maximum(own, self.other[rows]) ** 2)

    def _visit(self, query_cells: Integers, point_cells: Integers, cost: Floats) -> None:
        """Compare pairs of cells for the active queries: small ones directly, the others by trees."""
        work = np.diff(self.edges)[query_cells] * self.points.sizes[point_cells]
        few = (work <= MAX_DIRECT_PAIRS) | (self.points.sizes[point_cells] <= MAX_DIRECT_POINTS)
        small, large = np.flatnonzero(few), np.flatnonzero(~few)
        for part in parts(work[small]):
            self._compare(query_cells[small[part]], point_cells[small[part]], cost[small[part]])
        pairs = (column[large].tolist() for column in (query_cells, point_cells, cost))
        for one, two, penalty in zip(*pairs, strict=True):
            for rows in self._alike(self.active[self.edges[one] : self.edges[one + 1]], penalty):
                self._ask(rows, two, penalty)

    def _alike(self, rows: Integers, penalty: float) -> Iterator[Integers]:
        """Active queries, in parts of about equal reach if there are many: a tree takes one bound for all."""
        reach = self._reach(rows)
        rows, reach = rows[reach >= penalty], reach[reach >= penalty]
        if len(rows) < MIN_THREADED_QUERIES:
            yield rows
            return
        order = np.argsort(reach, kind="stable")
        for part in np.array_split(order, max(MIN_REACH_BINS, len(rows) // cell_pairs_by_cost.PAIRS_PER_CHUNK)):
            yield rows[np.sort(part)]

    def _compare(self, query_cells: Integers, point_cells: Integers, cost: Floats) -> None:
        """Compare all pairs of points of small cells."""
        wide, tall = self.points.sizes[point_cells], np.diff(self.edges)[query_cells]
        work = tall * wide
        pair = np.repeat(np.arange(len(work)), work)
        step = runs(np.zeros_like(work), work)
        row = self.active[self.edges[query_cells][pair] + step // wide[pair]]
        point = self.points.start[point_cells][pair] + step % wide[pair]
        penalty = cost[pair]
        live = self._reach(row) >= penalty
        row, point, penalty = row[live], point[live], penalty[live]
        gaps = self.queries.coordinates[row] - self.points.coordinates[point]
        self._add(row, point, np.sqrt(penalty + np.einsum("ij,ij->i", gaps, gaps)))

    def _ask(self, rows: Integers, cell: int, penalty: float) -> None:
        """Query the tree of a cell for more and more neighbours, until each query is settled."""
        start, size, many = self.points.start[cell], int(self.points.sizes[cell]), self.first
        while len(rows):
            many = min(many, size)
            bound = np.sqrt(max(0.0, float(self._reach(rows).max()) - penalty)) * (1 + TIE_TOLERANCE) + 1e-150
            reached, rows_in_cell = self._tree(cell).query(
                self.queries.coordinates[rows],
                k=range(1, many + 1),
                distance_upper_bound=bound,
                workers=-1 if len(rows) >= MIN_THREADED_QUERIES else 1,
            )
            distance = np.sqrt(penalty + reached**2)
            point = np.minimum(rows_in_cell, size - 1) + start
            settled = self._settled(rows, distance, point) | (many == size)
            met = settled[:, None] & np.isfinite(distance)
            self._add(np.repeat(rows, met.sum(axis=1)), point[met], distance[met])
            if many == FIRST_NEIGHBOURS and 2 * settled.sum() < len(rows):
                self.first = MAX_CLOSER + 1
            rows, many = rows[~settled], max(MAX_CLOSER + 1, many * 4)

    def _settled(self, rows: Integers, distance: Floats, point: Integers) -> Any:
        """Whether no point beyond those returned could matter."""
        last, below = distance[:, -1], self.below[rows]
        closer = self.closer[rows] + np.where(distance < below[:, None], self.points.counts[point], 0).sum(axis=1)
        return (last > self.above[rows]) | (closer >= MAX_CLOSER) | ((closer >= EXACT_TIE_RANKS) & (last >= below))

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
        if self.tied_pairs is not None:
            self.tied_pairs.append((row[tied], point[tied]))
