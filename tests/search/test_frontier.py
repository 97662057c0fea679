"""Frontier: the trials nobody beats, and ties within error."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import equipoise as eq


def trial(risk: float, utility: float, error: float = 0.0, name: str | None = None) -> eq.Trial:
    def interval(value: float) -> tuple[float, float] | None:
        return (value - error, value + error) if error else None

    scores = [
        eq.Score("uniques", risk, "lower", interval=interval(risk)),
        eq.Score("entropy", utility, "higher", interval=interval(utility)),
    ]
    return eq.Trial(eq.Recipe(), scores, name=name)


GRID = st.integers(0, 6).map(lambda i: i / 4)


@given(points=st.lists(st.tuples(GRID, GRID), max_size=25))
def test_nobody_beats_the_frontier(points: list[tuple[float, float]]) -> None:
    """Against the definition: no other trial is at least as good on every score and better on one."""
    trials = [trial(*point) for point in points]
    best = eq.frontier(trials)
    expected = [
        t
        for t, (r, u) in zip(trials, points, strict=True)
        if not any(a <= r and b >= u and (a, b) != (r, u) for a, b in points)
    ]
    assert [id(t) for t in best] == [id(t) for t in expected]
    assert len(best) == len(expected)
    assert best.trials == tuple(trials)


@given(points=st.lists(st.tuples(GRID, GRID, st.sampled_from([0.0, 0.1, 0.3, 0.5])), min_size=1, max_size=15))
@example(points=[(0.0, 0.0, 0.25), (1.0, 0.5, 0.25), (2.0, 1.0, 0.25)])
def test_with_errors_too(points: list[tuple[float, float, float]]) -> None:
    """Trials within error are tied; the frontier holds exactly those that no other beats.

    The example: the first beats the second, the second beats the third, the first does not beat the third.
    """
    trials = [trial(*point) for point in points]
    best = eq.frontier(trials)
    assert [id(t) for t in best] == [id(t) for t in trials if not any(o.beats(t) for o in trials)]


def test_within_error_is_tied() -> None:
    """A difference below the sum of the half widths is no difference."""
    good, near, far = trial(0.10, 9.0, 0.02), trial(0.13, 9.0, 0.02), trial(0.15, 9.0, 0.02)
    assert not good.beats(near)
    assert not near.beats(good)
    assert good.beats(far)
    assert [t in eq.frontier([good, near, far]) for t in (good, near, far)] == [True, True, False]


def test_a_trial_does_not_beat_itself() -> None:
    one = trial(0.1, 9)
    assert not one.beats(one)
    assert not one.beats(trial(0.1, 9))


def test_trials_must_have_the_same_scores() -> None:
    other = eq.Trial(eq.Recipe(), [eq.Score("entropy", 1.0, "higher")])
    with pytest.raises(eq.ParameterError, match="same scores"):
        eq.frontier([trial(0.1, 9), other])


def test_the_table_has_a_row_per_trial() -> None:
    table = eq.frontier([trial(0.1, 9, name="a"), trial(0.2, 8, name="b")]).table()
    assert table.rows() == [("a", 0.1, 9.0, True), ("b", 0.2, 8.0, False)]


def test_an_empty_frontier() -> None:
    assert len(eq.frontier([])) == 0


def test_membership_is_identity() -> None:
    """Two trials with equal scores are two trials."""
    one, two = trial(0.1, 9), trial(0.1, 9)
    best = eq.frontier([one])
    assert one in best
    assert two not in best


@pytest.mark.parametrize("scores", [{"a": eq.Score("x", 1.0, "lower")}, [eq.Score("x", 1.0, "lower")]])
def test_scores_of_a_trial_may_be_given_in_any_holder(scores: Any) -> None:
    assert eq.Trial(eq.Recipe(), scores).scores["x"].value == 1.0


@pytest.mark.parametrize("wide", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_the_frontier_is_that_of_beats(seed: int, wide: float) -> None:
    """Held against the definition, pair by pair: ties, errors of different width, and values that are not there."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 12, (150, 3)) / 12
    values[rng.random((150, 3)) < 0.02] = np.nan
    errors = rng.random((150, 3)) * wide
    trials = [
        eq.Trial(
            eq.Recipe(),
            eq.Scores(
                eq.Score(name, float(v), better, interval=(float(v - e), float(v + e)) if wide else None)
                for name, better, v, e in zip("abc", ("lower", "higher", "lower"), row, error, strict=True)
            ),
        )
        for row, error in zip(values, errors, strict=True)
    ]
    slow = [trial for trial in trials if not any(other.beats(trial) for other in trials)]
    found = eq.frontier(trials)
    assert [id(trial) for trial in found] == [id(trial) for trial in slow]
    assert 0 < len(slow) < len(trials)


def test_few_trials_or_none() -> None:
    assert len(eq.frontier([])) == 0
    alone = eq.Trial(eq.Recipe(), eq.Scores([eq.Score("a", 1.0, "lower")]))
    assert list(eq.frontier([alone])) == [alone]
