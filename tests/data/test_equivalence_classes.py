"""Rules about sensitive values where missing keys match anything, against all pairs."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq

ROWS = st.lists(st.tuples(*[st.sampled_from([None, "a", "b"])] * 2, st.sampled_from(["x", "y", "z"])), min_size=2)


def held(rows: list[Any]) -> Any:
    """For each record the share of every sensitive value among those that match it."""
    found = []
    for p, q, _ in rows:
        alike = [s for a, b, s in rows if (None in (a, p) or a == p) and (None in (b, q) or b == q)]
        found.append([alike.count(value) / len(alike) for value in ("x", "y", "z")])
    return np.array(found)


@given(ROWS)
def test_classes_hold_all_that_match(rows: list[Any]) -> None:
    frame = pl.DataFrame(rows, schema=dict.fromkeys(["p", "q", "s"], pl.String), orient="row")
    records = eq.read(frame, eq.Roles(["p", "q"], sensitive="s", missing="any"))
    cells = eq.count(records, ["p", "q", "s"])
    shares, whole = held(rows), np.array([[r[2] for r in rows].count(v) / len(rows) for v in ("x", "y", "z")])
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.exp(-np.nansum(shares * np.log(shares), axis=1))
    expected = {
        eq.rules.Diversity("s", 2): (shares > 0).sum(axis=1) < 2,
        eq.rules.Diversity("s", 2, kind="entropy"): entropy < 2 - 1e-9,
        eq.rules.Closeness("s", 0.3): np.abs(shares - whole).sum(axis=1) / 2 > 0.3 + 1e-9,
    }
    for rule, unsafe in expected.items():
        told = cells.table.select(cells.by).with_columns(unsafe=rule.flag(cells))
        found = frame.join(told, on=cells.by, nulls_equal=True, how="left", maintain_order="left")["unsafe"]
        assert found.to_list() == unsafe.tolist()


@pytest.mark.parametrize("missing", ["any", "category"])
def test_without_missing_keys_both_rules_are_one(missing: Any) -> None:
    frame = pl.DataFrame({"p": [*"aabb"], "s": [*"xyxx"]})
    cells = eq.count(eq.read(frame, eq.Roles("p", sensitive="s", missing=missing)), ["p", "s"])
    assert eq.rules.Diversity("s", 2).flag(cells).to_list() == [False, False, True]
