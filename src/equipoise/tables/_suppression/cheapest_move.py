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
from equipoise.ground.progress import Progress
from equipoise.ground.solver import Program, Solution
from equipoise.tables._suppression.neighbourhood import Lists, Neighbourhood, living_entries
from equipoise.tables._suppression.problem import MOVE_TOLERANCE, SHORTFALL, SuppressionTable

MAX_WHOLE_ENTRIES = 500_000
"""Cells times relations up to which a program holds the whole table, and is kept."""
PART_CELLS = (400, 1_200, 3_600)
"""Cells of the parts looked at first in larger tables."""
MAX_KEPT_CELLS = 1_200
"""Cells of a neighbourhood up to which it is remembered."""
MAX_SIMPLEX_CELLS = 2_500
"""Cells of a later part from which on an interior point says which of them to look at."""
MAX_WHOLE_WORK = 2_000_000_000
"""Work spent at most on moves of a whole large table with the cells of a contributor still."""
FREE_CHARGE = 1e-3
"""Share of the mean charge that suppressed cells are charged in an interior-point program, or all would move."""
INTERIOR_SHARE = 1e-6
"""Share of the level by which a cell moves in an interior-point answer if it moves at all."""
MIN_REDUCED_RELATIONS = 800
"""Relations from which on a program is reduced before it is solved, and what does not move in its first answer is left
out of the second: in five dimensions."""
NO_CELLS = np.zeros(0, dtype=np.int64)
PROGRAM_EFFORT = 50_000
"""Work that making one program is worth."""
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
        change = sign * self.change(cell)
        return max(change * self.forth, -change * self.back) * (1 + SHORTFALL)

    def change(self, cell: int) -> float:
        """By how much one of its cells changes."""
        return float(self.by[np.searchsorted(self.cells, cell)])

    def scaled(self, cell: int, sign: int, level: float) -> Floats:
        """The change of each of its cells when `cell` moves by `level` in a direction."""
        return self.by * (sign * level / self.change(cell))


@dataclass(eq=False, repr=False)
class Finder:
    """Cheapest moves in one table; `usable` cells may be suppressed, at `cost`."""

    table: SuppressionTable
    usable: Booleans
    cost: Floats
    levels: Floats
    progress: Progress | None = None

    def __post_init__(self) -> None:
        self.usable = self.usable & self.table.movable
        self.kept: _Part | None = None
        self.near: dict[int, Integers] = {}
        self.ways: Neighbourhood | None = None
        self.columns, self.rows = Lists(self.table.additive.by_cell), Lists(self.table.additive.base)
        self.spare: Program | None = None
        self.hurry = False
        self.programs = self.work = self.whole_work = self.bulk_work = 0

    def cheapest(
        self, cell: int, sign: int, level: float, free: Booleans, still: Integers, *, nearby: bool = False,
        most: float = np.inf,
    ) -> TableMove | None:  # fmt: skip
        """The cheapest move of a cell by its level, with the cells of `still` unmoved; None when there is none.

        With `nearby` a large table is not searched beyond the first part. A program stops as soon as it proves that
        its optimum is above `most`: there is no move then.
        """
        if level > (self.table.up if sign > 0 else self.table.down)[cell] * (1 + SHORTFALL) or cell in still:
            return None
        for part in self._parts(cell, sign, level, free, still, nearby):
            move = part.cheapest(cell, sign, level, free, still, most)
            self._spend(part)
            if move is not None:
                return move
        return None

    def farthest(self, cell: int, sign: int, level: float, free: Booleans, still: Integers) -> float:
        """How far a cell can move, up to its level, when everything that may be is suppressed but `still`.

        In growing parts until one reaches the level; of a large table not in the whole.
        """
        if cell in still or self._alone(cell, still):
            return 0.0
        far = 0.0
        for part in self._parts(cell, sign, level, free, still):
            far = max(far, part.farthest(cell, sign, level, still))
            self._spend(part)
            if far >= level * (1 - SHORTFALL):
                break
        return far

    @property
    def effort(self) -> int:
        """Work, and what it takes to make a program: a measure of time that is the same on every machine."""
        return self.work + PROGRAM_EFFORT * self.programs

    def _spend(self, part: "_Part") -> None:
        self.programs, self.work = self.programs + part.solved, self.work + part.program.work
        part.solved = part.program.work = 0

    def _alone(self, cell: int, still: Integers) -> bool:
        """Whether a relation of the cell has no other cell that could move."""
        for relation in self.columns.row(cell).tolist():
            members = self.rows.row(relation)
            members = members[(members != cell) & self.usable[members]]
            if np.isin(members, still).all():
                return True
        return False

    def _whole(self) -> "_Part | None":
        if self.kept is None:
            self.kept = _Part.of(self, np.flatnonzero(self.usable), float(self.levels.min()))
            if self.kept is not None and self.progress is not None and self.large:
                self.kept.program.watch(self.progress, "looking at the whole table")
        return self.kept

    @property
    def large(self) -> bool:
        return bool(self.table.cells * self.table.additive.base.shape[0] > MAX_WHOLE_ENTRIES)

    def _parts(
        self, cell: int, sign: int, level: float, free: Booleans, still: Integers, nearby: bool = False
    ) -> Iterator["_Part"]:  # fmt: skip
        """Programs to look for a move in, the small ones first; in a large table what an interior point moves, last."""
        if self.large:
            for number, size in enumerate(PART_CELLS[:1] if nearby else PART_CELLS):
                cells = self._around(cell, level, free, size, number)
                if number and len(cells) > MAX_SIMPLEX_CELLS:
                    cells = self._moved(cells, cell, sign, level, free, still)
                yield from self._part(cells, cell, level, still)
            if nearby or (len(still) and self.whole_work > MAX_WHOLE_WORK):
                return
            everything = np.flatnonzero(self.usable)
            yield from self._part(self._moved(everything, cell, sign, level, free, still), cell, level, still)
            if len(still):
                return
        whole = self._whole()
        if whole is not None:
            yield whole

    def _part(self, cells: Integers, cell: int, level: float, still: Integers) -> Iterator["_Part"]:
        loose = cells[np.isin(cells, still, invert=True)] if len(still) else cells
        part = _Part.of(self, loose, level, cell, after=self.spare) if len(loose) else None
        if part is not None:
            self.spare = part.program
            yield part

    def _moved(
        self, among: Integers, cell: int, sign: int, level: float, free: Booleans, still: Integers
    ) -> Integers:  # fmt: skip
        """The cells that an interior-point answer moves, among many; none when it finds no answer."""
        part = _Part.of(self, np.setdiff1d(among, still), level, cell, interior=True, corner=True)
        if part is None:
            return np.zeros(0, dtype=np.int64)
        cells = part.moved(cell, sign, level, free, self.progress)
        self.whole_work += part.program.work
        self.bulk_work, part.program.work = self.bulk_work + part.program.work, 0
        return cells

    def _around(self, cell: int, level: float, free: Booleans, size: int, number: int) -> Integers:
        """The cells of a neighbourhood; the first one is widened until enough of it is alive, and remembered."""
        if number == 0 and cell in self.near:
            return self.near[cell]
        if self.ways is None:
            self.ways = Neighbourhood(self.table, self.usable, self.cost)
        while True:
            cells = self.ways.around(cell, level, free, size)
            alive = _Entries.alive(self.columns, cells)[1]
            if alive.sum() >= self.ways.enough or size >= PART_CELLS[-1]:
                break
            size = min(3 * size, PART_CELLS[-1])
        cells = cells[alive | (cells == cell)]
        if number == 0 and len(cells) <= MAX_KEPT_CELLS:
            self.near[cell] = cells
        return cells


class _Part:
    """A program over some cells, each with a column for its rise and one for its fall, in units of `unit`."""

    def __init__(self, finder: Finder, cells: Integers, entries: "_Entries", unit: float, **options: Any) -> None:
        self.finder, self.table, self.cells, self.unit, self.solved = finder, finder.table, cells, unit, 0
        widest = MAX_ROOM * max(1.0, float(finder.levels.max()) / unit)
        self.up, self.down = (np.minimum(room[cells] / unit, widest) for room in (finder.table.up, finder.table.down))
        self.entries = entries
        nothing, rooms = np.zeros(2 * len(cells)), np.concatenate([self.up, self.down])
        self.reduced = entries.relations > MIN_REDUCED_RELATIONS
        self.program = Program(entries.both_ways(), nothing, nothing, rooms, reduced=self.reduced, **options)

    @classmethod
    def of(
        cls, finder: Finder, cells: Integers, unit: float, cell: int | None = None, **options: Any
    ) -> "_Part | None":  # fmt: skip
        """The part without its dead ends: cells that some relation ties to nothing else. None if `cell` is one."""
        entries, alive = _Entries.alive(finder.columns, cells)
        if cell is not None and not alive[np.searchsorted(cells, cell)]:
            return None
        return cls(finder, cells[alive], entries, unit, **options)

    def moved(self, cell: int, sign: int, level: float, free: Booleans, progress: Progress | None) -> Integers:
        """The cells that move in a cheapest move, without a basis."""
        amount, spot = level / self.unit, int(np.searchsorted(self.cells, cell))
        self._hold(spot, sign, amount, np.zeros(0, dtype=np.int64))
        charges = self._charges(free[self.cells], amount)
        uneven = 1 + np.random.default_rng(cell).random(len(charges))
        self.program.charge(np.arange(len(charges)), charges + FREE_CHARGE * charges.mean() * uneven)
        values = self.program.inner(progress, "looking at the whole table")
        if values is None:
            return np.zeros(0, dtype=np.int64)
        rise, fall = np.split(values, 2)
        return self.cells[np.abs(rise - fall) > INTERIOR_SHARE * amount]

    def _charges(self, free: Booleans, amount: float) -> Floats:
        """What each rise and each fall is charged, by the amount moved."""
        cost = self.finder.cost[self.cells]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            charges = [np.where(free, 0.0, cost / np.minimum(amount, room)) for room in (self.up, self.down)]
        return np.nan_to_num(np.concatenate(charges), nan=0.0, posinf=0.0)

    def cheapest(
        self, cell: int, sign: int, level: float, free: Booleans, still: Integers, most: float = np.inf
    ) -> TableMove | None:
        spot = int(np.searchsorted(self.cells, cell))
        if spot >= len(self.cells) or self.cells[spot] != cell:
            return None
        still_columns = np.searchsorted(self.cells, still[np.isin(still, self.cells)])
        self._hold(spot, sign, level / self.unit, still_columns)
        try:
            return self._twice(free[self.cells], cell, level, most)
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

    def _twice(self, free: Booleans, cell: int, level: float, most: float) -> TableMove | None:
        amount, cost = level / self.unit, self.finder.cost[self.cells]
        self.program.restart()
        first = self._solve(self._charges(free, amount), most)
        if first is None:
            return None
        distance = np.abs(self._change(first))
        price = float(cost[~free & (distance > MOVE_TOLERANCE * amount)].sum())
        if price == 0.0 or self.finder.hurry:
            return self._move(first, cell, level)
        again = np.where(free, 0.0, cost / (distance + 1e-3 * amount))
        unmoved = np.flatnonzero(~free & (distance <= MOVE_TOLERANCE * amount)) if self.reduced else NO_CELLS
        if self.reduced:
            nothing = np.zeros(2 * len(unmoved))
            self.program.bound(np.concatenate([unmoved, unmoved + len(self.cells)]), nothing, nothing)
            self.program.restart()
        second = self._solve(np.concatenate([again, again]))
        self._loosen(unmoved)
        if second is None:
            return self._move(first, cell, level)
        change = np.abs(self._change(second))
        better = float(cost[~free & (change > MOVE_TOLERANCE * amount)].sum()) < price
        return self._move(second if better else first, cell, level)

    def _solve(self, charges: Floats, most: float = np.inf) -> Solution | None:
        self.solved += 1
        self.program.charge(np.arange(len(charges)), charges)
        return self.program.solve(most=most)

    def _change(self, answer: Solution) -> Floats:
        rise, fall = np.split(answer.values, 2)
        return rise - fall

    def _move(self, answer: Solution, cell: int, level: float) -> TableMove:
        change = self._change(answer)
        change[np.abs(change) <= MOVE_TOLERANCE * level / self.unit] = 0.0
        if np.abs(self.entries.sums(change)).max(initial=0.0) > RELATION_TOLERANCE * level / self.unit:
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


@dataclass(frozen=True, eq=False, repr=False)
class _Entries:
    """The relations of some cells, numbered from 0: `counts[j]` entries for cell j, one after the other."""

    rows: Integers
    data: Floats
    counts: Integers
    relations: int

    @classmethod
    def alive(cls, columns: Lists, cells: Integers) -> tuple["_Entries", Booleans]:
        """The entries of cells that are no dead ends, and which these are."""
        places, counts = columns.places(cells)
        relations, rows = np.unique(columns.indices[places], return_inverse=True)
        owners = np.repeat(np.arange(len(cells)), counts)
        alive = living_entries(rows, owners, len(relations), len(cells))
        kept = alive[owners]
        relations, rows = np.unique(rows[kept], return_inverse=True)
        return cls(rows, columns.data[places[kept]], counts[alive], len(relations)), alive

    def both_ways(self) -> Any:
        """A column for the rise of each cell, and one for its fall."""
        import scipy.sparse as sparse

        starts = np.concatenate([[0], np.cumsum(np.tile(self.counts, 2))])
        data, rows = np.concatenate([self.data, -self.data]), np.tile(self.rows, 2)
        return sparse.csc_array((data, rows, starts), shape=(self.relations, 2 * len(self.counts)))

    def sums(self, change: Floats) -> Floats:
        """By how much each relation misses zero."""
        sums: Floats = np.bincount(self.rows, self.data * np.repeat(change, self.counts), self.relations).astype(float)
        return sums
