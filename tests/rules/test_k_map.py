"""k-map: people of a population in each cell, as risk.Journalist counts them, also at coarser levels."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.methods.sensitive_values import merging
from equipoise.recipe.catalogue import parse

AGES = eq.Hierarchy.intervals([10])


@pytest.fixture
def register(people: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([people, people.sample(350, seed=2)])


@pytest.mark.parametrize("missing", ["category", "any"])
@pytest.mark.parametrize("k", [2, 4, 9])
def test_the_same_as_the_journalist(people: pl.DataFrame, register: pl.DataFrame, k: int, missing: Any) -> None:
    gaps = people.with_columns(pl.when(pl.int_range(pl.len()) % 37 == 0).then(None).otherwise("area").alias("area"))
    records = eq.read(gaps, eq.Roles(["sex", "area", "age"], missing=missing))
    population = eq.read(register, eq.Roles())
    rule = eq.risk.Unsafe(eq.rules.KMap(k, population)).measure(records, records)
    score = eq.risk.Journalist(population, k=k).measure(records, records)
    assert rule.number == score.number > 0


def test_weights_where_there_is_no_population(people_records: eq.Records) -> None:
    cells = eq.count(people_records)
    rule = eq.rules.KMap(8).flag(cells)
    assert rule.to_list() == [max(n, total) < 8 for n, total in cells.table.select("n", "total").rows()]


def test_classes_at_coarser_levels(people: pl.DataFrame, register: pl.DataFrame) -> None:
    """Original cells are flagged whose class has too few people once both are coarsened alike."""
    records = eq.read(people, eq.Roles(["sex", "age"], hierarchies={"age": AGES}))
    cells = eq.count(records)
    flags = eq.rules.KMap(30, eq.read(register, eq.Roles()), ("age=10",)).flag(cells)
    values = set(people["age"])
    size = register.filter(pl.col("age").is_in(values)).group_by("sex", pl.col("age") // 10).len()
    few = {(sex, decade) for sex, decade, n in size.rows() if n < 30}
    assert flags.to_list() == [(sex, age // 10) in few for sex, age in cells.table.select("sex", "age").rows()]
    assert 0 < flags.sum() < len(flags)
    masked = eq.Recipe([eq.masks.SuppressRecords(eq.rules.KMap(30, eq.read(register, eq.Roles()), ("age=10",)))])
    assert masked.run(records).collect()["sex"].null_count() >= cells.table.filter(flags)["n"].sum()


def test_people_with_other_values_are_left_out() -> None:
    """Text in the register where the file has numbers, and values that no record has."""
    register = eq.read(pl.DataFrame({"age": ["30", "30", "x", "99", None]}), eq.Roles())
    cells = eq.Cells.of(pl.DataFrame({"age": [30, 31], "n": [1, 1]}))
    assert eq.rules.KMap(2, register).flag(cells).to_list() == [False, True]
    assert eq.rules.KMap(3, register).flag(cells).to_list() == [True, True]


def test_merged_classes_stay_safe() -> None:
    assert merging(eq.rules.KMap(3)) == "any"
    assert merging(eq.rules.KMap(3) | eq.rules.MinCount(2)) == "any"


def test_named_in_a_file(tmp_path: Path) -> None:
    rule = eq.rules.KMap(4, tmp_path / "register.csv", "age=10")
    assert parse(f"k-map:4,{tmp_path}/register.csv,coarsen=age=10", "rule") == rule
    assert hash(rule) == hash(eq.rules.KMap(4, str(tmp_path / "register.csv"), ("age=10",)))
    assert "population" in rule.explain({"n": 3})


@pytest.mark.parametrize(
    ("options", "words"),
    [({"k": 0}, "whole number"), ({"k": True}, "whole number"), ({"coarsen": "age"}, "like 'age=10'")],
)
def test_refused_before_data(options: dict[str, Any], words: str) -> None:
    with pytest.raises(eq.ParameterError, match=words):
        eq.rules.KMap(**options)


def test_refused_by_data(people_records: eq.Records) -> None:
    cells = eq.count(people_records)
    with pytest.raises(eq.RolesError, match="no column 'area'"):
        eq.rules.KMap(3, eq.read(pl.DataFrame({"sex": ["f"]}), eq.Roles())).flag(
            eq.count(people_records, ("sex", "area"))
        )
    strange = eq.read(pl.DataFrame({key: ["Q"] for key in cells.by}), eq.Roles())
    with pytest.raises(eq.DataError, match="original values"):
        eq.rules.KMap(3, strange).flag(cells)
