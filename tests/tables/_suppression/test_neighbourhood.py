"""Neighbourhoods: the nearest cells by the cost of the way, against distances to every cell of the table."""

import numpy as np
import pytest

from equipoise.data.tables.additivity import Additive
from equipoise.ground.arrays import Booleans, Floats
from equipoise.tables._suppression.neighbourhood import STEPS, Neighbourhood
from equipoise.tables._suppression.problem import SuppressionTable


def drawn(seed: int) -> tuple[SuppressionTable, Booleans]:
    """A table of 5 x 6 x 4 codes with empty cells, and some suppressed ones."""
    draw = np.random.default_rng(seed)
    values = draw.lognormal(3, 1.5, (5, 6, 4)) * (draw.random((5, 6, 4)) < 0.8)
    for axis in range(3):
        values = np.concatenate([values.sum(axis=axis, keepdims=True), values], axis=axis)
    trees = [np.array([-1] + [0] * (codes - 1)) for codes in values.shape]
    table = SuppressionTable.of(Additive.over(trees), values.ravel())
    return table, (draw.random(table.cells) < 0.2) & table.movable & (table.values > 0)


def distances(around: Neighbourhood, cell: int, level: float, free: Booleans) -> Floats:
    """How far each cell is: a step through a relation costs the cell that it leads to."""
    step = np.where(free, 0.0, around.cost * np.maximum(1.0, level / around.room)) + around.step
    far = np.where(np.arange(len(step)) == cell, 0.0, np.inf)
    member = around.table.additive.matrix.toarray() != 0
    for _ in range(STEPS):
        relation = np.array([far[cells].min() for cells in member])
        nearest = np.array([relation[member[:, one]].min() for one in range(len(far))])
        far = np.minimum(far, np.where(around.usable, nearest + step, np.inf))
    return far


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [15, 60])
def test_no_cell_outside_is_nearer(seed: int, size: int) -> None:
    table, free = drawn(seed)
    usable = table.values > 0
    around = Neighbourhood(table, usable, np.maximum(table.values, 1.0))
    for cell in np.flatnonzero(free)[:6].tolist():
        far = distances(around, cell, 1.0, free)
        cells = around.nearest(cell, 1.0, free, size)
        assert cell in cells
        assert np.allclose(np.sort(far[cells])[:size], np.sort(far)[:size])
