"""Facts of the release reports, internal and public, and of the attack report; templates only lay them out."""

import re
from collections.abc import Sequence
from math import isfinite
from typing import Any

from equipoise.doors.report import intruder_section as intruders
from equipoise.doors.report.choice_section import appendix, candidates, choice_facts
from equipoise.doors.report.method_notes import methods
from equipoise.doors.report.page_parts import Facts, bound_words, charted, for_page, package_versions, page_facts
from equipoise.doors.report.risk_drivers import causes
from equipoise.doors.report.theory_curve import expected_curve
from equipoise.doors.report.variable_changes import estimate_rows, overlay_facts, variables
from equipoise.ground.errors import ParameterError
from equipoise.ground.system import packaged
from equipoise.intrusion.attack import Attack
from equipoise.methods.score import EXCHANGED_NOTE, Score, Scores
from equipoise.policies.policy import Limit, Policy, scored
from equipoise.policies.revealed_columns import stance
from equipoise.presentation.numbers import SCOPED_NAME, in_words, is_share, listed, number, title, value_text
from equipoise.recipe.recipe import Recipe
from equipoise.releases.evidence import rounded
from equipoise.releases.report_facts import Report
from equipoise.search.frontier import Frontier
from equipoise.search.risk_utility_map import Axes, axes, risk_utility_map
from equipoise.trials.trial import Trial

PHRASES = "doors/report/score_phrases.toml"


def internal_facts(report: Report) -> Facts:
    """Facts of the internal report: everything, for the officer."""
    map_axes = find_axes(report.chosen.scores, report.policy)
    keys = report.before.keys["key"].to_list()
    rows = [_score_row(score, report) for score in report.chosen.scores]
    shared, reasons = _shared_facts(report, report.chosen), choice_facts(report)
    return {
        **shared,
        "assumptions": (*shared["assumptions"], *report.second),
        "limits": [row | {"binds": binds} for row, binds in zip(shared["limits"], reasons["binds"], strict=True)],
        "weighed": reasons,
        "balance": balance(report.chosen, report.original, map_axes),
        "meanings": meanings(map_axes or report.chosen.scores, keys),
        **_charts(map=_map(report), knowledge=intruders.chart_of(report.attack)),
        "attack": intruders.attack_section(report.attack),
        "unprotected": intruders.before_and_after(report.attack, report.unprotected),
        "untried": report.untried,
        "ends": [end.words() for end in (report.original, report.nothing) if end is not None],
        "risks": [row for row in rows if row["side"] == "risk"],
        "uses": [row for row in rows if row["side"] != "risk"],
        "nothing": report.nothing is not None,
        "records": number(report.before.records),
        **causes(report.before, report.after),
        "estimates": estimate_rows(report),
        "overlays": [overlay_facts(overlay) for overlay in report.overlays],
        "undrawn": bool(report.laws) and not report.overlays,
        "unchanged": listed(report.unchanged) if report.unchanged else "",
        "candidates": candidates(report, map_axes) if map_axes else None,
        "appendix": appendix(report),
        "methods": methods(report.chosen.scores.keys()),
        "versions": package_versions(),
    }


def public_facts(report: Report) -> Facts:
    """Facts of the public report: the release, its rounded scores and the limits; nothing of the original."""
    chosen = public_trial(report.chosen)
    map_axes = find_axes(chosen.scores, report.policy)
    return {
        **_shared_facts(report, chosen),
        "balance": balance(chosen, None, map_axes),
        "meanings": meanings(map_axes or chosen.scores, ()),
        **_charts(map=_map_chart(Frontier((), ()), policy=report.policy, chosen=chosen)),
        "attack": intruders.in_public(report.attack),
        "signed": report.signed,
        "scores": [{"name": title(s.name), "released": in_words(s), "better": s.better} for s in chosen.scores],
        "methods": methods(chosen.scores.keys()),
    }


def attack_facts(attack: Attack, released: str, against: str) -> Facts:
    """Facts of the attack report; `released` and `against` are the names of the two files."""
    return {
        **page_facts(f"Attack on {released}"),
        "attack": intruders.attack_section(attack),
        "against": f"Against {against}: {number(attack.records)} people.",
        **charted(knowledge=intruders.chart_of(attack)),
        "methods": methods(s.name for scenario in attack.scenarios for s in scenario.tried),
    }


def _charts(**specs: Facts | None) -> Facts:
    return {**charted(**specs), "spec": specs["map"]}


def public_trial(trial: Trial) -> Trial:
    """The released trial with rounded scores: no draws, intervals, counts or notes."""
    scores = (
        Score(s.name, rounded(s.value, "share" if is_share(s.unit) else s.unit), s.better, unit=s.unit, side=s.side)
        for s in trial.scores
    )
    return Trial(Recipe(), Scores(scores), name=trial.words())


def _shared_facts(report: Report, trial: Trial) -> Facts:
    return {
        "title": report.title,
        "made": f"{report.made.day} {report.made:%B %Y}",
        "version": report.version,
        "accepted": report.verdict.accepted,
        "badge": badge(report),
        "assumptions": (*report.assumptions, *report.several),
        "limits": [limit_row(limit, trial, report.chosen) for limit in report.policy.parsed],
        "done": [law.words for law in report.laws],
        "variables": variables(report),
        "withheld": report.withheld,
        "shuffled": not report.policy.keep_order,
        "revealing": _revealing(report),
    }


def _revealing(report: Report) -> list[dict[str, str]]:
    """Columns beside the keys that single people out, and what the policy says of them."""
    return [
        {
            "columns": " and ".join(filter(None, columns)),
            "share": value_text(round(share, 2), "share"),
            "policy": stance(columns, report.policy),
        }
        for *columns, share, _ in report.revealing.iter_rows()
    ]


def badge(report: Report) -> str:
    """The verdict in a few words."""
    if not report.policy.parsed:
        return "Released: no limits were set"
    return "Released: inside the limits" if report.verdict else "Refused: outside the limits"


def find_axes(scores: Scores, policy: Policy) -> Axes | None:
    """The two scores of the risk-utility map; None where risk or utility was not measured."""
    try:
        return axes(scores, policy=policy)
    except ParameterError:
        return None


def balance(released: Trial, original: Trial | None, map_axes: Axes | None) -> str:
    """Risk and utility in one sentence, compared with the original where there is one."""
    if map_axes is None:
        phrases = listed(map(_score_words, released.scores))
        return _sentence(f"This release was measured on one side only: {phrases}")
    risk, use = map_axes.of(released)
    before = map_axes.of(original) if original else (None, None)
    return _sentence(f"{_utility_words(use, before[1])}, while {_risk_words(risk, before[0])}")


def _score_words(score: Score) -> str:
    return _phrase(score, in_words(score))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _utility_words(use: Score, before: Score | None) -> str:
    if before is None or before.value <= 0 or use.better == "lower":
        return _score_words(use)
    whole, share = number(before.value), value_text(round(use.value / before.value, 2), "share")
    if is_share(use.unit) and before.value == 1:
        return _score_words(use)
    if is_share(use.unit):
        return f"{_score_words(use)}, {share} of what the original has"
    return _phrase(use, f"{number(use.value)} of {whole} {use.unit} ({share})")


def _risk_words(risk: Score, before: Score | None) -> str:
    text = _score_words(risk)
    if before is None:
        return text
    way = "down from" if risk.value < before.value else "up from" if risk.value > before.value else "as before,"
    return f"{text}, {way} {value_text(before.value, risk.unit)}"


def _phrase(score: Score, amount: str) -> str:
    match = SCOPED_NAME.fullmatch(score.name)
    measure = match["measure"] if match else score.name
    phrases = packaged(PHRASES)
    words = phrases["phrases_of_defaults"].get(measure) or phrases["phrases"].get(measure.partition("(")[0])
    scope = title(score.name).removeprefix(title(measure)).removeprefix(", ")
    condition = " if key values that were exchanged count as blank" if EXCHANGED_NOTE in score.notes else ""
    text = f"{words.format(amount)}{f' ({scope})' if scope else ''}" if words else f"{title(score.name)} is {amount}"
    return f"{text}{condition}"


def _same(scores: Sequence[Score], keys: Sequence[str]) -> str:
    """The columns on which an intruder cannot tell records apart, by the first scenario where there is one."""
    for match in filter(None, (SCOPED_NAME.fullmatch(score.name) for score in scores)):
        if match["scenario"]:
            return f"the same values in the columns that scenario {match['scenario']} knows"
    return f"the same {listed(keys)}" if keys else "the same values in the columns an intruder may know"


def meanings(scores: Axes | Scores, keys: Sequence[str]) -> list[tuple[str, str]]:
    """Definitions of the terms in the report, of the two scores of the map where there is one."""
    map_scores = (scores.risk, scores.utility) if isinstance(scores, Axes) else tuple(scores)
    used = {re.split(r"[(\[ ]", score.name)[0] for score in map_scores}
    same, definitions = _same(map_scores, keys), packaged(PHRASES)["definitions"]
    terms = [(term, words.format(same=same)) for name, (term, words) in definitions.items() if name in used]
    return [*terms, *([("Exchanged", EXCHANGED_NOTE)] if any(EXCHANGED_NOTE in s.notes for s in map_scores) else [])]


def _map(report: Report) -> Facts | None:
    ends = {"original": report.original, "nothing": report.nothing}
    map_axes = find_axes(report.chosen.scores, report.policy)
    names = (map_axes.risk.name, map_axes.utility.name) if map_axes else ("", "")
    theory = expected_curve(report.frontier.trials, *names, report.before.records)
    return _map_chart(report.frontier, policy=report.policy, chosen=report.chosen, theory=theory, **ends)


def _map_chart(trials: Frontier, **facts: Any) -> Facts | None:
    """The risk-utility map; None where risk or utility was not measured."""
    try:
        return for_page(risk_utility_map(trials, **facts))
    except ParameterError:
        return None


def limit_row(limit: Limit, trial: Trial, exact: Trial) -> Facts:
    """A limit, with the score of a trial and its margin."""
    score = scored(trial, limit)
    return {
        "name": title(score.name),
        "reason": limit.reason,
        "binds": False,
        "limit": bound_words(limit, score),
        "value": value_text(score.value, score.unit),
        "margin": margin(limit, score),
        "met": limit.holds(scored(exact, limit)),
    }


def margin(limit: Limit, score: Score) -> str:
    """How far a score is from its limit, in its own unit and as a share of the limit."""
    gap = score.value - limit.bound
    if not isfinite(gap):
        return "not known"
    if abs(gap) < 1e-12:
        return "at the limit"
    share = f" ({value_text(abs(gap / limit.bound), 'share')} of it)" if limit.bound else ""
    way, room = "below" if gap < 0 else "above", abs(gap)
    words = (
        f"{number(100 * room)} percentage points" if is_share(score.unit) else f"{number(room)} {score.unit}".rstrip()
    )
    return f"{words} {way} the limit{share}"


def _score_row(score: Score, report: Report) -> Facts:
    cells = {"original": report.original, "released": report.chosen, "nothing": report.nothing}
    return {
        "name": title(score.name),
        "unit": score.unit,
        "side": score.side,
        "better": score.better,
        "notes": score.notes,
        **{name: _cell(trial.scores.named(score.name)) if trial else None for name, trial in cells.items()},
    }


def _cell(score: Score) -> Facts:
    """A value, and beneath it the count, the interval and the baseline."""
    subject = score.unit.partition(" of ")[2]
    under = [f"{number(score.number)} {subject}"] if score.number is not None and subject else []
    if score.interval:
        under.append("{} to {}".format(*(value_text(end, score.unit) for end in score.interval)))
    if score.baseline is not None and score.side == "risk":
        under.append(f"by guessing {value_text(score.baseline, score.unit)}")
    return {"value": value_text(score.value, score.unit), "under": ", ".join(under)}
