"""Demands that bulk proofs leave open against contributors, each met by its cheapest move.

Cells that are suppressed cost nothing, so a move of these alone is found where one is near; else the move says what
else to suppress. What is suppressed more takes nothing from anybody's uncertainty: every table that was possible stays
possible, and who is alone in a cell knew it before. So one pass over what is open is enough.
"""

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.progress import Progress, report
from equipoise.tables._suppression.cheapest_move import Finder, TableMove
from equipoise.tables._suppression.problem import MOVE_TOLERANCE, SuppressionTable
from equipoise.tables._suppression.singletons import WEAK_LEVEL_SHARE

if TYPE_CHECKING:
    from equipoise.tables._suppression.contributor_knowledge import Minds
    from equipoise.tables._suppression.insider_proofs import InsiderProofs

MAX_FEW = 8
"""People against whom a demand is open up to which all their cells are held still at once."""
SHY_COST = 1e-3
"""Share of the typical cost that moving a cell counts which somebody knows against whom a demand is open."""
NO_CELLS = np.zeros(0, dtype=np.int64)


class OpenDemands:
    """Meets open demands with `usable` cells; `hidden` ones are suppressed, and grow. `weaker` cells keep less."""

    def __init__(
        self, table: SuppressionTable, usable: Booleans, hidden: Booleans, cost: Floats, levels: Floats, *,
        knower: Integers, work: float, progress: Progress | None = None, hurry: bool = False,
    ) -> None:  # fmt: skip
        self.table, self.usable, self.hidden, self.knower, self.progress = table, usable, hidden, knower, progress
        paid = cost[usable & ~hidden & (cost > 0)]
        shy = SHY_COST * (float(np.median(paid)) if len(paid) else 1.0)
        self.finder = Finder(table, usable, np.where(hidden, shy, cost), levels, progress)
        self.finder.hurry, self.left = hurry, work
        self.weaker: set[int] = set()
        self.moves: list[tuple[Integers, Floats]] = []

    def meet(self, proofs: "InsiderProofs", minds: "Minds", what: str) -> None:
        """Close what is open, the largest levels first. About one small program for each demand, or less."""
        waiting = proofs.waiting()
        waiting = waiting[np.argsort(-proofs.level[waiting], kind="stable")].tolist()
        for number, demand in enumerate(waiting):
            report(self.progress, number, len(waiting), what)
            if (not proofs.met[demand] or demand in proofs.open) and not self._met(demand, proofs, minds):
                self.weaker.add(int(proofs.cell[demand]))

    def _met(self, demand: int, proofs: "InsiderProofs", minds: "Minds") -> bool:
        """Find moves until nobody prevents a demand; False where that is not so to its full level."""
        cell, sign, level = int(proofs.cell[demand]), int(proofs.sign[demand]), float(proofs.level[demand])
        if not proofs.met[demand]:
            self._learn(self._cheapest(self.finder, cell, sign, level, self.hidden, NO_CELLS), proofs)
        if not proofs.met[demand]:
            return False
        full, many = True, True
        while demand in proofs.open:
            if self.left < 0:
                return False
            seats = proofs.open[demand].seats
            if many:
                many = False
                self._learn(self._against_many(cell, sign, level, seats, proofs, minds), proofs)
                continue
            who = int(proofs.seats.who[seats[0]])
            full &= self._against_one(cell, sign, level, who, proofs, minds)
            proofs.drop(demand, who)
        return full

    def _against_many(
        self, cell: int, sign: int, level: float, seats: Integers, proofs: "InsiderProofs", minds: "Minds"
    ) -> TableMove | None:  # fmt: skip
        """A move that leaves those alone against whom a demand is open: all of them, or of many as many as may be."""
        members = frozenset(proofs.seats.who[seats].tolist())
        if len(seats) == 1:
            return None
        if proofs.floor is None and len(seats) > MAX_FEW:
            free = self.hidden.copy()
            free[proofs.seats.first[seats]] = False
            free[cell] = True
            return self._cheapest(self._floored(minds, members, cell), cell, sign, level, free, NO_CELLS)
        finder, still = self._floored(minds, members, cell), minds.still(members)
        return self._cheapest(finder, cell, sign, level, self.hidden, still, nearby=True)

    def _against_one(
        self, cell: int, sign: int, level: float, who: int, proofs: "InsiderProofs", minds: "Minds"
    ) -> bool:  # fmt: skip
        """Meet a demand against one contributor, as far as the rest of the cell goes where he is in it."""
        members = frozenset({who})
        if sign < 0 and self.table.values[cell] >= self.table.down[cell]:
            level = min(level, float(self.table.values[cell]) - minds.own(cell, members))
        if level <= MOVE_TOLERANCE * abs(float(self.table.values[cell])):
            return True
        move, full = self.move(cell, sign, level, minds.still(members), self._floored(minds, members, cell))
        self._learn(move, proofs)
        return full

    def move(
        self, cell: int, sign: int, level: float, still: Integers, finder: Finder
    ) -> tuple[TableMove | None, bool]:  # fmt: skip
        """The cheapest move with some cells still, and whether to the level.

        Where there is none, one to `WEAK_LEVEL_SHARE` of the farthest that any pattern gives.
        """
        move = self._cheapest(finder, cell, sign, level, self.hidden, still)
        if move is not None:
            return move, True
        before = finder.effort + finder.bulk_work
        weak = WEAK_LEVEL_SHARE * finder.farthest(cell, sign, level, self.hidden, still)
        self._spend(finder, before)
        if weak > MOVE_TOLERANCE * level:
            move = self._cheapest(finder, cell, sign, weak, self.hidden, still)
        return move, False

    def _cheapest(
        self, finder: Finder, cell: int, sign: int, level: float, free: Booleans, still: Integers, *,
        nearby: bool = False,
    ) -> TableMove | None:  # fmt: skip
        before = finder.effort + finder.bulk_work
        move = finder.cheapest(cell, sign, level, free, still, nearby=nearby)
        self._spend(finder, before)
        return move

    def _spend(self, finder: Finder, before: int) -> None:
        self.left -= finder.effort + finder.bulk_work - before

    def _learn(self, move: TableMove | None, proofs: "InsiderProofs") -> None:
        if move is None:
            return
        self.hidden[move.cells] = True
        self.moves.append((move.cells, move.by))
        proofs.admit(move.cells, self.knower)
        proofs.learn(move.cells, move.by)

    def _floored(self, minds: "Minds", members: frozenset[int], cell: int) -> Finder:
        """The finder of a table in which some cells may not fall as far in the eyes of these people."""
        floor = minds.floor(members, np.arange(self.table.cells), cell)
        if floor is None:
            return self.finder
        finder = copy(self.finder)
        finder.table, finder.kept = replace(self.table, down=np.minimum(self.table.down, floor)), None
        return finder
