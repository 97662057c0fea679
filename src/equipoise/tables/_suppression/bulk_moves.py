"""Moves that meet many demands at once, within the cells that are suppressed already.

Maximise sum over unmet demands of min(s_k y_k / level_k, 1), one direction s_k for each cell, subject to
matrix @ y = 0 and the rooms of the suppressed cells, nothing else moved. One interior-point program answers for a large
share of all demands; the directions are drawn anew (a fixed stream) until little is gained.

Source: the attacker's programs of Fischetti and Salazar-Gonzalez (2000), section 2, added up.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.progress import Progress
from equipoise.ground.solver import Program
from equipoise.tables._suppression.cheapest_move import RELATION_TOLERANCE, TableMove
from equipoise.tables._suppression.neighbourhood import living
from equipoise.tables._suppression.problem import Demands, SuppressionTable
from equipoise.tables._suppression.projected_moves import ProjectedMoves

if TYPE_CHECKING:
    from equipoise.tables._suppression.fast import Cover

MIN_BULK_DEMANDS = 8
"""Demands from which on many are met at once, not one by one."""
MIN_PROJECTED_DEMANDS, PROJECTED_MOVES = 1_000, 4
"""Demands left by then from which on moves by projection are tried, and how many."""
MIN_BULK_SHARE = 30
"""A bulk move must meet one demand in as many cells, or the demands left are looked at one by one."""
MAX_BULK_ROOM = 1e4
"""Rooms beyond this many of the largest levels are cut."""
OVERSHOOT = 1e-7
"""Share by which a move is stretched: an interior point stays this much short of a limit."""


class BulkMoves:
    """Moves within some suppressed cells, towards the levels of many demands."""

    def __init__(self, table: SuppressionTable, demands: Demands, cells: Integers) -> None:
        self.table, self.demands = table, demands
        matrix = table.additive.by_cell[:, cells]
        alive = np.flatnonzero(living(matrix))
        self.cells: Integers = cells[alive]
        matrix = matrix[:, alive].tocsr()
        self.matrix: Any = matrix[np.flatnonzero(np.diff(matrix.indptr))].tocsc()
        self.draw = np.random.default_rng(len(cells))
        self.work = 0

    def reachable(self) -> Booleans:
        """Demands whose cell can move at all."""
        inside = np.zeros(self.table.cells, dtype=np.bool_)
        inside[self.cells] = True
        return inside[self.demands.cell]

    def towards(self, demands: Integers, progress: Progress | None = None) -> TableMove | None:
        """A move that takes many of these demands (one for each cell) to their levels."""
        level, sign = self.demands.level[demands], self.demands.sign[demands].astype(float)
        spots = np.searchsorted(self.cells, self.demands.cell[demands])
        unit = float(np.median(level))
        widest = MAX_BULK_ROOM * float(level.max()) / unit
        up, down = (np.minimum(room[self.cells] / unit, widest) for room in (self.table.up, self.table.down))
        change, work = capped(
            self.matrix, -down, up, spots, sign * level / unit, progress, "meeting many demands at once"
        )
        self.work += work
        if change is None:
            return None
        change *= 1 + OVERSHOOT
        missed = float(np.abs(self.matrix @ change).max(initial=0.0))
        exact = missed <= RELATION_TOLERANCE * float(level.min()) / unit
        return self._move(change * unit, missed * unit) if exact else None

    def projected(self, demands: Integers) -> Iterator[TableMove]:
        """Moves towards the levels of these demands by projection, where an interior point misses relations."""
        level = np.zeros(len(self.cells))
        np.maximum.at(level, np.searchsorted(self.cells, self.demands.cell[demands]), self.demands.level[demands])
        room = np.minimum(np.minimum(self.table.up, self.table.down)[self.cells], MAX_BULK_ROOM * float(level.max()))
        both = (np.repeat(part[:, None], PROJECTED_MOVES, axis=1) for part in (level, room))
        moves = ProjectedMoves(self.matrix, len(self.cells))
        for change in moves.towards(*both).T:
            missed = float(np.abs(self.matrix @ change).max(initial=0.0))
            if missed <= RELATION_TOLERANCE * float(self.demands.level[demands].min()):
                yield self._move(change, missed)
        self.work += moves.work

    def _move(self, change: Floats, missed: float) -> TableMove:
        moved = np.flatnonzero(np.abs(change) > missed)
        return TableMove.of(self.table, self.cells[moved], change[moved])


def capped(
    matrix: Any, low: Floats, high: Floats, spots: Integers, amount: Floats, progress: Progress | None, what: str
) -> tuple[Floats | None, int]:  # fmt: skip
    """Maximise the sum of y_j / amount_j over `spots`, each counted up to 1, and the work that took.

    What is beyond the amount is a column of its own, which earns nothing.
    """
    import scipy.sparse as sparse

    low, high, down, up = low.copy(), high.copy(), low[spots], high[spots]
    rising = amount > 0
    high[spots] = np.where(rising, np.minimum(up, amount), up)
    low[spots] = np.where(rising, down, np.maximum(down, amount))
    charges = np.zeros(len(low) + len(spots))
    charges[spots] = -1.0 / amount
    beyond = [np.zeros(len(spots)), np.zeros(len(spots))]
    np.subtract(down, low[spots], out=beyond[0], where=~rising)
    np.subtract(up, high[spots], out=beyond[1], where=rising)
    program = Program(
        sparse.hstack([matrix, matrix.tocsc()[:, spots]]), charges,
        np.concatenate([low, beyond[0]]), np.concatenate([high, beyond[1]]), interior=True,
    )  # fmt: skip
    answer = program.inner(progress, what)
    if answer is None:
        return None, program.work
    change = answer[: len(low)]
    np.add.at(change, spots, answer[len(low) :])
    return change, program.work


def meet_many(cover: "Cover", progress: Progress | None, *, everything: bool = False) -> None:
    """Meet as many demands as cells that are suppressed anyway allow (`everything`: by now), many with each move.

    With lone contributors first with all their cells still, which settles a demand against everybody; then with their
    cells moving, too: a demand met in that way needs one more move, without them.
    """
    hidden = np.flatnonzero((cover.free if everything else cover.fixed) & cover.finder.table.movable)
    known = cover.demands.knower[hidden] >= 0
    _towards_all(cover, hidden[~known], progress)
    if known.any():
        _towards_all(cover, hidden, progress)


def _towards_all(cover: "Cover", hidden: Integers, progress: Progress | None) -> None:
    """Bulk moves within some suppressed cells until little is gained."""
    bulk = BulkMoves(cover.finder.table, cover.demands, hidden)
    waiting = np.flatnonzero(bulk.reachable())
    waiting = waiting[[not cover.moves[demand] for demand in waiting.tolist()]]
    least = max(1, len(bulk.cells) // MIN_BULK_SHARE)
    few = 1 if cover.hard else MIN_BULK_DEMANDS
    while len(waiting) >= few:
        chosen = bulk.draw.permutation(waiting)
        _, first = np.unique(cover.demands.cell[chosen], return_index=True)
        move = bulk.towards(np.sort(chosen[first]), progress)
        if move is None:
            break
        cover.note(move)
        far = np.zeros((2, cover.finder.table.cells))
        far[:, move.cells] = move.reach()
        way = (cover.demands.sign[waiting] < 0).astype(np.int64)
        short = far[way, cover.demands.cell[waiting]] < cover.demands.level[waiting]
        met = len(waiting) - int(short.sum())
        waiting = waiting[short]
        if met < least:
            break
    if len(waiting) >= MIN_PROJECTED_DEMANDS:
        for move in bulk.projected(waiting):
            cover.note(move)
    cover.finder.bulk_work += bulk.work
