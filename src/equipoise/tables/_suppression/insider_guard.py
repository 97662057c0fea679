"""Further secondary suppressions against those who contribute, where a pattern leaves them more than it should.

What is suppressed more takes nothing from anybody's uncertainty: every table that was possible stays possible, and who
is alone in a cell knew it before. So each demand that is not met is met by its cheapest move.
"""

from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from equipoise.data.tables.linked_tables import Union
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.progress import Progress, tracked
from equipoise.tables._suppression.cheapest_move import Finder, TableMove
from equipoise.tables._suppression.contributor_knowledge import Minds, Nobody, kinds_of
from equipoise.tables._suppression.insiders import Failure, GuardedCells, InsiderAudit, Proofs
from equipoise.tables._suppression.problem import MOVE_TOLERANCE, SuppressionTable
from equipoise.tables._suppression.remembered_moves import remember
from equipoise.tables._suppression.singletons import WEAK_LEVEL_SHARE

MAX_ROUNDS = 5
"""Times that the pattern is widened: what is suppressed for one demand mostly serves the next."""
MAX_PRUNED = 2_000
"""Secondary times sensitive cells up to which secondary ones are tried for removal after the pattern was widened."""
PRUNING_TOLERANCE = 1e-9
"""Share of its level that a cell may lose by the removal of another: rounding."""
WIDENING = "suppressing more against those who contribute"
GUARD_SHARE, MIN_GUARD_WORK = 2, 6_000_000_000
"""Work of the proofs as a multiple of that of the pattern; what they may take anyway: all have to be looked at."""
MAX_WIDENING_WORK = 3_000_000_000
"""Work spent at most on further cells."""


@dataclass(frozen=True, eq=False, repr=False)
class GuardedPattern:
    """All suppressed cells, and those among them that somebody who contributes still knows too closely."""

    suppressed: Booleans
    weaker: Integers


def widened(
    union: Union, table: SuppressionTable, suppressed: Booleans, usable: Booleans, *, below: Floats, above: Floats,
    cost: Floats, coalition: int, work: int = 0, progress: Progress | None = None,
) -> GuardedPattern:  # fmt: skip
    """The pattern with what else it takes to guard against every kind of contributor, as far as cells may be used.

    Where no pattern gives a level, `WEAK_LEVEL_SHARE` of the farthest possible is asked for. Cost: the audit against
    contributors, and one small program for each demand that failed; proofs take up to twice the `work` of the pattern,
    or `MIN_GUARD_WORK` where that is more. What is not reached by then is `weaker`.
    """
    levels = np.concatenate([below[below > 0], above[above > 0]])
    hidden, meeting = suppressed.copy(), _Meeting(table, usable, cost, levels, progress)
    moves: dict[int, list[TableMove]] = {}
    proofs: dict[str, Proofs] = {}
    learned: list[tuple[Integers, Floats]] = []
    left = max(GUARD_SHARE * work, MIN_GUARD_WORK)
    for _ in range(MAX_ROUNDS):
        shy = hidden & (union.knowers >= 0)
        audit = InsiderAudit(table, hidden, below, above, shy=shy, work=left, progress=progress)
        audit.moves, audit.proofs, audit.learned, audit.nearby = moves, proofs, learned, True
        kinds = kinds_of(union, table, hidden, coalition)
        answers = [audit.against(minds, size, kind) for kind, (minds, size) in kinds.items()]
        moves, proofs, learned, left = audit.moves, audit.proofs, audit.learned, audit.work
        failures = [failure for one in answers for failure in one.failures]
        if not sum(meeting.meet(failure, hidden, audit) for failure in tracked(failures, WIDENING, progress)):
            break
    weaker = {cell for cell, *_ in meeting.hopeless} | {failure.cell for failure in failures}
    weaker |= {cell for one in answers for cell in one.cells[one.unsettled].tolist()}
    added = np.flatnonzero(hidden & (below + above <= 0))
    if int(hidden.sum()) > int(suppressed.sum()) and len(added) * int((below + above > 0).sum()) <= MAX_PRUNED:
        audit = InsiderAudit(table, hidden, below, above, shy=hidden & (union.knowers >= 0))
        audit.moves = moves
        hidden = _pruned(audit, kinds, hidden, added[np.argsort(-cost[added], kind="stable")])
    remember(table.values, hidden, learned)
    return GuardedPattern(hidden, np.array(sorted(weaker), dtype=np.int64))


def _pruned(audit: InsiderAudit, kinds: dict[str, tuple[Minds, int]], hidden: Booleans, cells: Integers) -> Booleans:
    """The pattern without secondary cells, the dearest first, that nobody's levels need."""
    everybody = [(Nobody(), 0, 0.0), *((minds, size, 1.0) for minds, size in kinds.values())]
    kept = [audit.against(minds, size) for minds, size, _ in everybody]
    for cell in cells.tolist():
        trial = hidden.copy()
        trial[cell] = False
        fewer = audit.without(cell, trial)
        answers = ((fewer.against(minds, size), absent) for minds, size, absent in everybody)
        if all(_as_good(new, old, absent) for (new, absent), old in zip(answers, kept, strict=True)):
            hidden, audit = trial, fewer
    return hidden


def _as_good(new: GuardedCells, old: GuardedCells, absent: float) -> bool:
    """Whether every sensitive cell keeps what it kept; one that nothing moves any more keeps the share `absent`.

    To an outsider that is nothing; contributors then have nothing to add, and the outsider's answer decides.
    """
    before = dict(zip(old.cells.tolist(), old.share.tolist(), strict=True))
    shares = dict(zip(new.cells.tolist(), new.share.tolist(), strict=True))
    if new.unsettled.any() or (new.exact.sum() > old.exact.sum()):
        return False
    return all(shares.get(cell, absent) >= share - PRUNING_TOLERANCE for cell, share in before.items())


class _Meeting:
    """Demands that a pattern does not meet, each met by its cheapest move; what no pattern meets is remembered."""

    def __init__(
        self, table: SuppressionTable, usable: Booleans, cost: Floats, levels: Floats, progress: Progress | None
    ) -> None:
        self.table, self.usable, self.cost, self.levels = table, usable, cost, levels
        self.finder = Finder(table, usable, cost, levels, progress) if len(levels) else None
        self.left, self.hopeless = MAX_WIDENING_WORK, set[tuple[int, int, bytes]]()

    def meet(self, failure: Failure, hidden: Booleans, audit: InsiderAudit) -> bool:
        """Suppress what the cheapest move needs that meets a demand, or a weaker one; whether there was such a move."""
        key = (failure.cell, failure.sign, failure.still.tobytes())
        if self.finder is None or self.left < 0 or key in self.hopeless:
            return False
        finder = self.finder if failure.floor is None else self._floored(*failure.floor)
        before = int(finder.effort + finder.bulk_work)
        move = finder.cheapest(failure.cell, failure.sign, failure.level, hidden, failure.still)
        if move is None:
            self.hopeless.add(key)
            weak = WEAK_LEVEL_SHARE * finder.farthest(failure.cell, failure.sign, failure.level, hidden, failure.still)
            if weak > MOVE_TOLERANCE * failure.level:
                move = finder.cheapest(failure.cell, failure.sign, weak, hidden, failure.still)
        if move is not None:
            hidden[move.cells] = True
            audit.note(move)
        self.left -= int(finder.effort + finder.bulk_work) - before
        return move is not None

    def _floored(self, cells: Integers, rooms: Floats) -> Finder:
        """The finder of a table in which some cells may not fall as far."""
        assert self.finder is not None
        down = self.table.down.copy()
        down[cells] = np.minimum(down[cells], rooms)
        finder = copy(self.finder)
        finder.table, finder.kept = replace(self.table, down=down), None
        return finder
