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
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from equipoise.data.cells import may_be_negative
from equipoise.data.tables.table_arrays import holds
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.progress import Progress, report
from equipoise.tables._suppression.cheapest_move import TableMove
from equipoise.tables._suppression.feasible_moves import NO_CELLS, WHOLE_TOLERANCE, Component, components
from equipoise.tables._suppression.problem import SuppressionTable, typical

if TYPE_CHECKING:
    from equipoise.data.tables.linked_tables import Union

LEVEL_TOLERANCE = 1e-6
"""Share of its level by which a move may fall short: rounding, not disclosure."""
FLOOR_TOLERANCE = 1e-9
"""Share of a cell by which a move may go below what somebody has in it: the solver's rounding."""
MAX_INSIDER_WORK = 6_000_000_000
"""Work (`Program.work`) of an audit against contributors: some 40 seconds; cells not reached by then are said."""
MAX_MOVES = 40
"""Moves kept for each sensitive cell, the latest."""
Members = frozenset[int]


class Failure(NamedTuple):
    """A demand that is not met: `cell` should move by `level` in a direction (`sign`) with what is known held still."""

    cell: int
    sign: int
    level: float
    still: Integers
    floor: Floats | None


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


class Minds(Protocol):
    """What one kind of contributors know, each by a number."""

    def others(self, cell: int, component: Component) -> Members: ...
    def matter(self, cell: int, component: Component) -> bool: ...
    def touched(self, move: TableMove, by: Floats, cell: int) -> Members | None: ...
    def still(self, members: Members) -> Integers: ...
    def floor(self, members: Members, cells: Integers, cell: int) -> Floats | None: ...
    def own(self, cell: int, members: Members) -> float: ...
    def people(self, members: Members) -> int: ...
    def theirs(self, cell: int, members: Members) -> bool: ...


class Inside:
    """The inner cells of each cell of linked tables."""

    def __init__(self, union: "Union") -> None:
        self.parts = [holds(table) for table in union.tables]
        self.inner = [
            place[np.flatnonzero(table.inner)] for table, place in zip(union.tables, union.places, strict=True)
        ]
        self.rows = [np.full(union.cells, -1, dtype=np.int64) for _ in union.tables]
        for row, place in zip(self.rows, union.places, strict=True):
            row[place] = np.arange(len(place))

    def of(self, cell: int) -> Iterator[Integers]:
        """The inner cells of a cell, in each table that has it."""
        for part, inner, rows in zip(self.parts, self.inner, self.rows, strict=True):
            if (row := int(rows[cell])) >= 0:
                yield inner[part.indices[part.indptr[row] : part.indptr[row + 1]]]


class AloneInCells:
    """Contributors and holdings who are alone in cells: `knower` says who, -1 where nobody is.

    `few` says how many they are in an inner cell that they know when all of them are in the coalition (0: that is not
    asked). With `least`, what the largest contributor of each cell has in it, they know of every other cell that it is
    at least that: more than any one of them can know, for a table does not say who the largest of its cells are.
    """

    def __init__(
        self, table: SuppressionTable, knower: Integers, inside: Inside, least: Floats | None = None,
        few: Integers | None = None,
    ) -> None:  # fmt: skip
        shared = np.flatnonzero(few > 1) if few is not None else NO_CELLS
        first = int(knower.max(initial=-1)) + 1
        knower = knower.copy()
        knower[shared] = first + np.arange(len(shared))
        self.table, self.knower, self.inside, self.least = table, knower, inside, least
        self.seats = dict(zip(knower[shared].tolist(), few[shared].tolist(), strict=True)) if few is not None else {}
        self.known = np.flatnonzero(knower >= 0)

    def others(self, cell: int, component: Component) -> Members:
        numbers = self.knower[component.cells]
        return frozenset(set(numbers[(numbers >= 0) & (numbers != self.knower[cell])].tolist()))

    def matter(self, cell: int, component: Component) -> bool:
        among = self.least is not None and bool((self.least[component.cells[component.cells != cell]] > 0).any())
        return among or bool(self.others(cell, component))

    def touched(self, move: TableMove, by: Floats, cell: int) -> Members | None:
        if self.least is not None:
            value = self.table.values[move.cells]
            below = by < -self._room(move.cells) - FLOOR_TOLERANCE * np.maximum(
                typical(np.abs(self.table.values)), value
            )
            if (below & (move.cells != cell)).any():
                return None
        numbers = self.knower[move.cells]
        return frozenset(numbers[numbers >= 0].tolist())

    def still(self, members: Members) -> Integers:
        return self.known[np.isin(self.knower[self.known], list(members))]

    def floor(self, members: Members, cells: Integers, cell: int) -> Floats | None:
        if self.least is None:
            return None
        return np.where(cells == cell, np.inf, self._room(cells))

    def own(self, cell: int, members: Members) -> float:
        return max(
            (float(self.table.values[c[np.isin(self.knower[c], list(members))]].sum()) for c in self.inside.of(cell)),
            default=0.0,
        )

    def people(self, members: Members) -> int:
        return sum(self.seats.get(one, 1) for one in members)

    def theirs(self, cell: int, members: Members) -> bool:
        """Whether nobody else is in the cell."""
        known = list(members)
        return any(
            bool((np.isin(self.knower[inner], known) | ~self.table.movable[inner]).all())
            for inner in self.inside.of(cell)
        )

    def _room(self, cells: Integers) -> Floats:
        assert self.least is not None
        return np.maximum(self.table.values[cells] - self.least[cells], 0.0)


class Nobody:
    """An outsider: one who knows nothing of his own."""

    def others(self, cell: int, component: Component) -> Members:
        return frozenset()

    def matter(self, cell: int, component: Component) -> bool:
        return True

    def touched(self, move: TableMove, by: Floats, cell: int) -> Members | None:
        return frozenset()

    def still(self, members: Members) -> Integers:
        return NO_CELLS

    def floor(self, members: Members, cells: Integers, cell: int) -> Floats | None:
        return None

    def own(self, cell: int, members: Members) -> float:
        return 0.0

    def people(self, members: Members) -> int:
        return 0

    def theirs(self, cell: int, members: Members) -> bool:
        return False


class AmongOthers:
    """One of several contributors to an inner cell who knows what he has in it: `least`, of the largest of them.

    Who has less knows less. Exact where every contributor is in one inner cell alone.
    """

    def __init__(self, table: SuppressionTable, least: Floats, inside: Inside) -> None:
        self.table, self.least, self.inside = table, least, inside

    def others(self, cell: int, component: Component) -> Members:
        cells = component.cells[self.least[component.cells] > 0]
        return frozenset(set(cells.tolist()) - {cell})

    def matter(self, cell: int, component: Component) -> bool:
        return bool(self.others(cell, component))

    def touched(self, move: TableMove, by: Floats, cell: int) -> Members | None:
        least, value = self.least[move.cells], self.table.values[move.cells]
        short = (least > 0) & (
            by < -(value - least) - FLOOR_TOLERANCE * np.maximum(typical(np.abs(self.table.values)), value)
        )
        return frozenset(move.cells[short].tolist()) - {cell}

    def still(self, members: Members) -> Integers:
        return NO_CELLS

    def floor(self, members: Members, cells: Integers, cell: int) -> Floats | None:
        known = np.isin(cells, list(members))
        return np.where(known, np.maximum(self.table.values[cells] - self.least[cells], 0.0), np.inf)

    def own(self, cell: int, members: Members) -> float:
        return max((float(self.least[c[np.isin(c, list(members))]].sum()) for c in self.inside.of(cell)), default=0.0)

    def people(self, members: Members) -> int:
        return len(members)

    def theirs(self, cell: int, members: Members) -> bool:
        return False


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

    def against(self, minds: Minds, size: int = 1) -> GuardedCells:
        """The least that each sensitive cell keeps against any `size` of these people together."""
        before = sum(part.programs for part in self.components)
        rows: list[tuple[int, float, float, float, bool, bool]] = []
        failures: list[Failure] = []
        for component in self.components:
            for cell in np.intersect1d(component.cells, self.sensitive).tolist():
                report(self.progress, len(rows), len(self.sensitive), "auditing against those who contribute")
                if minds.matter(cell, component):
                    question = _CellQuestion(self, component, minds, cell)
                    rows.append(question.answer(size))
                    failures += question.failures
        programs = sum(part.programs for part in self.components) - before
        cells, down, up, share, exact, unsettled = (np.array([row[i] for row in rows]) for i in range(6))
        return GuardedCells(
            cells.astype(np.int64), down, up, share, exact.astype(np.bool_), unsettled.astype(np.bool_),
            tuple(failures), programs,
        )  # fmt: skip

    def without(self, cell: int, suppressed: Booleans) -> "InsiderAudit":
        """The audit of a pattern that publishes one cell more; the moves that leave it still are kept."""
        fewer = InsiderAudit(
            self.table, suppressed, self.below, self.above, shy=self.shy, whole=self.whole, work=self.work
        )
        fewer.moves = {one: [m for m in moves if cell not in m.cells] for one, moves in self.moves.items()}
        return fewer

    @property
    def spent(self) -> bool:
        return sum(part.work for part in self.components) > self.work

    def note(self, move: TableMove) -> None:
        for cell in np.intersect1d(move.cells, self.sensitive, assume_unique=True).tolist():
            moves = self.moves.setdefault(cell, [])
            moves.append(move)
            del moves[:-MAX_MOVES]


class _CellQuestion:
    """One sensitive cell: how far it gets both ways against the members of every coalition."""

    def __init__(self, audit: InsiderAudit, component: Component, minds: Minds, cell: int) -> None:
        self.audit, self.component, self.minds, self.cell = audit, component, minds, cell
        self.others = minds.others(cell, component)
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
        waiting: list[Members] = [frozenset()]
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
                return answers
            far, touched = self._best(sign, asked, members)
            answers[members] = (far, asked)
            if far < asked * (1 - LEVEL_TOLERANCE):
                self.failures.append(self._failure(sign, asked, members))
            wider = (members | {one} for one in touched & self.others)
            waiting += [group for group in wider if self.minds.people(group) <= size]
        return answers

    def _failure(self, sign: int, level: float, members: Members) -> Failure:
        floor = self.minds.floor(members, self.component.cells, self.cell)
        rooms = None
        if floor is not None:
            rooms = np.full(self.audit.table.cells, np.inf)
            rooms[self.component.cells] = floor
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
        if not members and self.others:
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

    def _ask(self, sign: int, level: float, members: Members) -> tuple[float, Members]:
        floor, still = self.minds.floor(members, self.component.cells, self.cell), self.minds.still(members)
        far, move = self.component.move(self.cell, sign, level, still, floor, whole=self.audit.whole)
        if move is None:
            return 0.0, frozenset()
        self.audit.note(move)
        return far, self.minds.touched(move, move.scaled(self.cell, sign, far), self.cell) or frozenset()


def kinds_of(
    union: "Union", table: SuppressionTable, suppressed: Booleans, coalition: int = 1
) -> dict[str, tuple[Minds, int]]:
    """Everybody who contributes, by kind, and how many of them pool; the kinds that the tables tell about."""
    if not counted(union):
        return {}
    knower, inside, least = np.where(suppressed, union.knowers, -1), Inside(union), least_known(union)
    kinds: dict[str, tuple[Minds, int]] = {"lone contributor": (AloneInCells(table, knower, inside), 1)}
    if least is not None:
        several = same_contributors(union)
        kinds["contributor"] = (
            AloneInCells(table, knower, inside, least) if several else AmongOthers(table, least, inside),
            1,
        )
    if coalition > 1:
        few = np.where(suppressed, few_together(union, coalition), 0)
        kinds[f"coalition of {coalition}"] = (AloneInCells(table, knower, inside, few=few), coalition)
    return kinds


def least_known(union: "Union") -> Floats | None:
    """What the largest of several contributors to each inner cell has in it; None where the tables do not say.

    Of plain counts that is one: himself. In a cell that may be negative it tells nothing of the others.
    """
    parts = []
    for table in union.tables:
        alone, inner = table.numbers("contributors") == 1, table.inner
        if "top1" in table.more.columns:
            own = table.numbers("top1")
        elif table.measured is None and np.array_equal(table.numbers("value"), table.n):
            own = np.ones(len(table))
        else:
            return None
        tells = inner & ~alone & (table.n > 0) & ~may_be_negative(table)
        parts.append(np.where(tells, np.nan_to_num(own), 0.0))
    return np.asarray(union.gathered(parts), dtype=np.float64)


def counted(union: "Union") -> bool:
    """Whether the tables say how many contribute to their cells."""
    return not any(bool(np.isnan(table.numbers("contributors")).any()) for table in union.tables)


def few_together(union: "Union", size: int) -> Integers:
    """How many are in an inner cell whose contributors make a coalition of at most this size by themselves; else 0.

    Nothing of tables in which a contributor is in several cells: they do not say which.
    """
    if same_contributors(union):
        return np.zeros(union.cells, dtype=np.int64)
    many = union.tables[0].numbers("contributors")
    few = np.where(union.tables[0].inner & (many > 1) & (many <= size), many, 0.0)
    return np.asarray(union.gathered([few]), dtype=np.int64)


def same_contributors(union: "Union") -> bool:
    """Whether a contributor may be in several inner cells: a holding, or a record in several tables."""
    return len(union.tables) > 1 or any("holder" in table.more.columns for table in union.tables)
