"""Uniques against a Python counter."""

from collections import Counter
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.data.cells import Cells

ROWS = st.lists(st.tuples(st.none() | st.integers(0, 4), st.sampled_from(["a", "b"])), min_size=1, max_size=40)


@given(rows=ROWS, k=st.integers(1, 5))
def test_against_a_counter(rows: list[tuple[Any, ...]], k: int) -> None:
    """Share and number of records in classes of at most k; Massell (1999), III.a for k = 1."""
    data = eq.read(pl.DataFrame(rows, schema={"x": pl.Int64, "y": pl.String}, orient="row"), eq.Roles(["x", "y"]))
    counts = Counter(rows)
    score = eq.risk.Uniques(k).measure(data, data)
    assert score.number == sum(c for c in counts.values() if c <= k)
    assert score.value == pytest.approx(score.number / len(rows))
    assert score.by_record()["risk"].to_list() == [float(counts[row] <= k) for row in rows]
    assert (score.better, score.side, score.unit) == ("lower", "risk", "share of records")


@given(rows=ROWS)
def test_more_is_caught_by_a_larger_k(rows: list[tuple[Any, ...]]) -> None:
    data = eq.read(pl.DataFrame(rows, schema={"x": pl.Int64, "y": pl.String}, orient="row"), eq.Roles(["x", "y"]))
    values = [eq.risk.Uniques(k).measure(data, data).value for k in (1, 2, 3, 100)]
    assert values == sorted(values)
    assert values[-1] == 1


def test_weights_do_not_count_as_records() -> None:
    """A unique of weight 50 stands for many people but is one record."""
    data = eq.read(pl.DataFrame({"x": [1, 2, 2], "w": [50.0, 1, 1]}), eq.Roles(["x"], weight="w"))
    assert eq.risk.Uniques().measure(data, data).value == pytest.approx(1 / 3)


def test_cells_without_records_count_nobody() -> None:
    """A table may list a cell of 0."""
    cells = Cells.of(pl.DataFrame({"x": [1, 2], "n": [0, 3]}))
    assert eq.risk.Uniques().measure(cells, cells).value == 0
