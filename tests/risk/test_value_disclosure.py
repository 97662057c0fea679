"""The snooper who has found the record: against the closed forms of Duncan and Keller-McNulty, and worked by hand."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.risk import ValueDisclosure


def pair(x: np.ndarray, y: np.ndarray) -> tuple[eq.Records, eq.Records]:
    roles = eq.Roles(numeric="x")
    return eq.read(pl.DataFrame({"x": y}), roles), eq.read(pl.DataFrame({"x": x}), roles)


def test_the_original_discloses_everything_and_a_constant_guess_nothing() -> None:
    """The two ends of the scale."""
    x = np.array([1.0, 2.0, 4.0, 9.0])
    assert ValueDisclosure().measure(*pair(x, x)).value == 1.0
    shuffled = ValueDisclosure().measure(*pair(x, np.array([2.0, 9.0, 1.0, 4.0])))
    assert 0 <= shuffled.value < 0.5


def test_noise_matches_the_shrinking_snooper() -> None:
    """Noise of variance l2 on s2: the best linear snooper leaves l2 / (s2 + l2) (seeds, 001), within 4 errors."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=200_000)
    y = x + rng.normal(scale=0.7, size=len(x))
    found = ValueDisclosure().measure(*pair(x, y))
    assert found.value == pytest.approx(1 / (1 + 0.49), abs=4 * 2 / np.sqrt(len(x)))
    row = found.detail.row(0, named=True)
    assert row["strongest"] == "best linear"
    assert row["linked record"] == pytest.approx(0.49, abs=0.01)
    assert row["mean"] == pytest.approx(1.0, abs=0.01)


def test_worked_by_hand() -> None:
    """x = 0, 2; y = 1, 3: the link misses by 1 each (MSE 1 = the variance), the line through them is exact."""
    found = ValueDisclosure().measure(*pair(np.array([0.0, 2.0]), np.array([1.0, 3.0])))
    row = found.detail.row(0, named=True)
    assert row["linked record"] == pytest.approx(1.0)
    assert row["mean"] == pytest.approx(2.0)
    assert found.value == pytest.approx(1.0)


def test_a_synthetic_file_leaves_the_mean() -> None:
    """Nobody's record is in a fully synthetic file, so nothing can be linked."""
    records = eq.read(pl.DataFrame({"x": np.arange(50.0)}), eq.Roles(numeric="x"))
    released = eq.Recipe([eq.masks.Synthesize(model="bootstrap")], 1).run(records)
    found = ValueDisclosure().measure(released, records)
    assert found.value == 0.0
    assert found.detail["linked record"].to_list() == [None]


def test_a_constant_column_is_refused() -> None:
    """No variance, no share of it."""
    x = np.ones(5)
    with pytest.raises(eq.DataError, match="variation"):
        ValueDisclosure().measure(*pair(x, x))
