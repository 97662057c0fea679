"""Further secondary suppressions against those who contribute, where a pattern leaves them more than it should.

What is suppressed more takes nothing from anybody's uncertainty: every table that was possible stays possible, and who
is alone in a cell knew it before. So each demand that is not met is met by its cheapest move.
"""

from dataclasses import dataclass

import numpy as np

from equipoise.data.tables.linked_tables import Union
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.progress import Progress, tracked
from equipoise.tables._suppression.cheapest_move import TableMove
from equipoise.tables._suppression.contributor_knowledge import Minds, Nobody, kinds_of
from equipoise.tables._suppression.insiders import GuardedCells, InsiderAudit
from equipoise.tables._suppression.open_demands import OpenDemands
from equipoise.tables._suppression.problem import SuppressionTable
from equipoise.tables._suppression.remembered_moves import Moves

MAX_ROUNDS = 5
"""Times that the pattern is widened: what is suppressed for one demand mostly serves the next."""
MAX_PRUNED = 2_000
"""Secondary times sensitive cells up to which secondary ones are tried for removal after the pattern was widened."""
PRUNING_TOLERANCE = 1e-9
"""Share of its level that a cell may lose by the removal of another: rounding."""
WIDENING = "suppressing more against those who contribute"
GUARD_SHARE, MIN_GUARD_WORK = 2, 800_000_000
"""Work of the guard as a multiple of that of the pattern; what it may take anyway: some 20 seconds."""


@dataclass(frozen=True, eq=False, repr=False)
class GuardedPattern:
    """All suppressed cells, those that a contributor still knows too closely, and moves that prove the others."""

    suppressed: Booleans
    weaker: Integers
    moves: Moves


def widened(
    union: Union, table: SuppressionTable, suppressed: Booleans, usable: Booleans, *, below: Floats, above: Floats,
    cost: Floats, coalition: int, moves: Moves, work: int = 0, progress: Progress | None = None, hurry: bool = False,
) -> GuardedPattern:  # fmt: skip
    """The pattern with what else it takes to guard against every kind of contributor, as far as cells may be used.

    Where no pattern gives a level, `WEAK_LEVEL_SHARE` of the farthest possible is asked for. `moves` are those that
    prove the pattern. Cost: bulk proofs, and about one small program for each demand that they leave open, up to twice
    the `work` of the pattern, or `MIN_GUARD_WORK` where that is more. What is not reached by then is `weaker`.
    """
    levels = np.concatenate([below[below > 0], above[above > 0]])
    hidden, left = suppressed.copy(), max(GUARD_SHARE * work, MIN_GUARD_WORK)
    if not len(levels):
        return GuardedPattern(hidden, np.zeros(0, dtype=np.int64), moves)
    meeting = OpenDemands(
        table, usable, hidden, cost, levels, knower=union.knowers, work=left, progress=progress, hurry=hurry
    )
    audit = InsiderAudit(
        table, suppressed, below, above, shy=hidden & (union.knowers >= 0), work=left, progress=progress
    )  # fmt: skip
    audit.learned = list(moves)
    kinds = kinds_of(union, table, suppressed, coalition)
    for kind, (minds, size) in kinds.items():
        if size > 1:
            _widen_for_coalitions(meeting, union, kind, (below, above), coalition, progress)
            continue
        proofs = audit.in_bulk(minds)
        for cells, by in meeting.moves:
            proofs.admit(cells, union.knowers)
            proofs.learn(cells, by)
        meeting.left = audit.work
        meeting.meet(proofs, minds, WIDENING)
        audit.work = meeting.left
    added = np.flatnonzero(hidden & (below + above <= 0))
    if int(hidden.sum()) > int(suppressed.sum()) and len(added) * int((below + above > 0).sum()) <= MAX_PRUNED:
        audit = InsiderAudit(table, hidden, below, above, shy=hidden & (union.knowers >= 0))
        for cells, by in meeting.moves:
            audit.note(TableMove.of(table, cells, by))
        kinds = kinds_of(union, table, hidden, coalition)
        hidden = _pruned(audit, kinds, hidden, added[np.argsort(-cost[added], kind="stable")])
    weaker = np.array(sorted(meeting.weaker), dtype=np.int64)
    return GuardedPattern(hidden, weaker, [*audit.learned, *meeting.moves])


def _widen_for_coalitions(
    meeting: OpenDemands, union: Union, kind: str, levels: tuple[Floats, Floats], coalition: int,
    progress: Progress | None,
) -> None:  # fmt: skip
    """Suppress more until no coalition learns too much, or nothing helps: what is open is asked again each time."""
    hopeless: set[tuple[int, int, bytes]] = set()
    audit: InsiderAudit | None = None
    for _ in range(MAX_ROUNDS):
        hidden = meeting.hidden
        new = InsiderAudit(
            meeting.table, hidden, *levels, shy=hidden & (union.knowers >= 0), work=int(meeting.left), progress=progress
        )
        new.nearby = True
        if audit is not None:
            new.moves, new.proofs = audit.moves, audit.proofs
        audit = new
        minds, size = kinds_of(union, meeting.table, hidden, coalition)[kind]
        answer = audit.against(minds, size, kind)
        failing = False
        for failure in tracked(answer.failures, WIDENING, progress):
            key = failure.cell, failure.sign, failure.still.tobytes()
            if key in hopeless or meeting.left < 0:
                continue
            move, full = meeting.move(failure.cell, failure.sign, failure.level, failure.still, meeting.finder)
            if not full:
                hopeless.add(key)
            if move is not None:
                failing = True
                hidden[move.cells] = True
                audit.note(move)
        if not failing:
            break
    meeting.weaker |= {failure.cell for failure in answer.failures} | {cell for cell, *_ in hopeless}
    meeting.weaker |= set(answer.cells[answer.unsettled].tolist())


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
