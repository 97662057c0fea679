"""Attacks on coded tails with what everybody sees: the threshold, the value of the tail, and how many have it."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws

THRESHOLD = 100.0


def released(tail: np.ndarray, homes: np.ndarray, by: str) -> pl.DataFrame:
    """Two people below the threshold and the tail above it, as released."""
    table = pl.DataFrame({"x": [1.0, 2.0, *tail], "home": [-1, -2, *homes]})
    records = eq.read(table, eq.Roles(household="home"))
    return eq.masks.TopCode("x", THRESHOLD, by).apply(records, Draws(1)).collect()[2:]  # type: ignore[arg-type]


@pytest.mark.parametrize("by", ["mean", "median"])
def test_no_household_works_out_another(by: str, full: Callable[[int, int], int]) -> None:
    """The strongest insider is the largest but one; he takes all others to be at the threshold.

    In distances from the threshold his bound for the largest is n times the mean less his own; it must be off by a
    tenth of the largest. A median is nobody's exact value unless three households share it.
    """
    rng, published = np.random.default_rng(5), 0
    for _ in range(full(150, 3000)):
        size = int(rng.integers(1, 12))
        homes = rng.integers(0, int(rng.integers(1, 9)), size)
        tail = THRESHOLD + np.round(rng.pareto(0.8, size) * 50, int(rng.integers(0, 3))) + 0.01
        value = float(released(tail, homes, by)["x"][0])
        if value <= THRESHOLD:
            continue
        published += 1
        if by == "mean":
            sums = np.sort(np.bincount(homes, tail - THRESHOLD))[::-1]
            bound = size * (value - THRESHOLD) - sums[1]
            assert bound - sums[0] >= 0.1 * sums[0] - 1e-6
        else:
            owners = homes[np.abs(tail - value) < 1e-9]
            assert len(owners) == 0 or np.unique(homes).size >= 3
    assert published > 10


@pytest.mark.parametrize("by", ["mean", "median"])
def test_one_person_above_is_not_published(by: str) -> None:
    """The row of the table of attacks: the exact top value was the published mean."""
    for count in (1, 2):
        tail = np.array([913_417.0, 204_112.0])[:count]
        assert released(tail, np.arange(count), by)["x"].to_list() == [THRESHOLD] * count
