"""The risk-utility map: what is drawn, where, and on which scale."""

import json
import random

import pytest

from equipoise.ground.errors import ParameterError
from equipoise.methods.score import Score
from equipoise.policies.policy import Policy
from equipoise.presentation import style
from equipoise.presentation.numbers import in_words, number, title, value_text
from equipoise.presentation.svg import static_chart
from equipoise.recipe.recipe import Recipe
from equipoise.search import risk_utility_map as charts
from equipoise.search.frontier import frontier
from equipoise.search.risk_utility_map import axes, risk_utility_map, undominated
from equipoise.trials.trial import Trial

SHARE = "share of records"


def trial(risk, utility, name=None, interval=None, **more):
    scores = [
        Score("uniques", risk, "lower", unit=SHARE, interval=interval),
        Score("entropy", utility, "higher", unit="bits per record"),
        *(Score(key, value, "lower", unit=SHARE) for key, value in more.items()),
    ]
    return Trial(Recipe(), scores, name=name)


TRIALS = [trial(0.001, 7, "a"), trial(0.01, 9, "b"), trial(0.02, 8, "c"), trial(0.05, 11, "d")]
ENDS = {"original": trial(0.18, 12, "original"), "nothing": trial(0.0, 0, "no data")}
POLICY = Policy({"uniques": "< 0.02", "entropy": "> 7.5"})


def whole(**more):
    return risk_utility_map(frontier(TRIALS), policy=POLICY, chosen=TRIALS[1], **ENDS, **more)


def layers(spec):
    return {layer["name"]: layer for layer in spec["layer"]}


def rows(spec, name):
    return layers(spec)[name]["data"]["values"]


def names(spec, layer):
    return {row["recipe"] for row in rows(spec, layer)}


def test_is_plain_json_of_vega_lite_6_with_a_name_per_layer():
    spec = whole()
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec
    assert spec["$schema"].endswith("/vega-lite/v6.json")
    assert len(layers(spec)) == len(spec["layer"])


def test_every_trial_is_one_point_grey_or_on_the_frontier():
    spec = whole()
    assert names(spec, "tried") == {"c"}
    assert names(spec, "best") == {"a", "b", "d"}
    assert [row["utility"] for row in rows(spec, "best_line")] == [11, 9, 7]
    assert layers(spec)["tried"]["mark"]["color"] == style.GREY
    assert layers(spec)["best"]["mark"]["color"] == style.BLUE


def test_the_frontier_is_that_of_the_two_scores_drawn():
    third = [trial(0.01, 9, "kept", other=0.5), trial(0.02, 8, "beaten", other=0.1)]
    assert len(frontier(third)) == 2
    assert names(risk_utility_map(frontier(third)), "best") == {"kept"}
    assert names(risk_utility_map(frontier(third), risk="other"), "best") == {"kept", "beaten"}


def test_sorting_gives_the_same_frontier_as_comparing_all():
    draw = random.Random(1)
    for _ in range(20):
        tried = [trial(draw.randint(0, 12) / 100, draw.randint(0, 12)) for _ in range(40)]
        found = undominated(tried, axes(tried[0].scores))
        assert {id(t) for t in found} == {id(t) for t in frontier(tried).best}


def test_the_release_and_both_ends_are_marked_and_named():
    spec = whole()
    assert names(spec, "chosen") == {"b"}
    assert [row["label"] for row in rows(spec, "chosen_label")] == ["released"]
    assert names(spec, "ends") == {"original", "no data"}
    assert rows(spec, "end_label")[0]["label"].startswith("original")
    assert rows(spec, "far_end_label")[0]["label"].startswith("no data")


def test_the_rectangle_runs_from_the_bounds_to_the_edges():
    spec = whole()
    assert rows(spec, "rectangle") == [{"utility": 7.5, "risk": 0.02}]
    assert layers(spec)["rectangle"]["encoding"] == {"x2": {"value": "width"}, "y2": {"value": "height"}}
    assert rows(spec, "risk_bound_label_0")[0]["label"] == "Uniques < 2\xa0%"
    assert rows(spec, "utility_bound_label_0")[0]["label"] == "Entropy kept > 7.5"


def test_a_limit_on_one_side_is_a_band_and_two_on_one_score_close_it():
    band = risk_utility_map(frontier(TRIALS), policy=Policy({"uniques": "< 0.02"}))
    assert layers(band)["rectangle"]["encoding"]["x"] == {"value": 0}
    closed = risk_utility_map(frontier(TRIALS), policy=Policy({"entropy": "> 7 and < 10"}))
    assert rows(closed, "rectangle") == [{"utility": 7.0, "utility_far": 10.0}]
    assert layers(closed)["rectangle"]["encoding"]["x2"] == {"field": "utility_far"}
    assert "rectangle" not in layers(risk_utility_map(frontier(TRIALS), policy=Policy()))


def test_the_scale_gives_room_to_small_risks_and_free_standing_ends():
    y = whole()["encoding"]["y"]
    assert (y["scale"]["type"], y["scale"]["exponent"]) == ("pow", 0.5)
    assert y["scale"]["domain"][0] < 0
    assert y["scale"]["domain"][1] > 0.18
    assert {0.0, 0.01, 0.02, 0.05, 0.1} <= set(y["axis"]["values"])
    assert y["axis"]["format"].endswith("%")
    assert y["axis"]["title"] == "Uniques (share of records)"
    assert whole()["encoding"]["x"]["axis"]["title"] == "Entropy kept (bits per record)"


def test_a_utility_that_is_better_low_runs_backwards_so_that_right_is_still_useful():
    lost = [
        Trial(Recipe(), [Score("uniques", r, "lower"), Score("bias", u, "lower", side="utility")])
        for r, u in [(0.0, 9), (0.1, 1)]
    ]
    spec = risk_utility_map(frontier(lost), policy=Policy({"bias": "< 5"}))
    assert spec["encoding"]["x"]["scale"]["reverse"] is True
    assert layers(spec)["rectangle"]["encoding"]["x2"] == {"value": "width"}


def test_an_axis_of_shares_has_no_tick_number_or_line_beyond_0_and_100_percent():
    def shares(*values):
        return [
            Trial(Recipe(), [Score("uniques", 1 - v, "lower", unit=SHARE), Score("overlap", v, "higher", unit="share")])
            for v in values
        ]

    spec = risk_utility_map(frontier(shares(0.72, 0.98)), original=shares(1.0)[0])
    axis = spec["encoding"]["x"]["axis"]
    assert spec["encoding"]["x"]["scale"]["domain"][1] > 1  # room for a label
    assert axis["domain"] is False
    assert axis["labelExpr"].startswith(style.NO_SHARE)
    picture = static_chart(spec)
    assert ">100 %<" in picture
    assert ">110 %<" not in picture
    assert ">105 %<" not in picture
    beyond = risk_utility_map(frontier(shares(0.72, 1.2)))["encoding"]["x"]["axis"]
    assert "labelExpr" not in beyond  # what lies beyond must be told


def test_scores_below_zero_get_a_linear_scale():
    spec = risk_utility_map(frontier([trial(-0.5, -3), trial(0.5, 3)]))
    assert "type" not in spec["encoding"]["y"]["scale"]
    assert spec["encoding"]["x"]["scale"]["domain"][0] < -3


def test_intervals_are_error_bars():
    spec = risk_utility_map(frontier([trial(0.01, 9, interval=(0.008, 0.012)), *TRIALS[:1]]))
    (bar,) = rows(spec, "risk_error")
    assert (bar["risk_low"], bar["risk_high"]) == (0.008, 0.012)
    assert "utility_error" not in layers(spec)
    assert "risk_error" not in layers(whole())


def test_tooltips_name_the_recipe_and_every_score_in_words():
    spec = whole()
    heads = [field["title"] for field in layers(spec)["best"]["encoding"]["tooltip"]]
    assert heads == ["title", "Uniques", "Entropy kept"]
    row = next(row for row in rows(spec, "best") if row["recipe"] == "b")
    assert (row["s0"], row["s1"]) == ("1\xa0% of records", "9 bits per record")


def test_names_of_columns_are_never_fields():
    hostile = Score("p['x'].y(z='\\\"')", 0.1, "lower", unit=SHARE)
    spec = risk_utility_map(frontier([Trial(Recipe(), [hostile, Score("entropy", 1, "higher")], name="{{x}}")]))
    fields = {field["field"] for layer in spec["layer"] for field in layer["encoding"].get("tooltip", ())}
    assert fields == {"recipe", "s0", "s1"}


def test_the_limited_scores_are_drawn_unless_others_are_named():
    both = [trial(0.01, 9, other=0.5)]
    assert axes(both[0].scores).risk.name == "uniques"
    assert axes(both[0].scores, policy=Policy({"other": "< 1"})).risk.name == "other"
    assert axes(both[0].scores, risk="uniques", policy=Policy({"other": "< 1"})).risk.name == "uniques"


@pytest.mark.parametrize(
    ("scores", "side"), [([Score("uniques", 0, "lower")], "utility"), ([Score("entropy", 0, "higher")], "risk")]
)
def test_a_missing_side_is_said(scores, side):
    with pytest.raises(ParameterError, match=f"no {side} score"):
        risk_utility_map(frontier([Trial(Recipe(), scores)]))


def test_nothing_to_draw_is_said():
    with pytest.raises(ParameterError, match="no trials"):
        risk_utility_map(frontier([]))
    with pytest.raises(ParameterError, match="finite"):
        risk_utility_map(frontier([trial(float("nan"), 1)]))


def test_trials_without_a_finite_score_are_left_out():
    spec = risk_utility_map(frontier([*TRIALS, trial(float("nan"), 9, "lost"), trial(0.1, float("inf"), "lost")]))
    json.dumps(spec, allow_nan=False)
    assert "lost" not in names(spec, "tried") | names(spec, "best")


def test_too_many_points_are_thinned_and_the_frontier_is_kept():
    many = [trial(0.5 + i / 100_000, 1, "beaten") for i in range(5_000)]
    spec = risk_utility_map(frontier([*many, *TRIALS]))
    assert names(spec, "best") == {"a", "b", "d"}
    assert spec["usermeta"] == {"tried": 5_004, "drawn": len(rows(spec, "tried")) + len(rows(spec, "best"))}
    assert len(rows(spec, "tried")) <= charts.MAX_DRAWN_TRIALS


def test_the_frontier_makes_its_own_map():
    assert names(frontier(TRIALS).chart(), "best") == {"a", "b", "d"}


def test_the_description_is_one_sentence():
    said_aloud = whole()["description"]
    assert said_aloud.startswith("Risk-utility map of 4 candidates")
    assert "the release is at 9 and 1\xa0%" in said_aloud


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (10.7023, "10.7"), (999.6, "1,000"), (12345.6, "12,346"), (-1.5, "−1.5"), (float("nan"), "not known")],
)
def test_numbers_for_people(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0126, "1.26"), (0.1762, "17.6"), (0.00406, "0.41"), (0.000976, "0.098"), (1, "100"), (0, "0")],
)
def test_shares_in_percent(share, text):
    assert value_text(share, SHARE) == f"{text}\xa0%"


def test_scores_in_words():
    assert title("attribute_disclosure(sensitive='cost', range=50.0)") == (
        "Attribute disclosure (sensitive = cost, range = 50)"
    )
    assert in_words(Score("uniques", 0.01, "lower", unit=SHARE, interval=(0.005, 0.015))) == (
        "1\xa0% of records (between 0.5\xa0% and 1.5\xa0%)"
    )
