"""Sparse moves of suppressed cells by Gaussian elimination: a basis of all moves in a few milliseconds, no solver.

With the relations of the suppressed cells in reduced row echelon form every column without a pivot gives one move: it
changes by one, and the columns with pivots follow. Such a move is a circuit: no part of it can move alone. Counts
mostly change by one. The order of the columns says which get pivots, so that many orders give many circuits; columns
that come late are in one circuit each. Where a level is more than one circuit reaches, means of two are tried.

Source: circuits of a matrix, Rockafellar (1969), The elementary vectors of a subspace.
"""

from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.tables._suppression.remembered_moves import Moves

ROUNDING = 1e-9
"""Changes of cells up to which they are rounding: entries are small fractions."""
MAX_PAIRED = 30
"""Circuits through a cell of which two are added up, the sparsest."""
MAX_MEANS = 40
"""Means of two that are kept for a cell and direction."""


def circuits(matrix: Floats, order: Integers) -> Floats:
    """One move (row) for each column that gets no pivot when columns are eliminated in this order.

    O(rows^2 columns) at most; less by far for the sparse relations of tables.

    >>> circuits(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, -1.0]]), np.arange(3))
    array([[-1.,  1.,  1.]])
    """
    rows, waiting = matrix.copy(), np.ones(len(matrix), dtype=np.bool_)
    pivots, columns = [], []
    for column in order.tolist():
        size = np.abs(rows[:, column])
        pivot = int(np.argmax(size * waiting))
        if not waiting[pivot] or size[pivot] <= ROUNDING:
            continue
        waiting[pivot] = False
        pivots.append(pivot)
        columns.append(column)
        rows[pivot] /= rows[pivot, column]
        size[pivot] = 0.0
        others, changed = np.flatnonzero(size > ROUNDING), np.flatnonzero(np.abs(rows[pivot]) > ROUNDING)
        if len(others):
            rows[np.ix_(others, changed)] -= np.outer(rows[others, column], rows[pivot, changed])
    free = np.setdiff1d(np.arange(matrix.shape[1]), columns)
    moves = np.zeros((len(free), matrix.shape[1]))
    moves[np.arange(len(free)), free] = 1.0
    moves[:, columns] = -rows[pivots][:, free].T
    moves[np.abs(moves) <= ROUNDING] = 0.0
    return moves


def held_still(moves: Floats, column: int) -> Floats:
    """Circuits (rows) of the other columns: one that moves this column is added to all that do, and left out.

    >>> held_still(np.array([[1.0, 0.0, 1.0, -1.0], [0.0, 1.0, 1.0, -1.0]]), 2)
    array([[-1.,  1.,  0.,  0.]])
    """
    touching = np.flatnonzero(moves[:, column])
    if not len(touching):
        return moves
    pivot = touching[np.argmin((moves[touching] != 0).sum(axis=1))]
    others = touching[touching != pivot]
    rest = moves.copy()
    rest[others] -= np.outer(moves[others, column] / moves[pivot, column], moves[pivot])
    rest[np.abs(rest) <= ROUNDING] = 0.0
    return np.delete(rest, pivot, axis=0)


class CircuitMoves:
    """Circuits of some cells with these relations, by eliminations in drawn orders; `shy` cells mostly late."""

    def __init__(self, cells: Integers, matrix: Any, shy: Booleans) -> None:
        self.cells, self.matrix, self.shy = cells, matrix.toarray(), shy
        self.draw = np.random.default_rng(len(cells))
        self.drawn: list[Floats] = []
        self.sparsest: Floats | None = None
        self.wider: CircuitMoves | None = None
        self.gone = -1

    def basis(self, number: int) -> Floats:
        """The circuits of one elimination (rows), the same each time that they are asked for."""
        while len(self.drawn) <= number:
            if self.wider is not None:
                wider = held_still(self.wider.basis(len(self.drawn)), self.gone)
                self.drawn.append(np.delete(wider, self.gone, axis=1))
                continue
            late = self.shy if len(self.drawn) % 2 == 0 else 0.0
            self.drawn.append(circuits(self.matrix, np.argsort(self.draw.random(len(self.cells)) + late)))
        return self.drawn[number]

    def without(self, cell: int) -> "CircuitMoves":
        """The circuits of the other cells, from those of all."""
        fewer, stay = copy(self), self.cells != cell
        fewer.cells, fewer.matrix, fewer.shy = self.cells[stay], self.matrix[:, stay], self.shy[stay]
        fewer.wider, fewer.gone = self, int(np.searchsorted(self.cells, cell))
        fewer.drawn, fewer.sparsest = [], None
        return fewer

    def moves(self, number: int) -> Moves:
        """The same circuits, each as its cells and by how much they change."""
        return self._sparse(self.basis(number))

    def means(self, cell: int, amount: float, up: Floats, down: Floats) -> Moves:
        """Means of two circuits that change a cell by an amount, within these rooms where a circuit alone is not."""
        spot = int(np.searchsorted(self.cells, cell))
        if self.sparsest is None:
            every = np.concatenate(self.drawn)
            self.sparsest = every[np.argsort((every != 0).sum(axis=1), kind="stable")]
        through = self.sparsest[np.flatnonzero(self.sparsest[:, spot])[:MAX_PAIRED]]
        through = through * (amount / through[:, [spot]])
        beyond: Booleans = (through > up + ROUNDING) | (through < -down - ROUNDING)
        far: Booleans = np.any(beyond, axis=1)
        tight = np.flatnonzero(np.any(beyond, axis=0))
        first, second = np.triu_indices(len(through), 1)
        useful = far[first] | far[second]
        first, second = first[useful], second[useful]
        means = (through[first][:, tight] + through[second][:, tight]) / 2
        inside = ((means <= up[tight] + ROUNDING) & (means >= -down[tight] - ROUNDING)).all(axis=1)
        first, second = first[inside][:MAX_MEANS], second[inside][:MAX_MEANS]
        return self._sparse((through[first] + through[second]) / 2)

    def _sparse(self, moves: Floats) -> Moves:
        rows, columns = np.nonzero(np.abs(moves) > ROUNDING)
        ends = np.searchsorted(rows, np.arange(len(moves) + 1)).tolist()
        return [(self.cells[columns[a:b]], moves[rows[a:b], columns[a:b]]) for a, b in pairwise(ends)]
