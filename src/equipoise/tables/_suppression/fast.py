"""Fast heuristic: protect each primary cell by its cheapest move, then drop superfluous secondary cells.

Every demand keeps the moves that meet it, so at any time the pattern is the cells that some kept move needs, and the
kept moves prove it: each is another possible table that takes a primary past its level.
"""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.errors import Cancelled, EngineError
from equipoise.ground.progress import Progress, Stoppable, report
from equipoise.tables._suppression.bulk_moves import meet_many
from equipoise.tables._suppression.cheapest_move import Finder, TableMove
from equipoise.tables._suppression.problem import SHORTFALL, Demands, unprotectable
from equipoise.tables._suppression.singletons import Knowers

MAX_DEMANDS = 40
"""A secondary cell that more demands than this rely on is not tried for removal."""
MAX_REMOVAL_EFFORT = 1_900_000_000
"""Effort (`Finder.effort`) spent at most on taking cells out: some 50 seconds, the dearest cells first."""
MAX_SCALED_CELLS = 500
"""Cells of a move up to which a demand that it meets keeps a copy of its own."""
REMOVAL_EFFORT_PER_CELL = 400_000
"""The same for each secondary cell of the first pattern: about five small programs."""
REMOVAL_PARTS, MIN_SAVED_SHARE = 4, 0.005
"""Parts of that effort; share of the cost that each must save, or the next is not spent: the dearest cells go first."""
FINDING, COMPLETING = "finding cells to suppress", "finding cells to suppress for the largest levels"
NOBODY: frozenset[int] = frozenset()
NO_CELLS = np.zeros(0, dtype=np.int64)


class Cover:
    """Demands, the moves that meet them, and the cells these need; `fixed` cells are suppressed anyway."""

    def __init__(
        self, demands: Demands, finder: Finder, fixed: Booleans, cost: Floats | None = None,
        knowers: Knowers | None = None,
    ) -> None:  # fmt: skip
        self.demands, self.finder, self.fixed = demands, finder, fixed
        self.knowers = Knowers(demands, finder) if knowers is None else knowers
        self.cost = finder.cost if cost is None else cost
        self.moves: list[list[TableMove]] = [[] for _ in range(len(demands))]
        self.open: list[frozenset[int]] = [NOBODY] * len(demands)
        self.own = demands.knower[demands.cell].tolist()
        self.leaning: list[set[int]] = [set() for _ in range(len(demands))]
        self.users: dict[int, set[int]] = {}
        self.free: Booleans = fixed.copy()
        self.total = 0.0
        self.begun = self.protects = False
        self.large = finder.large and not (demands.knower >= 0).any()
        self.hard: list[int] = []
        self.alive = partial(report, None, 0, 0, "")

    def met(self, demand: int) -> bool:
        return bool(self.moves[demand]) and not self.in_the_way(demand)

    def in_the_way(self, demand: int) -> frozenset[int]:
        """Contributors whose own cells are in every move of a demand; those of the cell itself do not count."""
        return self.open[demand] - {self.own[demand]} if self.open[demand] else NOBODY

    def begin(self, progress: Progress | None = None) -> None:
        """Meet what cells that are suppressed anyway can meet, once."""
        if not self.begun:
            self.begun = True
            meet_many(self, progress)

    def met_by(self) -> Iterator[tuple[bool, set[int]]]:
        """For each demand whether it is met, and the cells that this needs beside those suppressed anyway."""
        return ((self.met(demand), self.leaning[demand]) for demand in range(len(self.demands)))

    def protect(self, progress: Progress | None = None) -> None:
        """Meet every demand, the largest level first; what a move does for others counts for them.

        In a large table those that no move nearby meets are left to `complete`. When `progress` says stop, the demands
        left are met by the first move found.
        """
        count = len(self.demands)
        try:
            self.begin(progress)
        except Cancelled:
            if not isinstance(progress, Stoppable):
                raise
            self.finder.hurry = True
        waiting = [demand for demand in range(count) if not self.met(demand)]
        for number, demand in enumerate(waiting):
            try:
                report(progress, count - len(waiting) + number, count, FINDING)
            except Cancelled:
                if not isinstance(progress, Stoppable):
                    raise
                self.finder.hurry = True
            if not self.met(demand) and not self.meet(demand, nearby=self.large):
                self._refuse_unless(self.large, demand)
                self.hard.append(demand)
        self.protects = not self.hard
        report(progress, count, count, FINDING)

    def complete(self, progress: Progress | None = None) -> None:
        """Meet the demands that no move nearby meets: many at once by what is suppressed by now, then one by one."""
        waiting = [demand for demand in self.hard if not self.met(demand)]
        if waiting:
            meet_many(self, progress, everything=True)
        for number, demand in enumerate(waiting):
            report(progress, number, len(waiting), COMPLETING)
            self._refuse_unless(self.met(demand) or self.meet(demand), demand)
        self.hard, self.protects = [], True

    def _refuse_unless(self, possible: bool, demand: int) -> None:
        if not possible:
            why = "no set of cells that may be suppressed lets it move by its level"
            raise unprotectable(int(self.demands.cell[demand]), why)

    def meet(
        self, demand: int, without: int | None = None, limit: float = np.inf, *, nearby: bool = False
    ) -> bool:  # fmt: skip
        """Find moves until nobody who knows his own cells prevents it; False when there is none.

        Moves that would raise the cost of the pattern above `limit` are not looked for to the end. `without` a cell
        they are looked for `nearby` alone.
        """
        cell, level = int(self.demands.cell[demand]), float(self.demands.level[demand])
        banned = NO_CELLS if without is None else np.array([without])
        nearby |= without is not None
        while not self.met(demand):
            self.alive()
            moves = (
                self._cheapest(demand, level, np.concatenate([banned, still]), near or nearby, limit)
                for still, near in self._stills(demand)
            )
            move = next((move for move in moves if move is not None), None)
            if move is None and not self._less(demand, banned):
                return False
            waiting = (len(self.moves[demand]), self.open[demand])
            if move is not None:
                self.note(move)
                if waiting == (len(self.moves[demand]), self.open[demand]):
                    raise EngineError(f"The solver's move of cell {cell} falls short of its level.")
        return True

    def _cheapest(
        self, demand: int, level: float, still: Integers, nearby: bool, limit: float = np.inf
    ) -> TableMove | None:
        cell, sign = int(self.demands.cell[demand]), int(self.demands.sign[demand])
        most = max(0.0, limit - self.total)
        return self.finder.cheapest(cell, sign, level, self.free, still, nearby=nearby, most=most)

    def _less(self, demand: int, banned: Integers) -> bool:
        """Guard a demand to less than its level against the first in the way, if no pattern can do better."""
        if not self.in_the_way(demand):
            return False
        knower = min(self.in_the_way(demand))
        level = self.knowers.level(demand, knower, self.free)
        if level >= self.demands.level[demand] and len(banned):
            return False
        if level > 0:
            still = np.concatenate([banned, self.demands.cells_of[knower]])
            move = self._cheapest(demand, level, still, bool(len(banned)))
            if move is None and len(banned):
                return False
            if move is None:
                self.knowers.reached[demand, knower] = 0.0
            else:
                self.note(move)
                self.moves[demand].append(move)
                self._lean(demand, move.cells[~self.fixed[move.cells]].tolist())
        self.open[demand] -= {knower}
        return True

    def _stills(self, demand: int) -> Iterable[tuple[Integers, bool]]:
        """Cells to hold: nearby those of all contributors in the way at once, else of the first alone."""
        waiting = sorted(self.in_the_way(demand))
        if not waiting:
            return [(NO_CELLS, False)]
        cells = [self.demands.cells_of[knower] for knower in waiting]
        return [(np.concatenate(cells), True), (cells[0], False)] if len(cells) > 1 else [(cells[0], False)]

    def note(self, move: TableMove) -> None:
        """Keep a move for every demand it helps."""
        knowers = self.demands.knower[move.cells]
        groups, loose = frozenset(knowers[knowers >= 0].tolist()), move.cells[~self.fixed[move.cells]].tolist()
        for way, reach in enumerate(move.reach()):
            demands = self.demands.of_cell[move.cells, way]
            demanded = demands >= 0
            far = reach[demanded] >= self.demands.level[demands[demanded]] * (1 - SHORTFALL)
            for demand in demands[demanded][far].tolist():
                self._help(demand, move, groups, loose)

    def _help(self, demand: int, move: TableMove, groups: frozenset[int], loose: list[int]) -> None:
        if not self.moves[demand]:
            self.open[demand] = groups
        elif self.open[demand] - groups:
            self.open[demand] &= groups
        else:
            return
        self.moves[demand].append(move)
        self._lean(demand, loose)

    def _lean(self, demand: int, loose: list[int]) -> None:
        for cell in loose:
            if cell not in self.leaning[demand]:
                self.leaning[demand].add(cell)
                users = self.users.setdefault(cell, set())
                if not users:
                    self.total += float(self.cost[cell])
                    self.free[cell] = True
                users.add(demand)

    def _drop(self, demand: int) -> tuple[list[TableMove], frozenset[int]]:
        state = self.moves[demand], self.open[demand]
        for cell in self.leaning[demand]:
            users = self.users[cell]
            users.discard(demand)
            if not users:
                self.total -= float(self.cost[cell])
                self.free[cell] = False
        self.moves[demand], self.open[demand], self.leaning[demand] = [], NOBODY, set()
        return state

    def _restore(self, demand: int, state: tuple[list[TableMove], frozenset[int]]) -> None:
        self._drop(demand)
        self.moves[demand], self.open[demand] = state
        for move in state[0]:
            self._lean(demand, move.cells[~self.fixed[move.cells]].tolist())

    def improve(self, progress: Progress | None = None) -> bool:
        """Try to do without each cell, the dearest first, as long as that saves something; True if any went."""
        cells = self.secondary()
        order = cells[np.lexsort((cells, -self.cost[cells]))].tolist()
        improved = False
        part = min(MAX_REMOVAL_EFFORT, REMOVAL_EFFORT_PER_CELL * len(order)) / REMOVAL_PARTS
        until, before, parts = self.finder.effort + part, self.total, REMOVAL_PARTS
        for number, cell in enumerate(order):
            self.alive = partial(report, progress, number, len(order), "taking out what is not needed")
            self.alive()
            if self.finder.effort > until:
                parts -= 1
                if not parts or self.total > before * (1 - MIN_SAVED_SHARE):
                    break
                until, before = self.finder.effort + part, self.total
            if 0 < len(self.users[cell]) <= MAX_DEMANDS:
                improved |= self._without(cell)
        self.alive = partial(report, None, 0, 0, "")
        report(progress, len(order), len(order), "taking out what is not needed")
        return improved

    def _without(self, cell: int) -> bool:
        """Meet the demands that lean on a cell in another way, if that is cheaper in all.

        First those that lean on the fewest cells: what they come to need is there for the others.
        """
        return self._again(sorted(self.users[cell], key=lambda demand: (len(self.leaning[demand]), demand)), cell)

    def _again(self, affected: list[int], without: int | None) -> bool:
        before, slack = self.total, SHORTFALL * self.total
        states = [self._drop(demand) for demand in affected]
        try:
            cheaper = all(
                self.met(demand) or (self.meet(demand, without, before - slack) and self.total < before - slack)
                for demand in affected
            )
        except Cancelled:
            self._restore_all(affected, states)
            raise
        if not cheaper or self.total >= before - slack:
            self._restore_all(affected, states)
            return False
        return True

    def _restore_all(self, demands: list[int], states: list[tuple[list[TableMove], frozenset[int]]]) -> None:
        for demand, old in zip(demands, states, strict=True):
            self._restore(demand, old)

    def secondary(self) -> Integers:
        """The cells that are suppressed for the sake of others."""
        return np.array(sorted(cell for cell, users in self.users.items() if users), dtype=np.int64)

    def pattern(self) -> Booleans:
        """All suppressed cells."""
        suppressed = self.fixed.copy()
        suppressed[self.secondary()] = True
        return suppressed

    def witnesses(self) -> tuple[Integers, Integers, Floats, list[tuple[Integers, Floats]]]:
        """For each kept move: its demand, its row in a list of changes, the level it is kept for; and that list.

        A row is the cells that change and by how much. A move that meets many demands as it is has one row for all, and
        one of many cells one for each direction, scaled as the farthest demand asks.
        """
        owners, rows, levels = [], [], []
        changes: list[tuple[Integers, Floats]] = []
        shared: dict[int, int] = {}
        scaled: dict[tuple[int, bool], int] = {}
        for demand, moves in enumerate(self.moves):
            cell, sign = int(self.demands.cell[demand]), int(self.demands.sign[demand])
            for move in moves:
                level = min(float(self.demands.level[demand]), move.far(cell, sign))
                as_it_is = sign * move.change(cell) >= level * (1 - SHORTFALL) and move.forth >= 1
                if not as_it_is and len(move.cells) > MAX_SCALED_CELLS:
                    by, key = move.scaled(cell, sign, level), (id(move), sign * move.change(cell) > 0)
                    row = scaled.setdefault(key, len(changes))
                    if row == len(changes):
                        changes.append((move.cells, by))
                    elif abs(by[0]) > abs(changes[row][1][0]):
                        changes[row] = (move.cells, by)
                    owners.append(demand)
                    rows.append(row)
                    levels.append(level)
                    continue
                if not as_it_is or id(move) not in shared:
                    changes.append((move.cells, move.by if as_it_is else move.scaled(cell, sign, level)))
                row = shared.setdefault(id(move), len(changes) - 1) if as_it_is else len(changes) - 1
                owners.append(demand)
                rows.append(row)
                levels.append(level)
        return np.array(owners, dtype=np.int64), np.array(rows, dtype=np.int64), np.array(levels), changes
