"""Response error: known shares of rounding and known errors are found again; intervals against pair by pair."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq

finest, intervals = eq.theory.finest_interval, eq.theory.response_intervals


def incomes(share: float, seed: int = 1) -> np.ndarray:
    """Whole incomes of which a known share is rounded to 500."""
    rng = np.random.default_rng(seed)
    exact = np.rint(rng.lognormal(8, 0.6, 20_000))
    return np.where(rng.random(20_000) < share, 500 * np.rint(exact / 500), exact)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
def test_the_share_that_rounds_is_estimated(share: float) -> None:
    """Within five standard errors, sqrt(q (1 - q) / n) at most 0.0036: 0.018; what is rounded to 0 is left out."""
    precision = finest(incomes(share))
    assert precision.rounded == 1
    assert precision.heaped[500.0] == pytest.approx(share, abs=0.018)
    assert precision.heaped[200.0] <= share / 2 + 0.03
    assert precision.width == (500 if share > 0.5 else 1)


def test_a_rounded_column_is_as_fine_as_its_step() -> None:
    rng = np.random.default_rng(3)
    assert finest(rng.integers(1, 900, 5000) * 20.0).rounded == 20
    assert finest(np.round(rng.random(5000) * 9 + 1, 1)).rounded == pytest.approx(0.1)
    assert finest([0, 0, 7, 14, 21, 33]).rounded == 1


def test_a_re_interview_gives_the_error() -> None:
    """Errors of sd 40 in both answers: sd(x - x') / sqrt 2 is 40 within four of its standard errors, 40 / sqrt(2 n)."""
    rng = np.random.default_rng(5)
    truth = rng.normal(2000, 500, 4000)
    first, again = (truth + rng.normal(0, 40, 4000) for _ in range(2))
    half = [None if i % 2 else value for i, value in enumerate(again)]
    precision = finest(first, half)
    assert precision.error == pytest.approx(40, abs=4 * 40 / np.sqrt(2 * 2000))
    assert precision.width == 200, "2 x 1.96 x 40 = 157, rounded up"
    held = intervals(first, half)
    inside = ((held["low"].to_numpy() <= truth) & (truth <= held["high"].to_numpy())).mean()
    assert inside == pytest.approx(0.95, abs=5 * np.sqrt(0.05 * 0.95 / 4000) + 0.005)


def test_overlapping_intervals_pair_by_pair() -> None:
    values = [*incomes(0.7)[:300].tolist(), None, 0.0]
    table = intervals(values)
    low, high = table["low"].to_list(), table["high"].to_list()
    for i, value in enumerate(values):
        if value is None:
            assert table.row(i) == (None,) * 4
            continue
        other = [(a, b) for a, b in zip(low, high, strict=True) if a is not None]
        overlaps = sum((a < high[i] and low[i] < b) or (a, b) == (low[i], high[i]) for a, b in other)
        assert table["alike"][i] == overlaps
    assert table["width"][301] == 0, "none is exact"
    assert set(table["width"].drop_nulls()) == {0.0, 1.0, 500.0}


def test_the_width_is_a_floor_of_a_hierarchy() -> None:
    width = finest(incomes(0.7)).width
    tree = eq.Hierarchy.intervals([100, 500, 1000], floor=width)
    assert [level.name for level in tree.allowed if level.name not in ("original", "*")][:1] == ["500"]


def test_what_says_nothing_is_refused() -> None:
    with pytest.raises(eq.DataError, match="beside 0"):
        finest([0.0, None])
    with pytest.raises(eq.DataError, match="go together"):
        finest([1.0, 2.0], [1.0])
    with pytest.raises(eq.DataError, match="Fewer than two"):
        finest([1.0, 2.0], [1.0, None])


def test_no_polars_type_is_needed() -> None:
    assert finest(pl.Series([10, 20, 30])).rounded == finest([10, 20, 30]).rounded == 10
