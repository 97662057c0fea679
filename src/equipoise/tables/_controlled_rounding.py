"""Controlled rounding: multiples of a base near every cell of a table, that still add up; of small counts alone by
a search of flips and swaps."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.data.tables.additivity import Additive
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.solver import Program, Solution

EXACT = 1e-9
"""Share by which a value may miss a multiple of the base and still be one."""
TIES = 1e-4
"""What a drawn number adds to the cost of a cell at most, in bases: ties are decided by draws."""
NOTHING = 1e15
"""Objectives from here on are how the solver says that it has no solution."""
GAP = 0.005
"""The search ends when the mean distance of a cell is within this part of a base of the bound."""
WIDER = (1, 2, 4)
"""How many bases further cells may go when the nearest multiples cannot add up."""
TRIES = 12
"""How many of the best flips are tried together with a second one before the search ends."""
STEPS = 20_000
"""The most flips; beyond that the best found so far stands."""
LEAST = 1e-9
"""Gains below this are rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class Rounded:
    """Multiples in bases; how many bases beyond the nearest ones were allowed; the cost, and a bound none is below."""

    multiples: Floats
    beyond: int
    cost: float
    bound: float

    @property
    def gap(self) -> float:
        """The share of the cost that a better solution could save at most."""
        return max(0.0, (self.cost - self.bound) / self.cost) if self.cost > EXACT else 0.0


class Late(Exception):
    """No solution was found in the time given."""


def split(values: Floats, base: float) -> tuple[Floats, Floats]:
    """Each value in bases: the multiple at or below it, and the part of a base above that.

    >>> [part.tolist() for part in split(np.array([0.0, 4.0, 10.0]), 5)]
    [[0.0, 0.0, 2.0], [0.0, 0.8, 0.0]]
    """
    bases = values / base
    near = np.round(bases)
    whole = np.abs(bases - near) <= EXACT * np.maximum(1.0, np.abs(near))
    low = np.where(whole, near, np.floor(bases))
    return low, np.where(whole, 0.0, bases - low)


def controlled(additive: Additive, low: Floats, aims: Floats, draws: Floats, seconds: float) -> Rounded | None:
    """Multiples low + y that satisfy every relation, as near as can be to the aims (shares of a base above `low`).

    First y in {0, 1} (0 where the aim is 0: multiples stay); if no such table exists, cells may go 1, 2, then 4 bases
    further, at least to 0, empty cells staying empty. None if that fails too, or nothing was found in `seconds`.
    """
    cost = 1.0 - 2.0 * aims + TIES * (draws - 0.5)
    try:
        rounded = _nearest(additive, low, aims, cost, seconds)
        for beyond in WIDER:
            if rounded is not None:
                break
            rounded = _wider(additive, low, aims, cost, beyond, seconds)
    except Late:
        return None
    return rounded


def _nearest(additive: Additive, low: Floats, aims: Floats, cost: Floats, seconds: float) -> Rounded | None:
    """Every cell to one of the multiples next to it, component by component."""
    free = np.flatnonzero(aims > 0)
    matrix, right_side = additive.base, -(additive.base @ low)
    columns = matrix.tocsc()[:, free]
    touched = np.diff(columns.tocsr().indptr) > 0
    if np.abs(right_side[~touched]).max(initial=0.0) > 0.5:
        return None
    up, bound = np.zeros(len(low)), float(aims.sum())
    for rows, cells in components(matrix.tocsc(), free):
        program = Program(
            matrix[rows][:, cells], cost[cells], np.zeros(len(cells)), np.ones(len(cells)),
            right_side[rows], right_side[rows],
        )  # fmt: skip
        answer = _solved(program, cost[cells], seconds)
        if answer is None:
            return None
        up[cells] = np.round(answer.values)
        bound += answer.bound - TIES * len(cells)
    return _verified(additive, Rounded(low + up, 0, _cost(up, aims), bound))


def _solved(program: Program, cost: Floats, seconds: float) -> Solution | None:
    gains = cost < 0
    gap = GAP * len(cost) / max(float(-cost[gains].sum()), EXACT)
    program.whole(np.arange(len(cost)), seconds=seconds, gap=min(gap, 1.0))
    answer = program.solve()
    if answer is not None and not abs(answer.objective) < NOTHING:
        raise Late
    return answer


def _wider(additive: Additive, low: Floats, aims: Floats, cost: Floats, beyond: int, seconds: float) -> Rounded | None:
    """As before, y = y0 + u - w with u and w up to `beyond` bases, each at the price of a base."""
    import scipy.sparse as sparse

    occupied = (low > 0) | (aims > 0)
    columns = additive.base.tocsc()
    most = np.concatenate([(aims > 0), beyond * occupied, np.minimum(beyond, low)]).astype(float)
    price = np.concatenate([cost, np.ones(2 * len(low))])
    right_side = -(additive.base @ low)
    program = Program(
        sparse.hstack([columns, columns, -columns]), price, np.zeros(len(most)), most, right_side, right_side
    )
    answer = _solved(program, price, seconds)
    if answer is None:
        return None
    parts = np.round(answer.values).reshape(3, len(low))
    y = parts[0] + parts[1] - parts[2]
    bound = answer.bound + float(aims.sum()) - TIES * len(low)
    return _verified(additive, Rounded(low + y, beyond, _cost(y, aims), bound))


def _cost(y: Floats, aims: Floats) -> float:
    return float(np.abs(y - aims).sum())


def _verified(additive: Additive, rounded: Rounded) -> Rounded:
    """What adds up; an answer that was cut off by the clock may not."""
    if np.abs(additive.residuals(rounded.multiples)).max(initial=0.0) > 0.5:
        raise Late
    return rounded


def components(matrix: Any, cells: Integers) -> list[tuple[Integers, Integers]]:
    """The relations and the cells of each connected part of these cells; a cell in no relation is one by itself."""
    import scipy.sparse as sparse
    from scipy.sparse.csgraph import connected_components

    rows, places = matrix.shape[0], matrix[:, cells].tocoo()
    size = rows + len(cells)
    graph = sparse.coo_array((np.ones(places.nnz), (places.row, places.col + rows)), shape=(size, size))
    number, part = connected_components(graph, directed=False)
    order = np.argsort(part, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(part, minlength=number))[:-1])
    return [(group[group < rows], cells[group[group >= rows] - rows]) for group in groups if group[-1] >= rows]


def settle(holds: Any, parts: Floats, draws: Floats) -> Integers:
    """For each part in (0, 1) a 0 or 1, so that the groups that hold it keep their sums: holds @ up ~ holds @ parts.

    Minimises the sum over groups of (holds @ (parts - up))^2. It starts from systematic rounding (up where the running
    sum of the parts, from a drawn start, passes a whole number), then takes the flip that gains most, then pairs of
    flips, until none gains. Cost: O(parts) for each flip; at most `STEPS`.

    Source: Langsrud and Heldal (2018), *An algorithm for small count rounding of tabular data*, for the aim; the search
    is plain local descent.

    >>> import scipy.sparse as sparse
    >>> groups = sparse.csr_array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    >>> settle(groups, np.array([0.4, 0.7, 0.2]), np.array([0.1, 0.2, 0.3])).tolist()
    [0, 1, 0]
    """
    if not len(parts):
        return np.zeros(0, dtype=np.int64)
    search = _RoundingSearch(holds, parts, draws)
    while search.steps < STEPS and (search.single() or search.double()):
        pass
    return search.up.astype(np.int64)


class _RoundingSearch:
    """Where the search stands: what is up, and for each part the sum of the misses of the groups that hold it."""

    def __init__(self, holds: Any, parts: Floats, draws: Floats) -> None:
        self.by_part, self.by_group = holds.tocsc(), holds.tocsr()
        passed = np.floor(np.cumsum(parts) + draws[0])
        self.up = np.diff(passed, prepend=np.floor(draws[0])) > 0
        self.groups = np.diff(self.by_part.indptr).astype(np.float64)
        self.pull = self.by_group.T @ (self.by_group @ (parts - self.up))
        self.ties = LEAST * draws
        self.steps = 0

    def gains(self) -> Floats:
        """What each flip would take off the sum of squares."""
        sign = np.where(self.up, -1.0, 1.0)
        return 2.0 * sign * self.pull - self.groups

    def flip(self, part: int) -> None:
        groups = self.by_part.indices[self.by_part.indptr[part] : self.by_part.indptr[part + 1]]
        shared = self.by_group[groups].indices
        change = -1.0 if not self.up[part] else 1.0
        self.pull += change * np.bincount(shared, minlength=len(self.up))
        self.up[part] = not self.up[part]
        self.steps += 1

    def single(self) -> bool:
        gains = self.gains()
        best = int(np.argmax(gains + self.ties))
        if gains[best] > 2 * LEAST:
            self.flip(best)
            return True
        return False

    def double(self) -> bool:
        gains = self.gains()
        for first in np.argsort(-(gains + self.ties), kind="stable")[:TRIES].tolist():
            self.flip(first)
            after = self.gains()
            after[first] = -np.inf
            second = int(np.argmax(after + self.ties))
            if gains[first] + after[second] > 2 * LEAST:
                self.flip(second)
                return True
            self.flip(first)
        return False
