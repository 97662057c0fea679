"""Recipes, grids and ranges, and all coarsenings."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.masks import Recode, TopCode


def test_masks_run_in_order(people_records: eq.Records) -> None:
    """Top code then bands differs from bands then top code: the second finds text and says so."""
    done = eq.Recipe([TopCode("age", 40), Recode("age", "10")]).run(people_records)
    assert [law.mask for law in done.history] == ["top_code", "recode"]
    with pytest.raises(eq.DataError, match="not numeric"):
        eq.Recipe([Recode("age", "10"), TopCode("age", 40)]).run(people_records)


def test_a_recoded_column_cannot_be_recoded_again(people_records: eq.Records) -> None:
    with pytest.raises(eq.ParameterError, match="recoded already"):
        eq.Recipe([Recode("age", "5"), Recode("age", "10")]).run(people_records)


def test_nothing_to_do_gives_the_file_itself(people_records: eq.Records, people: pl.DataFrame) -> None:
    assert_frame_equal(eq.Recipe().run(people_records).collect(), people)
    assert eq.Recipe().words() == "the original file"


@pytest.mark.parametrize("bad", [["recode"], [Recode], [eq.risk.Uniques()], "recode", [None]])
def test_recipes_hold_masks(bad: Any) -> None:
    with pytest.raises(eq.ParameterError, match="A recipe holds masks"):
        eq.Recipe(bad)


def test_one_mask_may_stand_alone() -> None:
    assert eq.Recipe(TopCode("age", 80)).masks == (TopCode("age", 80),)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 2**128, "7"])
def test_unfit_seeds(seed: Any) -> None:
    with pytest.raises(eq.ParameterError, match="seed"):
        eq.Recipe(seed=seed)


def test_equal_recipes_are_equal_whatever_their_seed() -> None:
    """What is done is public, the seed is not."""
    assert eq.Recipe([TopCode("a", 1)], seed=1) == eq.Recipe([TopCode("a", 1)], seed=2)
    assert len({eq.Recipe([TopCode("a", 1)], seed=i) for i in range(5)}) == 1


def test_random_masks_follow_the_seed(jumble: Any, people_records: eq.Records) -> None:
    """Same seed, same file; another seed, or another draw of the same, another file."""
    recipe = eq.Recipe([jumble("area")], seed=1)
    first = recipe.run(people_records).collect()
    assert_frame_equal(recipe.run(people_records).collect(), first)
    assert not eq.Recipe([jumble("area")], seed=2).run(people_records).collect().equals(first)
    assert not recipe.run(people_records, draw=1).collect().equals(first)


def test_two_steps_draw_apart(jumble: Any, people_records: eq.Records) -> None:
    """The same mask twice permutes twice, not back."""
    once = eq.Recipe([jumble("area")], seed=1).run(people_records).collect("area")
    twice = eq.Recipe([jumble("area"), jumble("area")], seed=1).run(people_records).collect("area")
    assert not once.equals(twice)


def test_random_masks_are_blind_to_row_order(jumble: Any, people: pl.DataFrame, people_roles: eq.Roles) -> None:
    recipe = eq.Recipe([jumble("area")], seed=1)
    moved = people.sample(fraction=1, shuffle=True, seed=5)
    one, two = (recipe.run(eq.read(t, people_roles)).collect().sort("person") for t in (people, moved))
    assert_frame_equal(one, two)


# --- grids and ranges ---------------------------------------------------------------------------------------------


def test_lists_are_grids_and_tables_are_ranges() -> None:
    """`scale = [0.05, 0.1]`, `{from=0.01, to=0.5, steps=8}`."""
    masks = eq.grid(TopCode, column=["a", "b"], at={"from": 0.01, "to": 0.5, "steps": 8})
    assert len(masks) == 16
    assert [m.at for m in masks[:8]] == pytest.approx(np.linspace(0.01, 0.5, 8).tolist())  # type: ignore[attr-defined]
    assert {m.column for m in masks} == {"a", "b"}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "bad",
    [
        {"from": 1, "to": 2, "steps": 0},
        {"from": 1, "to": 2, "steps": 2.5},
        {"from": 1, "to": 2, "steps": True},
        {"from": "a", "to": 2, "steps": 2},
        [],
    ],
)
def test_unfit_grids(bad: Any) -> None:
    with pytest.raises(eq.ParameterError):
        eq.grid(TopCode, column="a", at=bad)


def test_every_combination_of_steps() -> None:
    """None leaves a step out; a mask alone is no alternative."""
    found = eq.recipes(eq.grid(TopCode, column="a", at=[1, 2]), [None, TopCode("b", 3)], Recode("c", 1))
    assert [[(m.column) for m in r.masks] for r in found] == [["a", "c"], ["a", "b", "c"], ["a", "c"], ["a", "b", "c"]]
    assert len({r.seed for r in found}) == 4
    assert {r.seed for r in eq.recipes([TopCode("a", 1)], seed=9)} == {9}


# --- coarsenings --------------------------------------------------------------------------------------------------


def test_a_recipe_for_each_combination_of_levels(people_records: eq.Records) -> None:
    """area: original, 3, 2, 1, all; age: original, 5, 10, 3: 5 x 4 recipes, each once."""
    found = eq.coarsenings(people_records)
    assert len(found) == len(set(found)) == 20
    assert found[0] == eq.Recipe()
    assert eq.Recipe([Recode("area", "all"), Recode("age", "3")]) in found


def test_floors_are_kept(people: pl.DataFrame) -> None:
    """Nothing finer than the floor is tried."""
    tree = eq.Hierarchy.intervals([5, 10, 20], floor=10)
    records = eq.read(people, eq.Roles(["age", "sex"], hierarchies={"age": tree}))
    assert [r.masks for r in eq.coarsenings(records)] == [(Recode("age", "10"),), (Recode("age", "20"),)]
    with pytest.raises(eq.ParameterError, match="finer than its floor"):
        eq.Recipe([Recode("age", "5")]).run(records)
    with pytest.raises(eq.ParameterError, match="finer than its floor"):
        eq.Recipe([Recode("age", 0)]).run(records)


def test_hierarchies_of_columns_that_are_no_keys_are_left_alone(people: pl.DataFrame) -> None:
    trees = {"salary": eq.Hierarchy.intervals(1000), "age": eq.Hierarchy.intervals(5)}
    assert len(eq.coarsenings(eq.read(people, eq.Roles(["age"], hierarchies=trees)))) == 2


def test_nothing_to_coarsen(people: pl.DataFrame) -> None:
    with pytest.raises(eq.RolesError, match="nothing to coarsen"):
        eq.coarsenings(eq.read(people, eq.Roles(["sex"])))


def test_too_many_combinations(people: pl.DataFrame) -> None:
    """Counted before they are made."""
    table = people.with_columns(pl.col("age").alias(f"a{i}") for i in range(7))
    trees = {f"a{i}": eq.Hierarchy.intervals([2**j for j in range(1, 9)]) for i in range(7)}
    with pytest.raises(eq.InfeasibleError, match="too many"):
        eq.coarsenings(eq.read(table, eq.Roles(list(trees), hierarchies=trees)))
