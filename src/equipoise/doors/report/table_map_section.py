"""What a page says about the methods that a table was chosen from."""

from typing import Any

from equipoise.doors.report.intruder_section import for_page
from equipoise.ground.errors import ParameterError
from equipoise.methods.score import Score
from equipoise.policies.policy import Limit, scored
from equipoise.presentation.numbers import listed, said
from equipoise.recipe.catalogue import parse
from equipoise.search.risk_utility_map import axes
from equipoise.search.table_comparison import TableComparison
from equipoise.search.table_map import score_name, score_words, table_map
from equipoise.trials.table_method_names import rule_text
from equipoise.trials.trial import Trial

Facts = dict[str, Any]
SIGNS = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}


def compared_facts(compared: TableComparison) -> Facts:
    """Every method with its scores, those that were left out, and the limits."""
    limited = bool(compared.policy.limits)
    rows = [_row(str(number), trial, compared) for number, trial in enumerate(compared.trials, start=1)]
    return {
        "heads": [score_words(score) for score in compared.chosen.scores],
        "rows": [*rows, _row("–", compared.original, compared)],
        "left": [(left.name, left.reason) for left in compared.trials.left_out],
        "limited": limited,
        "limits": [_limit(limit, compared) for limit in compared.policy.parsed],
        "rules": listed(dict.fromkeys(text for text in map(_by, compared.chosen.scores) if text) or ("the rule",)),
    }


def map_of(compared: TableComparison) -> Facts | None:
    """The map; none where a side was not measured."""
    try:
        axes(compared.chosen.scores)
        return for_page(table_map(compared))
    except ParameterError:
        return None


def _by(score: Score) -> str:
    """The rule that a score goes by, where it has one."""
    rule = getattr(parse(score.name, "measure"), "rule", None)
    return rule_text(rule) if rule is not None else ""


def _row(number: str, trial: Trial, compared: TableComparison) -> Facts:
    return {
        "number": number,
        "name": trial.words(),
        "scores": [_told(score) for score in trial.scores],
        "inside": bool(compared.policy.judge(trial)),
        "released": trial.recipe == compared.chosen.recipe and trial is not compared.original,
    }


def _told(score: Score) -> tuple[str, str]:
    """A score, and between what it lies where draws differ."""
    value = said(score.value, score.unit)
    ends = [said(end, score.unit) for end in score.interval or ()]
    return value, " to ".join(ends) if set(ends) - {value} else ""


def _limit(limit: Limit, compared: TableComparison) -> Facts:
    score = scored(compared.chosen, limit)
    return {
        "name": score_name(score),
        "limit": f"{SIGNS[limit.sign]} {said(limit.bound, score.unit)}",
        "value": said(score.value, score.unit),
        "met": limit.holds(score),
    }
