"""The empirical map against the closed forms behind it."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.report.theory_curve import expected_curve
from equipoise.search.risk_utility_map import risk_utility_map


def trials() -> tuple[eq.Trial, ...]:
    """Noise of several scales on a large normal column."""
    x = np.random.default_rng(5).normal(50, 9, 40_000)
    records = eq.read(pl.DataFrame({"x": x}), eq.Roles(numeric="x"))
    recipes = [eq.Recipe([mask]) for mask in eq.grid(eq.masks.Noise, columns=("x",), scale=[0.2, 0.6, 1.2])]
    return eq.sweep(records, recipes, [eq.risk.ValueDisclosure(), eq.utility.MeanSquare()], draws=2)


def test_noise_lands_on_the_theoretical_curve() -> None:
    """Each empirical point is on the curve within Monte Carlo error (4 / sqrt(n) of the unit scale)."""
    found = trials()
    line = expected_curve(found, "value_disclosure", "mean_square", 40_000)
    assert line is not None
    for trial in found:
        use, risk = trial.scores["mean_square"].value, trial.scores["value_disclosure"].value
        assert risk == pytest.approx(np.interp(use, line["utility"], line["risk"]), abs=4 / np.sqrt(40_000))


def test_the_curve_is_drawn_under_the_points() -> None:
    """A dashed line, named, before the layers of the trials."""
    found = trials()
    line = expected_curve(found, "value_disclosure", "mean_square", 40_000)
    names = [layer["name"] for layer in risk_utility_map(eq.frontier(found), theory=line)["layer"]]
    assert names.index("theory") < names.index("best")


def test_theory_is_silent_where_it_has_no_form() -> None:
    """Other scores, other masks."""
    assert expected_curve(trials(), "uniques", "entropy", 10) is None
    assert expected_curve((), "value_disclosure", "mean_square", 10) is None


def test_what_a_private_size_buys_is_drawn_beside_it() -> None:
    """A snooper who must guess learns less than one who knows the size, whatever it is."""
    recipes = [eq.Recipe([eq.masks.Noise(("x",), scale, private=True)]) for scale in (0.2, 0.6, 1.2)]
    scores = [
        [eq.Score("value_disclosure", 0.5), eq.Score("mean_square", s, side="utility")] for s in (0.04, 0.36, 1.4)
    ]
    made = [eq.Trial(recipe, eq.Scores(pair)) for recipe, pair in zip(recipes, scores, strict=True)]
    line = expected_curve(made, "value_disclosure", "mean_square", 1_000)
    assert line is not None
    assert (line["guessed"] < line["risk"]).all()
    names = [layer["name"] for layer in risk_utility_map(eq.frontier(made), theory=line)["layer"]]
    assert names.index("theory_guessed") < names.index("best")
