"""Circuits are moves, and codes of contributors never call a demand proven that pairs would leave open."""

import numpy as np
import scipy.sparse as sparse

from equipoise.tables._suppression.circuit_moves import CircuitMoves, circuits
from equipoise.tables._suppression.insider_proofs import _CodedGroup, _Group


def test_circuits_add_up_and_span_all_moves() -> None:
    draw = np.random.default_rng(3)
    for _ in range(20):
        matrix = draw.integers(-1, 2, (6, 14)).astype(float)
        moves = circuits(matrix, draw.permutation(14))
        assert np.abs(matrix @ moves.T).max() < 1e-8
        assert np.linalg.matrix_rank(moves) == 14 - np.linalg.matrix_rank(matrix)


def test_circuits_without_a_cell_span_all_moves_that_leave_it_still() -> None:
    draw = np.random.default_rng(4)
    for _ in range(20):
        matrix = draw.integers(-1, 2, (6, 14)).astype(float)
        moves, gone = CircuitMoves(np.arange(10, 24), sparse.csr_array(matrix), np.zeros(14, dtype=np.bool_)), 12
        fewer = moves.without(gone).without(20)
        rest = np.delete(matrix, [gone - 10, 10], axis=1)
        for number in range(3):
            basis = fewer.basis(number)
            assert np.abs(rest @ basis.T).max(initial=0.0) < 1e-8
            assert np.linalg.matrix_rank(basis) == len(basis) == 12 - np.linalg.matrix_rank(rest)
            assert all(not {gone, 20} & set(cells.tolist()) for cells, _ in fewer.moves(number))


def test_means_reach_what_is_asked_within_the_rooms() -> None:
    relations = sparse.csr_array([[1.0, 1.0, 1.0, 0.0], [0.0, 1.0, 1.0, 1.0]])
    drawn = CircuitMoves(np.arange(4), relations, np.zeros(4, dtype=np.bool_))
    for number in range(6):
        drawn.moves(number)
    rooms = np.full(4, 9.0), np.array([9.0, 1.0, 1.0, 9.0])
    means = drawn.means(0, 2.0, *rooms)
    assert any(len(cells) == 4 for cells, _ in means)
    for cells, by in means:
        change = np.zeros(4)
        change[cells] = by
        assert change[0] == 2.0
        assert np.abs(relations @ change).max() < 1e-9
        assert (change >= -rooms[1]).all()


def test_codes_leave_open_all_that_pairs_leave_open() -> None:
    draw, knowers, own = np.random.default_rng(5), np.arange(10, 31), np.array([10, 17, -1, 30, -1])
    pairs = _Group(np.arange(40), np.arange(5), knowers, own)
    codes = _CodedGroup(np.arange(40), np.arange(5), knowers, own)
    proven = 0
    for number in range(200):
        if number % 3:
            still = codes.code >> np.uint64(draw.integers(codes.bits)) & np.uint64(1) > 0
        else:
            still = draw.random(len(knowers)) < 0.5
        rows = draw.permutation(np.flatnonzero(~np.isin(own, knowers[still])))[:2]
        touched = knowers[~still]
        for group in (pairs, codes):
            group.open_to(rows, np.zeros(len(rows), dtype=np.int64), touched, np.zeros(len(touched), dtype=np.int64))
        for row in range(5):
            open_by_codes = set(codes.against(row).tolist()) if codes.waiting[row] else set()
            assert set(pairs.against(row).tolist()) <= open_by_codes | {int(own[row])}
            proven += not codes.waiting[row]
    assert proven > 0
