"""Report section that compares the methods tried on a table."""

from equipoise.doors.report.page_parts import Facts, bound_words, for_page
from equipoise.ground.errors import ParameterError
from equipoise.methods.score import Score
from equipoise.policies.policy import Limit, scored
from equipoise.presentation.numbers import listed, value_text
from equipoise.recipe.catalogue import parse
from equipoise.search.risk_utility_map import axes
from equipoise.search.table_comparison import TableComparison
from equipoise.search.table_map import score_name, score_words, table_map
from equipoise.trials.table_method_names import rule_text
from equipoise.trials.trial import Trial


def compared_facts(compared: TableComparison) -> Facts:
    """Every method with its scores, the methods that could not be run, and the limits."""
    limited = bool(compared.policy.limits)
    rows = [_row(str(number), trial, compared) for number, trial in enumerate(compared.trials, start=1)]
    return {
        "heads": [score_words(score) for score in compared.chosen.scores],
        "rows": [*rows, _row("–", compared.original, compared)],
        "left": [(method.name, method.reason) for method in compared.trials.left_out],
        "limited": limited,
        "limits": [_limit(limit, compared) for limit in compared.policy.parsed],
        "rules": listed(dict.fromkeys(text for text in map(_by, compared.chosen.scores) if text) or ("the rule",)),
    }


def map_of(compared: TableComparison) -> Facts | None:
    """The risk-utility map of the methods; None where risk or utility was not measured."""
    try:
        axes(compared.chosen.scores)
        return for_page(table_map(compared))
    except ParameterError:
        return None


def _by(score: Score) -> str:
    """The rule that a score depends on, where it has one."""
    rule = getattr(parse(score.name, "measure"), "rule", None)
    return rule_text(rule) if rule is not None else ""


def _row(number: str, trial: Trial, compared: TableComparison) -> Facts:
    return {
        "number": number,
        "name": trial.words(),
        "scores": [_score_text(score) for score in trial.scores],
        "inside": bool(compared.policy.judge(trial)),
        "released": trial.recipe == compared.chosen.recipe and trial is not compared.original,
    }


def _score_text(score: Score) -> tuple[str, str]:
    """A score, and its interval where draws differ."""
    value = value_text(score.value, score.unit)
    ends = [value_text(end, score.unit) for end in score.interval or ()]
    return value, " to ".join(ends) if set(ends) - {value} else ""


def _limit(limit: Limit, compared: TableComparison) -> Facts:
    score = scored(compared.chosen, limit)
    return {
        "name": score_name(score),
        "limit": bound_words(limit, score),
        "value": value_text(score.value, score.unit),
        "met": limit.holds(score),
    }
