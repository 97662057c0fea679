"""Unbiased controlled rounding: a random walk from the values to multiples along changes that keep all relations."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np

from equipoise.data.tables.additivity import Additive
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.tables._controlled_rounding import components

WHOLE = 1e-7
"""Part of a base within which a cell has reached a multiple."""
MAX_WORK = 2e10
"""Relations squared times cells of a connected part up to which the walk is taken."""
Coin = Callable[[int, float], bool]
"""Whether to go up: of the n-th step of the walk, with its probability."""


def unbiased(additive: Additive, low: Floats, parts: Floats, coin: Coin) -> Floats | None:
    """Multiples r in bases that add up, with E r = low + parts in every cell; None where a part of it is too large.

    A walk y from the parts: while cells are no multiples, take a change d that keeps all relations and moves only
    such cells, and go to y + a d with probability b / (a + b), else to y - b d, as far as the first cell that is 0 or
    1. Each step is fair, so the mean of every cell stays, and ends with one more multiple. Where no such d is left
    (never in two-way tables with a hierarchy in one column, whose relations are totally unimodular), margins that are
    multiples already move again, one by one and without limits: then some are further than a base away.
    Cost: O(relations) for each step, O(relations^2) for each cell that enters, in every connected part.

    Source: Cox (1987), *A constructive procedure for unbiased controlled rounding*, generalised from cycles of a
    two-way table to the null space of any relations (Gandhi, Khuller, Parthasarathy and Srinivasan, 2006, *Dependent
    rounding and its applications to approximation algorithms*, for the fair step).
    """
    y, matrix = parts.copy(), additive.base.tocsc()
    steps = count()
    for rows, cells in components(matrix, np.flatnonzero(parts > 0)):
        if len(rows) ** 2 * len(cells) > MAX_WORK:
            return None
        _FairWalk(matrix[rows], y, coin, steps).run(cells)
    margins = np.unique(additive.totals[additive.needed])
    if (left := np.flatnonzero(~_is_whole(y))).size:
        if len(margins) ** 2 * (len(left) + len(margins)) > MAX_WORK:
            return None
        walk = _FairWalk(matrix, y, coin, steps)
        walk.run(left)
        walk.let_go(margins)
    multiples = low + np.round(y)
    return multiples if np.abs(additive.residuals(multiples)).max(initial=0.0) < 0.5 else None


class _FairWalk:
    """Reduced relations: `reduce @ matrix` has a unit column for the cell that each row stands for (`holder`)."""

    def __init__(self, matrix: Any, y: Floats, coin: Coin, steps: Iterator[int]) -> None:
        self.matrix, self.y, self.coin, self.steps = matrix.tocsc(), y, coin, steps
        self.reduce = np.eye(matrix.shape[0])
        self.holder = np.full(matrix.shape[0], -1, dtype=np.int64)
        self.bound = np.ones(len(y), dtype=np.bool_)

    def run(self, cells: Integers) -> None:
        """Bring all cells to multiples that can be."""
        for cell in cells.tolist():
            self.enter(cell)

    def let_go(self, margins: Integers) -> None:
        """Bring the rest to multiples, with margins that move without limits: these span all changes."""
        while self._moving().any():
            before = next(self.steps)
            for margin in margins[~np.isin(margins, self.holder)].tolist():
                self.bound[margin] = False
                self.enter(margin)
            if next(self.steps) == before + 1:
                return

    def enter(self, cell: int) -> None:
        """Move a cell until it is a multiple, or until it stands for a relation."""
        while not (self.bound[cell] and _is_whole(self.y[cell])):
            column = slice(self.matrix.indptr[cell], self.matrix.indptr[cell + 1])
            weights = self.reduce[:, self.matrix.indices[column]] @ self.matrix.data[column]
            weights[np.abs(weights) < WHOLE] = 0.0
            spare = np.flatnonzero((self.holder < 0) & (weights != 0))
            if len(spare):
                self._stand(cell, int(spare[np.argmax(np.abs(weights[spare]))]), weights)
                return
            rows = np.flatnonzero(weights)
            if not self._move(np.append(self.holder[rows], cell), np.append(-weights[rows], 1.0)):
                return
            self.holder[rows[self._done(self.holder[rows])]] = -1

    def _move(self, cells: Integers, change: Floats) -> bool:
        """A fair step to the first multiple on either side; False where no limit stands in the way."""
        y, limited = self.y[cells], self.bound[cells]
        with np.errstate(divide="ignore"):
            up = np.where(limited, np.where(change > 0, 1.0 - y, y) / np.abs(change), np.inf).min()
            down = np.where(limited, np.where(change > 0, y, 1.0 - y) / np.abs(change), np.inf).min()
        if not np.isfinite(up + down):
            return False
        far = up if self.coin(next(self.steps), down / (up + down)) else -down
        self.y[cells] = y + far * change
        near = cells[limited & _is_whole(self.y[cells])]
        self.y[near] = np.round(self.y[near])
        return True

    def _stand(self, cell: int, row: int, weights: Floats) -> None:
        """Let a cell stand for a relation: Gauss-Jordan step."""
        pivot = self.reduce[row] / weights[row]
        touched = np.flatnonzero(weights)
        self.reduce[touched] -= np.outer(weights[touched], pivot)
        self.reduce[row] = pivot
        self.holder[row] = cell

    def _done(self, cells: Integers) -> Booleans:
        return self.bound[cells] & _is_whole(self.y[cells])

    def _moving(self) -> Booleans:
        """Relations whose cell is no multiple yet."""
        held = self.holder >= 0
        held[held] = ~_is_whole(self.y[self.holder[held]]) & self.bound[self.holder[held]]
        return held


def _is_whole(y: Any) -> Any:
    return np.abs(y - np.round(y)) < WHOLE


def systematic(parts: Floats, start: float) -> Integers:
    """Up where the running sum of the parts from a random start passes a whole number: E = part in every cell.

    >>> systematic(np.array([0.5, 0.25, 0.25, 1.0]), 0.3).tolist()
    [0, 1, 0, 1]
    """
    passed = np.floor(np.cumsum(parts) + start)
    return np.diff(passed, prepend=np.floor(start)).astype(np.int64)
