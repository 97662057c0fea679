"""Coarser weights: totals kept, groups large enough, equal weights equal."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.errors import RolesError
from equipoise.masks import CoarsenWeights
from equipoise.recipe.recipe import Recipe
from equipoise.risk import RevealingColumns


def test_coarse_weights_keep_totals_and_hide_in_groups() -> None:
    rng = np.random.default_rng(5)
    table = pl.DataFrame({"key": [1] * 500, "area": rng.integers(0, 3, 500), "w": rng.uniform(1, 9, 500)})
    file = eq.read(table, eq.Roles("key", weight="w"))
    released = Recipe((CoarsenWeights(groups=8, keep=("area",), size=12),), 1).run(file)
    new = released.collect()
    sizes = new.group_by("area", "w").len()
    assert sizes["len"].min() >= 12
    assert sizes.group_by("area").len()["len"].max() <= 8
    totals = [frame.group_by("area").agg(pl.col("w").sum()).sort("area")["w"].to_numpy() for frame in (table, new)]
    assert totals[0] == pytest.approx(totals[1])
    alone = RevealingColumns().measure(released, file).detail.filter(pl.col("beside").is_null())
    assert alone.filter(pl.col("column") == "w")["number"].item() == 0


def test_equal_weights_stay_equal() -> None:
    table = pl.DataFrame({"w": [1.0] * 95 + [2.0, 3.0, 4.0, 5.0, 6.0]})
    file = eq.read(table, eq.Roles(weight="w"))
    new = Recipe((CoarsenWeights(groups=10, size=10),), 1).run(file).collect()
    assert new["w"].n_unique() == 1
    assert new["w"].sum() == pytest.approx(table["w"].sum())


def test_where_most_weigh_the_same_the_others_have_the_groups_that_are_left() -> None:
    """Nine in ten weigh 1: the others were one group, of whatever weights, and every weighted estimate was off."""
    table = pl.DataFrame({"w": [1.0] * 900 + [float(2 + i) for i in range(100)]})
    new = Recipe((CoarsenWeights(groups=6, size=10),), 1).run(eq.read(table, eq.Roles(weight="w"))).collect()
    assert new["w"].n_unique() == 6
    assert (new["w"] == 1).sum() == 900
    assert new.filter(pl.col("w") > 1).group_by("w").len()["len"].to_list() == [20] * 5


def test_no_weights_is_one_sentence() -> None:
    file = eq.read(pl.DataFrame({"rent": [1, 2]}), eq.Roles())
    with pytest.raises(RolesError, match="no weights to coarsen"):
        Recipe((CoarsenWeights(),), 1).run(file)
