"""What a release was chosen from: the candidates near it, why it is the one, and the list of all trials."""

from collections.abc import Callable, Sequence
from typing import Any

from equipoise.methods.score import Score
from equipoise.policies.policy import Policy
from equipoise.presentation.numbers import number, said, title
from equipoise.releases.report_facts import Report
from equipoise.search.explain_choice import choice
from equipoise.search.risk_utility_map import Axes, undominated
from equipoise.trials.trial import Trial

Facts = dict[str, Any]
MOST_CANDIDATES, MOST_TRIALS, MOST_WEIGHED = 20, 500, 10_000


def weighed(report: Report) -> Facts:
    """What the next steps would buy, how firm the choice is, and which limits bind; nothing where another was released.

    Left out of more than ten thousand trials. O(trials x frontier).
    """
    trials, limits = report.frontier.trials, report.policy.parsed
    made = choice(trials, report.policy) if limits and 1 < len(trials) <= MOST_WEIGHED else None
    if made is None or made.trial is None or made.trial.recipe != report.chosen.recipe:
        return {"steps": [], "shifts": [], "firm": "", "binds": [False] * len(limits)}
    changed = [shift.words() for shift in made.shifts if not shift.same]
    asked = len(made.shifts)
    return {
        "steps": [step.words() for step in made.steps],
        "shifts": changed,
        "firm": f"The choice stays the same in {asked - len(changed)} of {asked} variations of the question",
        "binds": [found.binds for found in made.margins],
    }


def appendix(report: Report) -> Facts:
    """Every trial with every score, the first 500 of them."""
    released = report.chosen.recipe
    return every_trial(report.frontier.trials, report.policy, lambda t: t.name is None and t.recipe == released)


def every_trial(
    trials: Sequence[Trial], policy: Policy, marked: Callable[[Trial], bool], name: Callable[[Score], str] | None = None
) -> Facts:
    """The same of any trials; `marked` says which is pointed out, `name` how a score is called."""
    called = name or (lambda score: title(score.name))
    return {
        "heads": [(called(score), score.better) for score in trials[0].scores],
        "rows": [
            {
                "place": place,
                "recipe": trial.words(),
                "scores": [_score(score) for score in trial.scores],
                "inside": bool(policy.judge(trial)),
                "marked": marked(trial),
            }
            for place, trial in enumerate(trials[:MOST_TRIALS], start=1)
        ],
        "tried": number(len(trials)),
        "cut": len(trials) > MOST_TRIALS,
        "limited": bool(policy.parsed),
    }


def _score(score: Score) -> str:
    """A value, and half the width of its interval where draws differ."""
    value = said(score.value, score.unit)
    return f"{value} ± {said(score.error, score.unit)}" if score.error else value


def candidates(report: Report, shown: Axes) -> Facts:
    """How many were tried, and those on the frontier that are nearest to the release."""
    trials = report.frontier.trials
    best = undominated(trials, shown)
    place = next((i for i, trial in enumerate(best) if trial.recipe == report.chosen.recipe), len(best) // 2)
    start = max(0, min(place - MOST_CANDIDATES // 2, len(best) - MOST_CANDIDATES))
    return {
        "why": why(report, shown),
        "tried": number(len(trials)),
        "inside": number(sum(bool(report.policy.judge(trial)) for trial in trials)),
        "best": number(len(best)),
        "cut": len(best) > MOST_CANDIDATES,
        "limited": bool(report.policy.parsed),
        "heads": [title(shown.risk.name), title(shown.utility.name)],
        "rows": [_candidate(trial, report, shown) for trial in best[start : start + MOST_CANDIDATES]],
    }


def why(report: Report, shown: Axes) -> str:
    """Why this one: what it has most of among those inside the limits, and what the next best has."""
    inside = [t for t in report.frontier.trials if report.policy.judge(t)] if report.policy.parsed else []
    rivals = [t for t in inside if t.recipe != report.chosen.recipe]
    if not rivals:
        return "It is the only candidate inside the limits." if inside else ""
    favour = shown.utility if report.policy.prefer == "utility" else shown.risk
    ranked = sorted(rivals, key=lambda t: _rank(t, favour))
    others = [t for t in ranked if t.recipe.family != report.chosen.recipe.family]
    name = title(favour.name)
    text = (
        f"Of the {len(inside):,} candidates inside the limits it is the best by {name} ({_is(report.chosen, favour)})"
    )
    text += f"; the next is “{ranked[0].words()}” ({_is(ranked[0], favour)})"
    if others and others[0] is not ranked[0]:
        text += f", and the best of another method “{others[0].words()}” ({_is(others[0], favour)})"
    return text + "."


def _rank(trial: Trial, favour: Score) -> float:
    value = trial.scores.named(favour.name).value
    return value if favour.better == "lower" else -value


def _is(trial: Trial, favour: Score) -> str:
    return said(trial.scores.named(favour.name).value, favour.unit)


def _candidate(trial: Trial, report: Report, shown: Axes) -> Facts:
    return {
        "recipe": trial.words(),
        "scores": [said(score.value, score.unit) for score in shown.of(trial)],
        "inside": bool(report.policy.judge(trial)),
        "released": trial.name is None and trial.recipe == report.chosen.recipe,
    }
