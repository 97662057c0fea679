"""Intervals against levels, worked by hand; the programs behind them are held to dense ones in tests/tables."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.tables import CellKey, Round
from equipoise.tables.audits.changed_tables import limits
from equipoise.tables.audits.exposure import Exposure


def test_exposed_and_by_how_much() -> None:
    """Levels of 10 both ways around 100: wide, one-sided, too narrow both ways, known, and a cell that is not meant."""
    low = np.array([80.0, 100, 95, 100, 100])
    high = np.array([120.0, 200, 105, 100, 100])
    same = np.full(5, 10.0)
    found = Exposure(np.array([True] * 4 + [False]), np.full(5, 100.0), low, high, same, same)
    assert found.exposed.tolist() == [False, True, True, True, False]
    assert found.shortfall.tolist() == [0.0, 0.5, 0.5, 1.0, 0.0]


def test_a_level_that_is_just_reached_is_reached() -> None:
    levels = np.array([10.0])
    found = Exposure(np.array([True]), np.array([100.0]), np.array([90 + 1e-7]), np.array([110 - 1e-7]), levels, levels)
    assert not found.exposed[0]


def test_what_each_law_leaves_of_a_cell() -> None:
    frame = pl.DataFrame({"k": [*"aaaaaaabbc"], "rkey": np.linspace(0, 0.9, 10)})
    made = eq.table(eq.Records.of(frame, eq.Roles()), "k", key="rkey")
    for method, far in ((Round(3), 3.0), (CellKey(most=2, variance=1.0), 2.0)):
        shown = method.apply(made, Draws(1))
        low, high = limits(shown)
        assert low.tolist() == np.maximum(0, shown.published_values - far).tolist()
        assert high.tolist() == (shown.published_values + far).tolist()
    small = Round(3, small=True).apply(made, Draws(1))
    low, high = limits(small)
    inner = dict(zip(made.table["k"], zip(low, high, strict=True), strict=True))
    assert inner["a"] == (7.0, 7.0)
    assert inner["c"] == (0.0, 3.0)
    assert inner["Total"] == (0.0, pytest.approx(np.inf))
