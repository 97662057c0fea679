"""Further secondary suppressions against those who contribute, where a pattern leaves them more than it should.

What is suppressed more takes nothing from anybody's uncertainty: every table that was possible stays possible, and who
is alone in a cell knew it before. So each demand that is not met is met by its cheapest move, the smallest level first.
"""

from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from equipoise.data.tables.linked_tables import Union
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.progress import Progress, Stoppable, tracked
from equipoise.tables._suppression.cheapest_move import Finder, TableMove
from equipoise.tables._suppression.contributor_knowledge import Minds, Nobody, kinds_of
from equipoise.tables._suppression.insiders import Failure, GuardedCells, InsiderAudit, Proofs
from equipoise.tables._suppression.problem import LEVEL_TOLERANCE, MOVE_TOLERANCE, SuppressionTable
from equipoise.tables._suppression.remembered_moves import Moves
from equipoise.tables._suppression.singletons import WEAK_LEVEL_SHARE

MAX_ROUNDS = 5
"""Times that the pattern is widened: what is suppressed for one demand mostly serves the next."""
MAX_PRUNED = 2_000
"""Secondary times sensitive cells up to which secondary ones are tried for removal after the pattern was widened."""
MAX_FAILED_TRIALS = 8
"""Cells in a row that turn out to be needed, the dearest first, after which no more are tried."""
PRUNING_TOLERANCE = 1e-9
"""Share of its level that a cell may lose by the removal of another: rounding."""
WIDENING = "suppressing more against those who contribute"
GUARD_SHARE, MIN_GUARD_WORK = 2, 6_000_000_000
"""Work of the proofs as a multiple of that of the pattern; what they may take anyway: all have to be looked at."""
MAX_WIDENING_WORK = 3_000_000_000
"""Work spent at most on further cells."""


@dataclass(frozen=True, eq=False, repr=False)
class GuardedPattern:
    """All suppressed cells, those that somebody who contributes still knows too closely, and moves for the rest."""

    suppressed: Booleans
    weaker: Integers
    moves: Moves


def widened(
    union: Union, table: SuppressionTable, suppressed: Booleans, usable: Booleans, *, below: Floats, above: Floats,
    cost: Floats, coalition: int, work: int = 0, moves: Moves | None = None, stoppable: Stoppable | None = None,
) -> GuardedPattern:  # fmt: skip
    """The pattern with what else it takes to guard against every kind of contributor, as far as cells may be used.

    Where no pattern gives a level, `WEAK_LEVEL_SHARE` of the farthest possible is asked for. Cost: the audit against
    contributors, and one small program for each demand that failed; proofs take up to twice the `work` of the pattern,
    or `MIN_GUARD_WORK` where that is more. What is not reached by then is `weaker`. After a stop demands are met by the
    first move found, and no cell is taken out.
    """
    progress = None if stoppable is None else stoppable.going_on
    levels = np.concatenate([below[below > 0], above[above > 0]])
    hidden, meeting = suppressed.copy(), _Meeting(table, usable, cost, levels, progress)
    found: dict[int, list[TableMove]] = {}
    proofs: dict[str, Proofs] = {}
    learned = list(moves or ())
    left = max(GUARD_SHARE * work, MIN_GUARD_WORK)
    for number in range(MAX_ROUNDS):
        shy = hidden & (union.knowers >= 0)
        audit = InsiderAudit(table, hidden, below, above, shy=shy, work=left, progress=progress)
        audit.moves, audit.proofs, audit.learned, audit.nearby = found, proofs, learned, True
        kinds = kinds_of(union, table, hidden, coalition)
        answers = [audit.against(minds, size, kind) for kind, (minds, size) in kinds.items()]
        found, proofs, learned, left = audit.moves, audit.proofs, audit.learned, audit.work
        failures = sorted((failure for one in answers for failure in one.failures), key=lambda one: one.level)
        nearby = number == 0 and meeting.finder is not None and meeting.finder.large
        moved = []
        for failure in tracked(failures, WIDENING, progress):
            meeting.hurry = stoppable is not None and stoppable.stopped
            moved.append(meeting.meet(failure, hidden, audit, nearby=nearby))
        if not any(moved) and not nearby:
            break
    weaker = {cell for cell, *_ in meeting.hopeless} | {failure.cell for failure in failures}
    weaker |= {cell for one in answers for cell in one.cells[one.unsettled].tolist()}
    added = np.flatnonzero(hidden & (below + above <= 0))
    few = len(added) * int((below + above > 0).sum()) <= MAX_PRUNED
    if few and not meeting.hurry and int(hidden.sum()) > int(suppressed.sum()):
        audit = InsiderAudit(table, hidden, below, above, shy=hidden & (union.knowers >= 0))
        audit.learned, audit.proofs, audit.one_by_one = learned, proofs, True
        hidden = _pruned(audit, kinds, hidden, added[np.argsort(-cost[added], kind="stable")])
    return GuardedPattern(hidden, np.array(sorted(weaker), dtype=np.int64), learned)


def _pruned(audit: InsiderAudit, kinds: dict[str, tuple[Minds, int]], hidden: Booleans, cells: Integers) -> Booleans:
    """The pattern without secondary cells, the dearest first, that nobody's levels need."""
    everybody = {"outsider": (Nobody(), 0)} | kinds
    kept = {kind: audit.against(minds, size, kind) for kind, (minds, size) in everybody.items()}
    failed = 0
    for cell in cells.tolist():
        fewer = audit.without(cell)
        failed += 1
        if all(_as_good(fewer, kind, *one, old=kept[kind]) for kind, one in everybody.items()):
            audit, failed = fewer, 0
        if failed >= MAX_FAILED_TRIALS:
            break
    hidden = hidden.copy()
    hidden[audit.published] = False
    return hidden


def _as_good(audit: InsiderAudit, kind: str, minds: Minds, size: int, *, old: GuardedCells) -> bool:
    """Whether every sensitive cell keeps what it kept."""
    before = dict(zip(old.cells.tolist(), old.share.tolist(), strict=True))
    audit.enough = before
    new = audit.against(minds, size, kind)
    if new.unsettled.any() or (new.exact.sum() > old.exact.sum()):
        return False
    shares = dict(zip(new.cells.tolist(), new.share.tolist(), strict=True))
    return all(shares.get(cell, 0.0) >= share - PRUNING_TOLERANCE for cell, share in before.items())


class _Meeting:
    """Demands that a pattern does not meet, each met by its cheapest move; what no pattern meets is remembered."""

    def __init__(
        self, table: SuppressionTable, usable: Booleans, cost: Floats, levels: Floats, progress: Progress | None
    ) -> None:
        self.table, self.usable, self.cost, self.levels = table, usable, cost, levels
        self.finder = Finder(table, usable, cost, levels, progress) if len(levels) else None
        self.left, self.hopeless = MAX_WIDENING_WORK, set[tuple[int, int, bytes]]()
        self.hurry = False

    def meet(self, failure: Failure, hidden: Booleans, audit: InsiderAudit, *, nearby: bool = False) -> bool:
        """Suppress what the cheapest move needs that meets a demand, or a weaker one; whether there was such a move.

        In the first round `nearby` alone: what is not met there mostly is by what others need. A move that was found
        for somebody else in the same cell often meets it.
        """
        key = (failure.cell, failure.sign, failure.still.tobytes())
        if self.finder is None or self.left < 0 or key in self.hopeless:
            return False
        if any(_meets(move, failure) for move in audit.moves.get(failure.cell, ())):
            return True
        finder = self.finder if failure.floor is None else self._floored(*failure.floor)
        finder.hurry = self.hurry
        before = int(finder.effort + finder.bulk_work)
        move = finder.cheapest(failure.cell, failure.sign, failure.level, hidden, failure.still, nearby=nearby)
        if move is None and not nearby:
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


def _meets(move: TableMove, failure: Failure) -> bool:
    """Whether a move of suppressed cells takes a cell to its level with what is known held still."""
    if move.far(failure.cell, failure.sign) < failure.level * (1 - LEVEL_TOLERANCE):
        return False
    if np.isin(move.cells, failure.still).any():
        return False
    cells, rooms = failure.floor or (move.cells[:0], move.by[:0])
    bounded = np.isin(move.cells, cells)
    by = move.scaled(failure.cell, failure.sign, failure.level)[bounded]
    return bool((by >= -rooms[np.searchsorted(cells, move.cells[bounded])]).all())
