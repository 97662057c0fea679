"""Moves that span all others, against NumPy's rank; programs over them, against SciPy's."""

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.optimize import linprog

from equipoise.tables._suppression.spanned_moves import SpannedProgram, spanning_moves


def relations(seed: int, rows: int = 30, columns: int = 40) -> sparse.csr_array:
    """Sparse relations of ones, of which some follow from others or are empty."""
    draw = np.random.default_rng(seed)
    matrix = np.where(draw.random((rows, columns)) < 0.1, draw.choice([-1.0, 1.0], (rows, columns)), 0.0)
    matrix[0], matrix[1] = 0.0, matrix[2] - matrix[3]
    return sparse.csr_array(matrix)


@pytest.mark.parametrize("seed", range(20))
def test_they_add_up_and_are_as_many_as_there_are(seed: int) -> None:
    matrix = relations(seed)
    moves = spanning_moves(matrix)
    assert np.abs(matrix @ moves).max() < 1e-9
    assert np.linalg.matrix_rank(moves) == moves.shape[1] == 40 - np.linalg.matrix_rank(matrix.toarray())


def test_without_relations_every_cell_moves_alone() -> None:
    assert spanning_moves(sparse.csr_array((0, 3))).tolist() == np.eye(3).tolist()
    assert spanning_moves(sparse.csr_array(np.eye(2))).shape == (2, 0)


@pytest.mark.parametrize("seed", range(12))
def test_a_program_over_moves_has_the_same_optimum(seed: int) -> None:
    """With limits and charges that change, of cells that are charged both ways and of one that is only one way."""
    matrix, draw = relations(seed), np.random.default_rng(seed)
    charged = draw.random(40) < 0.5
    program = SpannedProgram(spanning_moves(matrix), charged)
    impossible = 0
    for _ in range(6):
        low, high = np.zeros(80), draw.exponential(1.0, 80) * (draw.random(80) < 0.9)
        charges = np.tile(charged * draw.random(40), 2)
        target = int(draw.integers(40))
        high[target], high[target + 40] = 0.7, 0.0
        if draw.random() < 0.5:
            low[target] = 0.7
        else:
            charges[target] = -1.0
        answer = program.solve(low, high, charges)
        both = sparse.hstack([matrix, -matrix])
        best = linprog(charges, A_eq=both, b_eq=np.zeros(30), bounds=np.stack([low, high], axis=1))
        assert (answer is None) == (best.status == 2)
        impossible += answer is None
        if answer is not None:
            assert float(charges @ answer.values) == pytest.approx(best.fun, abs=1e-6)
            assert np.abs(both @ answer.values).max() < 1e-9
            assert ((answer.values > low - 1e-6) & (answer.values < high + 1e-6)).all()
    assert impossible < 6
