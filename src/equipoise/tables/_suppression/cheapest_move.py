"""Cheapest move of a cell: another feasible table that changes the least costly cells.

Minimise sum of w_j |y_j| subject to matrix @ y = 0, y_k = its level and the rooms of all cells; w_j is nothing for
cells that are suppressed anyway, else cost_j / min(level, room_j). The cells that move must be suppressed. The charge
is for the act, not for its size, so the program is solved once more with w_j = cost_j / |y_j| of the first answer.

A large table is not looked at whole: the cells nearest to k, by the cost of the way through relations, make a small
program. A move there is a move of the whole table; when there is none, the part is widened, up to the whole table.

Source: Kelly, Golden and Assad (1992); Fischetti and Salazar-Gonzalez (2000), section 4, the heuristic.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.errors import EngineError
from equipoise.ground.solver import Program, Solution
from equipoise.tables._suppression.problem import MOVE_TOLERANCE, SHORTFALL, SuppressionTable

MAX_WHOLE_ENTRIES = 200_000
"""Cells times relations up to which a program holds the whole table, and is kept."""
PART_CELLS = (400, 3_000)
"""Cells of the parts looked at first in larger tables."""
MAX_DIRECT_CELLS = 20_000
"""Cells of a table up to which the whole comes right after the first part."""
MAX_ROOM = 1e6
"""Rooms beyond this many levels are cut: no move needs them."""
RELATION_TOLERANCE = 1e-6
"""Share of its level by which a move may miss a relation."""


@dataclass(frozen=True, eq=False, repr=False)
class TableMove:
    """Another possible table: `cells` (sorted) change by `by`; it may be taken `forth` times, `back` times negated."""

    cells: Integers
    by: Floats
    forth: float
    back: float

    @classmethod
    def of(cls, table: SuppressionTable, cells: Integers, by: Floats) -> "TableMove":
        return cls.within(cells, by, table.up[cells], table.down[cells])

    @classmethod
    def within(cls, cells: Integers, by: Floats, up: Floats, down: Floats) -> "TableMove":
        """A move of cells that have so much room; a hair beyond it is the solver's rounding."""
        size = np.abs(by)
        forth = float(np.min(np.where(by > 0, up, down) / size, initial=np.inf))
        back = float(np.min(np.where(by > 0, down, up) / size, initial=np.inf))
        return cls(cells, by, 1.0 if 1 - RELATION_TOLERANCE <= forth < 1 else forth, back)

    def reach(self) -> tuple[Floats, Floats]:
        """How far each of its cells gets upwards and downwards by this move."""
        forth, back = self.by * self.forth, self.by * self.back
        return np.maximum(forth, -back), np.maximum(-forth, back)

    def far(self, cell: int, sign: int) -> float:
        """How far one of its cells gets in a direction by this move; a hair's breadth is the solver's rounding."""
        reach = self.reach()[0 if sign > 0 else 1][np.searchsorted(self.cells, cell)]
        return float(reach) * (1 + SHORTFALL)

    def scaled(self, cell: int, sign: int, level: float) -> Floats:
        """The change of each of its cells when `cell` moves by `level` in a direction."""
        at = self.by[np.searchsorted(self.cells, cell)]
        return self.by * (sign * level / at)


@dataclass(eq=False, repr=False)
class Finder:
    """Cheapest moves in one table; `usable` cells may be suppressed, at `cost`."""

    table: SuppressionTable
    usable: Booleans
    cost: Floats
    levels: Floats

    def __post_init__(self) -> None:
        self.usable = self.usable & self.table.movable
        self.kept: _Part | None = None
        self.near: dict[int, Integers] = {}
        self.ways: Ways | None = None
        self.programs = self.work = 0

    def cheapest(self, cell: int, sign: int, level: float, free: Booleans, still: Integers) -> TableMove | None:
        """The cheapest move of a cell by its level, with the cells of `still` unmoved; None when there is none."""
        if level > (self.table.up if sign > 0 else self.table.down)[cell] * (1 + SHORTFALL) or cell in still:
            return None
        for part in self._parts(cell, level, free, still):
            move = part.cheapest(cell, sign, level, free, still)
            self.programs, self.work = self.programs + part.solved, self.work + part.program.work
            part.solved = part.program.work = 0
            if move is not None:
                return move
        return None

    def farthest(self, cell: int, sign: int, level: float, still: Integers) -> float:
        """How far a cell can move, up to its level, when everything that may be is suppressed but `still`."""
        part = self._whole()
        return 0.0 if part is None or cell in still else part.farthest(cell, sign, level, still)

    def _whole(self) -> "_Part | None":
        if self.kept is None:
            self.kept = _Part.of(self, np.flatnonzero(self.usable), float(self.levels.min()))
        return self.kept

    def _parts(self, cell: int, level: float, free: Booleans, still: Integers) -> Iterator["_Part"]:
        if self.table.cells * self.table.additive.base.shape[0] > MAX_WHOLE_ENTRIES:
            for number, size in enumerate(PART_CELLS if self.table.cells > MAX_DIRECT_CELLS else PART_CELLS[:1]):
                cells = self._around(cell, level, free, size, number)
                part = _Part.of(self, cells[np.isin(cells, still, invert=True)], level, cell)
                if part is not None:
                    yield part
        whole = self._whole()
        if whole is not None:
            yield whole

    def _around(self, cell: int, level: float, free: Booleans, size: int, number: int) -> Integers:
        """The nearest cells, remembered where they are few."""
        if number == 0 and cell in self.near:
            return self.near[cell]
        if self.ways is None:
            self.ways = Ways(self.table, self.usable, self.cost)
        cells = self.ways.nearest(cell, level, free, size)
        if number == 0:
            self.near[cell] = cells
        return cells


class _Part:
    """A program over some cells, each with a column for its rise and one for its fall, in units of `unit`."""

    def __init__(self, finder: Finder, cells: Integers, matrix: Any, unit: float) -> None:
        import scipy.sparse as sparse

        self.finder, self.table, self.cells, self.unit, self.solved = finder, finder.table, cells, unit, 0
        widest = MAX_ROOM * max(1.0, float(finder.levels.max()) / unit)
        self.up, self.down = (np.minimum(room[cells] / unit, widest) for room in (finder.table.up, finder.table.down))
        self.matrix = matrix
        count = 2 * len(cells)
        rooms = np.concatenate([self.up, self.down])
        self.program = Program(sparse.hstack([matrix, -matrix]), np.zeros(count), np.zeros(count), rooms)

    @classmethod
    def of(cls, finder: Finder, cells: Integers, unit: float, cell: int | None = None) -> "_Part | None":
        """The part without its dead ends: cells that some relation ties to nothing else. None if `cell` is one."""
        matrix = finder.table.additive.by_cell[:, cells]
        alive = living(matrix)
        if cell is not None and not alive[np.searchsorted(cells, cell)]:
            return None
        matrix = matrix[:, np.flatnonzero(alive)].tocsr()
        rows = np.flatnonzero(np.diff(matrix.indptr))
        return cls(finder, cells[alive], matrix[rows], unit)

    def cheapest(self, cell: int, sign: int, level: float, free: Booleans, still: Integers) -> TableMove | None:
        spot = int(np.searchsorted(self.cells, cell))
        if spot >= len(self.cells) or self.cells[spot] != cell:
            return None
        still_columns = np.searchsorted(self.cells, still[np.isin(still, self.cells)])
        self._hold(spot, sign, level / self.unit, still_columns)
        try:
            return self._twice(free[self.cells], cell, level)
        finally:
            self._loosen(np.append(still_columns, spot))

    def farthest(self, cell: int, sign: int, level: float, still: Integers) -> float:
        spot = int(np.searchsorted(self.cells, cell))
        if spot >= len(self.cells) or self.cells[spot] != cell:
            return 0.0
        still_columns = np.searchsorted(self.cells, still[np.isin(still, self.cells)])
        self._hold(spot, sign, level / self.unit, still_columns)
        column = np.array([spot if sign > 0 else spot + len(self.cells)])
        self.program.bound(column, np.zeros(1), np.array([level / self.unit]))
        self.program.restart()
        charges = np.zeros(2 * len(self.cells))
        charges[column] = -1.0
        answer = self._solve(charges)
        self._loosen(np.append(still_columns, spot))
        return 0.0 if answer is None else float(answer.values[column[0]]) * self.unit

    def _twice(self, free: Booleans, cell: int, level: float) -> TableMove | None:
        amount, cost = level / self.unit, self.finder.cost[self.cells]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            charges = [np.where(free, 0.0, cost / np.minimum(amount, room)) for room in (self.up, self.down)]
        self.program.restart()
        first = self._solve(np.nan_to_num(np.concatenate(charges), nan=0.0, posinf=0.0))
        if first is None:
            return None
        distance = np.abs(self._change(first))
        price = float(cost[~free & (distance > MOVE_TOLERANCE * amount)].sum())
        if price == 0.0:
            return self._move(first, cell, level)
        again = np.where(free, 0.0, cost / (distance + 1e-3 * amount))
        second = self._solve(np.concatenate([again, again]))
        if second is None:
            return self._move(first, cell, level)
        change = np.abs(self._change(second))
        better = float(cost[~free & (change > MOVE_TOLERANCE * amount)].sum()) < price
        return self._move(second if better else first, cell, level)

    def _solve(self, charges: Floats) -> Solution | None:
        self.solved += 1
        self.program.charge(np.arange(len(charges)), charges)
        return self.program.solve()

    def _change(self, answer: Solution) -> Floats:
        rise, fall = np.split(answer.values, 2)
        return rise - fall

    def _move(self, answer: Solution, cell: int, level: float) -> TableMove:
        change = self._change(answer)
        change[np.abs(change) <= MOVE_TOLERANCE * level / self.unit] = 0.0
        if np.abs(self.matrix @ change).max(initial=0.0) > RELATION_TOLERANCE * level / self.unit:
            raise EngineError(f"The solver's answer for cell {cell} does not add up.")
        spot = int(np.searchsorted(self.cells, cell))
        change[spot] = np.sign(change[spot]) * level / self.unit
        cells = np.flatnonzero(change)
        return TableMove.of(self.table, self.cells[cells], change[cells] * self.unit)

    def _hold(self, spot: int, sign: int, amount: float, still: Integers) -> None:
        count = len(self.cells)
        nothing = np.zeros(2 * len(still))
        self.program.bound(np.concatenate([still, still + count]), nothing, nothing)
        exact = np.array([amount, 0.0]) if sign > 0 else np.array([0.0, amount])
        self.program.bound(np.array([spot, spot + count]), exact, exact)

    def _loosen(self, spots: Integers) -> None:
        rooms = np.concatenate([self.up[spots], self.down[spots]])
        self.program.bound(np.concatenate([spots, spots + len(self.cells)]), np.zeros(2 * len(spots)), rooms)


def living(matrix: Any) -> Booleans:
    """Columns that are not alone in any row, once those that are have gone. O(entries) for each round of leaving."""
    entries = matrix.tocoo()
    rows, columns = entries.row, entries.col
    alive = np.ones(matrix.shape[1], dtype=np.bool_)
    while True:
        count = np.bincount(rows, minlength=matrix.shape[0])
        lone = columns[count[rows] == 1]
        if not len(lone):
            return alive
        alive[lone] = False
        live = alive[columns]
        rows, columns = rows[live], columns[live]


class Ways:
    """Distances between cells: a step goes from a cell through one of its relations to another, and costs that."""

    def __init__(self, table: SuppressionTable, usable: Booleans, cost: Floats) -> None:
        import scipy.sparse as sparse

        matrix = table.additive.matrix
        self.table, self.usable, self.cost = table, usable, cost
        self.graph = sparse.csr_array(sparse.block_array([[None, abs(matrix.T)], [abs(matrix), None]]))
        self.entries = slice(int(self.graph.indptr[table.cells]), None)
        self.graph.data[: self.entries.start] = 0.0
        self.step = float(np.median(cost[usable])) * 0.1 if usable.any() else 1.0
        self.limit = 20 * self.step

    def nearest(self, cell: int, level: float, free: Booleans, size: int) -> Integers:
        """The `size` nearest usable cells, sorted, the cell among them. One search over the parts reached."""
        from scipy.sparse.csgraph import dijkstra

        room = np.maximum(self.table.up, self.table.down)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(free, 0.0, self.cost * np.maximum(1.0, level / room)) + self.step
        step[~self.usable] = np.inf
        self.graph.data[self.entries] = step[self.graph.indices[self.entries]]
        while True:
            far = dijkstra(self.graph, indices=cell, limit=self.limit)[: self.table.cells]
            reached = np.flatnonzero(np.isfinite(far))
            if len(reached) >= size or self.limit > 1e300 or len(reached) == self.usable.sum():
                break
            self.limit *= 2
        if len(reached) > 8 * size:
            self.limit /= 2
        return np.sort(reached[np.lexsort((reached, far[reached]))[:size]])
