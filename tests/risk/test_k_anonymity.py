"""k-anonymity on all keys and on every few of them, against a Python counter."""

from itertools import combinations
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq

ROWS = st.lists(st.tuples(*[st.sampled_from([None, "a", "b"])] * 3), min_size=1, max_size=25)


def alike(one: tuple[Any, ...], two: tuple[Any, ...], columns: tuple[int, ...], missing: str) -> bool:
    pairs = ((one[c], two[c]) for c in columns)
    return all(a == b or (missing == "any" and None in (a, b)) for a, b in pairs)


@given(rows=ROWS, k=st.integers(1, 5), m=st.sampled_from([None, 1, 2, 3]), missing=st.sampled_from(["any", "category"]))
def test_the_smallest_class_on_any_few_keys(rows: list[Any], k: int, m: int | None, missing: Any) -> None:
    frame = pl.DataFrame(rows, schema=dict.fromkeys("pqr", pl.String), orient="row")
    data = eq.read(frame, eq.Roles([*"pqr"], missing=missing))
    subsets = list(combinations(range(3), m or 3))
    sizes = [min(sum(alike(r, s, c, missing) for s in rows) for c in subsets) for r in rows]
    score = eq.risk.KAnonymity(k, m).measure(data, data)
    assert score.by_record()["risk"].to_list() == [float(size < k) for size in sizes]
    assert score.number == sum(size < k for size in sizes)
    assert score.detail["smallest"].min() == min(sizes)


@given(rows=ROWS, k=st.integers(2, 5))
def test_coarsening_never_makes_a_class_smaller(rows: list[Any], k: int) -> None:
    frame = pl.DataFrame(rows, schema=dict.fromkeys("pqr", pl.String), orient="row")
    data = eq.read(frame, eq.Roles([*"pqr"]))
    cells = eq.count(data)
    coarse = cells.roll_up({"p": {"a": "b"}})
    assert eq.risk.KAnonymity(k).measure(coarse, coarse).number <= eq.risk.KAnonymity(k).measure(cells, cells).number


def test_too_many_subsets_are_refused() -> None:
    frame = pl.DataFrame({f"k{i}": [1, 2] for i in range(40)})
    data = eq.read(frame, eq.Roles(frame.columns))
    with pytest.raises(eq.ParameterError, match="too many"):
        eq.risk.KAnonymity(3, 8).measure(data, data)


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": 2.5}, {"subsets": 0}, {"k": True}])
def test_wrong_parameters(wrong: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError, match="whole number"):
        eq.risk.KAnonymity(**wrong)
