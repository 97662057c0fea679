"""Microaggregation on records: means kept, nobody alone, gaps and types as stated, row order immaterial."""

from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.masks import Microaggregate
from equipoise.masks._microaggregation import optimal

METHODS = ("mdav", "univariate-optimal", "tree")


def released(mask: Microaggregate, table: pl.DataFrame, roles: eq.Roles | None = None) -> pl.DataFrame:
    return mask.apply(eq.read(table, roles or eq.Roles()), Draws(1)).collect()


@pytest.fixture(scope="module")
def town() -> pl.DataFrame:
    rng = np.random.default_rng(11)
    return pl.DataFrame(
        {
            "id": np.arange(200) * 3,
            "income": rng.lognormal(8, 1, 200),
            "age": rng.integers(18, 80, 200),
            "area": rng.choice(["n", "s"], 200),
            "job": rng.choice(["a", "b", "c"], 200),
        }
    )


@pytest.mark.parametrize("method", METHODS)
def test_means_are_kept_and_nobody_is_alone(town: pl.DataFrame, method: Any) -> None:
    done = released(Microaggregate(["income", "age"], 4, method), town)
    for column in ("income", "age"):
        assert done[column].mean() == pytest.approx(town[column].mean(), rel=1e-10)
        assert done[column].var() < town[column].var()  # type: ignore[operator]
    columns = ["income"] if method == "univariate-optimal" else ["income", "age"]
    assert done.group_by(columns).len()["len"].min() >= 4  # type: ignore[operator]
    assert_frame_equal(done.drop("income", "age"), town.drop("income", "age"))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("roles", [eq.Roles(id="id"), eq.Roles()], ids=["id", "content"])
def test_row_order_does_not_matter(town: pl.DataFrame, method: Any, roles: eq.Roles) -> None:
    """Also with many ties: ages only, records told apart by their other columns."""
    mask = Microaggregate(["age"], 3, method)
    moved = released(mask, town.sample(fraction=1, shuffle=True, seed=4), roles)
    assert_frame_equal(released(mask, town, roles).sort("id"), moved.sort("id"))


def test_the_optimum_of_one_column(town: pl.DataFrame) -> None:
    done = released(Microaggregate(["income"], 5, "univariate-optimal"), town.sort("income"))["income"].to_numpy()
    groups = optimal(np.sort(town["income"].to_numpy()), 5)
    assert (np.diff(done) != 0).tolist() == (np.diff(groups) != 0).tolist()


def test_strata_are_not_mixed(town: pl.DataFrame) -> None:
    done = released(Microaggregate(["income"], 3, strata=["area"]), town)
    kept = done.group_by("area").agg(pl.col("income").mean()).sort("area")
    assert kept["income"].to_list() == pytest.approx(
        town.group_by("area").agg(pl.col("income").mean()).sort("area")["income"].to_list(), rel=1e-10
    )
    assert done.group_by("income").agg(pl.col("area").n_unique())["area"].max() == 1


def test_whole_numbers_and_dates() -> None:
    table = pl.DataFrame(
        {"n": pl.Series([1, 2, 9, 12], dtype=pl.Int16), "d": [date(2020, 1, i) for i in (1, 3, 20, 22)]}
    )
    done = released(Microaggregate(["n"], 2), table)
    assert (done["n"].to_list(), done["n"].dtype) == ([1.5, 1.5, 10.5, 10.5], pl.Float64)
    done = released(Microaggregate(["n", "d"], 2, integers="round"), table)
    assert (done["n"].to_list(), done["n"].dtype) == ([2, 2, 10, 10], pl.Int16)
    assert done["d"].to_list() == [date(2020, 1, 2)] * 2 + [date(2020, 1, 21)] * 2


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["x", "y", "z"])])
def test_categories_become_the_most_frequent(kind: Any) -> None:
    table = pl.DataFrame({"v": [0.0, 0.1, 0.2, 9.0, 9.1, 9.2], "c": pl.Series(list("yyxzyx")).cast(kind)})
    done = released(Microaggregate(["v", "c"], 3), table)
    assert done["c"].cast(pl.String).to_list() == ["y"] * 3 + ["x"] * 3
    assert done["c"].dtype == table["c"].dtype


def test_the_same_gaps_stay_together() -> None:
    """Missing stays missing; no mean is of fewer than `size` values."""
    rng = np.random.default_rng(3)
    table = pl.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    table = table.with_columns(b=pl.when(pl.int_range(60) % 4 == 0).then(None).otherwise(pl.col("b")))
    done = released(Microaggregate(["a", "b"], 3), table)
    assert done["b"].is_null().equals(table["b"].is_null())
    assert done.drop_nulls().group_by("b").len()["len"].min() >= 3  # type: ignore[operator]
    assert done["a"].mean() == pytest.approx(table["a"].mean(), rel=1e-10)


def test_rare_gaps_are_refused_or_emptied() -> None:
    table = pl.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [1.0, None, 3.0, float("nan")], "c": [1.0, 2.0, None, 4.0]})
    with pytest.raises(eq.InfeasibleError, match="1 records"):
        released(Microaggregate(["a", "b", "c"], 2), table)
    done = released(Microaggregate(["a", "b", "c"], 2, rare="empty"), table)
    assert done["a"].to_list() == [None, 3.0, None, 3.0]
    assert done["b"].fill_nan(None).to_list() == [None] * 4


def test_corners(town: pl.DataFrame) -> None:
    with pytest.raises(eq.InfeasibleError, match="too few"):
        released(Microaggregate(["income"], 300), town)
    same = town.with_columns(income=pl.lit(7.0))
    assert_frame_equal(released(Microaggregate(["income"], 3), same), same)
    nothing = town.with_columns(income=pl.lit(None, dtype=pl.Float64))
    assert_frame_equal(released(Microaggregate(["income"], 3), nothing), nothing)
    assert released(Microaggregate(["income", "age"], 3), nothing)["age"].mean() == pytest.approx(town["age"].mean())
    with pytest.raises(eq.DataError, match="infinite"):
        released(Microaggregate(["income"], 3), town.with_columns(income=pl.lit(float("inf"))))
    with pytest.raises(eq.DataError, match="no order"):
        released(Microaggregate(["job"], 3, "univariate-optimal"), town)
    with pytest.raises(eq.RolesError, match="Did you mean 'income'"):
        released(Microaggregate(["incom"], 3), town)
    with pytest.raises(eq.RolesError, match="'id'"):
        released(Microaggregate(["id"], 3), town, eq.Roles(id="id"))


@pytest.mark.parametrize(
    "bad",
    [
        {"size": 1},
        {"size": 2.5},
        {"size": True},
        {"method": "kmeans"},
        {"strata": ["x"]},
        {"integers": "no"},
        {"rare": "x"},
    ],
)
def test_bad_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        Microaggregate(["x"], **bad)
    with pytest.raises(eq.ParameterError):
        Microaggregate([])


def test_the_law_says_what_was_done(town: pl.DataFrame) -> None:
    law = Microaggregate(["age"], 3, strata=["area"]).apply(eq.read(town, eq.Roles()), Draws(9)).history[-1]
    assert law.parameters["size"] == 3
    assert not law.coarsens
    assert law.words == "age replaced by means of groups of 3 or more within area (MDAV)"
