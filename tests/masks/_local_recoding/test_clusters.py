"""Local classes: every step keeps the classes large enough and lowers the cost; cuts are the best in their order."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.coarsening.coded_levels import CodedLevels
from equipoise.data.hierarchy import Hierarchy
from equipoise.masks._local_recoding import clusters as local
from equipoise.masks._local_recoding.bisection import bisected, halves
from equipoise.masks._local_recoding.clusters import Items, local_classes, recut
from equipoise.masks._local_recoding.exchange import Groups, exchanged, founded, matched
from equipoise.masks._local_recoding.merge_cost import Span, cost

TREE = Hierarchy.intervals([2, 4, 8], root=True)
SPANS = tuple(
    Span.of(CodedLevels.of(k, pl.Series(range(16)), np.ones(16, dtype=int), TREE)[0], "granularity")[0] for k in "xy"
)
FILES = st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15), st.integers(1, 9)), min_size=3, max_size=40)


def groups(rows: list[tuple[int, int, int]], least: int) -> Groups:
    """All records of a file in one class."""
    codes = np.array([[row[0] for row in rows], [row[1] for row in rows]])
    items = Items.of(np.array([row[2] for row in rows]), least)
    zeros = np.zeros(len(items.cell), dtype=np.int64)
    return Groups(SPANS, codes[:, items.cell], items.weights, np.arange(len(zeros)), zeros, zeros, least)


@given(FILES, st.integers(1, 4), st.integers(0, 99))
def test_every_step_lowers_the_cost(rows: list[tuple[int, int, int]], least: int, seed: int) -> None:
    rng, found = np.random.default_rng(seed), groups(rows, least)
    if found.weights.sum() < least:
        return
    whole = sorted(zip(*found.codes.tolist(), found.weights.tolist(), strict=True))
    totals = [found.total]
    found = found.with_labels(bisected(SPANS, found.codes, found.weights, found.labels, least, rng))
    for step in (exchanged, recut, founded) * 3:
        totals.append(found.total)
        found = step(found, rng)
        assert found.size.min() >= least
        assert sorted(zip(*found.codes.tolist(), found.weights.tolist(), strict=True)) == whole
    assert all(after <= before + 1e-9 for before, after in zip(totals, [*totals[1:], found.total], strict=True))


@given(FILES, st.integers(1, 4))
def test_what_is_spared_by_brute_force(rows: list[tuple[int, int, int]], least: int) -> None:
    """The box of a class without an item, and what the class saves."""
    found = groups(rows, least)
    for i in range(len(found.labels)):
        rest = np.delete(found.codes, i, axis=1)
        if found.single[i]:
            left = cost(SPANS, (rest.min(axis=1)[:, None], rest.max(axis=1)[:, None]))[0]
            expected = found.total - (found.size[0] - 1) * left
            assert found.spared[i] == pytest.approx(expected)


def test_the_best_cut_of_one_key() -> None:
    """Against every place: pools apart, the second with a heavy item."""
    rng = np.random.default_rng(4)
    codes, weights = np.vstack([rng.integers(0, 16, 30), np.zeros(30, dtype=int)]), np.ones(30, dtype=np.int64)
    weights[17] = 5
    starts = np.array([0, 12])
    now = np.array([1e3, 1e3])
    gain, late = halves(SPANS, codes, weights, starts, now, 3, rng, pivots=0)
    for pool, part in enumerate((slice(0, 12), slice(12, 30))):
        x, w = codes[0, part], weights[part]
        order = np.argsort(x, kind="stable")
        costs = []
        for cut in range(1, len(x)):
            sides = order[:cut], order[cut:]
            if all(w[side].sum() >= 3 for side in sides):
                box = np.array([[x[s].min() for s in sides], [0, 0]]), np.array([[x[s].max() for s in sides], [0, 0]])
                costs.append(float(np.array([w[s].sum() for s in sides]) @ cost(SPANS, box)))
        assert gain[pool] == pytest.approx(1e3 - min(costs))
        assert min(w[late[part]].sum(), w[~late[part]].sum()) >= 3


def test_items_of_cells() -> None:
    """A cell of more than twice the least is that many less one singles, and the rest together."""
    items = Items.of(np.array([1, 4, 9]), 2)
    assert np.bincount(items.cell, weights=items.weights).tolist() == [1, 4, 9]
    assert items.weights.tolist() == [1] * 8 + [6]


def test_matches_are_disjoint_and_the_best_is_among_them() -> None:
    gain, first, second = np.array([1.0, 5.0, 4.0, 2.0]), np.array([0, 1, 2, 4]), np.array([1, 2, 3, 5])
    assert sorted(matched(gain, first, second, 6).tolist()) == [1, 3]


def test_islands_stay_apart() -> None:
    """Without a common level two halves of a key never meet."""
    tree = Hierarchy.intervals(8)
    made, line = Span.of(CodedLevels.of("x", pl.Series(range(16)), np.ones(16, dtype=int), tree)[0], "granularity")
    codes = line[np.arange(16)][None]
    labels, boxes = local_classes((made,), codes, Items.of(np.ones(16, dtype=np.int64), 3), 3, 5)
    assert np.bincount(labels).min() >= 3
    assert not set(labels[:8]) & set(labels[8:])
    assert (made.steps[-1][boxes[0][0]] == made.steps[-1][boxes[1][0]]).all()


def test_blocks_cut_no_island_too_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 10 items over islands of 3 to 40: every class is whole and large enough."""
    monkeypatch.setattr(local, "BLOCK", 10)
    tree = Hierarchy.intervals(4)
    ladder = CodedLevels.of("x", pl.Series(range(16)), np.ones(16, dtype=int), tree)[0]
    made, line = Span.of(ladder, "granularity")
    rng = np.random.default_rng(2)
    x = np.sort(np.concatenate([[0, 1, 2], 4 + rng.integers(0, 4, 40), 8 + rng.integers(0, 4, 17), [12, 13, 15]]))
    labels, boxes = local.local_classes((made,), line[x][None], Items.of(np.ones(len(x), dtype=np.int64), 3), 3, 5)
    assert np.bincount(labels).min() >= 3
    assert all(len({value // 4 for value in x[labels == c]}) == 1 for c in range(labels.max() + 1))
    for c in range(labels.max() + 1):
        assert (boxes[0][0, c], boxes[1][0, c]) == (line[x[labels == c]].min(), line[x[labels == c]].max())
