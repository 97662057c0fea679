"""Sampling: sizes, equal chances, whole households, unbiased totals."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.ground.randomness import Draws


def drawn(fraction: float, n: int = 6, times: int = 4000) -> "np.ndarray[tuple[int, int], np.dtype[np.bool_]]":
    records = eq.read(pl.DataFrame({"id": range(n)}), eq.Roles(id="id"))
    found = np.zeros((times, n), dtype=bool)
    for seed in range(times):
        found[seed, eq.masks.Sample(fraction).apply(records, Draws(seed)).collect()["id"].to_numpy()] = True
    return found


def test_every_set_of_its_size_is_equally_likely() -> None:
    """15 pairs of 6, each 1/15 within four standard errors."""
    found = drawn(1 / 3)
    assert (found.sum(axis=1) == 2).all()
    _, times = np.unique(found @ (1 << np.arange(6)), return_counts=True)
    assert len(times) == 15
    assert np.abs(times / 4000 - 1 / 15).max() < 4 * np.sqrt((1 / 15) * (14 / 15) / 4000)


@given(n=st.integers(1, 60), fraction=st.floats(0.02, 1.0))
def test_the_size_is_the_fraction_rounded(n: int, fraction: float) -> None:
    records = eq.read(pl.DataFrame({"x": range(n)}), eq.Roles())
    size = round(fraction * n)
    if not size:
        with pytest.raises(eq.DataError, match="leaves no record"):
            eq.masks.Sample(fraction).apply(records, Draws(1))
        return
    kept = eq.masks.Sample(fraction).apply(records, Draws(1)).collect()["x"]
    assert len(kept) == size
    assert kept.is_sorted(), "the order of the file stays"


def test_totals_are_unbiased(full: Any) -> None:
    """Within four standard errors over 600 seeds, 3,000 in full."""
    table = pl.DataFrame({"x": [1.0, 5, 2, 8, 9, 40], "w": [3.0, 1, 2, 2, 1, 1]})
    records = eq.read(table, eq.Roles(weight="w"))
    totals = []
    for seed in range(full(600, 3000)):
        part = eq.masks.Sample(0.5).apply(records, Draws(seed)).collect()
        totals.append(float((part["x"] * part["w"]).sum()))
    truth = float((table["x"] * table["w"]).sum())
    assert abs(np.mean(totals) - truth) < 4 * np.std(totals) / np.sqrt(len(totals))


def test_households_stay_whole() -> None:
    homes = [1, 1, 2, 3, 3, 3, 4, 4]
    records = eq.read(pl.DataFrame({"h": homes, "x": range(8)}), eq.Roles(household="h"))
    kept = eq.masks.Sample(0.5).apply(records, Draws(2)).collect()["h"].value_counts()
    assert kept.height == 2
    assert all(count == homes.count(home) for home, count in kept.rows())
    gap = eq.read(pl.DataFrame({"h": [1, None]}), eq.Roles(household="h"))
    with pytest.raises(eq.DataError, match="no household"):
        eq.masks.Sample(0.5).apply(gap, Draws(1))


def test_a_sampled_file_is_measured_as_a_sample() -> None:
    """Fewer records, larger weights, less individual risk; information is that of what is left."""
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"k": rng.integers(0, 60, 400), "w": np.ones(400)})
    records = eq.read(table, eq.Roles("k", weight="w"))
    kept = eq.masks.Sample(0.25).apply(records, Draws(1))
    assert (
        eq.risk.Individual().measure(kept, records).value < 1.5 * eq.risk.Individual().measure(records, records).value
    )
    assert eq.utility.Entropy().measure(kept, records).value > 0
    assert kept.collect()["w"].sum() == 400


@pytest.mark.parametrize("wrong", [0.0, -0.1, 50, float("nan")])
def test_wrong_fractions(wrong: float) -> None:
    with pytest.raises(eq.ParameterError):
        eq.masks.Sample(wrong)
