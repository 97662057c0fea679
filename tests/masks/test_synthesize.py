"""Synthesis: each model's law by many draws, relations that hold in every record, and only what was asked is drawn."""

import sys
from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.masks import Synthesize
from equipoise.masks._synthesis.relations import Relations
from equipoise.masks._synthesis.trees import classes, ordered
from equipoise.masks._synthesis.variables import SynthesisVariable
from equipoise.rules import MinCount

pytest.importorskip("sklearn")
MODELS = ("sequential-cart", "hierarchical-normal", "bootstrap")


def made(mask: Synthesize, table: pl.DataFrame, roles: eq.Roles | None = None, seed: int = 1) -> pl.DataFrame:
    return mask.apply(eq.read(table, roles or eq.Roles()), Draws(seed)).collect()


@pytest.fixture(scope="module")
def town() -> pl.DataFrame:
    """Every type, gaps, many zeros, a sum, and a combination that cannot be."""
    rng, n = np.random.default_rng(21), 1500
    age = rng.integers(16, 90, n)
    wage = np.where(age > 66, 0.0, rng.lognormal(7, 0.5, n) * (1 + (age > 30)))
    rent = np.where(rng.random(n) < 0.7, 0.0, rng.lognormal(5, 1, n))
    sex = rng.choice(["f", "m"], n)
    return pl.DataFrame(
        {
            "id": np.arange(n) + 1000,
            "sex": sex,
            "area": rng.choice(list("abcdefgh"), n, p=[0.4, 0.2, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05]),
            "age": pl.Series(age, dtype=pl.UInt8),
            "pregnant": (sex == "f") & (age < 45) & (rng.random(n) < 0.2),
            "wage": wage,
            "rent": rent,
            "income": wage + rent,
            "born": [date(2000 - int(a), 1, 1) for a in age],
            "score": pl.Series(np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n) + (sex == "m"))).fill_nan(None),
            "w": rng.choice([1.0, 2.0, 5.0], n),
        }
    )


ROLES = eq.Roles(["sex", "area", "age"], weight="w", id="id")


# --- the law of each model ----------------------------------------------------------------------------------------


def test_the_hierarchical_model_is_the_posterior() -> None:
    """Means of samples lie around the sample mean with variance s2/n + s2/k (BEYOND.md: a2 = s2/n); 4 errors of it."""
    x = np.random.default_rng(2).normal(50, 3, 40)
    table = pl.DataFrame({"x": x})
    means = (
        made(Synthesize("hierarchical-normal", samples=800, size=60), table).group_by("sample").agg(pl.col("x").mean())
    )
    # E s2_i = (n-1) s2 / (n-3) for chi2 on n-1 degrees
    expected = x.var(ddof=1) * 39 / 37 * (1 / 40 + 1 / 60)
    assert means["x"].mean() == pytest.approx(x.mean(), abs=4 * np.sqrt(expected / 800))
    assert means["x"].var() == pytest.approx(expected, rel=4 * np.sqrt(2 / 800) + 0.02)


@pytest.mark.parametrize("model", MODELS)
def test_moments_are_those_of_the_file(model: Any) -> None:
    """Two correlated columns over 40 samples: means within 4 standard errors, spreads and correlation to 0.04."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=400)
    y = 0.8 * x + 0.6 * rng.normal(size=400)
    done = made(Synthesize(model, samples=40, leaf=3), pl.DataFrame({"x": x, "y": y}))
    error = np.sqrt(2 / 400 / 40)  # posterior and sampling variance of a mean, over 40 samples
    for name, values in (("x", x), ("y", y)):
        assert done[name].mean() == pytest.approx(values.mean(), abs=4 * error * values.std())
        assert done[name].std() == pytest.approx(values.std(), rel=0.04)
    found = done.select(pl.corr("x", "y")).item()
    assert found == pytest.approx(np.corrcoef(x, y)[0, 1], abs=0.04)


@pytest.mark.parametrize("model", MODELS)
def test_shares_of_categories_and_gaps(town: pl.DataFrame, model: Any) -> None:
    done = made(Synthesize(model, samples=5), town, ROLES)
    error = 4 * np.sqrt(2 * 0.25 / town.height / 5)
    for area in "abh":
        share = (town["area"] == area).mean()
        assert (done["area"] == area).mean() == pytest.approx(share, abs=error)
    assert done["score"].is_null().mean() == pytest.approx(town["score"].is_null().mean(), abs=error)
    assert (done["rent"] == 0).mean() == pytest.approx((town["rent"] == 0).mean(), abs=error)


def test_trees_keep_what_hangs_together(town: pl.DataFrame) -> None:
    """Nobody above 66 earns, men score one more, born goes with age."""
    done = made(Synthesize(), town, ROLES)
    assert done.filter(pl.col("age") > 70)["wage"].max() == 0
    men, women = (done.filter(pl.col("sex") == s)["score"].mean() for s in "mf")
    assert men - women == pytest.approx(1, abs=0.35)  # type: ignore[operator]
    assert abs((2000 - done["born"].dt.year()) - done["age"].cast(pl.Int64)).mean() < 1


def test_a_query_outside_the_model() -> None:
    """Exponential data: the normal model gets the mean, not the share below zero; trees get both."""
    x = pl.DataFrame({"x": np.random.default_rng(1).exponential(size=2000)})
    normal, trees = (made(Synthesize(m), x)["x"] for m in ("hierarchical-normal", "sequential-cart"))
    assert normal.mean() == pytest.approx(x["x"].mean(), abs=0.13)
    assert (normal < 0).mean() > 0.1  # type: ignore[operator]
    assert (trees < 0).mean() == 0
    assert trees.quantile(0.9) == pytest.approx(x["x"].quantile(0.9), rel=0.15)


def test_a_mixture_takes_models_in_turn() -> None:
    x = pl.DataFrame({"x": np.random.default_rng(1).exponential(size=300)})
    done = made(Synthesize("mixture", samples=4), x).partition_by("sample")
    observed = [p["x"].is_in(x["x"].to_list()).mean() for p in done]
    assert observed == [1.0, 0.0, 0.0, 1.0]
    assert (done[1]["x"] < 0).any()


# --- what must hold -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_relations_hold_in_every_record(town: pl.DataFrame, model: Any) -> None:
    kept = ("income = wage + rent", "wage >= 0", "rent >= 0", "age >= 16", "age <= 90", "sex with pregnant")
    done = made(Synthesize(model, samples=3, relations=kept), town, ROLES)
    assert ((done["income"] - done["wage"] - done["rent"]).abs() < 1e-6).all()
    assert done["wage"].min() >= 0  # type: ignore[operator]
    assert done["age"].is_between(16, 90).all()
    assert done.filter((pl.col("sex") == "m") & pl.col("pregnant")).height == 0
    assert done["income"].mean() == pytest.approx(town["income"].mean(), rel=0.25)


@pytest.mark.parametrize("model", MODELS)
def test_the_observed_range(town: pl.DataFrame, model: Any) -> None:
    done = made(Synthesize(model, samples=2, bounds="observed"), town, ROLES)
    for column in ("wage", "rent", "score", "age"):
        assert done[column].min() >= town[column].min()  # type: ignore[operator]
        assert done[column].max() <= town[column].max()  # type: ignore[operator]


def test_relations_that_do_not_hold_or_cannot_be_read(town: pl.DataFrame) -> None:
    with pytest.raises(eq.DataError, match="does not hold in"):
        made(Synthesize(relations=("income = wage + age",)), town, ROLES)
    with pytest.raises(eq.DataError, match="does not hold in"):
        made(Synthesize(relations=("age >= 50",)), town, ROLES)
    with pytest.raises(eq.RolesError, match="'incom'"):
        made(Synthesize(relations=("incom = wage + rent",)), town, ROLES)
    for bad in ("a", "a = ", "a with b with a", "a >= x", "a = a + b"):
        with pytest.raises(eq.ParameterError):
            Synthesize(relations=(bad,))
    with pytest.raises(eq.ParameterError, match="finer sum first"):
        Relations.of(["all = total + c", "total = a + b"])
    nested = Relations.of(["total = a + b", "all = total + c"])
    assert nested.with_sums(pl.DataFrame({"a": [1], "b": [2], "c": [3], "total": [0], "all": [0]}))["all"].item() == 6


@pytest.mark.parametrize("model", MODELS)
def test_types_and_columns_stay(town: pl.DataFrame, model: Any) -> None:
    extra = town.with_columns(pl.col("area").cast(pl.Categorical), small=pl.lit(250, dtype=pl.UInt8))
    done = made(Synthesize(model), extra, ROLES)
    assert done.schema == extra.schema
    assert done["id"].to_list() == list(range(1, town.height + 1))


def test_models_of_numbers_release_no_value_that_was_observed(town: pl.DataFrame) -> None:
    for model in ("hierarchical-normal", "bootstrap"):
        done = made(Synthesize(model), town, ROLES)
        free = done.filter(pl.col("wage") != 0)["wage"]
        assert not free.is_in(town["wage"].to_list()).any()


# --- in part ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["sequential-cart", "hierarchical-normal"])
def test_named_columns_only(town: pl.DataFrame, model: Any) -> None:
    """Other columns stay, row by row; the drawn one still goes with them. A tree gives some their own value back."""
    done = made(Synthesize(model, columns=["score"]), town, ROLES)
    assert_frame_equal(done.drop("score"), town.drop("score"))
    assert (done["score"] != town["score"]).mean() > 0.75  # type: ignore[operator]
    men, women = (done.filter(pl.col("sex") == s)["score"].mean() for s in "mf")
    assert men - women == pytest.approx(1, abs=0.35)  # type: ignore[operator]


def test_risky_records_only(town: pl.DataFrame) -> None:
    """A rule flags cells of the keys: those records are drawn, the others are not touched."""
    unsafe = pl.len().over("sex", "area", "age") < 3
    done = made(Synthesize(columns=["wage"], only=MinCount(3), relations=("income = wage + rent",)), town, ROLES)
    safe = ~town.select(unsafe.alias("u"))["u"]
    assert_frame_equal(done.filter(safe), town.filter(safe))
    assert (done["wage"] != town["wage"]).sum() > 100
    assert ((done["income"] - done["wage"] - done["rent"]).abs() < 1e-6).all()
    law = Synthesize(only=MinCount(3)).apply(eq.read(town, ROLES), Draws(1)).history[-1]
    assert law.parameters["only"] == "min_count"
    assert law.parameters["synthetic"] == "partial"


def test_a_column_says_which_records(town: pl.DataFrame) -> None:
    done = made(Synthesize("hierarchical-normal", columns=["wage"], only="pregnant"), town, ROLES)
    changed = done["wage"] != town["wage"]
    assert changed.any()
    assert town.filter(changed)["pregnant"].all()
    with pytest.raises(eq.DataError, match="true or false"):
        made(Synthesize(only="sex"), town, ROLES)
    nobody = town.with_columns(pregnant=pl.lit(False))
    assert_frame_equal(made(Synthesize(columns=["wage"], only="pregnant"), nobody, ROLES), nobody)


def test_several_partial_samples(town: pl.DataFrame) -> None:
    mask = Synthesize("mixture", samples=2, columns=["wage"])
    records = mask.apply(eq.read(town, ROLES), Draws(1))
    done = records.collect()
    assert records.roles.sample == "sample"
    assert done["id"].n_unique() == done.height == 2 * town.height
    for part in done.partition_by("sample"):
        assert part["score"].equals(town["score"], null_equal=True)


# --- samples, seeds, weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("roles", [ROLES, eq.Roles()], ids=["id", "content"])
def test_seeds_and_row_order(town: pl.DataFrame, model: Any, roles: eq.Roles) -> None:
    mask, moved = Synthesize(model, samples=2, size=50), town.sample(fraction=1, shuffle=True, seed=3)
    one = made(mask, town, roles)
    assert_frame_equal(one, made(mask, moved, roles))
    assert not one.equals(made(mask, town, roles, seed=2))
    first, second = one.partition_by("sample", include_key=False)
    assert not first.drop("id").equals(second.drop("id"))


def test_partial_draws_do_not_depend_on_row_order(town: pl.DataFrame) -> None:
    mask, moved = Synthesize(columns=["wage", "sex"]), town.sample(fraction=1, shuffle=True, seed=3)
    assert_frame_equal(made(mask, town, ROLES).sort("id"), made(mask, moved, ROLES).sort("id"))


@pytest.mark.parametrize("model", MODELS)
def test_weights_add_up_to_about_the_file(town: pl.DataFrame, model: Any) -> None:
    done = made(Synthesize(model, samples=20, size=300), town, ROLES)
    totals = done.group_by("sample").agg(pl.col("w").sum())["w"]
    assert totals.mean() == pytest.approx(town["w"].sum(), rel=0.05)
    assert done["w"].min() > 0  # type: ignore[operator]


def test_the_law(town: pl.DataFrame) -> None:
    records = Synthesize(samples=2, size=10).apply(eq.read(town, ROLES), Draws(987654321))
    law = records.history[-1]
    assert law.parameters["synthetic"] == "full"
    assert (law.parameters["samples"], law.parameters["size"], law.coarsens) == (2, 10, False)
    assert "987654321" not in repr(law)
    assert law.words == "all records replaced by draws from sequential trees in 2 samples of 10 records"


# --- corners ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_corners(model: Any) -> None:
    """Constant and empty columns, two records."""
    table = pl.DataFrame(
        {"a": [1.0, 2.0], "b": [3, 3], "c": ["x", "x"], "d": pl.Series([None, None], dtype=pl.Float64)}
    )
    done = made(Synthesize(model, size=7), table)
    assert done["b"].to_list() == [3] * 7
    assert done["c"].to_list() == ["x"] * 7
    assert done["d"].null_count() == 7


def test_refusals(town: pl.DataFrame) -> None:
    with pytest.raises(eq.DataError, match="infinite"):
        made(Synthesize(), town.with_columns(wage=pl.lit(float("inf"))), ROLES)
    with pytest.raises(eq.DataError, match="different values"):
        made(Synthesize(), town.with_columns(name=pl.col("id").cast(pl.String)), ROLES)
    with pytest.raises(eq.RolesError, match="households"):
        made(Synthesize(), town, eq.Roles(household="id"))
    with pytest.raises(eq.RolesError, match="already"):
        made(Synthesize(samples=2), town.with_columns(sample=pl.lit(1)), ROLES)
    with pytest.raises(eq.RolesError, match="cannot be drawn"):
        made(Synthesize(columns=["id"]), town, ROLES)
    with pytest.raises(eq.RolesError, match="Did you mean 'wage'"):
        made(Synthesize(columns=["wagee"]), town, ROLES)
    with pytest.raises(eq.DataError, match="numbers only"):
        made(Synthesize("hierarchical-normal", columns=["sex"]), town, ROLES)
    with pytest.raises(eq.ParameterError, match="must all be drawn"):
        made(Synthesize(columns=["sex"], relations=("sex with pregnant",)), town, ROLES)
    with pytest.raises(eq.DataError, match="too few"):
        made(Synthesize("hierarchical-normal"), town.head(1), ROLES)


@pytest.mark.parametrize(
    "bad",
    [
        {"model": "gan"},
        {"samples": 0},
        {"samples": 1.5},
        {"size": 0},
        {"leaf": 0},
        {"model": "mixture"},
        {"bounds": "wide"},
        {"columns": ["a"], "size": 5},
        {"columns": ["a"], "model": "bootstrap"},
        {"only": 3},
    ],
)
def test_bad_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        Synthesize(**bad)


def test_without_scikit_learn(town: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.tree", None)
    with pytest.raises(eq.MissingExtraError, match=r"equipoise\[learn\]"):
        made(Synthesize(), town, ROLES)
    made(Synthesize("bootstrap"), town, ROLES)


def test_categories_are_ordered_by_what_they_say() -> None:
    """Means of numbers; for two classes the share of one of them, up to sign."""
    codes = np.array([0, 0, 1, 1, 2, 2])
    assert ordered(codes, 3, np.array([[5.0], [5.0], [1.0], [1.0], [3.0], [3.0]])).tolist() == [5, 1, 3]
    places = ordered(codes, 3, np.array([1, 1, 0, 0, 0, 1]))
    assert sorted((places[0], places[1], places[2])) in (
        [places[1], places[2], places[0]],
        [places[0], places[2], places[1]],
    )
    many = SynthesisVariable.of(pl.Series([f"v{i % 60}" for i in range(600)]))
    assert classes([many]).max() == 40
