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
from equipoise.tables._suppression.problem import SuppressionTable, marked

BOUND_TOLERANCE = 1e-8
"""Share of the typical room within which two bounds are equal."""
BOUND_ROUNDS = 4
"""Times that bounds are passed on through the relations."""
MAX_WHOLE = 3_000
"""Unknowns up to which whole numbers are asked for."""


@dataclass(frozen=True, eq=False, repr=False)
class AttackerIntervals:
    """The values each cell can have as far as an attacker can tell: its own where it is published."""

    lower: Floats
    upper: Floats
    suppressed: Booleans
    programs: int

    @property
    def width(self) -> Floats:
        return self.upper - self.lower

    def disclosed(self, tolerance: float = 1e-9) -> Booleans:
        """Suppressed cells that can be computed exactly (to a share of their value, or of one)."""
        scale = tolerance * np.maximum(1.0, np.abs(np.where(np.isfinite(self.upper), self.upper, 0.0)))
        return self.suppressed & (self.width <= scale)


def audit(
    additive: Additive, values: Any, suppressed: Any, *, low: Any = 0.0, high: Any = np.inf, integer: bool = False,
    progress: Progress | None = None, targets: Any = None,
) -> AttackerIntervals:  # fmt: skip
    """The exact interval of every suppressed cell, for an attacker who knows low <= x <= high beforehand.

    `integer` asks for tables of whole numbers (counts), for up to 3,000 unknowns that hang together: the interval may
    be narrower than the linear one. A contributor who knows some cells is audited by leaving them out of
    `suppressed`. Only the intervals of the `targets`, where given, are exact. Cost: at most two programs for each
    target, in the component it is in.

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
    wanted = np.unique(system.owner if targets is None else system.owner[np.asarray(targets)[cells]])
    programs = 0
    for component in system.components(progress):
        programs += component.settle(integer, np.isin(component.columns, wanted))
        system.down[component.columns], system.up[component.columns] = -component.least, component.most
    fall, rise = system.spread()
    lower[cells], upper[cells] = table.values[cells] - fall, table.values[cells] + rise
    return AttackerIntervals(lower, upper, hidden, programs)


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
        return cls(_folded(table.additive.base[:, cells], owner, factor), owner, factor, up, down)

    def components(self, progress: Progress | None) -> "Iterator[_Component]":
        """Connected components of unknowns that share relations; an unknown in none keeps its bounds."""
        from scipy.sparse.csgraph import connected_components

        relations = np.flatnonzero(np.diff(self.matrix.indptr))
        matrix = self.matrix[relations]
        _, label = connected_components(abs(matrix.T) @ abs(matrix), directed=False)
        columns = np.unique(matrix.indices)
        order = columns[np.argsort(label[columns], kind="stable")]
        starts = np.flatnonzero(np.diff(label[order], prepend=-1))
        by_column = matrix.tocsc()
        for number, group in enumerate(np.split(order, starts[1:]) if len(order) else []):
            report(progress, number, len(starts), "computing the attacker's intervals")
            group = np.sort(group)
            yield _Component(by_column[:, group].tocsr(), group, -self.down[group], self.up[group])

    def spread(self) -> tuple[Floats, Floats]:
        """How far each cell can fall and rise."""
        size, flip = np.abs(self.factor), self.factor < 0
        up, down = (np.where(size > 0, room[self.owner], 0.0) for room in (self.up, self.down))
        return size * np.where(flip, up, down), size * np.where(flip, down, up)


def reduced(matrix: Any) -> tuple[Integers, Floats]:
    """Merge unknowns: y_j = factor_j z_owner(j), factor 0 for one that a relation fixes. O(entries) for each round."""
    count = matrix.shape[1]
    owner, factor = np.arange(count), np.ones(count)
    while True:
        folded = _folded(matrix, owner, factor)
        terms = np.diff(folded.indptr)
        alone = folded.indices[folded.indptr[:-1][terms == 1]]
        if len(alone):
            factor[np.isin(owner, alone)] = 0.0
            continue
        first = folded.indptr[:-1][terms == 2]
        if not len(first):
            return owner, factor
        owners, merged, ratio = _pairs(folded, first)
        into, by = np.arange(count), np.ones(count)
        into[merged], by[merged] = owners, ratio
        factor *= by[owner]
        owner = into[owner]


def _pairs(folded: Any, first: Integers) -> tuple[Integers, Integers, Floats]:
    """From relations p z_a + q z_b = 0: the larger number of each pair as a multiple of the smaller, no chains."""
    one, two = folded.indices[first], folded.indices[first + 1]
    p, q = folded.data[first], folded.data[first + 1]
    swap = one > two
    owners, merged = np.where(swap, two, one), np.where(swap, one, two)
    ratio = np.where(swap, -q / p, -p / q)
    merged, at = np.unique(merged, return_index=True)
    owners, ratio = owners[at], ratio[at]
    free = np.isin(owners, merged, invert=True)
    return owners[free], merged[free], ratio[free]


def _folded(matrix: Any, owner: Integers, factor: Floats) -> Any:
    import scipy.sparse as sparse

    count = len(owner)
    folded = sparse.csr_array(matrix @ sparse.csr_array((factor, (np.arange(count), owner)), shape=(count, count)))
    folded.data[np.abs(folded.data) < 1e-9] = 0.0
    folded.eliminate_zeros()
    folded.sort_indices()
    return folded


class _Component:
    """Unknowns that hang together, with the least and the most each can be once `settle` has run."""

    def __init__(self, matrix: Any, columns: Integers, low: Floats, high: Floats) -> None:
        self.matrix = matrix[np.flatnonzero(np.diff(matrix.indptr))]
        self.columns, self.low, self.high = columns, low, high
        widths = (high - low)[np.isfinite(high - low) & (high > low)]
        self.unit = float(np.median(widths)) if len(widths) else 1.0
        self.least, self.most = np.zeros(len(columns)), np.zeros(len(columns))
        self.outer_low, self.outer_high = implied(self.matrix, low, high)

    def settle(self, whole: bool, wanted: Booleans) -> int:
        """Find the bounds of the wanted unknowns; says how many programs that took."""
        if not wanted.any():
            return 0
        if whole and len(self.columns) > MAX_WHOLE:
            raise ParameterError(f"An audit in whole numbers takes up to {MAX_WHOLE:,} unknowns that hang together.")
        low, high = self.low / self.unit, self.high / self.unit
        self.program = Program(self.matrix, np.zeros(len(low)), low, high, primal=True)
        self.program.sharpen()
        self.solved, slack = 0, BOUND_TOLERANCE * self.unit
        if not whole:
            self._sweep()
        for column in np.flatnonzero(wanted).tolist():
            if self.most[column] < self.outer_high[column] - slack:
                self._extreme(column, 1.0, whole)
            if self.least[column] > self.outer_low[column] + slack:
                self._extreme(column, -1.0, whole)
        self.least, self.most = np.maximum(self.least, self.low), np.minimum(self.most, self.high)
        return self.solved

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
        self.program.charge(spot, np.array([-sign]))
        answer = self._solve(self.program)
        self.program.charge(spot, np.zeros(1))
        if answer is None:
            side[column] = sign * np.inf
            return
        if whole and np.abs(answer.values * self.unit - np.round(answer.values * self.unit)).max() > 1e-6:
            self._extreme_whole(column, sign)
            return
        self._note(answer)

    def _extreme_whole(self, column: int, sign: float) -> None:
        cost = np.zeros(len(self.columns))
        cost[column] = -sign
        program = Program(self.matrix, cost, self.low, self.high)
        program.whole(np.arange(len(cost)))
        answer = self._solve(program)
        if answer is not None:
            side = self.most if sign > 0 else self.least
            side[column] = np.round(answer.values[column])

    def _solve(self, program: Program) -> Solution | None:
        """The best table, or None where there is no limit."""
        self.solved += 1
        try:
            return program.solve()
        except Unbounded:
            return None

    def _note(self, answer: Solution | None) -> None:
        if answer is not None:
            self.most = np.maximum(self.most, answer.values * self.unit)
            self.least = np.minimum(self.least, answer.values * self.unit)


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
