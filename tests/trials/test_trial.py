"""Trials: names, words, and the mean over draws."""

import pytest

import equipoise as eq
from equipoise.trials.trial import over_draws


def scores(value: float, number: float | None = None) -> eq.Scores:
    return eq.Scores([eq.Score("x", value, "lower", number=number, unit="share of records")])


def test_one_draw_is_itself() -> None:
    trial = over_draws(eq.Recipe(), [scores(0.1)])
    assert (trial.scores["x"].value, trial.scores["x"].interval, trial.draws) == (0.1, None, ())


def test_the_mean_and_its_interval_by_hand() -> None:
    """0.1, 0.2, 0.3: mean 0.2, s = 0.1, t(0.975, 2) = 4.302653: half width 0.248414."""
    trial = over_draws(eq.Recipe(), [scores(0.1, 10), scores(0.2, 20), scores(0.3, 30)])
    score = trial.scores["x"]
    assert score.value == pytest.approx(0.2)
    assert score.number == pytest.approx(20)
    assert score.error == pytest.approx(0.248414, abs=1e-6)
    assert [d["x"].value for d in trial.draws] == [0.1, 0.2, 0.3]
    assert score.unit == "share of records"


def test_words() -> None:
    recipe = eq.Recipe([eq.masks.Recode("age", "5"), eq.masks.TopCode("pay", 100_000)])
    assert eq.Trial(recipe, scores(1)).words() == "age at level 5; pay above 100,000 replaced by their mean"
    assert eq.Trial(recipe, scores(1), name="point 6").words() == "point 6"


def test_names_of_scores_are_unique() -> None:
    with pytest.raises(eq.ParameterError, match="share a name"):
        eq.Trial(eq.Recipe(), [eq.Score("x", 1.0, "lower")] * 2)  # type: ignore[arg-type]
