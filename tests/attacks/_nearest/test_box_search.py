"""Points in boxes: against every pair one by one, with ties, blocks, codes and boxes of all shapes."""

from typing import Any

import numpy as np
import pytest

from equipoise.attacks._nearest.box_search import (
    LEAF_POINTS,
    QUESTIONS_PER_PART,
    Points,
    Questions,
    Tree,
    count_inside,
    count_ties,
)


def made(seed: int, n: int, places: int) -> tuple[Points, Questions]:
    """Coordinates with few values, so that ties abound; some boxes empty, some people without a block."""
    rng = np.random.default_rng(seed)
    d, c = int(rng.integers(0, 4)), int(rng.integers(0, 3))
    shape = (d, n)
    coordinates, kinds = rng.integers(0, places, shape).astype(float), rng.integers(0, 3, (c, n))
    points = Points(coordinates, kinds, rng.integers(0, 4, n), rng.integers(1, 4, n))
    own = rng.permutation(n)
    centre = points.coordinates[:, own] + rng.integers(-2, 3, shape)
    low, high = centre - rng.integers(-1, 9, shape), centre + rng.integers(0, 9, shape)
    codes, block = points.codes[:, own].copy(), points.block[own].copy()
    codes[rng.random(codes.shape) < 0.2] = 0
    block[rng.random(n) < 0.05] = -1
    weight = rng.integers(0, 3, shape) / 2
    return points, Questions(low, high, centre, weight, codes, rng.random(c).round(1), block, own)


def brute(points: Points, asked: Questions) -> tuple[Any, Any]:
    held, squares = asked.block[:, None] == points.block[None], np.zeros((len(asked), len(points)))
    for k, values in enumerate(points.coordinates):
        held = held & (values[None] >= asked.low[k][:, None]) & (values[None] <= asked.high[k][:, None])
        squares += asked.weight[k][:, None] * (values[None] - asked.centre[k][:, None]) ** 2
    for k, codes in enumerate(points.codes):
        squares += np.where(codes[None] != asked.codes[k][:, None], asked.penalties[k], 0.0)
    every = np.arange(len(asked))
    own = squares[every, asked.own][:, None]
    beaten = (held & (squares < own - 1e-9)).any(axis=1) | ~held[every, asked.own]
    tied = (held & (np.abs(squares - own) <= 1e-9)) @ points.counts
    return held @ points.counts, np.where(beaten, 0, tied)


@pytest.mark.parametrize("seed", range(20))
def test_every_pair(seed: int) -> None:
    points, asked = made(seed, n=1 + 30 * seed, places=3 + 2 * seed)
    many, nearest = brute(points, asked)
    assert count_inside(points, asked).tolist() == many.tolist()
    assert count_ties(points, asked).tolist() == nearest.tolist()


def test_parts_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    points, asked = made(5, n=700, places=12)
    whole = count_inside(points, asked), count_ties(points, asked)
    monkeypatch.setattr("equipoise.attacks._nearest.box_search.QUESTIONS_PER_PART", 50)
    monkeypatch.setattr("equipoise.attacks._nearest.box_search.PAIRS_PER_BATCH", 64)
    assert QUESTIONS_PER_PART > 700
    assert count_inside(points, asked).tolist() == whole[0].tolist()
    assert count_ties(points, asked).tolist() == whole[1].tolist()


def test_a_tree_holds_every_point_once() -> None:
    rng = np.random.default_rng(1)
    points = Points(rng.normal(size=(2, 1000)), np.zeros((0, 1000), dtype=int), rng.integers(0, 3, 1000), np.ones(1000))
    tree = Tree.of(points)
    assert sorted(tree.order.tolist()) == list(range(1000))
    leaves = tree.child < 0
    assert (tree.end - tree.start)[leaves].sum() == 1000
    assert (tree.end - tree.start)[leaves].max() <= LEAF_POINTS
