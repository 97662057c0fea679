"""RankSwap: never farther than the window, the values themselves kept, the same whatever the order of rows."""

import math
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.masks import RankSwap
from equipoise.masks.rank_swap import partners

ROLES = eq.Roles(id="id")


def swapped(mask: RankSwap, table: Any, seed: int = 1, roles: eq.Roles = ROLES) -> pl.DataFrame:
    return mask.apply(eq.read(table, roles), Draws(seed)).collect()


def gaps(before: pl.Series, after: pl.Series) -> np.ndarray[Any, Any]:
    """The least distance between the places the two values can hold: 0 for equal values."""
    low = before.rank("min").to_numpy().astype(float)
    high = before.rank("max").to_numpy().astype(float)
    ends = {v: (a, b) for v, a, b in zip(before.to_list(), low, high, strict=True)}
    return np.array(
        [
            max(0, ends[y][0] - ends[x][1], ends[x][0] - ends[y][1])
            for x, y in zip(before.to_list(), after.to_list(), strict=True)
        ]
    )


@given(
    values=st.lists(st.one_of(st.none(), st.integers(0, 12), st.integers(-1000, 1000)), min_size=2, max_size=120),
    window=st.floats(0.02, 0.98),
    seed=st.integers(0, 2**32),
)
def test_never_farther_than_the_window(values: list[int | None], window: float, seed: int) -> None:
    """Rank displacement within the window always, with ties and gaps; the values are a permutation."""
    table = pl.DataFrame({"id": range(len(values)), "x": pl.Series(values, dtype=pl.Int64)})
    known = table["x"].drop_nulls()
    if window * known.len() < 1:
        if known.len():
            with pytest.raises(eq.DataError, match="less than one rank"):
                swapped(RankSwap(["x"], window), table, seed)
        return
    found = swapped(RankSwap(["x"], window), table, seed)["x"]
    assert found.is_null().equals(table["x"].is_null())
    assert found.drop_nulls().sort().equals(known.sort())
    assert gaps(known, found.drop_nulls()).max() <= math.floor(window * known.len() + 1e-9)


@given(size=st.integers(2, 400), reach=st.integers(1, 50), seed=st.integers(0, 1000))
def test_pairs_are_pairs(size: int, reach: int, seed: int) -> None:
    """Everybody in one pair at most, within reach; those left over are out of reach of one another."""
    found = partners(np.random.default_rng(seed).integers(0, 1 << 40, size), reach, Draws(seed))
    assert (found[found] == np.arange(size)).all()
    assert np.abs(found - np.arange(size)).max() <= reach
    alone = np.flatnonzero(found == np.arange(size))
    assert (np.diff(alone) > reach).all()
    assert len(alone) < size / reach + 1


def test_displacement_uses_the_window() -> None:
    """Continuous data: all but a handful swapped, displacements spread over the window, farther with a wider one."""
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"id": np.arange(20_000), "x": rng.normal(size=20_000)})
    far = {}
    for window in (0.01, 0.05, 0.2):
        found = swapped(RankSwap(["x"], window), table)
        moved = np.abs(found["x"].rank().to_numpy() - table["x"].rank().to_numpy()) / 20_000
        assert moved.max() <= window
        assert (moved == 0).sum() < 1 / window + 1
        far[window] = moved.mean() / window
    assert all(0.4 < share < 0.55 for share in far.values()), "uniform within the window would be 0.5"


def test_correlation_weakens_with_the_window_and_the_distribution_stays() -> None:
    rng = np.random.default_rng(2)
    a = rng.normal(size=20_000)
    table = pl.DataFrame({"id": np.arange(20_000), "a": a, "b": a + rng.normal(size=20_000)})
    truth, before = np.corrcoef(table["a"], table["b"])[0, 1], 1.0
    for window in (0.02, 0.1, 0.4):
        found = swapped(RankSwap(["a", "b"], window), table)
        kept = np.corrcoef(found["a"], found["b"])[0, 1] / truth
        assert kept < before
        before = kept
        assert found["a"].sort().equals(table["a"].sort())
    assert before > 0.3


def test_rows_engines_seeds(engine: Any, mixed: pl.DataFrame) -> None:
    """The same file whatever the order of rows and the engine; Spark is refused in words."""
    mask = RankSwap(["income", "grade", "rooms"], 0.1)
    roles = eq.Roles(["town"], id="id")
    expected = swapped(mask, mixed, roles=roles).sort("id")
    records = eq.read(engine.make(mixed.sample(fraction=1, shuffle=True, seed=1)), roles)
    if engine.name == "pyspark":
        with pytest.raises(eq.EngineError, match="in memory"):
            mask.apply(records, Draws(1))
        return
    found = engine.rows(mask.apply(records, Draws(1)).to_native()).sort("id").select(expected.columns)
    plain = pl.col("grade").fill_nan(None)  # pandas has one kind of missing
    assert_frame_equal(found.with_columns(plain), expected.with_columns(plain), check_dtypes=False)
    assert not expected.equals(swapped(mask, mixed, seed=2, roles=roles).sort("id"))
    assert expected["grade"].is_nan().equals(mixed["grade"].is_nan())
    assert_frame_equal(expected.drop(mask.columns), mixed.drop(mask.columns))


def test_without_an_id(mixed: pl.DataFrame) -> None:
    """The content of a row is its key: the same set of rows in any order."""
    table, roles = mixed.drop("id"), eq.Roles(["town"])
    one = swapped(RankSwap(["income"], 0.2), table, roles=roles)
    two = swapped(RankSwap(["income"], 0.2), table.reverse(), roles=roles)
    assert_frame_equal(one.sort(one.columns), two.sort(one.columns))


def test_scanned_parquet_and_dates(tmp_path: Path) -> None:
    days = [date(2020, 1, 1) + timedelta(days=7 * i) for i in range(200)]
    table = pl.DataFrame(
        {"id": range(200), "born": days, "level": pl.Series(["low", "mid"] * 100, dtype=pl.Enum(["low", "mid"]))}
    )
    table.write_parquet(tmp_path / "t.parquet", row_group_size=50)
    mask = RankSwap(["born", "level"], 0.1)
    done = mask.apply(eq.read(pl.scan_parquet(tmp_path / "t.parquet"), ROLES), Draws(1))
    assert_frame_equal(done.collect(), swapped(mask, table))
    moved = (done.collect()["born"] - table["born"]).dt.total_days().abs()
    assert 0 < moved.max() <= 7 * 20  # type: ignore[operator]


@pytest.mark.parametrize("window", [0, 1, -0.1, math.nan, "0.1", True, None])
def test_bad_windows(window: Any) -> None:
    with pytest.raises(eq.ParameterError, match="share of the ranks"):
        RankSwap(["x"], window)


def test_percent_are_refused_with_a_hint() -> None:
    """Peers: rankSwap's P documented as percent, used as fraction."""
    with pytest.raises(eq.ParameterError, match=r"Write 5 % as 0\.05"):
        RankSwap(["x"], 5)


def test_text_has_no_ranks(mixed: pl.DataFrame) -> None:
    with pytest.raises(eq.DataError, match="no ranks"):
        swapped(RankSwap(["town"], 0.1), mixed, roles=eq.Roles(id="id"))
    with pytest.raises(eq.RolesError, match="incomes"):
        swapped(RankSwap(["incomes"], 0.1), mixed, roles=eq.Roles(id="id"))


def test_the_law(mixed: pl.DataFrame) -> None:
    law = RankSwap(["income"], 0.1).apply(eq.read(mixed, eq.Roles(id="id")), Draws(1)).history[0]
    assert law.parameters == {"columns": ["income"], "window": 0.1}
    assert law.words == "values of income swapped with others within 0.1 of the ranks"
