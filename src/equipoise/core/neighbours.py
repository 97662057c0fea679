"""Nearest neighbours of one file among the records of another, numbers and categories together, exactly.

The squared distance of two records is that of their coordinates plus a penalty for every category they differ in. Equal
records are one point with a count, so that a file of categories is as small as its cells. Points are held by cell, the
combination of their categories; a cell has a tree of its coordinates when it is large. Cells are visited by the set of
categories in which they differ from the asking cell, the cheapest set first, found by joining on the others; what
lies farther than the answer so far is never visited. No n x n matrix: the memory needed is that of the files.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from equipoise.core.codes import Floats, Integers, group

TIE = 1e-9
"""Distances that differ by no more than this share of themselves are equal."""
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
CHUNK = 1 << 18
"""Pairs and questions dealt with at a time."""
THREADS = 1 << 12
"""With this many questions to a tree all cores are used."""
BINS = 16
"""And they are asked in at least this many parts, by how far they look."""


@dataclass(frozen=True, eq=False, repr=False)
class Cloud:
    """The records of a file: a matrix of coordinates and one of category codes, coded alike in both files."""

    coordinates: Floats
    codes: Integers

    def __len__(self) -> int:
        return len(self.coordinates)


@dataclass(frozen=True, eq=False, repr=False)
class Found:
    """For each record: how far its own is, how many are `closer` (11: more than 10), and how many are `tied` with it,
    itself among them (exact where fewer than three are closer).
    """

    distance: Floats
    closer: Integers
    tied: Integers


def count(released: Cloud, original: Cloud, penalties: Floats, own: Integers) -> Found:
    """Where the own record of every original one stands among all released ones, from the original's point of view.

    `own` is its row in the released file. A category with an infinite penalty must agree (a block). Cost: about
    O(n log n) in few dimensions; the number of cells that differ in few categories enters where there are many.

    >>> line = Cloud(np.array([[0.0], [1.0], [5.0]]), np.zeros((3, 0), dtype=int))
    >>> found = count(line, line, np.zeros(0), np.array([0, 1, 1]))
    >>> found.closer.tolist(), found.tied.tolist()
    ([0, 0, 1], [1, 1, 1])
    """
    points, queries, mine, asked = _both(released, original, own)
    distance = _apart(points, queries, mine, penalties)
    search = _Search(points, queries, penalties, distance, mine)
    search.other[:] = 0.0
    search.run()
    return Found(distance[asked], np.minimum(search.closer, MOST)[asked], search.tied[asked])


def others(released: Cloud, original: Cloud, penalties: Floats, own: Integers) -> Floats:
    """How far the nearest released record is from each original one, its own left out; infinite if there is none.

    Dearer than `count` where records are well separated: it must look as far as the nearest stranger.

    >>> line = Cloud(np.array([[0.0], [1.0], [5.0]]), np.zeros((3, 0), dtype=int))
    >>> others(line, line, np.zeros(0), np.array([0, 1, 1])).tolist()
    [1.0, 1.0, 0.0]
    """
    points, queries, mine, asked = _both(released, original, own)
    search = _Search(points, queries, penalties, np.full(len(mine), -1.0), mine)
    search.run()
    return search.other[asked]


def _both(released: Cloud, original: Cloud, own: Integers) -> "tuple[_Side, _Side, Integers, Integers]":
    """Points, queries, the own point of every query, and the query of every original record."""
    points, place, _ = _points(released)
    mine = place[own]
    queries, asked, first = _points(original, mine)
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


def nearest(released: Cloud, original: Cloud, penalties: Floats) -> Pairs:
    """All nearest released records of every original record; several where they tie.

    >>> line = Cloud(np.array([[0.0], [2.0], [5.0]]), np.zeros((3, 0), dtype=int))
    >>> found = nearest(line, Cloud(np.array([[1.0], [4.0]]), np.zeros((2, 0), dtype=int)), np.zeros(0))
    >>> sorted(zip(found.query.tolist(), found.row.tolist()))
    [(0, 0), (0, 1), (1, 2)]
    """
    points, _, rows = _points(released)
    queries, of, first = _points(original)
    nobody = np.full(len(first), -1)
    search = _Search(points, queries, penalties, np.full(len(first), -1.0), nobody)
    search.run()
    again = _Search(points, queries, penalties, search.other, nobody)
    again.other, again.kept = search.other.copy(), []
    again.run()
    empty = np.zeros(0, dtype=np.int64)
    query = np.concatenate([empty, *(i for i, _ in again.kept)])
    point = np.concatenate([empty, *(j for _, j in again.kept)])
    return Pairs(of, first, query, rows[point], points.counts[point])


@dataclass(frozen=True, eq=False, repr=False)
class _Side:
    """Distinct points in the order of their cells; `start` has the first of each cell and the end."""

    coordinates: Floats
    counts: Integers
    start: Integers
    codes: Integers

    @cached_property
    def sizes(self) -> Integers:
        return np.diff(self.start)

    @cached_property
    def low(self) -> Floats:
        return np.minimum.reduceat(self.coordinates, self.start[:-1], axis=0)

    @cached_property
    def high(self) -> Floats:
        return np.maximum.reduceat(self.coordinates, self.start[:-1], axis=0)

    @cached_property
    def cell(self) -> Integers:
        """The cell of every point."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def _points(cloud: Cloud, mark: Integers | None = None) -> tuple[_Side, Integers, Integers]:
    """The distinct points (told apart by `mark` as well), the point of every record, and a record of every point."""
    kinds, rows, counts = _distinct(cloud, mark)
    cells, _ = _cells(cloud.codes[rows])
    order = np.argsort(cells, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    rows, ordered = rows[order], cells[order]
    start = np.append(np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])), len(rows))
    side = _Side(np.ascontiguousarray(cloud.coordinates[rows]), counts[order], start, cloud.codes[rows[start[:-1]]])
    return side, place[kinds], rows


def _distinct(cloud: Cloud, mark: Integers | None) -> tuple[Integers, Integers, Integers]:
    """The kind of every record, the first row and the number of records of each kind. One pass of hashing."""
    columns = [*cloud.coordinates.T, *cloud.codes.T, *(() if mark is None else (mark,))]
    if not columns:
        return np.zeros(len(cloud), dtype=np.int64), np.zeros(1, dtype=np.int64), np.array([len(cloud)])
    table = pl.DataFrame({str(i): np.ascontiguousarray(column) for i, column in enumerate(columns)})
    rows = pl.int_range(pl.len(), dtype=pl.Int64)
    grouped = table.with_columns(rows.alias("row")).group_by(table.columns).agg("row").sort(pl.col("row").list.first())
    counts = grouped["row"].list.len().cast(pl.Int64).to_numpy()
    kinds = np.empty(len(cloud), dtype=np.int64)
    kinds[grouped["row"].explode().to_numpy()] = np.repeat(np.arange(len(counts)), counts)
    return kinds, grouped["row"].list.first().to_numpy(), counts


def _cells(codes: Integers) -> tuple[Integers, Integers]:
    """Rows numbered by their codes, and where each number is first met."""
    if not codes.shape[1]:
        return np.zeros(len(codes), dtype=np.int64), np.zeros(1, dtype=np.int64)
    return group(list(codes.T), [int(column.max(initial=0)) + 1 for column in codes.T])


def _apart(points: _Side, queries: _Side, mine: Integers, penalties: Floats) -> Floats:
    """The distance of each query from its own point; infinite across blocks."""
    gaps = queries.coordinates - points.coordinates[mine]
    differ = queries.codes[queries.cell] != points.codes[points.cell[mine]]
    cost = np.where(differ, penalties, 0.0).sum(axis=1)
    found: Floats = np.sqrt(np.einsum("ij,ij->i", gaps, gaps) + cost)
    return found


class _Search:
    """Counts what is closer than `distance`, and what is as far, for all queries at once."""

    def __init__(self, points: _Side, queries: _Side, penalties: Floats, distance: Floats, mine: Integers) -> None:
        self.points, self.queries, self.penalties, self.mine = points, queries, penalties, mine
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
        for penalty, differing in _patterns(self.penalties):
            reach = self._reach(slice(None))
            if not (reach >= penalty).any():
                return
            self.active = np.flatnonzero(reach >= penalty)
            self.edges = np.searchsorted(self.active, self.queries.start)
            for asking, asked in self._meet(differing, penalty, reach):
                self._visit(asking, asked, penalty)

    def _reach(self, rows: Any) -> Floats:
        """The squared distance up to which a query still has to look."""
        own = np.where(self.closer[rows] < MOST, np.maximum(self.above[rows], 0.0), 0.0)
        found: Floats = np.maximum(own, self.other[rows]) ** 2
        return found

    def _meet(self, differing: tuple[int, ...], penalty: float, reach: Floats) -> Iterator[tuple[Integers, Integers]]:
        """Pairs of cells that differ in exactly these categories and are near enough, the nearest first."""
        reach = np.maximum.reduceat(reach, self.queries.start[:-1])
        asking = np.flatnonzero(reach >= penalty)
        low, high, order = self._join(asking, differing)
        for part in _parts(high - low):
            one = np.repeat(asking[part], (high - low)[part])
            two = order[_runs(low[part], high[part])]
            for place in differing:
                differ = self.queries.codes[one, place] != self.points.codes[two, place]
                one, two = one[differ], two[differ]
            gap = penalty + self._gap(one, two)
            near = np.flatnonzero(gap * (1 - TIE) <= reach[one])
            near = near[np.argsort(gap[near], kind="stable")]
            yield one[near], two[near]

    def _join(self, asking: Integers, differing: tuple[int, ...]) -> tuple[Integers, Integers, Integers]:
        """For each asking cell the run, in the order given, of the cells that agree in all other categories."""
        agreed = [place for place in range(len(self.penalties)) if place not in differing]
        both = np.concatenate([self.points.codes[:, agreed], self.queries.codes[asking][:, agreed]])
        ids, _ = _cells(both)
        there, here = ids[: len(self.points.codes)], ids[len(self.points.codes) :]
        order = np.argsort(there, kind="stable")
        low, high = (np.searchsorted(there[order], here, side=side) for side in ("left", "right"))
        return low, high, order

    def _gap(self, one: Integers, two: Integers) -> Floats:
        """The squared distance of the boxes around the points of two cells."""
        apart = np.maximum(self.points.low[two] - self.queries.high[one], self.queries.low[one] - self.points.high[two])
        apart = np.maximum(apart, 0.0)
        found: Floats = np.einsum("ij,ij->i", apart, apart)
        return found

    def _visit(self, asking: Integers, asked: Integers, penalty: float) -> None:
        """Compare pairs of cells: the small ones at once, the others by the trees, with the queries still active."""
        work = np.diff(self.edges)[asking] * self.points.sizes[asked]
        few = (work <= SMALL) | (self.points.sizes[asked] <= FEW)
        small, large = np.flatnonzero(few), np.flatnonzero(~few)
        for part in _parts(work[small]):
            self._compare(asking[small[part]], asked[small[part]], penalty)
        for one, two in zip(asking[large].tolist(), asked[large].tolist(), strict=True):
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

    def _compare(self, asking: Integers, asked: Integers, penalty: float) -> None:
        """All pairs of points of small cells."""
        wide, tall = self.points.sizes[asked], np.diff(self.edges)[asking]
        work = tall * wide
        pair = np.repeat(np.arange(len(work)), work)
        step = np.arange(len(pair)) - np.repeat(np.cumsum(work) - work, work)
        row = self.active[self.edges[asking][pair] + step // wide[pair]]
        point = self.points.start[asked][pair] + step % wide[pair]
        live = self._reach(row) >= penalty
        row, point = row[live], point[live]
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
        times, size = self.points.counts[point], len(self.mine)
        closer, tied = distance < self.below[row], (distance >= self.below[row]) & (distance <= self.above[row])
        self.closer += np.bincount(row[closer], weights=times[closer], minlength=size).astype(np.int64)
        self.tied += np.bincount(row[tied], weights=times[tied], minlength=size).astype(np.int64)
        others = (self.mine[row] != point) | (times > 1)
        np.minimum.at(self.other, row[others], distance[others])
        if self.kept is not None:
            self.kept.append((row[tied], point[tied]))


def _patterns(penalties: Floats) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Every set of categories that may differ with its penalty, the cheapest first, made as they are asked for."""
    free = [int(place) for place in np.argsort(penalties, kind="stable") if np.isfinite(penalties[place])]
    yield 0.0, ()
    waiting: list[tuple[float, tuple[int, ...]]] = [(float(penalties[free[0]]), (0,))] if free else []
    while waiting:
        cost, chosen = heapq.heappop(waiting)
        yield cost, tuple(free[i] for i in chosen)
        last = chosen[-1]
        if last + 1 < len(free):
            more = float(penalties[free[last + 1]])
            heapq.heappush(waiting, (cost + more, (*chosen, last + 1)))
            heapq.heappush(waiting, (cost - float(penalties[free[last]]) + more, (*chosen[:-1], last + 1)))


def _parts(work: Integers) -> Iterator[slice]:
    """Runs of about `CHUNK` units of work each."""
    edges: Sequence[int] = np.searchsorted(np.cumsum(work), np.arange(CHUNK, int(work.sum()) + CHUNK, CHUNK)).tolist()
    start = 0
    for edge in edges:
        stop = min(edge + 1, len(work))
        if stop > start:
            yield slice(start, stop)
            start = stop


def _runs(low: Integers, high: Integers) -> Integers:
    """The numbers low to high - 1 of every run, one after the other."""
    sizes = high - low
    found: Integers = np.repeat(low - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))
    return found
