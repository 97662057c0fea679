"""Who is who in a block: every assignment listed, against the sums and the messages."""

from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.laws.block_posterior import _propagated, assigned
from equipoise.laws.cell_law import CellLaw, leaving_law, mixing_law
from equipoise.laws.column_evidence import calibrated

SHAPES = [(1, 1), (1, 1, 1), (2, 1), (1, 3, 2), (4, 1), (1, 1, 1, 1, 2), (3,), (2, 2, 2)]


def listed(weights: NDArray[np.float64], counts: tuple[int, ...]) -> NDArray[np.float64]:
    """P(c_i = c) by adding up all assignments that respect the counts."""
    total = np.zeros_like(weights)
    for order in set(permutations(np.repeat(np.arange(len(counts)), counts).tolist())):
        chance = np.prod([weights[i, c] for i, c in enumerate(order)])
        for i, c in enumerate(order):
            total[i, c] += chance
    return total / total.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("counts", SHAPES)
@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0])
def test_every_assignment(counts: tuple[int, ...], spread: float) -> None:
    rng = np.random.default_rng(len(counts))
    weights = np.exp(spread * rng.standard_normal((4, sum(counts), len(counts))))
    exact = assigned(weights, np.array(counts))
    for block in range(4):
        assert exact[block] == pytest.approx(listed(weights[block], counts), abs=1e-9)
    assert exact.sum(axis=1) == pytest.approx(np.tile(counts, (4, 1)))


def test_the_law_alone_gives_the_match_probability() -> None:
    """Without evidence a tiny file has the posteriors of Bayes' rule on its moves: the worst is the bound."""
    law = mixing_law(np.array([1, 1]), np.zeros(2, dtype=np.int64), np.arange(2), 0.8)
    cells, both = np.arange(2), np.array([0, 1])
    weights = np.stack([law.chance(cells, np.full(2, goal)) for goal in both])[None]
    assert assigned(weights, law.counts)[0].max() == pytest.approx(0.8, abs=1e-9)
    together = np.stack([law.chance(cells, np.zeros(2, dtype=np.int64))] * 2)[None]
    assert assigned(together, law.counts)[0] == pytest.approx(np.full((2, 2), 0.5))


@pytest.mark.parametrize("kind", ["mixing", "leaving"])
def test_chances_add_up(kind: str) -> None:
    counts, groups = np.array([1, 2, 1, 3]), np.zeros(4, dtype=np.int64)
    law: CellLaw = (
        mixing_law(counts, groups, np.arange(4), 0.2) if kind == "mixing" else leaving_law(counts, groups, 0.6)
    )
    cell, goal = (axis.ravel() for axis in np.meshgrid(np.arange(4), np.arange(4), indexing="ij"))
    chances = law.chance(cell, goal).reshape(4, 4)
    assert chances.sum(axis=1) == pytest.approx(np.ones(4))
    assert 1 - np.diag(chances) == pytest.approx(law.leave())


@pytest.mark.parametrize("size", [8, 10])
def test_messages_are_not_below(size: int) -> None:
    """In blocks too large to list, messages stand in: on blocks that can be summed they are a little sharper."""
    rng = np.random.default_rng(size)
    keys = rng.standard_normal((30, size, 2))
    columns = keys + rng.standard_normal(keys.shape)
    weights = np.exp(-((columns[:, :, None] - keys[:, None]) ** 2).sum(axis=3) / 2)
    counts = np.ones(size, dtype=np.int64)
    exact, messages = assigned(weights, counts).max(axis=1), _propagated(weights, counts).max(axis=1)
    assert exact.mean() <= messages.mean() <= exact.mean() + 0.06


def test_certainty_is_made_right() -> None:
    """Evidence that counts everything twice is halved; evidence that says nothing keeps its weight of no account."""
    rng = np.random.default_rng(1)
    true = rng.normal(1.0, np.sqrt(2), 5000)  # log odds of a normal shift: calibrated as they are
    assert calibrated([2 * true])[0] == pytest.approx(0.5, abs=0.05)
    assert calibrated([rng.standard_normal(5000), true]) == pytest.approx([0.0, 1.0], abs=0.06)
