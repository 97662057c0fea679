"""Controlled rounding: multiples of a base near every cell of a table, that still add up."""

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
    for rows, members in components(columns):
        program = Program(
            columns[rows][:, members], cost[free[members]], np.zeros(len(members)), np.ones(len(members)),
            right_side[rows], right_side[rows],
        )  # fmt: skip
        answer = _solved(program, cost[free[members]], seconds)
        if answer is None:
            return None
        up[free[members]] = np.round(answer.values)
        bound += answer.bound - TIES * len(members)
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


def components(matrix: Any) -> list[tuple[Integers, Integers]]:
    """The rows and columns of each connected part of a sparse matrix that has columns."""
    import scipy.sparse as sparse
    from scipy.sparse.csgraph import connected_components

    rows, columns = matrix.shape
    places = matrix.tocoo()
    graph = sparse.coo_array((np.ones(places.nnz), (places.row, places.col + rows)), shape=(rows + columns,) * 2)
    number, part = connected_components(graph, directed=False)
    order = np.argsort(part, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(part, minlength=number))[:-1])
    return [(group[group < rows], group[group >= rows] - rows) for group in groups if group[-1] >= rows]
