"""Policy: limits as written, reasons in full, and the choice inside them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.policies.policy import Limit


def trial(**values: float) -> eq.Trial:
    lower = ("uniques", "risk", "other")
    return eq.Trial(eq.Recipe(), [eq.Score(n, v, "lower" if n in lower else "higher") for n, v in values.items()])


@pytest.mark.parametrize(
    ("text", "sign", "bound"),
    [
        ("< 0.02", "<", 0.02),
        ("<=0.02", "<=", 0.02),
        (" >  7.5 ", ">", 7.5),
        (">= -1e-3", ">=", -0.001),
        ("< 2%", "<", 0.02),
        ("< .5 %", "<", 0.005),
        ("< 5.", "<", 5.0),
    ],
)
def test_limits_as_people_write_them(text: str, sign: str, bound: float) -> None:
    limit = Limit.of("x", text)
    assert (limit.sign, limit.bound) == (sign, pytest.approx(bound))


@pytest.mark.parametrize("text", ["0.02", "=< 1", "< a", "<", "< 1.2.3", "< 1 2", "", "!= 1", "< nan", "< ."])
def test_limits_that_cannot_be_read(text: str) -> None:
    """The message names the score and shows how to write it."""
    with pytest.raises(eq.ParameterError, match="Cannot read the limit"):
        eq.Policy({"uniques": text})


def test_two_limits_on_one_score() -> None:
    policy = eq.Policy({"entropy": "> 7.5 and <= 10"})
    assert policy.judge(trial(entropy=10.0)).accepted
    assert not policy.judge(trial(entropy=10.1)).accepted
    assert not policy.judge(trial(entropy=7.5)).accepted


def test_a_percentage_where_a_share_is_due_is_refused_with_a_hint() -> None:
    """House: a bare number above 1 where a share is due is refused; '< 2' would accept everything."""
    share = eq.Trial(eq.Recipe(), [eq.Score("uniques", 0.3, "lower", unit="share of records")])
    with pytest.raises(eq.ParameterError, match=r"Write 2 % as 0.02"):
        eq.Policy({"uniques": "< 2"}).judge(share)
    assert not eq.Policy({"uniques": "< 2%"}).judge(share).accepted
    assert eq.Policy({"uniques": "<= 1"}).judge(share).accepted


def test_every_limit_has_its_reason() -> None:
    verdict = eq.Policy({"uniques": "< 0.02", "entropy": "> 7.5"}).judge(trial(uniques=0.05, entropy=7.0))
    assert verdict.reasons == (
        "uniques is 0.05, outside the limit (below 0.02)",
        "entropy kept is 7, outside the limit (above 7.5)",
    )


def test_scores_that_are_not_there() -> None:
    with pytest.raises(eq.ParameterError, match="No score named 'entropy'"):
        eq.Policy({"entropy": "> 1"}).judge(trial(uniques=0.1))


@pytest.mark.parametrize("name", ["uniques(k=3)", "uniques:3", "Uniques(3)", "uniques( k = 3 )"])
def test_a_limit_may_spell_its_measure_in_any_way(name: str) -> None:
    """What `measures()` makes of a limit's name is what `judge` looks for."""
    both = eq.Trial(eq.Recipe(), [eq.Score("uniques", 0.1, "lower"), eq.Score("uniques(k=3)", 0.3, "lower")])
    verdict = eq.Policy({name: "< 0.2"}).judge(both)
    assert not verdict.accepted
    assert "0.3" in verdict.reasons[0]


def test_no_number_is_no_acceptance() -> None:
    """A score that could not be computed is NaN: it meets no limit."""
    for sign in "<>":
        assert not eq.Policy({"uniques": f"{sign} 0.5"}).judge(trial(uniques=float("nan"))).accepted


def test_no_limits_accept_everything() -> None:
    assert eq.Policy().judge(trial(uniques=1.0)).accepted
    assert eq.Policy().choose([trial(uniques=1.0, entropy=3.0), trial(uniques=0.5, entropy=2.0)]).scores[
        "entropy"
    ].value == pytest.approx(3.0)


def test_ties_go_to_the_other_side_then_to_the_first() -> None:
    trials = [trial(uniques=0.01, entropy=9), trial(uniques=0.005, entropy=9), trial(uniques=0.005, entropy=9)]
    assert eq.Policy({"uniques": "< 0.02"}).choose(trials) is trials[1]


def test_scores_with_limits_decide_before_others() -> None:
    """Another utility score that has no limit breaks ties only."""
    trials = [trial(other_utility=5, entropy=8), trial(other_utility=1, entropy=9)]
    assert eq.Policy({"entropy": "> 1"}).choose(trials) is trials[1]


@pytest.mark.parametrize("bad", [{"prefer": "speed"}, {"limits": {"uniques": "about 1"}}])
def test_unfit_policies(bad: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        eq.Policy(**bad)


def test_what_differs_by_rounding_alone_is_tied() -> None:
    """The last digits of a sum differ between processors: the other side decides, as in any tie."""
    trials = [trial(uniques=0.02, entropy=3.0000000000000004), trial(uniques=0.01, entropy=3.0)]
    assert eq.Policy().choose(trials) is trials[1]


def test_nothing_to_choose_from() -> None:
    with pytest.raises(eq.ParameterError, match="no trials"):
        eq.Policy().choose([])


def test_measures_of_the_limits() -> None:
    policy = eq.Policy({"uniques(k=2)": "< 0.1", "entropy": "> 1"})
    assert policy.measures() == (eq.risk.Uniques(2), eq.utility.Entropy())
    with pytest.raises(eq.ParameterError, match="Did you mean 'uniques'"):
        eq.Policy({"uniquess": "< 0.1"}).measures()


MILLIONTHS = st.tuples(st.integers(0, 10**6), st.integers(0, 10**7)).map(lambda pair: (pair[0] / 1e6, pair[1] / 1e6))
"""Risks and utilities that are equal, or differ by more than rounding."""
POINTS = st.lists(MILLIONTHS, min_size=1, max_size=20)


@given(points=POINTS, risk=st.floats(0, 1), utility=st.floats(0, 10), prefer=st.sampled_from(["utility", "risk"]))
def test_the_choice_against_a_plain_search(
    points: list[tuple[float, float]], risk: float, utility: float, prefer: Any
) -> None:
    """Of the points in the rectangle the best by the side preferred, or a refusal."""
    trials = [trial(uniques=r, entropy=u) for r, u in points]
    policy = eq.Policy({"uniques": f"<= {risk!r}", "entropy": f">= {utility!r}"}, prefer)
    inside = [(r, u) for r, u in points if r <= risk and u >= utility]
    if not inside:
        with pytest.raises(eq.RefusedError):
            policy.choose(trials)
        return
    scores = policy.choose(trials).scores
    best = min(inside, key=lambda p: (-p[1], p[0]) if prefer == "utility" else (p[0], -p[1]))
    assert (scores["uniques"].value, scores["entropy"].value) == best


@given(points=POINTS)
def test_without_limits_the_choice_is_on_the_frontier(points: list[tuple[float, float]]) -> None:
    trials = [trial(uniques=r, entropy=u) for r, u in points]
    assert eq.Policy().choose(trials) in eq.frontier(trials)


def test_the_nearest_is_named_by_relative_shortfall() -> None:
    trials = [trial(uniques=0.03, entropy=8), trial(uniques=0.02, entropy=1)]
    with pytest.raises(eq.RefusedError, match=r"uniques 0\.03, limit below 0\.02"):
        eq.Policy({"uniques": "< 0.02", "entropy": "> 7.5"}).choose(trials)
