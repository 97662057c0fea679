"""Further secondary suppressions against those who contribute, where a pattern leaves them more than it should.

What is suppressed more takes nothing from anybody's uncertainty: every table that was possible stays possible, and who is
alone in a cell knew it before. So each demand that is not met by its kind of contributor is met by its cheapest move.
"""

from dataclasses import replace

import numpy as np

from equipoise.data.tables.linked_tables import Union
from equipoise.ground.arrays import Booleans, Floats
from equipoise.ground.progress import Progress
from equipoise.tables._suppression.cheapest_move import Finder
from equipoise.tables._suppression.insiders import Failure, InsiderAudit, kinds_of
from equipoise.tables._suppression.problem import SuppressionTable

MAX_ROUNDS = 5
"""Times that the pattern is widened: what is suppressed for one demand mostly serves the next."""
MAX_WIDENING_WORK = 3_000_000_000
"""Work (`Program.work`) spent at most on further cells: some 20 seconds."""


def widened(
    union: Union, table: SuppressionTable, suppressed: Booleans, usable: Booleans, *, below: Floats, above: Floats,
    cost: Floats, coalition: int, progress: Progress | None = None,
) -> Booleans:  # fmt: skip
    """The pattern with what else it takes to guard against every kind of contributor, as far as cells may be suppressed.

    Cost: the audit against contributors, again after each round, and one small program for each demand that failed.
    """
    hidden, work = suppressed.copy(), 0
    for _ in range(MAX_ROUNDS):
        audit = InsiderAudit(table, hidden, below, above, shy=hidden & (union.knowers >= 0), progress=progress)
        kinds = kinds_of(union, table, hidden, coalition)
        failures = [failure for minds, size in kinds.values() for failure in audit.against(minds, size).failures]
        before = int(hidden.sum())
        for failure in failures:
            work += _meet(failure, table, hidden, usable, cost) if work < MAX_WIDENING_WORK else 0
        if int(hidden.sum()) == before:
            break
    return hidden


def _meet(failure: Failure, table: SuppressionTable, hidden: Booleans, usable: Booleans, cost: Floats) -> int:
    """Suppress what the cheapest move needs that meets a demand, if there is one; says what work that took."""
    if failure.floor is not None:
        table = replace(table, down=np.minimum(table.down, failure.floor))
    finder = Finder(table, usable, cost, np.array([failure.level]))
    move = finder.cheapest(failure.cell, failure.sign, failure.level, hidden, failure.still)
    if move is not None:
        hidden[move.cells] = True
    return int(finder.work)
