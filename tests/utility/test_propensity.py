"""Propensity scores: on files that are told apart and files that are not, and the null by theory."""

import sys
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.records import Law
from equipoise.utility import Propensity

pytest.importorskip("sklearn")


def file(seed: int = 0, size: int = 1000, shift: float = 0.0, **roles: Any) -> eq.Records:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=size)
    table = pl.DataFrame({"x": x + shift, "y": x + rng.normal(size=size), "g": rng.choice(["a", "b", "c"], size)})
    return eq.read(table, eq.Roles("g", numeric=["x", "y"], **roles))


@pytest.mark.parametrize("model", ["tree", "logistic"])
def test_the_file_itself_cannot_be_told_apart(model: Any) -> None:
    """A record and its release are in the same fold: no split gains, and pMSE is 0."""
    data = file()
    score = Propensity(model).measure(data, data)
    assert score.value == pytest.approx(0.0, abs=1e-6)
    assert score.baseline is not None
    assert score.baseline > 0
    assert (score.better, score.side) == ("lower", "utility")
    assert score.detail["fold"].to_list() == [0, 1, 2, 3, 4]
    assert score.detail["records"].sum() == 2000


@pytest.mark.parametrize("model", ["tree", "logistic"])
def test_files_that_share_nothing_are_always_told_apart(model: Any) -> None:
    """c (1 - c) = 1/4."""
    assert Propensity(model).measure(file(1, shift=50.0), file(2)).value == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("model", ["tree", "logistic"])
def test_a_fresh_sample_scores_its_null_expectation(model: Any) -> None:
    """Other samples of the same population, of another size: the mean ratio to the baseline is about 1."""
    scores = [
        Propensity(model, permutations=1).measure(file(20 + i, size=450), file(40 + i, size=300)) for i in range(16)
    ]
    null = np.mean([score.baseline for score in scores if score.baseline is not None])
    assert 0.7 < np.mean([score.value for score in scores]) / null < 1.4
    assert "times its null expectation" in scores[0].notes[0]


def test_the_null_of_logistic_regression_by_theory() -> None:
    """Labels dealt at random: E pMSE = c (1-c) k/n, n records fitted, k = 3 with the intercept (on the fold that was
    left out its error counts); 60 permutations, so to 30 %."""
    score = Propensity("logistic", columns=("x", "y"), permutations=60).measure(file(6, size=500), file(5, size=500))
    fitted = 1000 * 4 / 5
    assert score.baseline == pytest.approx(0.25 * 3 / fitted, rel=0.3)


@pytest.mark.parametrize("model", ["tree", "logistic"])
def test_grows_with_noise(model: Any) -> None:
    """The released file with more and more noise."""
    rng = np.random.default_rng(7)
    old = file(8, size=3000)
    table, e = old.collect(), rng.normal(size=3000)
    values = [
        Propensity(model, permutations=1)
        .measure(eq.read(table.with_columns(x=pl.col("x").abs() ** 0.5 * c + pl.col("x") + c * e), old.roles), old)
        .value
        for c in (0.0, 0.5, 2.0, 8.0)
    ]
    assert values == sorted(values)
    assert values[-1] > 0.03


def test_trees_see_what_main_effects_do_not() -> None:
    """A relation that was lost while both margins stayed: logistic regression is blind to it."""
    old = file(9, size=4000)
    new = eq.read(old.collect().with_columns(y=pl.col("y").shuffle(seed=1)), old.roles)
    tree, line = (Propensity(m, columns=("x", "y")).measure(new, old) for m in ("tree", "logistic"))
    assert tree.baseline is not None
    assert line.baseline is not None
    assert tree.value > 1.1 * tree.baseline
    assert line.value < 2 * line.baseline


def test_weights_and_gaps() -> None:
    """Weights that turn one file into the other; missing values as an indicator."""
    x = np.tile([0.0, 1.0], 400)
    old = eq.read(pl.DataFrame({"x": x, "w": np.where(x > 0, 3.0, 1.0)}), eq.Roles(numeric="x", weight="w"))
    new = eq.read(pl.DataFrame({"x": np.tile([0.0, 1.0, 1.0, 1.0], 200), "w": np.ones(800)}), old.roles)
    blind = eq.Roles(numeric="x")
    heavy = Propensity("logistic").measure(new, old)
    plain = Propensity("logistic").measure(eq.read(new.collect(), blind), eq.read(old.collect(), blind))
    assert heavy.value < 0.002 < plain.value
    assert "Weighted by 'w'." in heavy.notes
    gaps = eq.read(pl.DataFrame({"x": [None if i % 2 else v for i, v in enumerate(x)]}), blind)
    full = eq.read(pl.DataFrame({"x": np.zeros(800)}), blind)
    assert Propensity().measure(gaps, full).value > 0.05


def test_the_answer_does_not_depend_on_row_order() -> None:
    """With ids, and without: by content."""
    for roles in ({}, {"id": "id"}):
        old = file(10).collect().with_row_index("id")
        new = old.with_columns(x=pl.col("x") + 0.2 * pl.Series(np.random.default_rng(1).normal(size=1000)))
        known = eq.Roles("g", numeric=["x", "y"], **roles)  # type: ignore[arg-type]
        order = np.random.default_rng(2).permutation(1000)
        one = Propensity().measure(eq.read(new, known), eq.read(old, known))
        two = Propensity().measure(eq.read(new[order], known), eq.read(old[order], known))
        assert (one.value, one.baseline) == (two.value, two.baseline)


def test_several_synthetic_sets_and_repeated_ids() -> None:
    old = file(11).collect().with_row_index("id")
    sets = pl.concat([old.with_columns(set=pl.lit(i)) for i in range(3)])
    score = Propensity("logistic").measure(
        eq.read(sets, eq.Roles("g", numeric=["x", "y"], id="id", sample="set")),
        eq.read(old, eq.Roles("g", numeric=["x", "y"], id="id")),
    )
    assert score.value < 0.01


def test_recoded_columns_and_large_files() -> None:
    """Text for numbers is seen at once; a large file is sampled to 10,000 records of each side."""
    old = file(12, size=12_000)
    coarse = eq.read(old.collect().with_columns(x=pl.col("x").round().cast(pl.String)), eq.Roles("g", numeric="y"))
    score = Propensity(columns=("x", "g"), permutations=1).measure(coarse, old)
    assert score.value > 0.2
    assert score.detail["records"].sum() == 20_000


@pytest.mark.parametrize("bad", [{"model": "net"}, {"folds": 1}, {"folds": 2.5}, {"permutations": 0}, {"seed": -1}])
def test_bad_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        Propensity(**bad)


def test_what_cannot_be_measured_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    small = file(13, size=30)
    with pytest.raises(eq.InfeasibleError, match="at least 50 records"):
        Propensity().measure(small, small)
    with pytest.raises(eq.RolesError, match="No column 'z'"):
        Propensity(columns=("z",)).measure(small, small)
    nothing = eq.read(pl.DataFrame({"a": [1, 2]}))
    with pytest.raises(eq.RolesError, match="nothing to tell records apart"):
        Propensity().measure(nothing, nothing)
    monkeypatch.setitem(sys.modules, "sklearn.tree", None)
    data = file(14)
    with pytest.raises(eq.MissingExtraError, match=r"equipoise\[learn\]"):
        Propensity().measure(data, data)


def test_weights_of_any_size_count_in_proportion() -> None:
    """The sum of huge weights is infinite, and a share of it was no number."""
    table = file().collect()

    def weighted(w: float) -> eq.Records:
        return eq.read(table.with_columns(w=pl.lit(w)), eq.Roles("g", numeric=["x", "y"], weight="w"))

    scores = [Propensity().measure(weighted(w), weighted(w)) for w in (1.0, 1e308)]
    assert scores[1].baseline == pytest.approx(scores[0].baseline)


def test_some_weight_must_count() -> None:
    """Of a file with weights, what is left may have none."""
    table = file().collect().with_row_index().with_columns(w=pl.col("index") // 900)
    data = eq.read(table.drop("index"), eq.Roles("g", numeric=["x", "y"], weight="w"))
    with pytest.raises(eq.DataError, match="No record has a weight above 0"):
        Propensity().measure(
            data.with_frame(data.frame.filter(nw.col("w") == 0), Law("filter", (), "no weights")), data
        )
