"""Distances between tables: by hand, by a Python dictionary, and their laws."""

from collections import Counter
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.utility import Marginals

ROW = st.tuples(st.none() | st.integers(0, 3), st.sampled_from(["a", "b", "c"]), st.booleans())
ROWS = st.lists(ROW, min_size=1, max_size=40)
SCHEMA = {"x": pl.Int64, "y": pl.String, "z": pl.Boolean}


def records(rows: list[tuple[Any, ...]]) -> eq.Records:
    return eq.read(pl.DataFrame(rows, schema=SCHEMA, orient="row"), eq.Roles(["x", "y", "z"]))


def test_worked_by_hand() -> None:
    """(1/2, 1/2) against (1, 0): H^2 = 1 - sqrt(1/2), TV = 1/2; the two-way table the same."""
    old = eq.read(pl.DataFrame({"a": ["p", "q"], "b": [1, 1]}), eq.Roles(["a", "b"]))
    new = eq.read(pl.DataFrame({"a": ["p", "p"], "b": [1, 1]}), eq.Roles(["a", "b"]))
    score = Marginals().measure(new, old)
    h = sqrt(1 - sqrt(0.5))
    assert score.detail["table"].to_list() == ["a", "b", "a x b"]
    assert score.detail["hellinger"].to_list() == pytest.approx([h, 0.0, h])
    assert score.detail["total_variation"].to_list() == pytest.approx([0.5, 0.0, 0.5])
    assert score.value == pytest.approx(2 * h / 3)
    assert Marginals(ways=1).measure(new, old).value == pytest.approx(h / 2)
    assert Marginals(columns=("b",)).measure(new, old).value == 0.0
    assert (score.better, score.side) == ("lower", "utility")


@given(old=ROWS, new=ROWS)
def test_against_a_dictionary(old: list[tuple[Any, ...]], new: list[tuple[Any, ...]]) -> None:
    """Every table, by counting in Python; files of different length; null is a category."""
    found = Marginals().measure(records(new), records(old)).detail
    for row, places in zip(
        found.iter_rows(named=True), [*combinations(range(3), 1), *combinations(range(3), 2)], strict=True
    ):
        p, q = (Counter(tuple(r[i] for i in places) for r in side) for side in (old, new))
        gaps = [(p[c] / len(old), q[c] / len(new)) for c in p | q]
        h = sqrt(sum((sqrt(a) - sqrt(b)) ** 2 for a, b in gaps) / 2)
        tv = sum(abs(a - b) for a, b in gaps) / 2
        assert (row["hellinger"], row["total_variation"]) == pytest.approx((h, tv), abs=1e-9)
        assert row["hellinger"] ** 2 <= row["total_variation"] + 1e-9 <= sqrt(2) * row["hellinger"] + 2e-9


def test_weights() -> None:
    """Shares of the weight: (3/4, 1/4) against (1/2, 1/2)."""
    roles = eq.Roles("a", weight="w")
    old = eq.read(pl.DataFrame({"a": ["p", "q"], "w": [3.0, 1.0]}), roles)
    new = eq.read(pl.DataFrame({"a": ["p", "q"], "w": [1.0, 1.0]}), roles)
    score = Marginals().measure(new, old)
    assert score.detail["total_variation"].item() == 0.25
    assert score.notes == ("Weighted by 'w'.",)


def test_cells_and_records_agree_in_a_sweep(people_records: eq.Records) -> None:
    """What needs only cells is rolled up: the same as on records."""
    recipe = eq.Recipe([eq.masks.TopCode("age", 60, "threshold")])
    swept = eq.sweep(people_records, [recipe], [Marginals()])[0].scores[0].value
    assert 0 < swept < 1
    assert Marginals().measure(recipe.run(people_records), people_records).value == pytest.approx(swept)


def test_types_that_differ_between_files() -> None:
    """Whole numbers that became floats are the same categories; text that replaced numbers is not, and is named."""
    old = eq.read(pl.DataFrame({"a": [1, 2, 2]}), eq.Roles("a"))
    same = eq.read(pl.DataFrame({"a": [1.0, 2.0, 2.0]}), eq.Roles("a"))
    other = eq.read(pl.DataFrame({"a": ["1-2", "1-2", "1-2"]}), eq.Roles("a"))
    assert Marginals().measure(same, old).value == 0.0
    score = Marginals().measure(other, old)
    assert score.value == pytest.approx(1.0)
    assert score.notes == ("No category of 'a' is in both files: it was recoded.",)


def test_laws() -> None:
    """0 for itself, in any order; more with a larger share of records changed."""
    rng = np.random.default_rng(2)
    x = rng.integers(0, 5, 5000)
    y = rng.integers(0, 2, 5000)
    change = rng.random(5000)
    roles = eq.Roles(["x", "y"])
    old = eq.read(pl.DataFrame({"x": x, "y": x % 2}), roles)
    order = rng.permutation(5000)
    assert Marginals().measure(eq.read(pl.DataFrame({"x": x[order], "y": (x % 2)[order]}), roles), old).value == 0.0
    values = [
        Marginals().measure(eq.read(pl.DataFrame({"x": x, "y": np.where(change < c, y, x % 2)}), roles), old).value
        for c in (0.0, 0.1, 0.4, 1.0)
    ]
    assert values == sorted(values)
    assert values[0] == 0.0 < values[1]


@pytest.mark.parametrize("bad", [{"ways": 0}, {"ways": 1.5}, {"ways": True}, {"columns": ()}])
def test_bad_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        Marginals(**bad)


def test_no_key() -> None:
    data = eq.read(pl.DataFrame({"a": [1]}))
    with pytest.raises(eq.ParameterError, match="no tables"):
        Marginals().measure(data, data)
