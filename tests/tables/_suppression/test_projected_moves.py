"""Moves by projection: each adds up, keeps within its rooms both ways, leaves held cells still, and meets levels."""

import numpy as np
import pytest

from equipoise.data.tables.additivity import Additive
from equipoise.tables._suppression import insider_proofs
from equipoise.tables._suppression.insider_proofs import InsiderProofs
from equipoise.tables._suppression.problem import SuppressionTable
from equipoise.tables._suppression.projected_moves import ProjectedMoves


class _Part:
    def __init__(self, cells):
        self.cells = cells


@pytest.fixture(scope="module")
def grid():
    """A 7 x 7 table with all inner cells suppressed; nine of them belong to lone contributors."""
    flat = np.r_[-1, np.zeros(7, dtype=np.int64)]
    additive = Additive.over([flat, flat])
    draw = np.random.default_rng(3)
    inner = np.array([8 * row + column for row in range(1, 8) for column in range(1, 8)])
    values = np.zeros((8, 8))
    values[1:, 1:] = draw.integers(20, 90, (7, 7))
    values[0], values[:, 0] = values.sum(axis=0), np.r_[values.sum(), values[1:].sum(axis=1)]
    table = SuppressionTable.of(additive, values.ravel(), np.zeros(64), np.full(64, np.inf))
    knower = np.full(64, -1)
    knower[draw.choice(inner, 9, replace=False)] = np.arange(9)
    return table, inner, knower


def test_moves_add_up_within_rooms_and_leave_held_cells_still(grid):
    table, inner, knower = grid
    matrix = table.additive.by_cell[:, inner].tocsr()
    room = np.repeat(table.values[inner][:, None], 4, axis=1)
    room[knower[inner] >= 0, :2] = 0.0
    level = np.repeat(0.1 * table.values[inner][:, None], 4, axis=1)
    moves = ProjectedMoves(matrix, 1).towards(level, room)
    assert np.abs(matrix @ moves).max() < 1e-6
    assert (np.abs(moves) <= room * (1 + 1e-12)).all()
    assert (moves[room == 0] == 0).all()
    assert (np.abs(moves) >= level)[room > 0].mean() > 0.8


@pytest.mark.parametrize("floors", [False, True])
def test_no_pair_is_proven_that_a_linear_program_refutes(grid, floors, monkeypatch):
    """Every pair that is called proven, by scipy's own program; and most pairs are proven."""
    monkeypatch.setattr(insider_proofs, "MAX_LEFT", 0)
    linprog = pytest.importorskip("scipy.optimize").linprog
    table, inner, knower = grid
    floor = np.full(64, 4.0) if floors else None
    cells = inner[::3]
    demands = np.tile(cells, 2), np.repeat([1, -1], len(cells)), np.tile(0.15 * table.values[cells], 2)
    proofs = InsiderProofs(table, [_Part(inner)], demands, knower, None, floor)
    proofs.run(None, 10**9)
    matrix, own = table.additive.by_cell[:, inner].toarray(), knower[inner]
    proven = 0
    for (cell, sign), (met, open_to) in proofs.proofs().items():
        for who in set(range(9)) - {int(knower[cell])} - set(open_to) if met else ():
            low, high = -table.values[inner].astype(float), np.full(len(inner), np.inf)
            low[own == who] = -4.0 if floors else 0.0
            high[own == who] = np.inf if floors else 0.0
            aim = np.where(inner == cell, -float(sign), 0.0)
            best = linprog(aim, A_eq=matrix, b_eq=np.zeros(len(matrix)), bounds=list(zip(low, high, strict=True)))
            assert -best.fun >= 0.15 * table.values[cell] * (1 - 1e-5)
            proven += 1
    assert proven > 0.9 * 2 * len(cells) * 8


def test_few_demands_against_many_people_are_left_to_be_asked_one_by_one(grid):
    table, inner, knower = grid
    demands = np.tile(inner, 2), np.repeat([1, -1], len(inner)), np.tile(0.15 * table.values[inner], 2)
    proofs = InsiderProofs(table, [_Part(inner)], demands, knower, None, None)
    assert proofs._open() > insider_proofs.MAX_LEFT >= len(demands[0])
    proofs.run(None, 10**9)
    assert proofs.work == 0


def test_a_move_that_does_not_add_up_or_moves_published_cells_proves_nothing(grid):
    table, inner, knower = grid
    demands = inner[:1], np.array([1]), np.array([3.0])
    for cells, by in (([inner[0]], [5.0]), ([0, inner[0]], [5.0, 5.0])):
        proofs = InsiderProofs(table, [_Part(inner)], demands, knower, None, None)
        proofs.learn([(np.array(cells), np.array(by))])
        assert not proofs.met.any()


@pytest.mark.parametrize("pairs", [True, False])
def test_many_moves_prove_together_what_they_prove_one_by_one(grid, monkeypatch, pairs):
    if not pairs:
        monkeypatch.setattr(insider_proofs, "MAX_BULK_PAIRS", 0)
    table, inner, knower = grid
    draw = np.random.default_rng(8)
    moves = []
    for _ in range(60):
        rows, columns = (8 * draw.choice(7, 2, replace=False) + 8, draw.choice(7, 2, replace=False) + 1)
        moves.append(((rows[:, None] + columns).ravel(), 5.0 * np.array([1.0, -1.0, -1.0, 1.0])))
    moves += [(inner[:3], np.ones(3)), (np.array([0, inner[0]]), np.array([5.0, -5.0])), (inner[:0], np.zeros(0))]
    demands = np.tile(inner, 2), np.repeat([1, -1], len(inner)), np.full(2 * len(inner), 4.0)
    answers = []
    for lists in ([moves], [[move] for move in moves]):
        proofs = InsiderProofs(table, [_Part(inner)], demands, knower, None, None)
        for some in lists:
            proofs.learn(some)
        answers.append(proofs.proofs())
    assert answers[0] == answers[1]
    assert any(met and not against for met, against in answers[0].values())
