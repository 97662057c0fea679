"""The worst records and what would help, against recounting the records themselves."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.inspection.worst_records import helps, mildest, worst


@pytest.fixture
def town() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, 400),
            "sex": rng.choice(["f", "m"], 400),
            "job": rng.choice([*"abcdef"], 400),
            "w": rng.uniform(1, 15, 400),
            "person": [f"p{i:03d}" for i in range(400)],
        }
    )


def test_each_level_leaves_what_recoding_the_records_leaves(town: pl.DataFrame) -> None:
    tree = eq.Hierarchy.intervals([5, 10, 20])
    records = eq.read(town, eq.Roles(["age", "sex", "job"], hierarchies={"age": tree}))
    found = helps(eq.count(records)).filter(pl.col("key") == "age")
    now = eq.risk.Uniques().measure(records, records).number
    assert found.height == 3
    for row in found.iter_rows(named=True):
        coarse = eq.masks.Recode("age", row["level"]).apply(records, Draws(1))
        left = eq.risk.Uniques().measure(coarse, coarse).number
        assert (row["left"], row["removed"]) == (left, pytest.approx((now - left) / now))


def test_a_key_without_a_hierarchy_is_given_one(town: pl.DataFrame) -> None:
    found = helps(eq.count(eq.read(town, eq.Roles(["age", "sex", "job"]))))
    assert set(found["key"]) == {"age", "job"}
    assert "intervals of" in found["words"][0]
    assert found["removed"].is_sorted(descending=True)


def test_the_mildest_level_that_does_most_of_it_is_named() -> None:
    rows = {
        "key": [*"aaab"],
        "level": [*"1231"],
        "words": [*"1231"],
        "left": [0, 1, 8, 9],
        "removed": [1.0, 0.9, 0.2, 0],
    }
    assert mildest(pl.DataFrame(rows).cast({"removed": pl.Float64})).select("key", "level").rows() == [("a", "2")]


def test_nothing_helps_where_nobody_is_unique() -> None:
    records = eq.read(pl.DataFrame({"k": [1, 1, 2, 2]}), eq.Roles("k"))
    assert helps(eq.count(records)).is_empty()
    assert mildest(helps(eq.count(records))).is_empty()


@pytest.mark.parametrize("named", [True, False])
def test_the_worst_are_the_largest_individual_risks(town: pl.DataFrame, named: bool) -> None:
    roles = eq.Roles(["age", "sex", "job"], weight="w", id="person" if named else None)
    records = eq.read(town, roles)
    found = worst(records, eq.count(records))
    every = eq.risk.Individual().measure(records, records).by_record()
    assert found.columns == ["record", *(["person"] if named else []), "risk", "alike"]
    assert found["risk"].to_list() == every["risk"].sort(descending=True).head(10).to_list()
    key = "person" if named else "record"
    facts = every.filter(pl.col(key).is_in(found[key].implode()))
    assert facts["risk"].sort(descending=True).to_list() == found["risk"].to_list()


def test_an_assessment_has_both_and_no_value_of_a_key(town: pl.DataFrame) -> None:
    found = eq.assess(eq.read(town, eq.Roles(["age", "sex", "job"], weight="w", id="person")))
    assert found.worst.height == 10
    assert not found.helps.is_empty()
    assert {"individual"} < set(found.scores.keys())
    assert "p0" not in repr(found)
