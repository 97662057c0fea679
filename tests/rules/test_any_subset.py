"""All-m anonymity: unsafe exactly where the measure of the same name says so."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.data.key_subsets import subsets

ROWS = st.lists(st.tuples(*[st.sampled_from([None, "a", "b"])] * 3), min_size=1, max_size=20)


@given(rows=ROWS, m=st.integers(1, 4), n=st.integers(1, 4), missing=st.sampled_from(["any", "category"]))
def test_flagged_on_any_few_columns(rows: list[Any], m: int, n: int, missing: Any) -> None:
    frame = pl.DataFrame(rows, schema=dict.fromkeys("pqr", pl.String), orient="row")
    cells = eq.count(eq.read(frame, eq.Roles([*"pqr"], missing=missing)))
    flagged = eq.rules.AnySubset(m, n).flag(cells)
    risk = eq.risk.KAnonymity(n, m).measure(cells, cells).detail["risk"]
    assert flagged.to_list() == [value == 1 for value in risk]
    if m >= 3:
        assert flagged.equals(eq.rules.MinCount(n).flag(cells))


def test_the_worst_pair_counts() -> None:
    """(f, 31) is alone on age, and (m, 30) on sex; together with MinCount by |."""
    table = pl.DataFrame({"sex": ["f", "f", "m"], "age": [30, 31, 30], "n": [3, 1, 1]})
    cells = eq.Cells.of(table)
    assert eq.rules.AnySubset(1, 2).flag(cells).to_list() == [False, True, True]
    assert (eq.rules.AnySubset(1, 2) | eq.rules.MinCount(4)).flag(cells).to_list() == [True, True, True]
    assert eq.rules.AnySubset(1, 2).asks() == (2, 1)
    assert "flag" in eq.rules.AnySubset().explain({"n": 1})


def test_subsets_of_keys() -> None:
    assert list(subsets(("a", "b", "c"), 2)) == [("a", "b"), ("a", "c"), ("b", "c")]
    with pytest.raises(eq.ParameterError, match="too many"):
        subsets(tuple(f"k{i}" for i in range(40)), 8)


@pytest.mark.parametrize("wrong", [{"m": 0}, {"n": 0}, {"m": True}, {"n": 2.5}])
def test_wrong_parameters(wrong: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError, match="whole number"):
        eq.rules.AnySubset(**wrong)
