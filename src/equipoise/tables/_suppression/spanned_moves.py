"""Programs over moves that span all others: where relations leave cells little freedom.

Every change y with matrix @ y = 0 is basis @ z. In five dimensions a thousand cells have some 70 such moves, so that a
program over z has a row for each cell in place of 1,400 relations, begins with a table that adds up, and takes a third
of the time. Cells that are charged both ways have a column for their rise and one for their fall beside.
"""

from typing import Any

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.solver import Program, Solution

ROUNDING = 1e-9
"""Entries up to which they are rounding: those of eliminated relations are small fractions."""
MAX_FREEDOM = 0.2
"""Moves as a share of the cells up to which programs are over moves."""
ELIMINATION_WORK = 7
"""Work (`Program.work`) of an elimination for each relation and cell."""


def spanning_moves(matrix: Any) -> Floats:
    """Moves (columns) that all others are sums of: Gaussian elimination, the sparsest relations and cells first.

    >>> import scipy.sparse as sparse
    >>> spanning_moves(sparse.csr_array([[1.0, 1.0, 0.0], [0.0, 1.0, -1.0]])).T
    array([[-1.,  1.,  1.]])
    """
    rows, pivots = matrix.toarray(), list[tuple[int, Integers, Floats]]()
    full: Booleans = rows != 0
    width, height = full.sum(axis=1).astype(np.float64), full.sum(axis=0)
    width[width == 0] = np.inf
    while width.size and width[row := int(np.argmin(width))] < np.inf:
        cells, width[row] = np.flatnonzero(full[row]), np.inf
        column = int(cells[np.argmin(height[cells])])
        part = rows[row, cells] / rows[row, column]
        pivots.append((column, cells, part))
        height[cells] -= 1
        others = np.flatnonzero(full[:, column] & (width < np.inf))
        if len(others):
            block = np.ix_(others, cells)
            rest = rows[block] - np.outer(rows[others, column], part)
            rest[np.abs(rest) <= ROUNDING] = 0.0
            more = (rest != 0).astype(np.int64) - full[block]
            rows[block], full[block] = rest, rest != 0
            width[others] += more.sum(axis=1)
            width[others[width[others] == 0]] = np.inf
            height[cells] += more.sum(axis=0)
    free = np.setdiff1d(np.arange(rows.shape[1]), [column for column, *_ in pivots])
    moves = np.zeros((rows.shape[1], len(free)))
    moves[free, np.arange(len(free))] = 1.0
    for column, cells, part in reversed(pivots):
        rest = cells != column
        moves[column] = -(part[rest] @ moves[cells[rest]])
    moves[np.abs(moves) <= ROUNDING] = 0.0
    return moves


class SpannedProgram:
    """Programs for rises of cells and, after these, their falls, over moves (columns of `basis`).

    `charged` cells may be charged both ways, others only where they have no room in the other direction.
    """

    def __init__(self, basis: Floats, charged: Booleans) -> None:
        import scipy.sparse as sparse

        self.basis, self.charged = basis, charged
        own = sparse.eye_array(len(basis), format="csc")[:, np.flatnonzero(charged)]
        columns = sparse.hstack([sparse.csc_array(basis), -own, own])
        ends = np.full(columns.shape[1], np.inf)
        self.program = Program(columns, np.zeros(len(ends)), -ends, ends)
        self.program.sharpen()

    def solve(self, low: Floats, high: Floats, charges: Floats, *, certain: bool = True) -> Solution | None:
        """The cheapest within these limits, which adds up to rounding; None when there is none."""
        count, moves = self.basis.shape
        both = np.flatnonzero(np.tile(self.charged, 2))
        below, above = low[:count] - high[count:], high[:count] - low[count:]
        price = np.where(high[:count] > 0, charges[:count], -charges[count:])
        below[self.charged] = above[self.charged] = price[self.charged] = 0.0
        self.program.confine(below, above)
        self.program.bound(moves + np.arange(len(both)), low[both], high[both])
        self.program.charge(np.arange(moves + len(both)), np.concatenate([price @ self.basis, charges[both]]))
        answer = self.program.solve(certain=certain)
        if answer is None:
            return None
        change = self.basis @ answer.values[:moves]
        values = np.concatenate([np.maximum(change, 0.0), np.maximum(-change, 0.0)])
        return Solution(values, answer.prices, answer.objective, answer.bound)
