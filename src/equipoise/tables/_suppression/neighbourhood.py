"""Neighbourhood of a cell in a large table: the cells that a cheap move of it is likely to need.

Two kinds of cells are taken. The nearest: a step goes from a cell through one of its relations to another and costs
that cell, a few steps are looked at and the nearest cells kept. And a sub-grid: the cheapest cells of each relation of
the cell, then cells that two of the relations touched so far share, then three: in a d-way table the product of a few
codes in each dimension, so that a box of 2^d corners is always inside.

Nothing here is of the size of the table, so that a neighbourhood costs the same in a table of a million cells.
"""

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers

if TYPE_CHECKING:
    from equipoise.tables._suppression.problem import SuppressionTable

MIN_LIVING_CELLS = 200, 900
"""Cells of a neighbourhood that could move, in up to four dimensions and in more: there most are dead ends."""
MAX_MEMBERS, MAX_FRESH_SHARE = 1_000, 0.05
"""Members of a relation that are looked at, the cheapest; share of more suppressed cells after which these are found
anew."""
STEPS = 5
"""Steps from relation to relation that are looked at."""


class Neighbourhood:
    """Cells near a cell; `usable` ones may be suppressed, at `cost`."""

    def __init__(self, table: "SuppressionTable", usable: Booleans, cost: Floats) -> None:
        self.table, self.usable, self.cost = table, usable, cost
        matrix = table.additive.matrix.tocsr()
        self.members, self.relations = Lists(matrix), Lists(matrix.tocsc())
        self.step = float(np.median(cost[usable])) * 0.1 if usable.any() else 1.0
        self.most = int(np.diff(self.relations.starts).max(initial=0))
        dimensions = np.median(np.diff(self.relations.starts)) if table.cells else 0
        self.enough = MIN_LIVING_CELLS[int(dimensions > 4)]
        self.room = np.maximum(table.up, table.down)
        self.far = np.full(table.cells, np.inf)
        self.far_relation = np.full(matrix.shape[0], np.inf)
        self.touched = np.zeros(matrix.shape[0], dtype=np.bool_)
        self.longest = int(np.diff(self.members.starts).max(initial=0))
        self.short: Lists | None = None
        self.suppressed = 0

    def around(self, cell: int, level: float, free: Booleans, size: int) -> Integers:
        """Some `size` cells, sorted, the cell among them: half of them the nearest, half a sub-grid.

        With some suppressed cells that many of their relations touch: these cost nothing.
        """
        near = self.nearest(cell, level, free, size // 2)
        cells = np.union1d(near, self.grid(cell, level, free, size - size // 2))
        members, counts = self._crossing(cells, free)
        use = free[members] & self.usable[members]
        members, counts = members[use], counts[use]
        order = np.argsort(-counts, kind="stable")[:size]
        return np.union1d(cells, members[order[counts[order] >= 2]])

    def nearest(self, cell: int, level: float, free: Booleans, size: int) -> Integers:
        """The `size` nearest usable cells, sorted, the cell among them."""
        far, far_relation = self.far, self.far_relation
        reached, frontier, touched = np.array([cell]), np.array([cell]), [np.array([cell])]
        relations_touched, farthest = [], np.inf
        far[cell] = 0.0
        for _ in range(STEPS):
            relations, counts = self.relations.of(frontier)
            distance = np.repeat(far[frontier], counts)
            better = distance < far_relation[relations]
            relations, distance = relations[better], distance[better]
            np.minimum.at(far_relation, relations, distance)
            relations = np.unique(relations)
            relations_touched.append(relations)
            members, counts = self._short(free).of(relations)
            distance = np.repeat(far_relation[relations], counts) + self._steps(members, level, free)
            better = (distance < far[members]) & (distance <= farthest)
            members = members[better]
            np.minimum.at(far, members, distance[better])
            changed = np.unique(members)
            touched.append(changed)
            reached = np.union1d(reached, changed)
            if len(reached) > size:
                reached = reached[np.argpartition(far[reached], size - 1)[:size]]
                farthest = float(far[reached].max())
            frontier = changed[far[changed] <= far[reached].max()]
            if not len(frontier):
                break
        for cells in touched:
            far[cells] = np.inf
        for relations in relations_touched:
            far_relation[relations] = np.inf
        return np.sort(np.append(reached, cell)) if cell not in reached else np.sort(reached)

    def grid(self, cell: int, level: float, free: Booleans, size: int) -> Integers:
        """The product of the cheapest cells in each relation of the cell, of about `size` cells, sorted."""
        relations, _ = self.relations.of(np.array([cell]))
        lines = []
        width = max(2, round(size ** (1 / max(len(relations), 1))) - 1)
        for relation in relations.tolist():
            members = self._short(free).row(relation)
            members = members[self.usable[members] & (members != cell)]
            order = np.argsort(self._steps(members, level, free), kind="stable")
            lines.append(members[order[:width]])
        part = np.unique(np.concatenate([np.array([cell]), *lines]))
        for depth in range(2, self.most + 1):
            shared, counts = self._crossing(part, free)
            corner = shared[(counts >= depth) & self.usable[shared]]
            larger = np.union1d(part, corner)
            if len(larger) == len(part) or len(larger) > 2 * size:
                break
            part = larger
        return part

    def _short(self, free: Booleans) -> "Lists":
        """The members of each relation; of a long one the cheapest, found anew when many more are suppressed."""
        if self.longest <= MAX_MEMBERS:
            return self.members
        if self.short is None or int(free.sum()) > self.suppressed * (1 + MAX_FRESH_SHARE):
            self.suppressed = int(free.sum())
            counts = np.diff(self.members.starts)
            row, price = np.repeat(np.arange(len(counts)), counts), np.where(free | ~self.usable, 0.0, self.cost)
            price = np.where(self.usable, price, np.inf)[self.members.indices]
            order = np.lexsort((price, row))
            self.short = self.members.some(order[np.arange(len(order)) - self.members.starts[row] < MAX_MEMBERS], row)
        return self.short

    def _crossing(self, cells: Integers, free: Booleans) -> tuple[Integers, Integers]:
        """The members of all relations of some cells, and in how many of these each is."""
        touched = np.unique(self.relations.of(cells)[0])
        members = np.unique(self._short(free).of(touched)[0])
        self.touched[touched] = True
        relations, counts = self.relations.of(members)
        many = np.add.reduceat(self.touched[relations].astype(np.int64), np.cumsum(counts) - counts)
        self.touched[touched] = False
        return members, many

    def _steps(self, cells: Integers, level: float, free: Booleans) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            price = self.cost[cells] * np.maximum(1.0, level / self.room[cells])
        steps = np.where(free[cells], 0.0, price) + self.step
        return np.where(self.usable[cells], steps, np.inf)


class Lists:
    """The lists of column indices of the rows of a sparse matrix (or the other way round)."""

    def __init__(self, matrix: Any) -> None:
        self.starts, self.indices, self.data = matrix.indptr.astype(np.int64), matrix.indices, matrix.data

    def some(self, places: Integers, row: Integers) -> "Lists":
        """The same with some entries alone, given by their places and rows."""
        fewer = copy(self)
        counts = np.bincount(row[places], minlength=len(self.starts) - 1)
        fewer.starts = np.concatenate([[0], np.cumsum(counts)])
        fewer.indices, fewer.data = self.indices[places], self.data[places]
        return fewer

    def row(self, number: int) -> Integers:
        return np.asarray(self.indices[self.starts[number] : self.starts[number + 1]])

    def of(self, rows: Integers) -> tuple[Integers, Integers]:
        """The lists of some rows one after the other, and the length of each."""
        places, counts = self.places(rows)
        return self.indices[places], counts

    def places(self, rows: Integers) -> tuple[Integers, Integers]:
        """Where the entries of some rows are, and how many each has."""
        starts = self.starts[rows]
        counts = self.starts[rows + 1] - starts
        before = np.cumsum(counts) - counts
        return np.repeat(starts - before, counts) + np.arange(counts.sum()), counts


def living(matrix: Any) -> Booleans:
    """Columns that are not alone in any row, once those that are have gone. O(entries) for each round of leaving."""
    entries = matrix.tocoo()
    return living_entries(entries.row, entries.col, *matrix.shape)


def living_entries(rows: Integers, columns: Integers, relations: int, cells: int) -> Booleans:
    """The same for entries given by their rows and columns."""
    alive = np.ones(cells, dtype=np.bool_)
    while True:
        count = np.bincount(rows, minlength=relations)
        lone = columns[count[rows] == 1]
        if not len(lone):
            return alive
        alive[lone] = False
        live = alive[columns]
        rows, columns = rows[live], columns[live]
