"""Attacks on coded tails with what everybody sees: the threshold, the value of the tail, and how many have it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws

THRESHOLD = 100.0
MASKS: dict[str, tuple[Any, int]] = {"top_code": (eq.masks.TopCode, 1), "bottom_code": (eq.masks.BottomCode, -1)}
"""The class of each mask, and the side of the threshold on which its tail lies."""


def shown_distances(mask: str, tail: np.ndarray, homes: np.ndarray, by: str) -> np.ndarray:
    """How far from the threshold the tail is released; two people are on its other side."""
    kind, side = MASKS[mask]
    values = THRESHOLD + side * np.array([-1.0, -2.0, *tail])
    records = eq.read(pl.DataFrame({"x": values, "home": [-1, -2, *homes]}), eq.Roles(household="home"))
    released = kind("x", THRESHOLD, by).apply(records, Draws(1)).collect()["x"].to_numpy()
    return side * (released[2:] - THRESHOLD)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("by", ["mean", "median"])
def test_no_household_works_out_another(
    record: Callable[..., None], mask: str, by: str, full: Callable[..., int]
) -> None:
    """The strongest insider is the largest but one; he takes all others to be at the threshold.

    In distances from the threshold his bound for the largest is n times the mean less his own; it must be off by a
    tenth of the largest. A median is nobody's exact value unless three households share it.
    """
    rng, published, worked_out = np.random.default_rng(5), 0, 0
    for _ in range(full(150, 3000, 400)):
        size = int(rng.integers(1, 12))
        homes = rng.integers(0, int(rng.integers(1, 9)), size)
        tail = np.round(rng.pareto(0.8, size) * 50, int(rng.integers(0, 3))) + 0.01
        value = float(shown_distances(mask, tail, homes, by)[0])
        if value <= 0:
            continue
        published += 1
        if by == "mean":
            sums = np.sort(np.bincount(homes, tail))[::-1]
            worked_out += size * value - sums[1] - sums[0] < 0.1 * sums[0] - 1e-6
        else:
            owners = homes[np.abs(tail - value) < 1e-9]
            worked_out += len(owners) > 0 and np.unique(homes).size < 3
    assert published > 10
    measure = "largest of the tail known to 10 %"
    record(mask, by, file="made", measure=measure, reported=0.0, reached=worked_out / published)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("by", ["mean", "median"])
def test_one_person_beyond_is_not_published(mask: str, by: str) -> None:
    """The row of the table of attacks: the exact top value was the published mean."""
    for count in (1, 2):
        tail = np.array([913_317.0, 204_012.0])[:count]
        assert np.abs(shown_distances(mask, tail, np.arange(count), by)).max() < 1e-9
