"""What contributors can compute of sensitive cells with what they know themselves: alone, among others, pooled.

Somebody who is alone in cells K knows them: y = 0 on K. Somebody who contributes c to an inner cell a among others
knows x_a >= c: y_a >= -(x_a - c). Against each of them a sensitive cell s must rise by its upper level, and fall by its
lower one as far as it is not his own: min(l, x_s - c_s), with c_s what he contributes to it himself. For the cell that
he is in these are the levels of the rule, which has counted with what its contributors know of it.

Few programs are needed. A move that leaves somebody's cells still proves the demand against him; only those whose cells
the kept moves touch are asked about. With coalitions of size k the same is asked again of those whom the best move
against a part of the coalition touches: whoever it does not touch takes nothing from it.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.progress import Progress, report
from equipoise.tables._suppression.cheapest_move import RELATION_TOLERANCE, TableMove
from equipoise.tables._suppression.circuit_moves import CircuitMoves
from equipoise.tables._suppression.feasible_moves import NO_CELLS, WHOLE_TOLERANCE, Component, components
from equipoise.tables._suppression.insider_proofs import MIN_BULK_CELLS, InsiderProofs
from equipoise.tables._suppression.move_proofs import MoveProofs
from equipoise.tables._suppression.problem import LEVEL_TOLERANCE, SuppressionTable
from equipoise.tables._suppression.remembered_moves import Moves, in_turn, missed_by

if TYPE_CHECKING:
    from equipoise.tables._suppression.contributor_knowledge import Minds

MAX_INSIDER_WORK = 6_000_000_000
"""Work (`Program.work`) of an audit against contributors: some 40 seconds; cells not reached by then are said."""
MAX_FEW = 12
"""People against whom a demand that is met is asked about one by one; for more a move is found that few touch."""
MAX_SPARSE_CELLS, LEAST_CHANGE_SHARE = 500, 1e-3
"""Cells of a move that was found before up to which it is kept, and the share of its largest change that may be asked
for: it must add up to that."""
MAX_ELIMINATIONS, MIN_CIRCUIT_CELLS, MAX_CIRCUIT_CELLS = 6, 40, 600
"""Orders in which the relations of suppressed cells that hang together are eliminated; cells for which. Circuits move
by ones and so prove most levels of counts: no bulk moves for as many cells of these."""
MIN_TRIAL_DEMANDS = 24
"""Demands that a trial without a cell leaves open from which on circuits are looked at: fewer take a program each."""
MAX_MOVES = 40
"""Moves kept for each sensitive cell, the latest."""
Members = frozenset[int]
Proofs = dict[tuple[int, int], tuple[bool, Members]]
"""By cell and sign of a demand: whether it is met, and against whom that is not proven yet."""
NOBODY: Members = frozenset()
PROVEN = (True, NOBODY)
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
        self.shy, self.hidden = shy, suppressed
        self.below, self.above = np.minimum(below, table.down), np.minimum(above, table.up)
        self.table, self.whole, self.work, self.progress = table, whole, work, progress
        levels = np.where(suppressed, np.maximum(self.below, self.above), 0.0)
        self.components = list(components(table, suppressed, levels, shy))
        self.asked = suppressed & (levels > 0)
        self.sensitive = np.flatnonzero(self.asked)
        pairs = zip(self.below[self.sensitive].tolist(), self.above[self.sensitive].tolist(), strict=True)
        self.levels = dict(zip(self.sensitive.tolist(), pairs, strict=True))
        self.enough: dict[int, float] = {}
        self.moves: dict[int, list[TableMove]] = {}
        self.proofs: dict[str, Proofs] = {}
        self.learned: list[tuple[Integers, Floats]] = []
        self.known: MoveProofs | None = None
        self.drawn: dict[int, CircuitMoves] = {}
        self.published, self.nearby, self.one_by_one = NO_CELLS, False, whole
        counts = np.array_equal(levels, np.round(levels))
        self.bulk_cells = MAX_CIRCUIT_CELLS + 1 if counts else MIN_BULK_CELLS

    def against(self, minds: "Minds", size: int = 1, kind: str = "") -> GuardedCells:
        """The least that each sensitive cell keeps against any `size` of these people together.

        With a `kind` what is proven of it is kept in `proofs`, and proven in bulk first.
        """
        if kind and kind not in self.proofs:
            self.proofs[kind] = self._by_moves(minds, size) | ({} if self.one_by_one else self._in_bulk(minds, size))
        proofs = self.proofs.get(kind, {})
        before = sum(part.programs for part in self.components)
        rows: list[tuple[int, float, float, float, bool, bool]] = []
        failures: list[Failure] = []
        for component in self.components:
            members = minds.members(component)
            for cell in component.cells[self.asked[component.cells]].tolist():
                report(self.progress, len(rows), len(self.sensitive), WHAT)
                if not minds.matter(cell, component, members):
                    continue
                below, above = self.levels[cell]
                if all(proofs.get((cell, sign)) == PROVEN for sign, level in ((-1, below), (1, above)) if level > 0):
                    rows.append((cell, below, above, 1.0, False, False))
                    continue
                question = _CellQuestion(self, component, minds, cell, members, proofs)
                rows.append(question.answer(size))
                failures += question.failures
                if rows[-1][3] < self.enough.get(cell, 0.0) * (1 - LEVEL_TOLERANCE):
                    break
        programs = sum(part.programs for part in self.components) - before
        cells, down, up, share, exact, unsettled = (np.array([row[i] for row in rows]) for i in range(6))
        return GuardedCells(
            cells.astype(np.int64), down, up, share, exact.astype(np.bool_), unsettled.astype(np.bool_),
            tuple(failures), programs,
        )  # fmt: skip

    def _by_moves(self, minds: "Minds", size: int) -> Proofs:
        """What the moves learned so far prove in components that are not looked at in bulk."""
        if size > 1 or not any(self._small(part) for part in self.components):
            return {}
        proofs = self._moves_known().against(minds)
        if minds.touches(NO_CELLS, np.zeros(0), NO_CELLS) is None:
            return proofs
        for moves in self._circuits(proofs):
            open_levels = self._open_levels(proofs)
            more = MoveProofs(self.table, self.hidden, *open_levels, moves, whole=self.whole).against(minds)
            for demand, (_, against) in more.items():
                proofs[demand] = True, proofs[demand][1] & against if demand in proofs else against
        return proofs

    def _circuits(self, proofs: Proofs) -> Iterator[Moves]:
        """Circuits of small components in which demands are open, of one elimination after the other; then means."""
        few = MIN_TRIAL_DEMANDS if len(self.published) else 1
        for number in range(MAX_ELIMINATIONS + 1):
            below, above = self._open_levels(proofs)
            waiting = [part for part in self.components if (below + above)[part.cells].any() and self._small(part)]
            waiting = [part for part in waiting if MIN_CIRCUIT_CELLS <= len(part.cells) <= MAX_CIRCUIT_CELLS]
            if not waiting or np.count_nonzero(below) + np.count_nonzero(above) < few:
                return
            if number < MAX_ELIMINATIONS:
                yield [move for part in waiting for move in self._circuits_of(part).moves(number)]
                continue
            yield [move for part in waiting for move in self._means(part, below, above)]

    def _means(self, component: Component, below: Floats, above: Floats) -> Iterator[tuple[Integers, Floats]]:
        moves = self._circuits_of(component)
        up, down = self.table.up[moves.cells], self.table.down[moves.cells]
        for cell in moves.cells[(below + above)[moves.cells] > 0].tolist():
            for amount in (float(above[cell]), -float(below[cell])):
                if amount != 0.0:
                    yield from moves.means(cell, amount, up, down)

    def _circuits_of(self, component: Component) -> CircuitMoves:
        """The circuits of a component without what is published."""
        first = int(component.cells[0])
        if first not in self.drawn:
            loose = np.isin(component.cells, self.published, invert=True)
            matrix = component.matrix[:, np.flatnonzero(loose)]
            self.drawn[first] = CircuitMoves(component.cells[loose], matrix, component.shy[loose])
        return self.drawn[first]

    def _open_levels(self, proofs: Proofs) -> tuple[Floats, Floats]:
        """The levels of demands that are not proven against everybody; 0 for the others."""
        below, above = (np.zeros(self.table.cells) for _ in range(2))
        below[self.sensitive], above[self.sensitive] = self.below[self.sensitive], self.above[self.sensitive]
        for (cell, sign), (met, against) in proofs.items():
            if met and not against:
                (above if sign > 0 else below)[cell] = 0.0
        return below, above

    def _moves_known(self) -> MoveProofs:
        if self.known is None:
            small = np.zeros(self.table.cells, dtype=np.bool_)
            small[np.concatenate([part.cells for part in self.components if self._small(part)])] = True
            self.known = MoveProofs(self.table, small, self.below, self.above, self.learned, whole=self.whole)
        return self.known

    def _small(self, component: Component) -> bool:
        return self.one_by_one or len(component.cells) < self.bulk_cells

    def _in_bulk(self, minds: "Minds", size: int) -> Proofs:
        """What is proven in bulk in large components; of coalitions what is proven against everybody at once."""
        parts = [part for part in self.components if len(part.cells) >= self.bulk_cells]
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
        bulk.learn(self.learned if size == 1 else [])
        bulk.run(self.progress, self.work // 2, together=size > 1)
        self.learned += bulk.learned if size == 1 else ()
        self.work -= bulk.work
        proofs = bulk.proofs()
        return {key: (met, NOBODY) for key, (met, _) in proofs.items() if met} if size > 1 else proofs

    def without(self, cell: int) -> "InsiderAudit":
        """The audit of a pattern that publishes one cell more: everybody knows it, and moves that change it are out."""
        fewer = copy(self)
        fewer.published, fewer.proofs = np.append(self.published, cell), {}
        touched = [p for p in self.components if cell in p.cells and len(p.cells) <= MAX_CIRCUIT_CELLS]
        fewer.drawn = self.drawn | {int(p.cells[0]): self._circuits_of(p).without(cell) for p in touched}
        fewer.known = self._moves_known().without(cell)
        fewer.moves = {one: [m for m in moves if cell not in m.cells] for one, moves in self.moves.items()}
        return fewer

    @property
    def spent(self) -> bool:
        return self.work < 0

    def take_over(self, moves: Moves) -> None:
        """Start from moves that were found for the pattern; sparse ones that add up here are asked one by one, too."""
        self.learned = list(moves)
        sparse = [(cells, by) for cells, by in moves if 0 < len(cells) <= MAX_SPARSE_CELLS]
        for some in in_turn([move for move in sparse if self.hidden[move[0]].all()]):
            for (cells, by), missed in zip(some, missed_by(self.table.additive.base, some).tolist(), strict=True):
                if missed <= LEAST_CHANGE_SHARE * RELATION_TOLERANCE * float(np.abs(by).max()):
                    self._keep(TableMove.of(self.table, cells, by))

    def note(self, move: TableMove) -> None:
        self.learned.append((move.cells, move.by))
        self._keep(move)

    def _keep(self, move: TableMove) -> None:
        for cell in move.cells[self.asked[move.cells]].tolist():
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
        if met and (len(against) <= MAX_FEW or self.audit._small(self.component)):
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
        if not members and self.others and len(self.component.cells) < self.audit.bulk_cells:
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
        floor = self.minds.floor(members, self.component.cells, self.cell)
        still = np.concatenate([self.minds.still(members), self.audit.published])
        before = self.component.work
        far, move = self.component.move(
            self.cell, sign, level, still, floor, whole=self.audit.whole, nearby=nearby or self.audit.nearby
        )
        self.audit.work -= self.component.work - before
        if move is None:
            return 0.0, frozenset()
        self.audit.note(move)
        return far, self.minds.touched(move, move.scaled(self.cell, sign, far), self.cell) or frozenset()
