"""The charts of a publication: they say what the numbers say."""

import json
from math import sqrt

import numpy as np
import polars as pl
import pytest
from scipy import stats

import equipoise as eq
from equipoise.presentation.numbers import fraction, percent
from equipoise.publishing.publish import publish

SMALL = pl.DataFrame(
    {
        "area": list("abcdefghijkl"),
        "n": [10, 10, 10, 20, 20, 20, 5, 5, 40, 40, 8, 8],
        "N": [50, 50, 200, 30, 30, 30, 500, 500, 90, 90, 12, 12],
        "y": [1, 4, 2, 1, 7, 12, 1, 2, 3, 9, 1, 5],
    }
)


@pytest.fixture(scope="module")
def small() -> eq.Publication:
    return eq.publication(SMALL, (0.5, 1.5), "uniques:10", "y", domain="area")


@pytest.fixture(scope="module")
def large() -> eq.Publication:
    """Five thousand cells drawn from the model itself."""
    rng = np.random.default_rng(11)
    n = rng.integers(5, 60, 5000)
    whole = n * rng.integers(2, 30, 5000)
    y = rng.binomial(n, rng.beta(0.8, 6.0, 5000))
    return eq.publication(pl.DataFrame({"n": n, "N": whole, "y": y}), (0.8, 6.0))


def layers(spec: dict) -> dict:
    return {layer["name"]: layer for layer in spec["layer"]}


# --- the curve ----------------------------------------------------------------------------------------------------


def test_the_line_is_the_curve(small: eq.Publication) -> None:
    """Every step of a short curve, from everything published to nothing."""
    rows = layers(small.chart())["best_line"]["data"]["values"]
    curve = small.curve()
    assert [row["published"] for row in rows] == curve["published"].to_list()
    assert [row["risk"] for row in rows] == pytest.approx(curve["risk"].to_list(), abs=1e-5)
    assert [row["withheld"] for row in rows] == pytest.approx(curve["withheld"].to_list(), abs=1e-5)


def test_a_long_curve_is_thinned_to_steps_of_it(large: eq.Publication) -> None:
    spec = large.chart(large.choose(risk_at_most=0.2))
    curve = {row["published"]: (row["withheld"], row["risk"]) for row in large.curve().iter_rows(named=True)}
    rows = layers(spec)["best_line"]["data"]["values"]
    assert 100 < len(rows) <= 202
    assert (rows[0]["withheld"], rows[0]["risk"]) == (0, 1)
    assert (rows[-1]["withheld"], rows[-1]["risk"]) == (1, 0)
    for row in rows:
        assert (row["withheld"], row["risk"]) == pytest.approx(curve[row["published"]], abs=1e-5)
    steps = np.diff([[row["withheld"], row["risk"]] for row in rows], axis=0)
    assert np.abs(steps).min(axis=1).max() < 0.02
    assert len(json.dumps(spec)) < 300_000


def test_the_decision_is_on_it(small: eq.Publication) -> None:
    chosen = small.choose(risk_at_most=0.2)
    found = layers(small.chart(chosen))
    (row,) = found["chosen"]["data"]["values"]
    assert (row["withheld"], row["risk"]) == (chosen.withheld, chosen.risk)
    assert row["label"] == f"decision: {percent(chosen.withheld)} withheld, a fifth of the risk"
    assert "chosen" not in layers(small.chart())


def test_others_are_dashed_and_named_once(small: eq.Publication) -> None:
    """Random suppression is dotted; rules that share a line share a label; every line has one."""
    found = layers(small.chart(comparison=small.compare({"respondents": ("respondents:10", "y")})))
    dashed = [name for name in found if name.startswith("curve_") and "label" not in name]
    assert dashed
    for name in dashed:
        assert found[name]["mark"]["strokeDash"] == [6, 4]
        assert found[name.replace("curve_", "curve_label_")]["data"]["values"][0]["label"]
    assert found["random"]["mark"]["strokeDash"] == [1, 4]
    assert all(row["risk"] + row["withheld"] == pytest.approx(1, abs=2e-5) for row in found["random"]["data"]["values"])
    assert "expected loss" in found["best_label"]["data"]["values"][0]["label"]


def test_labels_do_not_cover_each_other(large: eq.Publication) -> None:
    others = {"respondents": ("respondents:10", "y"), "group": ("small_group:20", "y"), "floor": ("threshold:20", "y")}
    spec = large.chart(large.choose(risk_at_most=0.2), large.compare(others))
    steep = "type" in spec["encoding"]["x"]["scale"]
    boxes = []
    for layer in spec["layer"]:
        if "label" in layer["name"]:
            (row,), mark = layer["data"]["values"], layer["mark"]
            x = 720 * (sqrt(row["withheld"]) if steep else row["withheld"]) + mark["dx"]
            y = 400 * (1 - row["risk"]) + mark["dy"]
            wide = 6 * len(row["label"])
            left = x if mark["align"] == "left" else x - wide
            boxes.append((left, y - 6, left + wide, y + 6))
    for i, one in enumerate(boxes):
        assert -10 <= one[0] < one[2] <= 740
        for two in boxes[:i]:
            assert one[2] <= two[0] or two[2] <= one[0] or one[3] <= two[1] or two[3] <= one[1]


def test_an_axis_is_stretched_where_hardly_anything_is_withheld(large: eq.Publication, small: eq.Publication) -> None:
    table = pl.DataFrame({"n": [9, 900, 900], "N": [12, 90_000, 95_000], "y": [1, 80, 90]})
    steep = eq.publication(table, (1, 10)).chart()["encoding"]["x"]
    assert steep["scale"]["exponent"] == 0.5
    assert "square-root" in steep["axis"]["title"]
    assert "type" not in small.chart()["encoding"]["x"]["scale"]


def test_it_can_be_heard(small: eq.Publication) -> None:
    chosen = small.choose(risk_at_most=0.2)
    spec = small.chart(chosen)
    assert chosen.words in spec["description"]
    assert "80\xa0% by random suppression" in spec["description"]


# --- the fit ------------------------------------------------------------------------------------------------------


def test_residuals_of_the_right_prior_are_normal(large: eq.Publication) -> None:
    """Against the beta-binomial law of SciPy: each residual lies between the two ends of its own step."""
    found = large.residuals()
    assert found.misfit.p > 0.05
    assert "The prior fits" in found.words
    n, y = (large.data.column(name).astype(int) for name in ("n", "y"))
    law = stats.betabinom(n, 0.8, 6.0)
    place = stats.norm.cdf(found.cells.to_numpy())
    assert (place >= law.cdf(y - 1) - 1e-9).all()
    assert (place <= law.cdf(y) + 1e-9).all()


def test_a_wrong_prior_is_seen(large: eq.Publication) -> None:
    wrong = eq.publication(large.data.table, (5, 5)).residuals()
    assert "does not fit" in wrong.words
    points = wrong.points()
    assert ((points["observed"] < points["low"]) | (points["observed"] > points["high"])).mean() > 0.5


def test_the_band_holds_95_percent_of_each_order_statistic(small: eq.Publication) -> None:
    """By simulation: 4,000 samples of twelve normal numbers, sorted."""
    points = small.residuals().points()
    drawn = np.sort(np.random.default_rng(3).standard_normal((4000, 12)), axis=1)
    inside = ((drawn > points["low"].to_numpy()) & (drawn < points["high"].to_numpy())).mean(axis=0)
    assert np.abs(inside - 0.95).max() < 4 * np.sqrt(0.95 * 0.05 / 4000)


def test_the_same_residuals_on_every_call(small: eq.Publication) -> None:
    assert small.residuals().cells.equals(small.residuals().cells)


def test_the_chart_of_residuals(small: eq.Publication) -> None:
    found = small.residuals()
    spec = found.chart()
    rows = layers(spec)["best"]["data"]["values"]
    assert [row["observed"] for row in rows] == pytest.approx(sorted(found.cells), abs=1e-4)
    assert found.words in spec["description"]


def test_configurations_have_no_residuals() -> None:
    table = pl.DataFrame({"n": [3, 3], "N": [8, 8], "y": [0, 2], "share": [0.5, 0.5]})
    with pytest.raises(eq.ParameterError, match="holds no domains"):
        eq.publication(table, (1, 10)).residuals()
    assert publish(table, prior=(1, 10), risk_at_most=0.5).residuals is None


# --- words --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.2, "a fifth"),
        (0.2 + 0.009, "about a fifth"),
        (0.212, None),
        (1 / 3, "a third"),
        (0.5, "half"),
        (0.1, "a tenth"),
        (0.109, None),
        (0.0, None),
        (1.0, None),
    ],
)
def test_fractions(share: float, words: str | None) -> None:
    assert fraction(share) == words


def test_what_a_manager_reads(small: eq.Publication) -> None:
    chosen = small.choose(risk_at_most=0.2)
    assert chosen.words == f"{percent(chosen.withheld)} of the data withheld cuts the risk to a fifth."
    assert small.choose(risk_at_most=1).words == "Nothing is withheld: the risk is that of full publication."
    assert small.choose(risk_at_most=0).words == "100\xa0% of the data is withheld; no risk is left."


def test_the_wrong_loss_costs_what_compare_says(small: eq.Publication) -> None:
    """An S ten times too small or too large, where no other loss is named."""
    found = publish(SMALL, prior=(0.5, 1.5), domain="area", risk_at_most=0.2)
    others = {f"uniques(S={s})": (f"uniques:{s}", "y") for s in (1, 100)}
    assert found.alternatives.equals(small.compare(others).at(risk_at_most=0.2))
    named = publish(SMALL, prior=(0.5, 1.5), domain="area", publish_share=0.6, compare=["small_group:5"])
    assert "small_group(S=5)" in named.alternatives["rule"].to_list()
    assert named.alternatives["withheld"].to_list() == pytest.approx([0.4] * named.alternatives.height)
