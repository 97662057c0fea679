"""What an intruder must know: which combinations are tried, and how they are drawn."""

from itertools import combinations
from math import comb

import polars as pl
import pytest

from equipoise.intrusion.knowledge import MAX_COMBINATIONS, KnowledgePlan, chart, growth, sweep
from equipoise.methods.score import Score
from equipoise.presentation.style import BLUE, GREY

NAMES = tuple("abcdefghij")


def score(known: tuple[str, ...]) -> Score:
    """The more, and the later in the alphabet, the better."""
    value = sum(2.0 ** (NAMES.index(name) - 12) for name in known)
    return Score("nearest", value, "lower", interval=(value / 2, value * 1.5), baseline=1e-5)


@pytest.mark.parametrize("columns", [1, 2, 3, 5, 8, 10])
@pytest.mark.parametrize("size", [1, 2, 3, 10])
@pytest.mark.parametrize("records", [10, 10**5, 10**6, 10**8])
def test_the_plan_counts_what_is_tried(columns: int, size: int, records: int) -> None:
    plan = KnowledgePlan.of(columns, size, records)
    asked: list[tuple[str, ...]] = []
    sweep(NAMES[:columns], plan, lambda known: asked.append(known) or score(known), None, None)
    assert len(asked) == len(set(asked)) == plan.total
    assert plan.total <= max(MAX_COMBINATIONS, columns)
    assert plan.total * records <= 20_000_000 or plan.total == columns
    for k in range(1, plan.full + 1):
        assert {a for a in asked if len(a) == k} == set(combinations(NAMES[:columns], k))


def test_a_million_records_are_tried_with_few_columns() -> None:
    plan = KnowledgePlan.of(9, 2, 1_000_000)
    assert plan.total <= 20
    assert (plan.full, plan.asked) == (1, 2)
    assert plan.words().startswith("Each of 9 columns was tried; larger ones by adding the column that helps most")
    assert "not all of 2 columns, for that takes more than 20 attacks" in plan.words()


def test_beyond_the_size_the_best_is_extended() -> None:
    plan = KnowledgePlan.of(5, 2, 100)
    found = sweep(NAMES[:5], plan, score, None, None)
    assert growth(found)["known"].to_list() == ["e", "d, e", "c, d, e", "b, c, d, e", "a, b, c, d, e"]
    assert found.height == comb(5, 1) + comb(5, 2) + 3 + 2 + 1
    assert plan.words() == (
        "All 15 combinations of up to 2 of 5 columns were tried; larger ones by adding the column that helps most."
    )


def test_what_is_known_already_is_not_tried_again() -> None:
    asked: list[tuple[str, ...]] = []
    sweep(
        NAMES[:2], KnowledgePlan.of(2, 2, 10), lambda known: asked.append(known) or score(known), score(NAMES[:2]), None
    )
    assert ("a", "b") not in asked


def test_the_chart() -> None:
    spec = chart(sweep(NAMES[:4], KnowledgePlan.of(4, 2, 100), score, None, None))
    layers = {layer["name"]: layer for layer in spec["layer"]}
    assert [row["known"] for row in layers["best"]["data"]["values"]] == ["d", "c, d", "b, c, d", "a, b, c, d"]
    assert len(layers["tried"]["data"]["values"]) == 4 + 6 + 2 + 1 - 4
    assert (layers["best"]["mark"]["color"], layers["tried"]["mark"]["color"]) == (BLUE, GREY)
    assert len(layers["value_error"]["data"]["values"]) == 4
    assert spec["encoding"]["y"]["scale"]["type"] == "log"
    assert spec["encoding"]["x"]["axis"]["values"] == [1, 2, 3, 4]
    assert "Guessing gives 0.001" in spec["description"]
    named = [row["label"] for row in layers["best_label"]["data"]["values"]]
    assert named == ["d", "c, d", "b, c and 1 more", "all 4"]


def test_a_flat_success_is_drawn_from_zero() -> None:
    flat = pl.DataFrame({"known": ["a"], "size": [1], "value": [0.5], "baseline": [0.25], "low": [0.4], "high": [0.6]})
    assert chart(flat)["encoding"]["y"]["scale"] == {"domain": [0.0, pytest.approx(0.69)], "zero": True, "nice": False}


def test_nothing_linked_stands_at_the_foot() -> None:
    none = pl.DataFrame(
        {
            "known": ["a", "b"],
            "size": [1, 1],
            "value": [0.5, 0.0],
            "baseline": [0.01] * 2,
            "low": [0.4, 0],
            "high": [0.6, 0],
        }
    )
    spec = chart(none)
    low = spec["encoding"]["y"]["scale"]["domain"][0]
    assert 0 < low < 0.01
    assert all(row["value"] >= low for layer in spec["layer"] if "data" in layer for row in layer["data"]["values"])
