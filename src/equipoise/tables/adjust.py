"""Move sensitive cells away from their values, and the others as little as possible."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from equipoise.data.records import Law
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import additive, changed, holds, labels, whole
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import InfeasibleError
from equipoise.ground.randomness import Draws
from equipoise.ground.solver import Program, Solution
from equipoise.methods.method import Rule
from equipoise.methods.parameters import above, check_fields, share
from equipoise.methods.protection_levels import levels
from equipoise.tables.audits.changed_tables import Room

FURTHER = 4.0
"""A sensitive cell moves by at most so many times its protection level."""
TIES = 1e-3
"""What a draw adds to the price of going up at most: ties in direction are decided by draws."""
NOTHING = 1e15
GAP = 0.01


@dataclass(frozen=True, slots=True)
class Adjust:
    """Controlled tabular adjustment: publish a table near the true one in which every sensitive cell is far enough off.

    A cell that the `rule` calls sensitive, with protection levels l and u, is published at x - l or below, or at x + u
    or above (where it has a level on one side only, like an empty cell that tells about a group, on that side); all
    other cells move as little as they can so that every relation holds: the sum of w abs(change) is least, with
    w = 1 / x (`distance="relative"`) or 1 (`"absolute"`). No cell moves by more than the share `most` of its value
    (sensitive ones up to four times their level), none below 0; other empty cells stay empty, counts whole.
    A mixed-integer program on HiGHS, one choice for each sensitive cell, to within 1 % of the bound or for `seconds`;
    the law says the gap, and the largest share by which another cell moved, which users need to know. The audit counts
    with an attacker who knows that share, and that sensitive cells move by at most four times their level.

    Source: Dandekar and Cox (2002), *Synthetic tabular data*; Castro (2006), *Minimum-distance controlled
    perturbation methods for large-scale tabular data protection*.
    Does not guard against an intruder who knows which cells were sensitive and by what rule: a cell moved exactly by
    its level has only two candidates; nor does it say which numbers are true, so that users cannot tell. Cost: that of
    the program; thousands of sensitive cells may end at the clock.

    >>> made = eq.table(eq.Records.of(pl.DataFrame({"k": ["a"] * 9 + ["b"] * 4 + ["c"]}), eq.Roles("k")), "k")
    >>> moved = Adjust(eq.rules.MinCount(3)).apply(made, Draws(1)).table
    >>> moved.filter(k="c")["published"].item() in (0.0, 3.0)
    True
    """

    rule: Rule
    distance: Literal["relative", "absolute"] = "relative"
    most: float = 1.0
    seconds: float = 30.0

    def __post_init__(self) -> None:
        check_fields(self)
        share(self.most, "most")
        above(self.seconds, "seconds")

    def apply(self, data: Table, draws: Draws) -> Table:
        table, values = whole(data, "Adjust")
        problem = _Problem.of(table, values, self)
        if not len(problem.cells):
            return changed(table, values, self._law("No cell was sensitive.", problem, values, 0.0))
        answer = self._solved(problem, draws.uniform(labels(table)))
        adjusted = problem.adjusted(answer, table)
        gap = max(0.0, (answer.objective - answer.bound) / max(abs(answer.objective), 1e-9))
        return changed(table, adjusted, self._law("", problem, adjusted, round(gap, 4)))

    def _solved(self, problem: "_Problem", number: Floats) -> Solution:
        program = problem.program(number)
        program.whole(problem.integers, seconds=self.seconds, gap=GAP)
        answer = program.solve()
        if answer is None:
            raise InfeasibleError(
                f"No additive table has all {len(problem.cells):,} sensitive cells at their levels: allow others to "
                "move further (most), or suppress cells instead."
            )
        if not abs(answer.objective) < NOTHING:
            raise InfeasibleError(f"No adjusted table was found in {self.seconds:g} seconds: allow more.")
        return answer

    def _law(self, note: str, problem: "_Problem", adjusted: Floats, gap: float) -> Law:
        largest = problem.largest(adjusted)
        parameters = {"additive": True, "distance": self.distance, "most": self.most, "gap": gap, "largest": largest}
        limit = f"No cell but these moved by more than {100 * largest:g} % of its value." if len(problem.cells) else ""
        words = " ".join(filter(None, (f"{self.words()}.", note, limit)))
        return Law("adjust", (), words, parameters, detail=problem.room(adjusted, largest))

    def words(self) -> str:
        return "sensitive cells moved to their protection levels, the others as little as possible"


@dataclass(frozen=True, eq=False, repr=False)
class _Problem:
    """Columns: how far each cell goes up, how far down, and for each sensitive `cells` whether it goes up."""

    matrix: Any
    values: Floats
    cells: Integers
    lower: Floats
    upper: Floats
    most: float
    weights: Floats
    counted: bool

    @classmethod
    def of(cls, table: Table, values: Floats, method: Adjust) -> "_Problem":
        protection = levels(method.rule, table)
        below, above = (protection[side].to_numpy() for side in ("lower", "upper"))
        flagged = np.flatnonzero(method.rule.flag(table).to_numpy() & ((values > 0) | (above > 0)))
        whole_numbers = bool(np.array_equal(values, table.n))
        lower, upper = below[flagged], above[flagged]
        if whole_numbers:
            lower, upper = np.minimum(np.ceil(lower - 1e-9), values[flagged]), np.ceil(upper - 1e-9)
        size = np.maximum(np.where(values > 0, values, above), 1e-9)
        weights = 1 / size if method.distance == "relative" else np.ones(len(values))
        return cls(additive(table).base, values, flagged, lower, upper, method.most, weights, whole_numbers)

    @property
    def integers(self) -> Integers:
        size = 2 * len(self.values)
        return np.arange(0 if self.counted else size, size + len(self.cells))

    @property
    def scale(self) -> float:
        """Amounts are counted in typical levels, so that the solver's tolerances fit them."""
        levels = np.maximum(self.upper, self.lower)
        return 1.0 if self.counted or not levels.any() else float(np.median(levels[levels > 0]))

    def program(self, number: Floats) -> Program:
        import scipy.sparse as sparse

        size, many, unit = len(self.values), len(self.cells), self.scale
        caps = np.array([self._cap(+1), self._cap(-1)]) / unit
        pick = sparse.csr_array((np.ones(many), (np.arange(many), self.cells)), shape=(many, size))
        none, up, down = sparse.csr_array((many, size)), self.upper / unit, self.lower / unit
        far_up, far_down = caps[0][self.cells], caps[1][self.cells]
        rows = sparse.block_array(
            [
                [self.matrix, -self.matrix, None],
                [pick, none, sparse.diags_array(-up)],
                [-pick, none, sparse.diags_array(far_up)],
                [none, pick, sparse.diags_array(down)],
                [none, -pick, sparse.diags_array(-far_down)],
            ]
        )
        zero, least = np.zeros(self.matrix.shape[0]), np.concatenate([0 * up, 0 * up, down, -far_down])
        price = self.weights / self.weights[self.cells].mean()
        ties = TIES * (number[self.cells] - 0.5)
        must_rise, may_rise = (down <= 0) & (up > 0), (up > 0) | (down <= 0)
        return Program(
            rows, np.concatenate([price, price, ties]), np.concatenate([np.zeros(2 * size), must_rise.astype(float)]),
            np.concatenate([*caps, may_rise.astype(float)]),
            np.concatenate([zero, least]), np.concatenate([zero, np.full(4 * many, np.inf)]),
        )  # fmt: skip

    def _cap(self, way: int) -> Floats:
        """How far each cell may go up (+1) or down (-1)."""
        far = self.most * self.values
        level = self.upper if way > 0 else self.lower
        far[self.cells] = FURTHER * level
        far = np.floor(far + 1e-9) if self.counted else far
        return far if way > 0 else np.minimum(far, self.values)

    def largest(self, adjusted: Floats) -> float:
        """The largest share of its value by which a cell that is not sensitive moved, rounded up."""
        others = self.values > 0
        others[self.cells] = False
        share = np.abs(adjusted - self.values)[others] / self.values[others]
        return float(np.ceil(1e4 * share.max(initial=0.0) - 1e-6) / 1e4)

    def room(self, adjusted: Floats, largest: float) -> Room:
        """What each cell can have been: sensitive ones within four levels of what is told, others within the share."""
        low, high = (
            adjusted / (1.0 + largest),
            adjusted / (1.0 - largest) if largest < 1 else np.full(len(adjusted), np.inf),
        )
        low[self.cells] = np.maximum(adjusted[self.cells] - FURTHER * self.upper, 0.0)
        high[self.cells] = adjusted[self.cells] + FURTHER * self.lower
        return Room(low, high)

    def adjusted(self, answer: Solution, table: Table) -> Floats:
        """Margins added up again from inner cells, so that nothing of the solver's tolerance is left."""
        size = len(self.values)
        change = self.scale * (answer.values[:size] - answer.values[size : 2 * size])
        inner = (self.values + (np.round(change) if self.counted else change))[table.inner]
        return holds(table) @ np.maximum(inner, 0.0)
