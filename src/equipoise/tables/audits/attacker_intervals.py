"""Attacker's interval of every suppressed cell, by linear programming.

For each suppressed cell the smallest and the largest value over all tables that agree with what is published: two
linear programs. Most are not needed. A relation with one unknown fixes it, one with two makes them one; what is left
falls apart into components; and a cell for which some table already found attains a bound that the relations
imply is settled. The other programs start from the basis of the one before.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.data.tables.additivity import Additive
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.errors import ParameterError
from equipoise.ground.progress import Progress, report
from equipoise.ground.solver import Program, Solution, Unbounded
from equipoise.tables._suppression.bulk_moves import capped
from equipoise.tables._suppression.circuit_moves import CircuitMoves
from equipoise.tables._suppression.feasible_moves import WHOLE_TOLERANCE, hanging_together
from equipoise.tables._suppression.problem import SuppressionTable, filled, marked, typical
from equipoise.tables._suppression.remembered_moves import Moves, reached
from equipoise.tables.audits.merged_unknowns import folded, reduced

BOUND_TOLERANCE = 1e-8
"""Share of the typical room within which two bounds are equal."""
LEVEL_TOLERANCE, VALUE_SHARE = 1e-6, 0.01
"""Share of its level, or of this share of its value, by which an interval may fall short: rounding, not disclosure."""
BOUND_ROUNDS = 4
"""Times that bounds are passed on through the relations."""
MANY_UNKNOWNS = 1_500
"""Unknowns that hang together from which on bounds are first looked for many at once, by interior point."""
MANY_ENTRIES = 500_000
"""The same for unknowns times relations: in four and more dimensions a program over few cells has many relations."""
MAX_SWEEPS = 12
"""Such programs at most."""
MAX_ALONE = 60
"""Bounds in each direction that are then looked for alone."""
MIN_SWEEP_SHARE = 50
"""A sweep must settle one bound in as many unknowns, or it was the last."""
INTERIOR_TOLERANCE = 1e-6
"""Share of the width within which an interior-point answer attains a bound that the relations imply."""
MAX_EXACT_WORK = 4_000_000_000
"""Work (`Program.work`) on bounds one by one, all components together: some 30 seconds."""
MAX_EXACT_ENTRIES = 10_000_000
"""Unknowns times relations of a component of many up to which its bounds are looked for one by one."""
MAX_WHOLE = 3_000
"""Unknowns up to which whole numbers are asked for."""
MAX_CORNERS = 4
"""Corners that are looked at for whole numbers before a program in whole numbers."""
MAX_ELIMINATIONS, MAX_CIRCUIT_UNKNOWNS = 6, 600
"""Orders in which relations are eliminated for tables of whole numbers, and unknowns up to which."""


@dataclass(frozen=True, eq=False, repr=False)
class AttackerIntervals:
    """The values each cell can have as far as an attacker can tell: its own where it is published.

    `inner` marks cells whose interval may be wider still (None: none is): all of a large component is not looked at one
    by one, and what is given then is what some table found attains, so no cell is called safer than it is.
    """

    lower: Floats
    upper: Floats
    suppressed: Booleans
    programs: int
    inner: Booleans | None = None

    @property
    def width(self) -> Floats:
        return self.upper - self.lower

    def disclosed(self, tolerance: float = 1e-9) -> Booleans:
        """Suppressed cells that can be computed exactly (to a share of their value, or of a typical one)."""
        size = np.abs(np.where(np.isfinite(self.upper), self.upper, 0.0))
        scale = tolerance * np.maximum(typical(size), size)
        return self.suppressed & (self.width <= scale)


def audit(
    additive: Additive, values: Any, suppressed: Any, *, low: Any = 0.0, high: Any = np.inf, integer: bool = False,
    progress: Progress | None = None, targets: Any = None, enough: tuple[Any, Any] | None = None,
    moves: Moves | None = None,
) -> AttackerIntervals:  # fmt: skip
    """The exact interval of every suppressed cell, for an attacker who knows low <= x <= high beforehand.

    `integer` asks for tables of whole numbers (counts), for up to 3,000 unknowns that hang together: the interval may
    be narrower than the linear one. A contributor who knows some cells is audited by leaving them out of
    `suppressed`. Only the intervals of the `targets`, where given, are exact. Where more than 1,500 unknowns hang
    together, `enough` says how far each cell must fall and rise: bounds beyond that are not looked for further (`inner`
    marks them), which is all that protection levels ask. Cost: at most two programs for each target, in the component
    it is in; in such large ones a dozen for all, then one by one up to a fixed amount of work: what is left is given as
    far as it was found, never too wide. `moves` are guesses of possible tables, as changes to the true one: what they
    attain is not looked for again.

    Misleads when the attacker knows more than the limits say.

    >>> tree = np.array([-1, 0, 0, 0])
    >>> cells = [20, 6, 7, 7, 9, 2, 3, 4, 11, 4, 4, 3]
    >>> inner = np.outer([False, True, True], [False, True, True, True]).ravel()
    >>> found = audit(Additive.over([tree[:3], tree]), cells, inner)
    >>> found.lower[5:8].tolist(), found.upper[5:8].tolist()
    ([0.0, 0.0, 0.0], [6.0, 7.0, 7.0])
    """
    table, hidden = SuppressionTable.of(additive, values, low, high), marked(suppressed, additive.cells, "suppressed")
    if integer and not (table.values == np.round(table.values)).all():
        raise ParameterError("An audit in whole numbers needs a table of whole numbers.")
    lower, upper = table.values.copy(), table.values.copy()
    cells = np.flatnonzero(hidden & table.movable)
    system = _System.of(table, cells)
    programs, budget = 0, _Budget(MAX_EXACT_WORK, progress)
    asked = (
        np.ones(table.cells, dtype=np.bool_) if targets is None else marked(np.asarray(targets), table.cells, "targets")
    )
    endless = np.where(asked, np.inf, 0.0)
    ends = [np.minimum(endless, filled(x, table.cells, "enough")) for x in enough] if enough else [endless, endless]
    wanted = system.wanted(endless[cells], endless[cells]), system.wanted(ends[0][cells], ends[1][cells])
    inner = np.zeros(len(cells), dtype=np.bool_)
    attained = reached(table, hidden, [] if integer or moves is None else moves)
    for component in system.components(wanted, progress, integer):
        own = cells[component.columns]
        component.least, component.most = -attained[0][own], attained[1][own]
        programs += component.settle(integer, budget)
        system.down[component.columns], system.up[component.columns] = -component.least, component.most
        inner[component.columns] = component.inner
    fall, rise = system.spread()
    lower[cells], upper[cells] = table.values[cells] - fall, table.values[cells] + rise
    loose = np.zeros(table.cells, dtype=np.bool_)
    loose[cells] = inner[system.owner]
    return AttackerIntervals(lower, upper, hidden, programs, loose)


@dataclass(eq=False, repr=False)
class _Budget:
    """Work that may still be spent on bounds one by one, and whom to tell."""

    left: float
    progress: Progress | None


@dataclass(frozen=True, eq=False, repr=False)
class _System:
    """Unknowns y_j = factor_j z_owner(j): as few z as one- and two-term relations leave, each with its room."""

    matrix: Any
    owner: Integers
    factor: Floats
    up: Floats
    down: Floats

    @classmethod
    def of(cls, table: SuppressionTable, cells: Integers) -> "_System":
        owner, factor = reduced(table.additive.matrix[:, cells])
        up, down = np.full(len(cells), np.inf), np.full(len(cells), np.inf)
        live = np.flatnonzero(factor)
        size, flip = np.abs(factor[live]), factor[live] < 0
        rise, fall = table.up[cells[live]] / size, table.down[cells[live]] / size
        np.minimum.at(up, owner[live], np.where(flip, fall, rise))
        np.minimum.at(down, owner[live], np.where(flip, rise, fall))
        return cls(folded(table.additive.base[:, cells], owner, factor), owner, factor, up, down)

    def wanted(self, fall: Floats, rise: Floats) -> tuple[Floats, Floats]:
        """How far each unknown must fall and rise at most, so that its cells do."""
        live = np.flatnonzero(self.factor)
        size, flip = np.abs(self.factor[live]), self.factor[live] < 0
        down, up = np.zeros(len(self.owner)), np.zeros(len(self.owner))
        np.maximum.at(down, self.owner[live], np.where(flip, rise[live], fall[live]) / size)
        np.maximum.at(up, self.owner[live], np.where(flip, fall[live], rise[live]) / size)
        return down, up

    def components(
        self, wanted: tuple[tuple[Floats, Floats], tuple[Floats, Floats]], progress: Progress | None, whole: bool
    ) -> "Iterator[_Component]":
        """Connected components of unknowns that share relations; an unknown in none keeps its bounds.

        `wanted` says how far each must fall and rise in small components (all in `whole` numbers), and in large ones.
        """
        matrix = self.matrix[np.flatnonzero(np.diff(self.matrix.indptr))].tocsc()
        columns = np.flatnonzero(np.diff(matrix.indptr))
        groups = hanging_together(matrix[:, columns])
        for number, group in enumerate(columns[part] for part in groups):
            report(progress, number, len(groups), "computing the attacker's intervals")
            part = _Component(matrix[:, group].tocsr(), group, -self.down[group], self.up[group])
            fall, rise = wanted[part.large and not whole]
            part.fall, part.rise = -fall[group], rise[group]
            yield part

    def spread(self) -> tuple[Floats, Floats]:
        """How far each cell can fall and rise."""
        size, flip = np.abs(self.factor), self.factor < 0
        up, down = (np.where(size > 0, room[self.owner], 0.0) for room in (self.up, self.down))
        return size * np.where(flip, up, down), size * np.where(flip, down, up)


class _Component:
    """Unknowns that hang together, with the least and the most each can be once `settle` has run."""

    def __init__(self, matrix: Any, columns: Integers, low: Floats, high: Floats) -> None:
        self.matrix = matrix[np.flatnonzero(np.diff(matrix.indptr))]
        self.columns, self.low, self.high, self.fall, self.rise = columns, low, high, low, high
        widths = (high - low)[np.isfinite(high - low) & (high > low)]
        self.unit = float(np.median(widths)) if len(widths) else 1.0
        self.least, self.most = np.zeros(len(columns)), np.zeros(len(columns))
        self.outer_low, self.outer_high = implied(self.matrix, low, high)
        self.inner, self.solved_up, self.solved_down = (np.zeros(len(columns), dtype=np.bool_) for _ in range(3))

    def settle(self, whole: bool, budget: _Budget) -> int:
        """Find the bounds that are wanted; says how many programs that took."""
        if whole and len(self.columns) > MAX_WHOLE:
            raise ParameterError(f"An audit in whole numbers takes up to {MAX_WHOLE:,} unknowns that hang together.")
        self.solved, many = 0, self.large and not whole
        if many:
            self._sweep_inside(budget.progress)
        affordable = not many or len(self.columns) * self.matrix.shape[0] <= MAX_EXACT_ENTRIES
        if affordable and (self._open(1.0).any() or self._open(-1.0).any()):
            self._one_by_one(whole, many, budget)
        short = self.most < self.outer_high - self._slack, self.least > self.outer_low + self._slack
        self.inner = (short[0] & ~self.solved_up) | (short[1] & ~self.solved_down)
        self.least, self.most = np.maximum(self.least, self.low), np.minimum(self.most, self.high)
        return self.solved

    @property
    def large(self) -> bool:
        """Whether bounds are first looked for many at once."""
        return len(self.columns) > MANY_UNKNOWNS or len(self.columns) * self.matrix.shape[0] > MANY_ENTRIES

    @property
    def _slack(self) -> float:
        return BOUND_TOLERANCE * self.unit

    def _open(self, sign: float) -> Booleans:
        """Unknowns whose bound in a direction is neither known nor far enough out."""
        if sign > 0:
            return (self.most < self.outer_high - self._slack) & (self.most < self.rise)
        return (self.least > self.outer_low + self._slack) & (self.least > self.fall)

    def _one_by_one(self, whole: bool, many: bool, budget: _Budget) -> None:
        low, high = self.low / self.unit, self.high / self.unit
        self.program = Program(self.matrix, np.zeros(len(low)), low, high, primal=True)
        self.program.sharpen()
        if many and budget.progress is not None:
            self.program.watch(budget.progress, "computing the attacker's intervals")
        if whole and len(self.columns) <= MAX_CIRCUIT_UNKNOWNS:
            self._by_circuits()
        if not whole and not many:
            self._sweep()
        for column in np.flatnonzero(self._open(1.0) | self._open(-1.0)).tolist():
            for sign in (1.0, -1.0):
                if self._open(sign)[column] and (budget.left > 0 or not many):
                    self._extreme(column, sign, whole)
            budget.left, self.program.work = budget.left - self.program.work, 0

    def _sweep_inside(self, progress: Progress | None) -> None:
        """Tables far out in many unknowns at once, by interior point: directions drawn, open bounds alone count.

        Where it was said how far is enough, the last ones alone.
        """
        draw, count = np.random.default_rng(len(self.columns)), len(self.columns)
        for number in range(MAX_SWEEPS):
            up, down = self._open(1.0), self._open(-1.0)
            before = int(up.sum() + down.sum())
            rising = up & ~(down & (draw.random(count) < 0.5))
            what = f"computing the attacker's intervals (sweep {number + 1})"
            if not before or not self._reach(np.flatnonzero(up | down), rising, progress, what):
                break
            least = 1 if np.isfinite(self.rise).all() else max(1, count // MIN_SWEEP_SHARE)
            if before - int(self._open(1.0).sum() + self._open(-1.0).sum()) < least:
                break
        for rises in (True, False) if np.isfinite(self.rise).all() else ():
            for spot in np.flatnonzero(self._open(1.0 if rises else -1.0))[:MAX_ALONE].tolist():
                self._reach(np.array([spot]), np.full(count, rises), progress, "computing the last intervals")

    def _reach(self, spots: Integers, rising: Booleans, progress: Progress | None, what: str) -> bool:
        """Note a table that is far out in these unknowns, upwards or downwards; False when the solver finds none."""
        outer = self.outer_high - self.outer_low
        width = np.where(np.isfinite(outer) & (outer > 0), outer, self.unit)
        far = np.where(rising, np.minimum(self.rise, width), -np.minimum(-self.fall, width))[spots]
        low, high = self.low / self.unit, self.high / self.unit
        far *= (1 + INTERIOR_TOLERANCE) / self.unit
        values, _ = capped(self.matrix, low, high, spots, far, progress, what)
        self.solved += 1
        if values is not None:
            self._attain(values * self.unit, width)
        return values is not None

    def _attain(self, values: Floats, width: Floats) -> None:
        """Note a table; what it attains but for the solver's rounding it attains."""
        close = INTERIOR_TOLERANCE * width
        self.most = np.maximum(self.most, np.where(values >= self.outer_high - close, self.outer_high, values))
        self.least = np.minimum(self.least, np.where(values <= self.outer_low + close, self.outer_low, values))

    def _sweep(self) -> None:
        """Two tables that are far out in many unknowns at once."""
        every, weight = np.arange(len(self.columns)), np.zeros(len(self.columns))
        width = self.outer_high - self.outer_low
        weight[np.isfinite(width) & (width > 0)] = 1.0 / width[np.isfinite(width) & (width > 0)] * self.unit
        for sign in (-1.0, 1.0):
            self.program.charge(every, sign * weight)
            self._note(self._solve(self.program))
        self.program.charge(every, np.zeros(len(every)))

    def _extreme(self, column: int, sign: float, whole: bool) -> None:
        spot, side = np.array([column]), self.most if sign > 0 else self.least
        (self.solved_up if sign > 0 else self.solved_down)[column] = True
        self.program.charge(spot, np.array([-sign]))
        answer = self._solve(self.program)
        self.program.charge(spot, np.zeros(1))
        if answer is None:
            side[column] = sign * np.inf
            return
        values = answer.values * self.unit
        if whole and np.abs(values - np.round(values)).max() > WHOLE_TOLERANCE:
            far = np.floor(sign * values[column] + WHOLE_TOLERANCE)
            if sign * side[column] < far and not self._corner_at(column, sign * far):
                self._extreme_whole(column, sign)
            return
        self._attained(values)

    def _corner_at(self, column: int, value: float) -> bool:
        """Look for a table of whole numbers at corners of those with a value of one unknown; False when none is one."""
        spot, every, draw = np.array([column]), np.arange(len(self.columns)), np.random.default_rng(column)
        self.program.bound(spot, *(np.array([value / self.unit]),) * 2)
        whole = False
        for _ in range(MAX_CORNERS):
            self.program.charge(every, draw.integers(-2, 3, len(every)).astype(np.float64))
            answer = self._solve(self.program)
            if answer is None:
                break
            values = answer.values * self.unit
            whole = bool(np.abs(values - np.round(values)).max() <= WHOLE_TOLERANCE)
            if whole:
                self._attained(np.round(values))
                break
        self.program.charge(every, np.zeros(len(every)))
        self.program.bound(spot, self.low[spot] / self.unit, self.high[spot] / self.unit)
        return whole

    def _by_circuits(self) -> None:
        """Tables of whole numbers by elimination, each taken both ways as far as rooms go."""
        moves = CircuitMoves(np.arange(len(self.columns)), self.matrix, np.zeros(len(self.columns), dtype=np.bool_))
        for number in range(MAX_ELIMINATIONS):
            change = moves.basis(number)
            change = change[(np.abs(change - np.round(change)) <= WHOLE_TOLERANCE).all(axis=1)].round()
            for sign in (1.0, -1.0):
                room = np.where(sign * change > 0, self.high, -self.low)
                times = np.divide(room, np.abs(change), out=np.full(change.shape, np.inf), where=change != 0)
                often = np.floor(times.min(axis=1) + WHOLE_TOLERANCE)
                self._attained(sign * change[np.isfinite(often)] * often[np.isfinite(often), None])

    def _attained(self, tables: Floats) -> None:
        """Note one table, or several (rows)."""
        tables = np.atleast_2d(tables)
        self.most = np.maximum(self.most, tables.max(axis=0, initial=0.0))
        self.least = np.minimum(self.least, tables.min(axis=0, initial=0.0))

    def _extreme_whole(self, column: int, sign: float) -> None:
        cost = np.zeros(len(self.columns))
        cost[column] = -sign
        program = Program(self.matrix, cost, self.low, self.high)
        program.whole(np.arange(len(cost)))
        answer = self._solve(program)
        if answer is not None:
            self._attained(np.round(answer.values))

    def _solve(self, program: Program) -> Solution | None:
        """The best table, or None where there is no limit."""
        self.solved += 1
        try:
            return program.solve()
        except Unbounded:
            return None

    def _note(self, answer: Solution | None) -> None:
        if answer is not None:
            self._attained(answer.values * self.unit)


def too_close(value: Floats, low: Floats, high: Floats, below: Floats, above: Floats) -> Booleans:
    """Cells whose interval does not reach as far below and above as it must, whatever the unit of the values.

    >>> ends = np.array([[90.0, 110.0], [90.1, 120.0], [50.0, 109.9]]) * 1e-9
    >>> too_close(np.full(3, 1e-7), ends[:, 0], ends[:, 1], np.full(3, 1e-8), np.full(3, 1e-8)).tolist()
    [False, True, True]
    """
    rise, fall = (LEVEL_TOLERANCE * np.maximum(level, VALUE_SHARE * np.abs(value)) for level in (above, below))
    return np.asarray((high < value + above - rise) | (low > value - below + fall))


def implied(matrix: Any, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bounds that each relation alone implies, passed on a few times: a_j z_j <= -(least of the other terms)."""
    low, high = low.copy(), high.copy()
    rows, columns, data = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices, matrix.data
    for _ in range(BOUND_ROUNDS):
        before = low.copy(), high.copy()
        for sign in (1.0, -1.0):
            a = sign * data
            least = np.where(a > 0, a * low[columns], a * high[columns])
            endless = np.isinf(least)
            finite = np.where(endless, 0.0, least)
            total = np.bincount(rows, finite, matrix.shape[0])[rows] - finite
            bounded = np.bincount(rows, endless, matrix.shape[0])[rows] - endless == 0
            rising, falling = bounded & (a > 0), bounded & (a < 0)
            np.minimum.at(high, columns[rising], -total[rising] / a[rising])
            np.maximum.at(low, columns[falling], -total[falling] / a[falling])
        if np.array_equal(before[0], low) and np.array_equal(before[1], high):
            break
    return np.minimum(low, 0.0), np.maximum(high, 0.0)
