"""Report section on the choice of a release: candidates on the frontier, the reason, and the list of all trials."""

from collections.abc import Callable, Sequence

from equipoise.doors.report.page_parts import Facts, with_error
from equipoise.methods.score import Score
from equipoise.policies.policy import Policy
from equipoise.presentation.numbers import number, title, value_text
from equipoise.releases.report_facts import Report
from equipoise.search.explain_choice import choice
from equipoise.search.risk_utility_map import Axes, undominated
from equipoise.trials.trial import Trial

MAX_CANDIDATE_ROWS, MAX_TRIAL_ROWS, MAX_WEIGHED_TRIALS = 20, 500, 10_000


def choice_facts(report: Report) -> Facts:
    """What the next trials on the frontier would gain, how stable the choice is, and which limits bind.

    Empty where another trial was released, or for more than ten thousand trials. O(trials x frontier).
    """
    trials, limits = report.frontier.trials, report.policy.parsed
    decision = choice(trials, report.policy) if limits and 1 < len(trials) <= MAX_WEIGHED_TRIALS else None
    if decision is None or decision.trial is None or decision.trial.recipe != report.chosen.recipe:
        return {"steps": [], "shifts": [], "firm": "", "binds": [False] * len(limits)}
    changed = [shift.words() for shift in decision.shifts if not shift.same]
    variations = len(decision.shifts)
    return {
        "steps": [step.words() for step in decision.steps],
        "shifts": changed,
        "firm": f"The choice stays the same in {variations - len(changed)} of {variations} variations of the question",
        "binds": [margin.binds for margin in decision.margins],
    }


def appendix(report: Report) -> Facts:
    """All trials with all scores, 500 rows at most."""
    released = report.chosen.recipe
    return every_trial(report.frontier.trials, report.policy, lambda t: t.name is None and t.recipe == released)


def every_trial(
    trials: Sequence[Trial], policy: Policy, marked: Callable[[Trial], bool], name: Callable[[Score], str] | None = None
) -> Facts:
    """Any trials with their scores; `marked` selects the highlighted one, `name` gives the heading of a score."""
    called = name or (lambda score: title(score.name))
    return {
        "heads": [(called(score), score.better) for score in trials[0].scores],
        "rows": [
            {
                "place": place,
                "recipe": trial.words(),
                "scores": [with_error(score) for score in trial.scores],
                "inside": bool(policy.judge(trial)),
                "marked": marked(trial),
            }
            for place, trial in enumerate(trials[:MAX_TRIAL_ROWS], start=1)
        ],
        "tried": number(len(trials)),
        "cut": len(trials) > MAX_TRIAL_ROWS,
        "limited": bool(policy.parsed),
    }


def candidates(report: Report, axes: Axes) -> Facts:
    """The number of candidates tried, and those on the frontier nearest to the release."""
    trials = report.frontier.trials
    best = undominated(trials, axes)
    place = next((i for i, trial in enumerate(best) if trial.recipe == report.chosen.recipe), len(best) // 2)
    start = max(0, min(place - MAX_CANDIDATE_ROWS // 2, len(best) - MAX_CANDIDATE_ROWS))
    return {
        "why": why(report, axes),
        "tried": number(len(trials)),
        "inside": number(sum(bool(report.policy.judge(trial)) for trial in trials)),
        "best": number(len(best)),
        "cut": len(best) > MAX_CANDIDATE_ROWS,
        "limited": bool(report.policy.parsed),
        "heads": [title(axes.risk.name), title(axes.utility.name)],
        "rows": [_candidate(trial, report, axes) for trial in best[start : start + MAX_CANDIDATE_ROWS]],
    }


def why(report: Report, axes: Axes) -> str:
    """Why this candidate was chosen: its score against the next best inside the limits."""
    inside = [t for t in report.frontier.trials if report.policy.judge(t)] if report.policy.parsed else []
    rivals = [t for t in inside if t.recipe != report.chosen.recipe]
    if not rivals:
        return "It is the only candidate inside the limits." if inside else ""
    favour = axes.utility if report.policy.prefer == "utility" else axes.risk
    ranked = sorted(rivals, key=lambda t: _rank(t, favour))
    others = [t for t in ranked if t.recipe.family != report.chosen.recipe.family]
    name = title(favour.name)
    best = _value(report.chosen, favour)
    text = f"Of the {len(inside):,} candidates inside the limits it is the best by {name} ({best})"
    text += f"; the next is “{ranked[0].words()}” ({_value(ranked[0], favour)})"
    if others and others[0] is not ranked[0]:
        text += f", and the best of another method “{others[0].words()}” ({_value(others[0], favour)})"
    return text + "."


def _rank(trial: Trial, favour: Score) -> float:
    value = trial.scores.named(favour.name).value
    return value if favour.better == "lower" else -value


def _value(trial: Trial, favour: Score) -> str:
    return value_text(trial.scores.named(favour.name).value, favour.unit)


def _candidate(trial: Trial, report: Report, axes: Axes) -> Facts:
    return {
        "recipe": trial.words(),
        "scores": [value_text(score.value, score.unit) for score in axes.of(trial)],
        "inside": bool(report.policy.judge(trial)),
        "released": trial.name is None and trial.recipe == report.chosen.recipe,
    }
