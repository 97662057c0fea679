"""Report page of a refusal: no candidate met the limits of the policy."""

from equipoise.doors.report.choice_section import every_trial
from equipoise.doors.report.method_notes import methods
from equipoise.doors.report.page_parts import Facts, charted, for_page, page_facts
from equipoise.doors.report.report_sections import limit_row
from equipoise.ground.errors import ParameterError
from equipoise.methods.score import Score
from equipoise.policies.limits import SIGN_WORDS
from equipoise.policies.policy import Limit, scored
from equipoise.presentation.numbers import is_share, number, title
from equipoise.releases.refusal import Refused
from equipoise.search.explain_choice import LimitMove
from equipoise.search.risk_utility_map import risk_utility_map
from equipoise.search.table_comparison import TableComparison
from equipoise.search.table_map import score_name, score_words, table_map
from equipoise.trials.trial import Trials


def refused_facts(refusal: Refused) -> Facts:
    """Facts for the officer: the limits, what would pass if one were moved, the map, and every trial."""
    spec = _map(refusal)
    alone = any(refusal.move(limit) for limit in refusal.broken)
    return {
        **page_facts(refusal.title),
        "lead": _lead(refusal),
        "mark": mark(refusal),
        "near": refusal.near.words(),
        "limits": [_limit(limit, refusal) for limit in refusal.policy.parsed],
        "together": refusal.searched and not alone,
        **charted(map=spec),
        "spec": spec,
        "ends": [end.words() for end in (refusal.original, refusal.nothing) if end is not None],
        "table": refusal.table,
        "trials": every_trial(
            refusal.trials, refusal.policy, lambda trial: trial.recipe == refusal.near.recipe,
            score_words if refusal.table else None,
        ),
        "left": [(candidate.name, candidate.reason) for candidate in refusal.left_out],
        "methods": methods(refusal.near.scores.keys()),
    }  # fmt: skip


def mark(refusal: Refused) -> str:
    """The label of the trial that the limits are compared with."""
    return "the draw that was refused" if refusal.fresh else "nearest" if refusal.searched else "best inside"


def _lead(refusal: Refused) -> str:
    """The reason for the refusal in one sentence."""
    if not refusal.searched:
        return refusal.words
    many = len(refusal.trials)
    return f"None of {number(many)} candidates meets the limits." if many > 1 else "The candidate breaks the limits."


def _limit(limit: Limit, refusal: Refused) -> Facts:
    """A limit, the score of the nearest trial, how many trials it refused, and what would pass if it were moved."""
    score = scored(refusal.near, limit)
    every, alone = next((all_, only) for other, all_, only in refusal.choice.refused if other == limit)
    return {
        **limit_row(limit, refusal.near, refusal.near),
        "name": score_name(score) if refusal.table else title(score.name),
        "refused": number(every),
        "alone": number(alone),
        "move": _move_sentence(refusal.move(limit), score),
    }


def _move_sentence(move: LimitMove | None, score: Score) -> str:
    if move is None:
        return ""
    bound = f"{100 * move.to.bound:.4g} %" if is_share(score.unit) else f"{move.to.bound:g}"
    return f"If it were {SIGN_WORDS[move.to.sign]} {bound}: {move.trial.words()}"


def _map(refusal: Refused) -> Facts | None:
    """The risk-utility map; None where risk or utility was not measured."""
    word = "refused" if refusal.fresh else mark(refusal)
    try:
        if refusal.table and refusal.original is not None:
            compared = TableComparison(Trials(refusal.trials), refusal.original, refusal.near, refusal.policy)
            return for_page(table_map(compared, word))
        return for_page(
            risk_utility_map(
                refusal.frontier, policy=refusal.policy, chosen=refusal.near, original=refusal.original,
                nothing=refusal.nothing, mark=word,
            )
        )  # fmt: skip
    except ParameterError:
        return None
