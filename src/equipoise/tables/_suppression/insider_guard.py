"""Further secondary suppressions against those who contribute, where a pattern leaves them more than it should.

What is suppressed more takes nothing from anybody's uncertainty: every table that was possible stays possible, and who
is alone in a cell knew it before. So each demand that is not met is met by its cheapest move.
"""

from dataclasses import dataclass, replace

import numpy as np

from equipoise.data.tables.linked_tables import Union
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.progress import Progress
from equipoise.tables._suppression.cheapest_move import Finder
from equipoise.tables._suppression.feasible_moves import NO_CELLS
from equipoise.tables._suppression.insiders import Failure, InsiderAudit, kinds_of
from equipoise.tables._suppression.problem import MOVE_TOLERANCE, SuppressionTable
from equipoise.tables._suppression.singletons import WEAK_LEVEL_SHARE

MAX_ROUNDS = 5
"""Times that the pattern is widened: what is suppressed for one demand mostly serves the next."""
MAX_WIDENING_WORK = 3_000_000_000
"""Work (`Program.work`) spent at most on further cells: some 20 seconds."""


@dataclass(frozen=True, eq=False, repr=False)
class GuardedPattern:
    """All suppressed cells, and those among them that somebody who contributes still knows too closely."""

    suppressed: Booleans
    weaker: Integers


def widened(
    union: Union, table: SuppressionTable, suppressed: Booleans, usable: Booleans, *, below: Floats, above: Floats,
    cost: Floats, coalition: int, progress: Progress | None = None,
) -> GuardedPattern:  # fmt: skip
    """The pattern with what else it takes to guard against every kind of contributor, as far as cells may be used.

    Where no pattern gives a level, `WEAK_LEVEL_SHARE` of the farthest possible is asked for. Cost: the audit against
    contributors, again after each round, and one small program for each demand that failed.
    """
    hidden, meeting = suppressed.copy(), _Meeting(table, usable, cost)
    for _ in range(MAX_ROUNDS):
        audit = InsiderAudit(table, hidden, below, above, shy=hidden & (union.knowers >= 0), progress=progress)
        kinds = kinds_of(union, table, hidden, coalition)
        answers = [audit.against(minds, size) for minds, size in kinds.values()]
        weaker = np.unique(np.concatenate([NO_CELLS, *(one.cells[one.weaker | one.unsettled] for one in answers)]))
        before = int(hidden.sum())
        for failure in (failure for one in answers for failure in one.failures):
            meeting.meet(failure, hidden)
        if int(hidden.sum()) == before:
            break
    return GuardedPattern(hidden, weaker)


class _Meeting:
    """Demands that a pattern does not meet, each met by its cheapest move; what no pattern meets is remembered."""

    def __init__(self, table: SuppressionTable, usable: Booleans, cost: Floats) -> None:
        self.table, self.usable, self.cost = table, usable, cost
        self.work, self.hopeless = 0, set[tuple[int, int, bytes]]()

    def meet(self, failure: Failure, hidden: Booleans) -> None:
        """Suppress what the cheapest move needs that meets a demand, or a weaker one."""
        key = (failure.cell, failure.sign, failure.still.tobytes())
        if self.work > MAX_WIDENING_WORK or key in self.hopeless:
            return
        table = self.table
        if failure.floor is not None:
            table = replace(table, down=np.minimum(table.down, failure.floor))
        finder = Finder(table, self.usable, self.cost, np.array([failure.level]))
        move = finder.cheapest(failure.cell, failure.sign, failure.level, hidden, failure.still)
        if move is None:
            self.hopeless.add(key)
            weak = WEAK_LEVEL_SHARE * finder.farthest(failure.cell, failure.sign, failure.level, failure.still)
            if weak > MOVE_TOLERANCE * failure.level:
                move = finder.cheapest(failure.cell, failure.sign, weak, hidden, failure.still)
        if move is not None:
            hidden[move.cells] = True
        self.work += int(finder.work)
