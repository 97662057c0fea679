"""Optimal suppression pattern by cutting planes, with a lower bound at any time.

Let x_j be 1 for suppressed cells. Primary k can move up by its level L if and only if, for every price u of the
relations, sum over j of (r_j^+ down_j + r_j^- up_j) x_j >= L, with r = -e_k - u @ matrix (for a move down the sign of
e_k changes): linear duality. A pattern that fails gives such prices, and with them an inequality that every pattern
which protects k meets; coefficients above L are cut to L. The relaxed problem (0 <= x <= 1) is solved with ever more of
them, then in whole numbers, until its best pattern fails nowhere: that is the optimum.

Source: Fischetti and Salazar-Gonzalez (2000), *Models and algorithms for optimizing cell suppression in tabular data
with linear constraints*.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.errors import EngineError
from equipoise.ground.progress import Progress, report
from equipoise.ground.solver import Program, Solution
from equipoise.tables._suppression.cheapest_move import MAX_ROOM, Finder, TableMove
from equipoise.tables._suppression.fast import NO_CELLS, Cover
from equipoise.tables._suppression.neighbourhood import Neighbourhood
from equipoise.tables._suppression.problem import Demands, SuppressionTable
from equipoise.tables._suppression.singletons import Knowers

PUBLISHED_ROOM = 1e-4
"""Room given to published cells when cuts are looked for: the cuts then charge fewer of them."""
CUT_TOLERANCE = 1e-4
"""Share of its right side by which a pattern must fail a cut."""
MIN_BOUND_RISE = 1e-4
"""Share by which the bound must rise in a round; after `MAX_SLOW_ROUNDS` slower ones whole numbers are asked for."""
MAX_SLOW_ROUNDS = 5
WHOLE_TOLERANCE = 1e-6
MAX_FAST_WORK = 2_000_000
"""Work of the relaxed problem up to which the fast way continues in whole numbers, to within `FAST_GAP`."""
FAST_CUT_ROUNDS, FAST_ROUNDS, FAST_NODES, FAST_GAP = 3, 6, 60, 0.03
FAR_FROM_BOUND, MAX_SECOND_EFFORT = 0.25, 60_000_000
"""Share of its cost by which a pattern is above the bound, and its effort, from and up to which another is made."""
QUESTION_CELLS = 200
"""Cells nearest to a primary among which it is asked about first."""
COST_TOLERANCE = 1e-12
"""Reduced costs below this are the solver's rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class ProtectionCut:
    """sum of weight_j x_j >= 1 over the cells that are free to be published or not."""

    cells: Integers
    weight: Floats


class Separator:
    """Looks for what a pattern, or a mixture of patterns, fails to let move.

    Each primary is asked about among the cells nearest to it, in a program that is kept: a move found there is a
    move, prices found there make a cut of the whole table. Where neither is found, the cells that the prices charge
    are added to the program.
    """

    def __init__(
        self,
        table: SuppressionTable,
        demands: Demands,
        usable: Booleans,
        fixed: Booleans,
        cost: Floats,
        knowers: Knowers,
    ) -> None:
        self.table, self.demands, self.fixed, self.knowers = table, demands, fixed, knowers
        self.usable = (usable | fixed) & table.movable
        self.ways = Neighbourhood(table, self.usable, cost)
        self.near: dict[int, _Question] = {}
        self.moves: list[TableMove] = []
        self.met: Booleans = np.zeros(len(demands), dtype=np.bool_)
        self.lean = PUBLISHED_ROOM
        self.work = 0

    def fails(
        self, share: Floats, progress: Progress | None, seconds: float, work: float = np.inf
    ) -> list[ProtectionCut]:
        """Cuts that the mixture (`share` of patterns that suppress each cell) fails.

        A move that is found for one demand answers all others that it reaches, if nobody's own cell is in it; so do
        moves of earlier mixtures, as far as this one allows them. Demands that are `met` anyway are not asked for, nor
        is the other direction of a cell that failed one.
        """
        stop, count, failing = time.process_time() + seconds, len(self.demands), set[int]()
        settled = self.met.copy()
        for move in self.moves:
            rooms = (
                np.minimum(room[move.cells], MAX_ROOM * np.abs(move.by)) * share[move.cells]
                for room in (self.table.up, self.table.down)
            )
            self._settle(TableMove.within(move.cells, move.by, *rooms), settled)
        cuts: list[ProtectionCut] = []
        for demand in range(count):
            if time.process_time() > stop or self.work > work:
                break
            report(progress, demand, count, f"looking for cutting planes ({len(cuts):,} found)")
            cell = self.demands.cell[demand]
            if not settled[demand] and cell not in failing:
                found = self._demand(demand, share, settled)
                failing |= {cell} if found else set()
                cuts += found
        return cuts

    def _demand(self, demand: int, share: Floats, settled: Booleans) -> list[ProtectionCut]:
        """Ask for a demand alone, then with the cells still of those whose own cells were in every move found."""
        own = int(self.demands.knower[self.demands.cell[demand]])
        full = float(self.demands.level[demand])
        answer = self._ask(demand, share, NO_CELLS, full)
        waiting: frozenset[int] | None = None
        while not isinstance(answer, ProtectionCut):
            knowers = self.demands.knower[answer.cells]
            others = frozenset(knowers[knowers >= 0].tolist())
            if not others and waiting is None:
                self._settle(answer, settled)
                self.moves.append(answer)
            waiting = others - {own} if waiting is None else waiting & others
            if not waiting:
                return []
            answer, waiting = self._against(min(waiting), demand, share), waiting - {min(waiting)}
        return [answer]

    def _against(self, knower: int, demand: int, share: Floats) -> "ProtectionCut | TableMove":
        """Ask with the cells of a contributor still: for the level, or for as much of it as any pattern gives."""
        full, still = float(self.demands.level[demand]), self.demands.cells_of[knower]
        answer = self._ask(demand, share, still, full)
        if isinstance(answer, TableMove):
            return answer
        level = self.knowers.level(demand, knower, self.fixed)
        if level >= full:
            return answer
        everybody = np.flatnonzero(self.demands.knower >= 0)
        less = self._ask(demand, share, still, level) if level > 0 else None
        return less if isinstance(less, ProtectionCut) else TableMove(everybody, np.zeros(len(everybody)), 0.0, 0.0)

    def _settle(self, move: TableMove, settled: Booleans) -> None:
        for way, reach in enumerate(move.reach()):
            demands = self.demands.of_cell[move.cells, way]
            demanded = demands >= 0
            far = reach[demanded] >= self.demands.level[demands[demanded]] * (1 - CUT_TOLERANCE)
            settled[demands[demanded][far]] = True

    def _ask(self, demand: int, share: Floats, still: Integers, level: float) -> "ProtectionCut | TableMove":
        """A move that the mixture allows, or a cut that it fails."""
        cell, sign = int(self.demands.cell[demand]), int(self.demands.sign[demand])
        question = self._question(cell, level)
        while True:
            for widest, lean in ((1.0, self.lean), (MAX_ROOM, 0.0)):
                answer = question.ask(cell, sign, level, share, still, widest, lean)
                self.work += question.spent()
                if answer is not None:
                    return answer
            if not len(question.lacking):
                return TableMove(NO_CELLS, np.zeros(0), 0.0, 0.0)
            question = self.near[cell] = question.wider()

    def _question(self, cell: int, level: float) -> "_Question":
        if cell not in self.near:
            cells = self.ways.nearest(cell, level, self.fixed, QUESTION_CELLS)
            self.near[cell] = _Question(self.table, cells, self.usable, self.fixed)
        return self.near[cell]


class _Question:
    """How far can a cell move, in a program over some cells?"""

    def __init__(self, table: SuppressionTable, cells: Integers, usable: Booleans, fixed: Booleans) -> None:
        self.table, self.cells, self.usable, self.fixed = table, cells, usable, fixed
        matrix = table.additive.by_cell[:, cells].tocsr()
        rows = np.flatnonzero(np.diff(matrix.indptr))
        self.relations = table.additive.base[rows]
        self.up, self.down = table.up[cells], table.down[cells]
        nothing = np.zeros(len(cells))
        self.program = Program(matrix[rows], nothing, nothing, nothing)
        self.lacking = NO_CELLS

    def spent(self) -> int:
        """The work done since this was last asked."""
        work, self.program.work = self.program.work, 0
        return work

    def wider(self) -> "_Question":
        """The same question with the cells that were lacking."""
        return _Question(self.table, np.union1d(self.cells, self.lacking), self.usable, self.fixed)

    def ask(
        self, cell: int, sign: int, level: float, share: Floats, still: Integers, widest: float, lean: float
    ) -> "ProtectionCut | TableMove | None":  # fmt: skip
        """A move by the level within the rooms that the mixture leaves, a cut it fails, or neither."""
        part = np.minimum(share[self.cells] + lean, 1.0) * np.isin(self.cells, still, invert=True)
        up, down = (np.minimum(room / level, widest) * part for room in (self.up, self.down))
        spot = int(np.searchsorted(self.cells, cell))
        up[spot], down[spot] = min(up[spot], 1.0), min(down[spot], 1.0)
        answer = self._farthest(spot, sign, up, down)
        if -answer.objective >= 1 - CUT_TOLERANCE:
            columns = np.flatnonzero(np.abs(answer.values) > WHOLE_TOLERANCE)
            rooms = (np.minimum(room[columns], MAX_ROOM * level) * part[columns] for room in (self.up, self.down))
            return TableMove.within(self.cells[columns], answer.values[columns] * level, *rooms)
        return self._cut(answer, cell, sign, level, share, still)

    def _farthest(self, spot: int, sign: int, up: Floats, down: Floats) -> Solution:
        self.program.bound(np.arange(len(self.cells)), -down, up)
        self.program.charge(np.array([spot]), np.array([-float(sign)]))
        answer = solved(self.program)
        self.program.charge(np.array([spot]), np.zeros(1))
        return answer

    def _cut(
        self, answer: Solution, cell: int, sign: int, level: float, share: Floats, still: Integers
    ) -> ProtectionCut | None:
        reduced = -(self.relations.T @ answer.prices)
        reduced[cell] -= sign
        touched = np.flatnonzero(self.usable & (np.abs(reduced) > COST_TOLERANCE))
        touched = touched[np.isin(touched, still, invert=True)]
        up, down = (np.minimum(room[touched] / level, MAX_ROOM) for room in (self.table.up, self.table.down))
        weight = np.where(reduced[touched] > 0, reduced[touched] * down, -reduced[touched] * up)
        charged = touched[(weight > 0) & (share[touched] > 0)]
        self.lacking = charged[np.isin(charged, self.cells, invert=True)]
        fixed = self.fixed[touched]
        right = 1.0 - float(weight[fixed].sum())
        if right <= CUT_TOLERANCE:
            return None
        cells, weight = touched[~fixed], np.minimum(weight[~fixed] / right, 1.0)
        return ProtectionCut(cells, weight) if weight @ share[cells] < 1 - CUT_TOLERANCE else None


@dataclass(frozen=True, eq=False, repr=False)
class Optimum:
    """The best pattern found, and the cost below which there is none."""

    cover: Cover
    bound: float


class CutSearch:
    """The relaxed problem, its cuts, and the best pattern so far (`best`, a Cover)."""

    def __init__(self, cover: Cover, separator: Separator, usable: Booleans, seconds: float, gap: float) -> None:
        self.best, self.separator, self.gap = cover, separator, gap
        self.stop = time.process_time() + seconds
        self.cells = np.flatnonzero(usable & ~cover.fixed & cover.finder.table.movable)
        self.spot = np.full(cover.finder.table.cells, -1)
        self.spot[self.cells] = np.arange(len(self.cells))
        self.cost = cover.cost[self.cells]
        self.cuts: list[ProtectionCut] = []
        self.bound = 0.0

    @property
    def finished(self) -> bool:
        if self.seconds_left <= 0 or not self.best.protects:
            return self.seconds_left <= 0
        return self.best.total - self.bound <= max(self.gap, WHOLE_TOLERANCE) * self.best.total

    @property
    def seconds_left(self) -> float:
        return self.stop - time.process_time()

    def run(self, progress: Progress | None = None) -> Iterator[Optimum]:
        """The best pattern and bound after each stage, so that the last one counts when the work is stopped."""
        if len(self.cells):
            values = self.relax(progress)
            if values is not None and not self.finished:
                self._round(values, progress)
            yield self.optimum
            for _ in self.settle(progress):
                yield self.optimum
        else:
            self.bound = self.best.total
        yield self.optimum

    def charges(self, work: float, progress: Progress | None = None) -> Floats:
        """What cells are charged for a pattern near the relaxed problem, after a few rounds with about so much work.

        Nothing has to be protected yet: what cells that are suppressed anyway meet is not asked for.
        """
        self.separator.met = np.array([moves and not cells for moves, cells in self.best.met_by()], dtype=np.bool_)
        values = self.relax(progress, work, FAST_CUT_ROUNDS) if len(self.cells) else None
        charges = self.best.cost.copy()
        if values is not None:
            charges[self.cells] *= np.clip(1 - values, 0.0, 1.0)
        return charges

    def settled(self, progress: Progress | None = None) -> Iterator[Optimum]:
        """A little in whole numbers, where the relaxed problem was quick and nobody's own cells are asked about.

        First, far from the bound and where that is quick, a pattern by the cells' own costs: the bound misled.
        """
        far = self.best.total * (1 - FAR_FROM_BOUND) > self.bound > 0
        if far and self.best.finder.effort <= MAX_SECOND_EFFORT:
            self._round(np.zeros(len(self.cells)), progress)
            yield self.optimum
        alone = bool((self.separator.demands.knower >= 0).any())
        if self.separator.work <= MAX_FAST_WORK and len(self.cells) and not alone:
            self.gap = max(self.gap, FAST_GAP)
            for _ in self.settle(progress, FAST_NODES, FAST_ROUNDS):
                yield self.optimum

    @property
    def optimum(self) -> Optimum:
        return Optimum(self.best, min(self.bound, self.best.total))

    def relax(self, progress: Progress | None, work: float = np.inf, rounds: float = np.inf) -> Floats | None:
        """Add cuts to the relaxed problem until none is failed or the bound hardly rises; its answer.

        None where nothing is to be done, or no pattern protects.
        """
        free = np.ones(len(self.cells))
        master, slow, cuts = Program(self._rows([]), self.cost, 0 * free, free), 0, True
        answer = master.solve()
        while cuts and answer is not None and rounds > 0 and slow < MAX_SLOW_ROUNDS and self.separator.work <= work:
            rounds -= 1
            slow = slow + 1 if answer.objective <= self.bound + MIN_BOUND_RISE * self.best.total else 0
            self.bound = max(self.bound, answer.objective)
            if self.finished:
                return None
            cuts = self._add(answer.values, master, progress, work)
            answer = master.solve() if cuts else answer
        return None if answer is None else answer.values

    def _add(self, values: Floats, master: Program, progress: Progress | None, work: float) -> bool:
        cuts = self._failed(values, progress, work)
        if cuts:
            master.demand(self._rows(cuts), np.ones(len(cuts)))
        return bool(cuts)

    def settle(
        self, progress: Progress | None, nodes: int | None = None, rounds: float = np.inf
    ) -> Iterator[None]:  # fmt: skip
        """The cheapest pattern of whole numbers, with more cuts until it fails none; pauses after each round."""
        while not self.finished and rounds > 0:
            rounds -= 1
            answer = self._whole(nodes, progress)
            self.bound = max(self.bound, min(answer.bound, self.best.total))
            if self.finished or not len(answer.values):
                return
            cuts = self._failed(np.round(answer.values), progress)
            self._round(np.round(answer.values), progress)
            yield
            if not cuts and answer.complete and not self.separator.lean:
                return
            if not cuts:
                self.separator.lean = 0.0

    def _whole(self, nodes: int | None, progress: Progress | None) -> Solution:
        everything = np.ones(len(self.cells))
        program = Program(self._rows(self.cuts), self.cost, 0 * everything, everything, 1.0, np.inf)
        program.whole(np.arange(len(self.cells)), seconds=max(self.seconds_left, 0.1), gap=self.gap / 2, nodes=nodes)
        chosen = self.best.pattern()[self.cells].astype(float)
        program.suggest(chosen)
        if progress is not None:
            program.watch(progress, "looking for the cheapest pattern")
        return solved(program)

    def _failed(self, values: Floats, progress: Progress | None, work: float = np.inf) -> list[ProtectionCut]:
        share = self.best.fixed.astype(float)
        share[self.cells] = np.clip(values, 0.0, 1.0)
        cuts = self.separator.fails(share, progress, self.seconds_left, work)
        self.cuts += cuts
        return cuts

    def _rows(self, cuts: list[ProtectionCut]) -> Any:
        import scipy.sparse as sparse

        sizes = [len(cut.cells) for cut in cuts]
        columns = self.spot[np.concatenate([cut.cells for cut in cuts])] if cuts else NO_CELLS
        weights = np.concatenate([cut.weight for cut in cuts]) if cuts else np.zeros(0)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return sparse.csr_array((weights, columns, starts), shape=(len(cuts), len(self.cells)))

    def _round(self, values: Floats, progress: Progress | None) -> None:
        """A pattern near a mixture: cells are charged by the share that publishes them."""
        old, cost = self.best, self.best.cost
        charges = cost.copy()
        charges[self.cells] *= np.clip(1 - values, 0.0, 1.0)
        finder = Finder(old.finder.table, old.finder.usable, charges, old.finder.levels, progress)
        cover = Cover(old.demands, finder, old.fixed, cost, old.knowers)
        cover.protect(progress)
        finder.cost = cost
        cover.improve(progress)
        cover.complete(progress)
        if cover.total < old.total:
            self.best = cover


def solved(program: Program) -> Solution:
    """The optimum of a program that has one."""
    answer = program.solve()
    if answer is None:
        raise EngineError("The solver found no pattern, though one is known.")
    return answer
