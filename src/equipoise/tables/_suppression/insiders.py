"""What contributors can compute of sensitive cells with what they know themselves: alone, among others, pooled.

Somebody who is alone in cells K knows them: y = 0 on K. Somebody who contributes c to an inner cell a among others
knows x_a >= c: y_a >= -(x_a - c). Against each of them a sensitive cell s must rise by its upper level, and fall by its
lower one as far as it is not his own: min(l, x_s - c_s), with c_s what he contributes to it himself. For the cell that
he is in these are the levels of the rule, which has counted with what its contributors know of it.

Few programs are needed. A move that leaves somebody's cells still proves the demand against him; only those whose cells
the kept moves touch are asked about. With coalitions of size k the same is asked again of those whom the best move
against a part of the coalition touches: whoever it does not touch takes nothing from it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.progress import Progress, report
from equipoise.tables._suppression.cheapest_move import TableMove
from equipoise.tables._suppression.feasible_moves import WHOLE_TOLERANCE, Component, components
from equipoise.tables._suppression.insider_proofs import LEVEL_TOLERANCE, MIN_BULK_CELLS, InsiderProofs
from equipoise.tables._suppression.problem import SuppressionTable

if TYPE_CHECKING:
    from equipoise.tables._suppression.contributor_knowledge import Minds

MAX_INSIDER_WORK = 6_000_000_000
"""Work (`Program.work`) of an audit against contributors: some 40 seconds; cells not reached by then are said."""
MAX_FEW = 12
"""People against whom a demand that is met is asked about one by one; for more a move is found that few touch."""
MAX_MOVES = 40
"""Moves kept for each sensitive cell, the latest."""
Members = frozenset[int]
Proofs = dict[tuple[int, int], tuple[bool, Members]]
"""By cell and sign of a demand: whether it is met, and against whom that is not proven yet."""
NOBODY: Members = frozenset()
WHAT = "auditing against those who contribute"


class Failure(NamedTuple):
    """A demand that is not met: `cell` should move by `level` in a direction (`sign`) with what is known held still."""

    cell: int
    sign: int
    level: float
    still: Integers
    floor: tuple[Integers, Floats] | None


@dataclass(frozen=True, eq=False, repr=False)
class GuardedCells:
    """How far each of `cells` can still move in the eyes of the worst placed: up to its levels, or what is less.

    `share` is that distance as a share of what is asked, the smaller of both ways; `exact` marks cells that somebody
    knows; `unsettled` those for which the audit stopped early; `failures` are what is asked and not met. `programs`
    says what it took.
    """

    cells: Integers
    down: Floats
    up: Floats
    share: Floats
    exact: Booleans
    unsettled: Booleans
    failures: tuple["Failure", ...]
    programs: int

    @property
    def weaker(self) -> Booleans:
        return (self.share < 1 - LEVEL_TOLERANCE) & ~self.unsettled


class InsiderAudit:
    """Demands of sensitive cells in one suppressed table, or several, asked against contributors; moves are shared."""

    def __init__(
        self, table: SuppressionTable, suppressed: Booleans, below: Floats, above: Floats, *, shy: Booleans,
        whole: bool = False, work: int = MAX_INSIDER_WORK, progress: Progress | None = None,
    ) -> None:  # fmt: skip
        self.shy = shy
        self.below, self.above = np.minimum(below, table.down), np.minimum(above, table.up)
        self.table, self.whole, self.work, self.progress = table, whole, work, progress
        levels = np.where(suppressed, np.maximum(self.below, self.above), 0.0)
        self.components = list(components(table, suppressed, levels, shy))
        self.sensitive = np.flatnonzero(suppressed & (levels > 0))
        self.moves: dict[int, list[TableMove]] = {}
        self.proofs: dict[str, Proofs] = {}
        self.learned: list[tuple[Integers, Floats]] = []
        self.nearby = False

    def against(self, minds: "Minds", size: int = 1, kind: str = "") -> GuardedCells:
        """The least that each sensitive cell keeps against any `size` of these people together.

        With a `kind` what is proven of it is kept in `proofs`, and proven in bulk first.
        """
        if kind and kind not in self.proofs and not self.whole:
            self.proofs[kind] = self._in_bulk(minds, size)
        proofs = self.proofs.get(kind, {})
        before = sum(part.programs for part in self.components)
        rows: list[tuple[int, float, float, float, bool, bool]] = []
        failures: list[Failure] = []
        for component in self.components:
            members = minds.members(component)
            for cell in np.intersect1d(component.cells, self.sensitive).tolist():
                report(self.progress, len(rows), len(self.sensitive), WHAT)
                if minds.matter(cell, component, members):
                    question = _CellQuestion(self, component, minds, cell, members, proofs)
                    rows.append(question.answer(size))
                    failures += question.failures
        programs = sum(part.programs for part in self.components) - before
        cells, down, up, share, exact, unsettled = (np.array([row[i] for row in rows]) for i in range(6))
        return GuardedCells(
            cells.astype(np.int64), down, up, share, exact.astype(np.bool_), unsettled.astype(np.bool_),
            tuple(failures), programs,
        )  # fmt: skip

    def _in_bulk(self, minds: "Minds", size: int) -> Proofs:
        """What is proven in bulk in large components; of coalitions what is proven against everybody at once."""
        parts = [part for part in self.components if len(part.cells) >= MIN_BULK_CELLS]
        knower, room, floor = minds.all_at_once()
        if not parts:
            return {}
        inside = np.zeros(self.table.cells, dtype=np.bool_)
        inside[np.concatenate([part.cells for part in parts])] = True
        cells = self.sensitive[inside[self.sensitive]]
        cell, sign = np.tile(cells, 2), np.repeat(np.array([1, -1]), len(cells))
        level = np.concatenate([self.above[cells], self.below[cells]])
        asked = level > 0
        bulk = InsiderProofs(self.table, parts, (cell[asked], sign[asked], level[asked]), knower, room, floor)
        for move in self.learned if size == 1 else ():
            bulk.learn(*move)
        self.learned = bulk.learned if size == 1 else self.learned
        bulk.run(self.progress, self.work // 2, together=size > 1)
        self.work -= bulk.work
        proofs = bulk.proofs()
        return {key: (met, NOBODY) for key, (met, _) in proofs.items() if met} if size > 1 else proofs

    def without(self, cell: int, suppressed: Booleans) -> "InsiderAudit":
        """The audit of a pattern that publishes one cell more; the moves that leave it still are kept."""
        fewer = InsiderAudit(
            self.table, suppressed, self.below, self.above, shy=self.shy, whole=self.whole, work=self.work
        )
        fewer.moves = {one: [m for m in moves if cell not in m.cells] for one, moves in self.moves.items()}
        return fewer

    @property
    def spent(self) -> bool:
        return self.work < 0

    def note(self, move: TableMove) -> None:
        self.learned.append((move.cells, move.by))
        for cell in np.intersect1d(move.cells, self.sensitive, assume_unique=True).tolist():
            moves = self.moves.setdefault(cell, [])
            moves.append(move)
            del moves[:-MAX_MOVES]


class _CellQuestion:
    """One sensitive cell: how far it gets both ways against the members of every coalition."""

    def __init__(
        self, audit: InsiderAudit, component: Component, minds: "Minds", cell: int, members: Members, proofs: Proofs
    ) -> None:  # fmt: skip
        self.audit, self.component, self.minds, self.cell = audit, component, minds, cell
        self.members, self.proofs, self.others = members, proofs, members
        self.unsettled = False
        self.failures: list[Failure] = []

    def answer(self, size: int) -> tuple[int, float, float, float, bool, bool]:
        down = self._way(-1, float(self.audit.below[self.cell]), size)
        up = self._way(1, float(self.audit.above[self.cell]), size)
        known = {who for who, (far, _) in down.items() if far <= 0} & {who for who, (far, _) in up.items() if far <= 0}
        share = min((far / level for far, level in (*down.values(), *up.values()) if level > 0), default=1.0)
        least = [min((far for far, _ in way.values()), default=0.0) for way in (down, up)]
        return self.cell, least[0], least[1], share, bool(known - {frozenset()}), self.unsettled

    def _way(self, sign: int, level: float, size: int) -> dict[Members, tuple[float, float]]:
        """For everybody who had to be asked about how far it gets, and what is asked; others take nothing from it."""
        answers: dict[Members, tuple[float, float]] = {}
        met, against = self.proofs.get((self.cell, sign), (False, NOBODY))
        self.others = against if met else self.members - {self.minds.same(self.cell)}
        waiting = [NOBODY]
        if met and len(against) <= MAX_FEW:
            answers[NOBODY] = (level, level)
            few = self._narrowed(sign, level, against) if size == 1 else against
            waiting = [frozenset({one}) for one in sorted(few)]
        self._ask_all(waiting, sign, level, size, answers)
        if not self.unsettled and not any(f.sign == sign for f in self.failures):
            self.proofs[self.cell, sign] = True, NOBODY
        return answers

    def _ask_all(
        self, waiting: list[Members], sign: int, level: float, size: int, answers: dict[Members, tuple[float, float]]
    ) -> None:  # fmt: skip
        """Ask about these, and about those whom the answers touch."""
        while waiting:
            members = waiting.pop()
            if members in answers:
                continue
            if len(members) > 1 and self.minds.theirs(self.cell, members):
                continue
            asked = level
            if sign < 0:
                endless = self.audit.table.values[self.cell] < self.audit.table.down[self.cell]
                rest = float(self.audit.table.values[self.cell]) - self.minds.own(self.cell, members)
                asked = level if endless else min(level, rest)
            if asked <= LEVEL_TOLERANCE * level:
                answers[members] = (0.0, 0.0)
                continue
            if self.audit.spent:
                self.unsettled = True
                return
            far, touched = self._best(sign, asked, members)
            answers[members] = (far, asked)
            if far < asked * (1 - LEVEL_TOLERANCE):
                self.failures.append(self._failure(sign, asked, members))
            elif size == 1:
                touched = self._narrowed(sign, asked, touched & self.others)
            wider = (members | {one} for one in touched & self.others)
            waiting += [group for group in wider if self.minds.people(group) <= size]

    def _narrowed(self, sign: int, level: float, members: Members) -> Members:
        """Those of some people against whom no move proves a demand that holds many of them still at once.

        Where all of them together prevent it, each half is asked about, and so on.
        """
        for move in self.audit.moves.get(self.cell, ()):
            if members and (touched := self._proves(move, sign, level, NOBODY)) is not None:
                members &= touched
        waiting, hard = [members], set[int]()
        while waiting:
            some = waiting.pop() & members
            if len(some) <= 1 or self.audit.spent:
                hard |= some
                continue
            far, touched = self._ask(sign, level, some, nearby=True)
            if far >= level * (1 - LEVEL_TOLERANCE):
                members &= touched
            else:
                order = sorted(some)
                waiting += [frozenset(order[: len(order) // 2]), frozenset(order[len(order) // 2 :])]
        return members & hard

    def _failure(self, sign: int, level: float, members: Members) -> Failure:
        floor = self.minds.floor(members, self.component.cells, self.cell)
        rooms = None
        if floor is not None:
            bounded = np.flatnonzero(np.isfinite(floor))
            rooms = self.component.cells[bounded], floor[bounded]
        return Failure(self.cell, sign, level, self.minds.still(members), rooms)

    def _best(self, sign: int, level: float, members: Members) -> tuple[float, Members]:
        """How far it gets with these people's cells still, and whom that move touches."""
        best: Members | None = None
        for move in self.audit.moves.get(self.cell, ()):
            touched = self._proves(move, sign, level, members)
            if touched is not None and (best is None or len(touched) < len(best)):
                best = touched
        if best is not None:
            return level, best
        if not members and self.others and len(self.component.cells) < MIN_BULK_CELLS:
            everybody = self._ask(sign, level, self.others)
            if everybody[0] >= level * (1 - LEVEL_TOLERANCE):
                return level, frozenset()
        return self._ask(sign, level, members)

    def _proves(self, move: TableMove, sign: int, level: float, members: Members) -> Members | None:
        """Whom a move touches, taken as far as the level; None where it falls short or one of the members knows."""
        if move.far(self.cell, sign) < level * (1 - LEVEL_TOLERANCE):
            return None
        by = move.scaled(self.cell, sign, level)
        if self.audit.whole and np.abs(by - np.round(by)).max() > WHOLE_TOLERANCE:
            return None
        touched = self.minds.touched(move, by, self.cell)
        return None if touched is None or touched & members else touched

    def _ask(self, sign: int, level: float, members: Members, *, nearby: bool = False) -> tuple[float, Members]:
        floor, still = self.minds.floor(members, self.component.cells, self.cell), self.minds.still(members)
        before = self.component.work
        far, move = self.component.move(
            self.cell, sign, level, still, floor, whole=self.audit.whole, nearby=nearby or self.audit.nearby
        )
        self.audit.work -= self.component.work - before
        if move is None:
            return 0.0, frozenset()
        self.audit.note(move)
        return far, self.minds.touched(move, move.scaled(self.cell, sign, far), self.cell) or frozenset()
