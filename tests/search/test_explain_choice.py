"""The choice: what binds, what the next step buys, what was refused, and how firm it is; by hand and by enumeration."""

import json
from dataclasses import replace

import numpy as np
import pytest

import equipoise as eq
from equipoise.search.explain_choice import choice, refusal
from equipoise.search.ranking import Spread, ahead_of, best
from equipoise.trials.trial import Trial, over_draws


def scores(uniques: float, bits: float, **more: float) -> eq.Scores:
    return eq.Scores(
        [
            eq.Score("uniques", uniques, "lower", unit="share of records"),
            eq.Score("entropy", bits, "higher", unit="bits per record"),
            *(eq.Score(name, value, "higher") for name, value in more.items()),
        ]
    )


def trial(name: str, uniques: float, bits: float, **more: float) -> Trial:
    return Trial(eq.Recipe(), scores(uniques, bits, **more), name=name)


TRIALS = [
    trial("raw", 0.40, 9.0),
    trial("fine", 0.023, 7.4),
    trial("middle", 0.020, 7.0),
    trial("poor", 0.019, 5.0),
    trial("coarse", 0.001, 4.0),
]
POLICY = eq.Policy({"uniques": "<= 0.02", "entropy": "> 3"})


def test_the_chosen_trial_is_that_of_the_policy() -> None:
    made = choice(TRIALS, POLICY)
    assert made.trial is POLICY.choose(TRIALS)
    assert [t.name for t in made.accepted] == ["middle", "poor", "coarse"]


def test_what_binds() -> None:
    """A limit binds where without it another trial would be chosen, however near the value is."""
    uniques, entropy = choice(TRIALS, POLICY).margins
    assert (uniques.binds, entropy.binds) == (True, False)
    assert (uniques.room, entropy.room) == (0.0, pytest.approx(4 / 3))
    assert uniques.words() == "The limit uniques <= 0.02 binds: the value is 0.02, 0 % from it."


def test_what_the_next_steps_buy() -> None:
    """Neighbours on the frontier only, nearest first: more utility, then less risk."""
    steps = choice(TRIALS, POLICY).steps
    assert [step.trial.name for step in steps] == ["fine", "raw", "poor", "coarse"]
    assert steps[0].words() == "0.4 bits more entropy for 0.3 % more uniques: fine, but it breaks uniques <= 0.02."
    assert steps[3].words() == "1.9 % less uniques for 3 bits less entropy: coarse."
    assert [len(step.breaks) for step in steps] == [1, 1, 0, 0]


def test_what_was_refused_and_how_far_a_limit_would_move() -> None:
    made = choice(TRIALS, POLICY)
    assert [(limit.score, every, alone) for limit, every, alone in made.refused] == [
        ("uniques", 2, 2),
        ("entropy", 0, 0),
    ]
    (move,) = made.moves
    assert (move.trial.name, move.bound) == ("fine", 0.023)


def test_a_refusal_names_each_limit_and_the_nearest_trial() -> None:
    policy = eq.Policy({"uniques": "< 0.01", "entropy": "> 6.5"})
    said = refusal(TRIALS, policy)
    assert said.startswith(
        "None of 5 candidates meets the limits. Nearest is 'coarse', which breaks: entropy kept 4, limit above 6.5."
    )
    assert "If the limit of uniques were at most 2 % instead of below 1 %, 'middle' would pass" in said
    assert "if the limit of entropy kept were at least 4 instead of above 6.5, 'coarse' would pass." in said
    assert choice(TRIALS, policy).trial is None
    assert choice(TRIALS, policy).words() == (said,)


def test_a_refusal_where_one_limit_is_not_enough() -> None:
    said = refusal(TRIALS[:1], eq.Policy({"uniques": "< 0.01", "entropy": "> 9.5"}))
    assert said.startswith("The release does not meet the limits.")
    assert said.endswith("more than one would have to be moved.")


def test_a_refusal_quotes_no_recipe_that_would_be_cut() -> None:
    said = refusal([trial("x" * 80, 0.02, 4.0)], eq.Policy({"entropy": "> 6.5"}))
    assert said.startswith("The release does not meet the limits: the nearest breaks entropy kept 4, limit above 6.5.")
    assert said.endswith("If the limit of entropy kept were at least 4 instead of above 6.5, a candidate would pass.")
    assert "xxx" not in said


def test_reasons_of_limits_are_told() -> None:
    policy = eq.Policy({"entropy": {"limit": "> 9.5", "reason": "tables by age"}})
    assert "limit above 9.5 (tables by age)" in refusal(TRIALS, policy)


def test_how_firm() -> None:
    """Every limit a tenth tighter and looser, the other side, each utility alone: by hand."""
    trials = [trial("a", 0.021, 7.4, kept=1.0), trial("b", 0.019, 7.0, kept=2.0), trial("c", 0.001, 4.0, kept=3.0)]
    made = choice(trials, eq.Policy({"uniques": "<= 0.02"}))
    found = {shift.question: (shift.trial.name if shift.trial else None, shift.same) for shift in made.shifts}
    assert found == {
        "With uniques <= 0.018 instead of 0.02": ("c", False),
        "With uniques <= 0.022 instead of 0.02": ("a", False),
        "With risk favoured inside the limits": ("c", False),
        "By Entropy kept alone": ("b", True),
        "By Kept alone": ("c", False),
    }
    assert made.firm == pytest.approx(1 / 5)


def test_shares_are_not_moved_beyond_one() -> None:
    made = choice(TRIALS, eq.Policy({"uniques": "< 0.95"}))
    assert [s.question for s in made.shifts if "instead" in s.question] == ["With uniques < 0.855 instead of 0.95"]


def drawn(name: str, *pairs: tuple[float, float]) -> Trial:
    return replace(over_draws(eq.Recipe(), [scores(*pair) for pair in pairs]), name=name)


def test_draws_and_ties() -> None:
    """Trials within error are tied; draw by draw the choice may change."""
    one = drawn("one", (0.01, 7.0), (0.01, 7.2), (0.01, 7.1))
    two = drawn("two", (0.01, 7.1), (0.01, 7.0), (0.01, 7.1))
    far = drawn("far", (0.01, 3.0), (0.01, 3.1), (0.01, 3.2))
    made = choice([one, two, far], eq.Policy({"uniques": "< 0.02"}))
    assert made.trial is one
    assert made.ties == (two,)
    by_draw = [shift.trial.name for shift in made.shifts if shift.trial and shift.question.startswith("By draw")]
    assert by_draw == ["two", "one", "one"]
    assert "Tied within error: two." in made.words()


def test_the_release_is_one_whose_next_draw_is_inside() -> None:
    """Inside in expectation is not enough where every other draw is outside; without such a trial it has to be."""
    edge = drawn("edge", (0.019, 7.0), (0.0205, 7.0), (0.0195, 7.0))
    safe = drawn("safe", (0.012, 6.0), (0.0121, 6.0), (0.0119, 6.0))
    policy = eq.Policy({"uniques": "< 0.02"})
    assert policy.choose([edge, safe]) is edge
    assert ahead_of([edge, safe], policy) is safe
    assert ahead_of([edge], policy) is edge
    made = choice([edge, safe], policy)
    assert (made.trial, made.passed_over) == (safe, (edge,))
    assert "1 would be better and meet the limits on average" in made.words()[1]
    assert tuple(Spread([one]).likely(policy.parsed, one) for one in (edge, safe, TRIALS[0])) == (False, True, True)


def test_few_draws_that_agree_by_chance_are_not_sure() -> None:
    """Two equal draws say nothing about the next; the others do."""
    lucky = drawn("lucky", (0.0199, 7.0), (0.0199, 7.0))
    others = [lucky, drawn("loud", (0.004, 5.0), (0.012, 5.0)), drawn("louder", (0.001, 5.0), (0.011, 5.0))]
    policy = eq.Policy({"uniques": "< 0.02"})
    assert Spread([lucky]).likely(policy.parsed, lucky)
    assert not Spread(others).likely(policy.parsed, lucky)


def test_the_next_draw_is_inside_as_often_as_said() -> None:
    """Whether a trial passes does not depend on its next draw, which is inside with probability P(z < 2) = 0.977."""
    rng = np.random.default_rng(1)
    policy, passed, inside = eq.Policy({"entropy": "< 2"}), 0, 0
    for _ in range(2000):
        values = rng.normal(0, 1, 6)
        made = drawn("x", *((0.0, float(v)) for v in values[:5]))
        if Spread([made]).likely(policy.parsed, made):
            passed += 1
            inside += bool(values[5] < 2)
    assert passed > 500
    assert inside / passed == pytest.approx(0.977, abs=0.012)


def test_as_plain_data() -> None:
    plain = choice(TRIALS, POLICY).to_plain()
    assert json.loads(json.dumps(plain))["chosen"] == "middle"
    assert plain["steps"][0]["changes"] == pytest.approx({"entropy": 0.4, "uniques": 0.003})
    assert plain["limits"][0]["binds"] is True


def test_no_trials() -> None:
    with pytest.raises(eq.ParameterError, match="no trials"):
        choice([], POLICY)
    assert best([], POLICY, ()) is None


def test_a_refusal_says_what_the_nearest_release_keeps_and_costs() -> None:
    scores = [eq.Score("uniques", 0.5), eq.Score("overlap", 0.481, "higher", unit="share of the interval")]
    blank = eq.Score("blank_keys", 0.12, "lower", unit="share of key values", side="utility")
    near = Trial(eq.Recipe(), eq.Scores([*scores, blank]), name="near")
    said = refusal([near], eq.Policy({"uniques": "< 0.01"}))
    assert "It would keep overlap of users' intervals 48.1 %; and cost blank keys 12 %." in said
