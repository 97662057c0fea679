"""What a page says about a policy that let nothing out."""

from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from equipoise.doors.report.choice_section import every_trial
from equipoise.doors.report.intruder_section import charted, for_page
from equipoise.doors.report.method_notes import methods
from equipoise.doors.report.report_sections import PACKAGES, SIGNS, limit_row
from equipoise.ground.errors import ParameterError
from equipoise.methods.score import Score
from equipoise.policies.policy import Limit, scored
from equipoise.presentation.numbers import is_share, number, title
from equipoise.releases.refusal import Refused
from equipoise.search.explain_choice import LimitMove
from equipoise.search.risk_utility_map import risk_utility_map
from equipoise.search.table_comparison import TableComparison
from equipoise.search.table_map import score_name, score_words, table_map
from equipoise.trials.trial import Trials

Facts = dict[str, Any]


def refused_facts(found: Refused) -> Facts:
    """Everything, for the officer: the limits and what would pass, the map, every trial."""
    today = datetime.now(UTC).date()
    spec = _map(found)
    alone = any(found.move(limit) for limit in found.broken)
    return {
        "title": found.title,
        "made": f"{today.day} {today:%B %Y}",
        "version": version("equipoise"),
        "versions": [(name, version(name)) for name in PACKAGES],
        "lead": _lead(found),
        "mark": mark(found),
        "near": found.near.words(),
        "limits": [_limit(limit, found) for limit in found.policy.parsed],
        "together": found.searched and not alone,
        **charted(map=spec),
        "spec": spec,
        "ends": [end.words() for end in (found.original, found.nothing) if end is not None],
        "table": found.table,
        "trials": every_trial(
            found.trials, found.policy, lambda trial: trial.recipe == found.near.recipe,
            score_words if found.table else None,
        ),
        "left": [(left.name, left.reason) for left in found.left_out],
        "methods": methods(found.near.scores.keys()),
    }  # fmt: skip


def mark(found: Refused) -> str:
    """What the trial is called that everything is held against."""
    return "the draw that was refused" if found.fresh else "nearest" if found.searched else "best inside"


def _lead(found: Refused) -> str:
    """Why, in one sentence."""
    if not found.searched:
        return found.words
    many = len(found.trials)
    return f"None of {number(many)} candidates meets the limits." if many > 1 else "The candidate breaks the limits."


def _limit(limit: Limit, found: Refused) -> Facts:
    """A limit, how the nearest trial stands to it, whom it refused, and what would pass if it were moved."""
    score = scored(found.near, limit)
    every, alone = next((all_, only) for told, all_, only in found.choice.refused if told == limit)
    return {
        **limit_row(limit, found.near, found.near),
        "name": score_name(score) if found.table else title(score.name),
        "refused": number(every),
        "alone": number(alone),
        "move": _moved(found.move(limit), score),
    }


def _moved(move: LimitMove | None, score: Score) -> str:
    if move is None:
        return ""
    bound = f"{100 * move.to.bound:.4g} %" if is_share(score.unit) else f"{move.to.bound:g}"
    return f"If it were {SIGNS[move.to.sign]} {bound}: {move.trial.words()}"


def _map(found: Refused) -> Facts | None:
    """The map; none where a side was not measured."""
    word = "refused" if found.fresh else mark(found)
    try:
        if found.table and found.original is not None:
            compared = TableComparison(Trials(found.trials), found.original, found.near, found.policy)
            return for_page(table_map(compared, word))
        return for_page(
            risk_utility_map(
                found.frontier, policy=found.policy, chosen=found.near, original=found.original,
                nothing=found.nothing, mark=word,
            )
        )  # fmt: skip
    except ParameterError:
        return None
