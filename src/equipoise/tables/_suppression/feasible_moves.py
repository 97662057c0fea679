"""Feasible moves of suppressed cells under what somebody knows beyond the published table, by linear programming.

To an attacker every table a + y is possible with y = 0 on published cells, matrix @ y = 0 and -down <= y <= up. Who
knows some cells holds these still; who knows that a cell is at least so large has less room below. Suppressed cells
fall apart into components; each has one program, which keeps its last basis.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.errors import EngineError
from equipoise.ground.solver import Program, Solution
from equipoise.tables._suppression.cheapest_move import MAX_ROOM, MIN_REDUCED_RELATIONS, RELATION_TOLERANCE, TableMove
from equipoise.tables._suppression.neighbourhood import Lists, living
from equipoise.tables._suppression.problem import MOVE_TOLERANCE, SHORTFALL, SuppressionTable
from equipoise.tables._suppression.spanned_moves import ELIMINATION_WORK, MAX_FREEDOM, SpannedProgram, spanning_moves

NO_CELLS = np.zeros(0, dtype=np.int64)
MAX_NEAR_CELLS = 250
"""Suppressed cells near a cell that are looked at before all that hang together with it."""
MIN_LARGE_CELLS = 1_500
"""Cells of a component from which on that is done: a smaller one is as quick as a whole, from the last basis."""
WHOLE_TOLERANCE = 1e-6
"""How far from a whole number a change of a count may be by the solver's rounding."""


def components(table: SuppressionTable, suppressed: Booleans, levels: Floats, shy: Booleans) -> "Iterator[Component]":
    """The suppressed cells that can move, by what hangs together; `shy` cells are moved only where they must be."""
    cells = np.flatnonzero(suppressed & table.movable)
    matrix = table.additive.by_cell[:, cells]
    alive = living(matrix)
    cells, matrix = cells[alive], matrix[:, np.flatnonzero(alive)]
    asked = levels[cells] > 0
    for columns in hanging_together(matrix):
        if asked[columns].any():
            yield Component(table, cells[columns], matrix[:, columns], shy[cells[columns]])


def hanging_together(matrix: Any) -> list[Integers]:
    """The columns of a matrix in groups that share no row, each sorted. O(entries)."""
    import scipy.sparse as sparse
    from scipy.sparse.csgraph import connected_components

    if not matrix.shape[1]:
        return []
    links = sparse.csr_array(sparse.bmat([[None, matrix.T], [matrix, None]]))
    label = connected_components(links, directed=False)[1][: matrix.shape[1]]
    order = np.argsort(label, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(label[order])) + 1)


class Component:
    """Suppressed cells that hang together: a column for the rise and the fall of each, in units of the level."""

    def __init__(self, table: SuppressionTable, cells: Integers, matrix: Any, shy: Booleans) -> None:
        rows = matrix.tocsr()
        self.table, self.cells, self.shy = table, cells, shy
        self.matrix = rows[np.flatnonzero(np.diff(rows.indptr))]
        self.up, self.down, self.unit = table.up[cells], table.down[cells], 1.0
        self.kept: Program | None = None
        self.lists: tuple[Lists, Lists] | None = None
        self.programs = self.work = 0

    def spots(self, cells: Integers) -> Integers:
        """Where cells are among those of the component; others are left out."""
        spots = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
        return spots[self.cells[spots] == cells]

    def move(
        self, cell: int, sign: int, level: float, still: Integers = NO_CELLS, floor: Floats | None = None, *,
        whole: bool = False, nearby: bool = False,
    ) -> tuple[float, TableMove | None]:  # fmt: skip
        """How far a cell gets in a direction, up to its level, and a move that takes it there.

        `still` cells do not move; `floor` says how far each cell of the component may fall at most. `whole` asks for
        a change in whole numbers. A large component is first looked at near the cell; with `nearby` nowhere else, and
        a cell that does not reach its level is not asked how far it gets.
        """
        spot, held = int(self.spots(np.array([cell]))[0]), self.spots(still)
        fall = self.down if floor is None else np.minimum(self.down, floor)
        if spot in held or (room := float((self.up if sign > 0 else fall)[spot])) <= 0:
            return 0.0, None
        if len(self.cells) > MIN_LARGE_CELLS and not whole:
            far, move = self._near(spot, sign, level, held, fall)
            if move is not None or nearby:
                return far, move
        self.unit = level
        target = min(1.0, room / level)
        high = np.minimum(np.concatenate([self.up, fall]) / level, MAX_ROOM)
        high[held] = high[held + len(self.cells)] = 0.0
        column, other = (spot, spot + len(self.cells)) if sign > 0 else (spot + len(self.cells), spot)
        high[column], high[other] = target, 0.0
        low = np.zeros(len(high))
        low[column] = target
        answer = self._solve(low, high, self._charges(), certain=not nearby)
        if answer is None and nearby:
            return 0.0, None
        if answer is None:
            low[column] = 0.0
            charges = np.zeros(len(high))
            charges[column] = -1.0
            answer = self._solve(low, high, charges)
        if answer is None:
            raise EngineError("The solver calls what is published impossible.")
        return self._checked(answer, cell, low, high, column, whole)

    def _near(self, spot: int, sign: int, level: float, held: Integers, fall: Floats) -> tuple[float, TableMove | None]:
        """The same among some cells near the cell: those that share most relations with what was reached before."""
        if self.lists is None:
            self.lists = Lists(self.columns), Lists(self.matrix)
        relations, members = self.lists
        part = np.array([spot])
        while len(part) < MAX_NEAR_CELLS:
            reached, counts = np.unique(members.of(np.unique(relations.of(part)[0]))[0], return_counts=True)
            fresh = np.isin(reached, part, invert=True) & np.isin(reached, held, invert=True)
            order = np.argsort(-counts[fresh], kind="stable")[: MAX_NEAR_CELLS - len(part)]
            if not len(order):
                break
            part = np.append(part, reached[fresh][order])
        part = np.sort(part)
        matrix = self.columns[:, part]
        alive = living(matrix)
        if not alive[np.searchsorted(part, spot)]:
            return 0.0, None
        part, matrix = part[alive], matrix[:, np.flatnonzero(alive)]
        small = Component(self.table, self.cells[part], matrix, self.shy[part])
        far, move = small.move(int(self.cells[spot]), sign, level, floor=fall[part], nearby=True)
        self.programs, self.work = self.programs + small.programs, self.work + small.work
        return (far, move) if far >= level * (1 - SHORTFALL) else (0.0, None)

    @cached_property
    def columns(self) -> Any:
        return self.matrix.tocsc()

    def _charges(self) -> Floats:
        return np.tile(self.shy.astype(np.float64), 2)

    def _solve(self, low: Floats, high: Floats, charges: Floats, *, certain: bool = True) -> Solution | None:
        self.programs += 1
        import scipy.sparse as sparse

        every, reduced = np.arange(len(high)), self.matrix.shape[0] > MIN_REDUCED_RELATIONS
        if reduced and self.spanned is not None:
            answer = self.spanned.solve(low, high, charges, certain=certain)
            self.work, self.spanned.program.work = self.work + self.spanned.program.work, 0
            return answer
        if self.kept is None:
            self.kept = Program(sparse.hstack([self.matrix, -self.matrix]), charges, low, high, reduced=reduced)
            self.kept.sharpen()
        elif reduced:
            self.kept.restart()
        self.kept.bound(every, low, high)
        self.kept.charge(every, charges)
        before = self.kept.work
        try:
            return self.kept.solve(certain=certain)
        except EngineError:
            return Program(sparse.hstack([self.matrix, -self.matrix]), charges, low, high).solve()
        finally:
            self.work += self.kept.work - before

    @cached_property
    def spanned(self) -> SpannedProgram | None:
        """The program over moves, where these are few."""
        if len(self.cells) > MIN_LARGE_CELLS:
            return None
        self.work += ELIMINATION_WORK * int(np.prod(self.matrix.shape))
        basis = spanning_moves(self.matrix)
        return SpannedProgram(basis, self.shy) if 0 < basis.shape[1] <= MAX_FREEDOM * len(basis) else None

    def _checked(
        self, answer: Solution, cell: int, low: Floats, high: Floats, column: int, whole: bool
    ) -> tuple[float, TableMove | None]:
        """The move of an answer, checked without the solver."""
        change = self._change(answer, float(answer.values[column]))
        if whole and np.abs(change * self.unit - np.round(change * self.unit)).max() > WHOLE_TOLERANCE:
            answer = self._whole(low, high, column)
            change = self._change(answer, float(answer.values[column]))
        size = float(answer.values[column])
        if size <= MOVE_TOLERANCE or not change.any():
            return 0.0, None
        if np.abs(self.matrix @ change).max(initial=0.0) > RELATION_TOLERANCE * max(size, 1.0):
            raise EngineError(f"The solver's answer for cell {cell} does not add up.")
        moved = np.flatnonzero(change)
        return size * self.unit, TableMove.of(self.table, self.cells[moved], change[moved] * self.unit)

    def _change(self, answer: Solution, size: float) -> Floats:
        rise, fall = np.split(answer.values, 2)
        change: Floats = rise - fall
        change[np.abs(change) <= MOVE_TOLERANCE * max(size, 1.0)] = 0.0
        return change

    def _whole(self, low: Floats, high: Floats, column: int) -> Solution:
        """The farthest move in whole numbers."""
        import scipy.sparse as sparse

        self.programs += 1
        ends, charges = np.floor(high * self.unit + WHOLE_TOLERANCE), np.zeros(len(high))
        ends[column] = np.ceil(high[column] * self.unit - WHOLE_TOLERANCE)
        charges[column] = -1.0
        program = Program(sparse.hstack([self.matrix, -self.matrix]), charges, np.zeros(len(high)), ends)
        program.whole(np.arange(len(high)))
        answer = program.solve()
        if answer is None:
            raise EngineError("The solver calls what is published impossible.")
        return Solution(np.round(answer.values) / self.unit, answer.prices, answer.objective, answer.bound)
