"""What moves prove against contributors, all at once: against the definition, one move and one demand at a time."""

import numpy as np
import pytest

from equipoise.data.tables.additivity import Additive
from equipoise.tables._suppression.cheapest_move import TableMove
from equipoise.tables._suppression.contributor_knowledge import AloneInCells, AmongOthers
from equipoise.tables._suppression.move_proofs import MoveProofs
from equipoise.tables._suppression.problem import SuppressionTable

SIDE = 5
INNER = [r * (SIDE + 1) + c for r in range(1, SIDE + 1) for c in range(1, SIDE + 1)]


class Case:
    """A two-way table of small counts with margins published, all inner cells suppressed, and cycles of four cells."""

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng(seed)
        tree = np.array([-1, *[0] * SIDE])
        inner = draw.integers(1, 9, (SIDE, SIDE)).astype(float)
        values = np.zeros((SIDE + 1, SIDE + 1))
        values[1:, 1:] = inner
        values[0, 1:], values[1:, 0], values[0, 0] = inner.sum(axis=0), inner.sum(axis=1), inner.sum()
        self.table = SuppressionTable.of(Additive.over([tree, tree]), values.ravel())
        self.suppressed = np.isin(np.arange(values.size), INNER)
        self.below = np.where(self.suppressed & (values.ravel() < 3), np.minimum(1.0, values.ravel()), 0.0)
        self.above = np.where(self.suppressed & (values.ravel() < 3), 3.0 - values.ravel(), 0.0)
        self.moves = [self._cycle(draw) for _ in range(40)]
        knower = np.full(values.size, -1)
        known = draw.choice(INNER, 8, replace=False)
        knower[known] = draw.integers(0, 5, 8)
        least = np.where(self.suppressed & (knower < 0), 1.0, 0.0)
        holding = np.where(self.suppressed, draw.integers(0, 3, values.size), 0.0)
        inside = None
        self.minds = (
            AloneInCells(self.table, knower, inside), AmongOthers(self.table, least, inside),
            AloneInCells(self.table, knower, inside, np.minimum(holding, values.ravel())),
        )  # type: ignore[arg-type]  # fmt: skip

    def _cycle(self, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows, columns = (1 + np.sort(draw.choice(SIDE, 2, replace=False)) for _ in range(2))
        cells = (rows[:, None] * (SIDE + 1) + columns).ravel()
        return cells, np.array([1.0, -1.0, -1.0, 1.0]) * draw.choice([0.5, 1.0, 2.0])

    def naive(self, minds: object) -> dict[tuple[int, int], frozenset[int]]:
        """Against whom each demand that a move meets is open."""
        answers: dict[tuple[int, int], frozenset[int]] = {}
        for cells, by in self.moves:
            move = TableMove.of(self.table, cells, by)
            for cell in cells.tolist():
                for sign, level in ((1, self.above[cell]), (-1, self.below[cell])):
                    if level <= 0 or move.far(cell, sign) < level:
                        continue
                    touched = minds.touched(move, move.scaled(cell, sign, level), cell)  # type: ignore[attr-defined]
                    if touched is not None:
                        answers[cell, sign] = answers.get((cell, sign), touched) & touched
        return {key: touched - {minds.same(key[0])} for key, touched in answers.items()}  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(6))
def test_all_at_once_is_one_by_one(seed: int) -> None:
    case = Case(seed)
    proofs = MoveProofs(case.table, case.suppressed, case.below, case.above, case.moves)
    for minds in case.minds:
        expected = case.naive(minds)
        assert expected
        assert proofs.against(minds) == {key: (True, touched) for key, touched in expected.items()}


def test_a_cell_less() -> None:
    """Without a cell the moves through it prove nothing any more."""
    case = Case(1)
    gone = INNER[7]
    proofs = MoveProofs(case.table, case.suppressed, case.below, case.above, case.moves)
    proofs.against(case.minds[0])
    fewer = proofs.without(gone)
    case.moves = [move for move in case.moves if gone not in move[0]]
    for minds in case.minds:
        assert fewer.against(minds) == {key: (True, touched) for key, touched in case.naive(minds).items()}


def test_moves_that_prove_nothing() -> None:
    """One that changes a published cell, one that does not add up, and in whole numbers one that is not whole."""
    case = Case(2)
    cells, by = case.moves[0]
    minds = case.minds[0]

    def proven(moves: list[tuple[np.ndarray, np.ndarray]], whole: bool = False) -> dict:
        suppressed = case.suppressed.copy()
        suppressed[published] = False
        return MoveProofs(case.table, suppressed, case.below, case.above, moves, whole=whole).against(minds)

    published = np.zeros(0, dtype=np.int64)
    demanding = next(move for move in case.moves if proven([move]))
    cells, by = demanding
    assert not proven([(cells, by + np.array([1e-3, 0, 0, 0]))])
    uneven = np.where(case.above > 0, 0.5, 0.0)
    assert proven([demanding], whole=True)
    case.below, case.above = np.minimum(case.below, 0.5), uneven
    assert proven([demanding])
    assert not proven([demanding], whole=True)
    published = cells[:1]
    assert not proven([demanding])
    assert not proven([])
