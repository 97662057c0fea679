"""What a page says, in words and plain rows; templates only lay it out."""

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import polars as pl

from equipoise.core.errors import ParameterError
from equipoise.core.score import Score, Scores
from equipoise.doors.report.intruders import for_page, in_public, spec_of, told
from equipoise.doors.report.methods import methods
from equipoise.flow.assess import Assessment
from equipoise.flow.attack import Attack
from equipoise.flow.charts import Axes, axes, risk_utility_map, undominated
from equipoise.flow.expected import expected_curve
from equipoise.flow.frontier import Frontier
from equipoise.flow.policy import Limit, Policy
from equipoise.flow.recipe import Recipe
from equipoise.flow.release import rounded
from equipoise.flow.report import Report
from equipoise.flow.trial import Trial
from equipoise.flow.wording import in_words, is_share, listed, number, said, title

Facts = dict[str, Any]
SIGNS = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}
PHRASES = {
    "value_disclosure": "a snooper who finds a record knows {}",
    "moments": "means, variances and correlations change by {} on average",
    "estimate": "a user's estimate keeps {}",
    "entropy": "This release keeps {}",
    "changed": "This release changes {}",
    "match_probability": "a match is right with a probability of at most {}",
    "correct_matches": "{} would be matched correctly",
    "nearest": "{} are linked correctly by the nearest record",
    "linkage": "{} are linked correctly by probabilistic linkage",
    "informed": "{} are linked correctly by who knows the masks",
    "interval": "{} are close to the original",
    "inference": "the sensitive value of {} is guessed right",
    "singling_out": "{} single somebody out",
}
"""How a balance says the scores it knows; others are named."""
MOST_CANDIDATES = 20
MOST_CATEGORIES = 5
PACKAGES = ("polars", "numpy", "narwhals")


def internal_facts(report: Report) -> Facts:
    """Everything, for the officer."""
    shown = drawn(report.chosen.scores, report.policy)
    keys = report.before.keys["key"].to_list()
    return {
        **_shared(report, report.chosen),
        "balance": balance(report.chosen, report.original, shown),
        "meanings": meanings(report.chosen.scores, keys),
        **_charts(map=_map(report), knowledge=spec_of(report.attack)),
        "attack": told(report.attack),
        "untried": report.untried,
        "ends": [end.words() for end in (report.original, report.nothing) if end is not None],
        "scores": [_score_row(score, report) for score in report.chosen.scores],
        "nothing": report.nothing is not None,
        "notes": _notes(report.chosen),
        "records": number(report.before.records),
        "uniques": [_uniques(side) for side in (report.before, report.after)],
        "keys": _key_rows(report.before, report.after),
        "categories": [_categories(key, report.before, report.after) for key in keys],
        "candidates": candidates(report, shown) if shown else None,
        "methods": methods(report.chosen.scores.keys()),
        "versions": [(name, version(name)) for name in PACKAGES],
    }


def public_facts(report: Report) -> Facts:
    """What an intruder may read as well: the release, its rounded scores and the limits; nothing of the original."""
    chosen = made_public(report.chosen)
    shown = drawn(chosen.scores, report.policy)
    return {
        **_shared(report, chosen),
        "balance": balance(chosen, None, shown),
        "meanings": meanings(chosen.scores, ()),
        **_charts(map=_drawn_map(Frontier((), ()), policy=report.policy, chosen=chosen)),
        "attack": in_public(report.attack),
        "scores": [{"name": title(s.name), "released": in_words(s), "better": s.better} for s in chosen.scores],
        "methods": methods(chosen.scores.keys()),
    }


def attack_facts(found: Attack, released: str, against: str) -> Facts:
    """A page of its own about intruders."""
    today = datetime.now(UTC).date()
    return {
        "title": f"Attack on {released}",
        "made": f"{today.day} {today:%B %Y}",
        "version": version("equipoise"),
        "attack": told(found),
        "against": f"Against {against}: {number(found.records)} people.",
        "charts": {"knowledge": spec_of(found)},
        "methods": methods(s.name for scenario in found.scenarios for s in scenario.tried),
        "versions": [(name, version(name)) for name in PACKAGES],
    }


def _charts(**specs: Facts | None) -> Facts:
    return {"charts": specs, "spec": specs["map"]}


def made_public(trial: Trial) -> Trial:
    """The release as one rounded point: no draws, no intervals, no counts, no notes."""
    scores = (
        Score(s.name, rounded(s.value, "share" if is_share(s.unit) else s.unit), s.better, unit=s.unit, side=s.side)
        for s in trial.scores
    )
    return Trial(Recipe(), Scores(scores), name=trial.words())


def _shared(report: Report, told: Trial) -> Facts:
    return {
        "title": report.title,
        "made": f"{report.made.day} {report.made:%B %Y}",
        "version": report.version,
        "accepted": report.verdict.accepted,
        "badge": badge(report),
        "limits": [_limit_row(limit, told, report.chosen) for limit in report.policy.parsed],
        "done": [law.words for law in report.laws],
        "withheld": report.withheld,
        "shuffled": not all(law.coarsens for law in report.laws),
    }


def badge(report: Report) -> str:
    """The verdict in a few words."""
    if not report.policy.parsed:
        return "Released: no limits were set"
    return "Released: inside the limits" if report.verdict else "Refused: outside the limits"


def drawn(scores: Scores, policy: Policy) -> Axes | None:
    """The two scores of the map; none where a side was not measured."""
    try:
        return axes(scores, policy=policy)
    except ParameterError:
        return None


def balance(released: Trial, original: Trial | None, shown: Axes | None) -> str:
    """The balance in one sentence, against the original where that may be told."""
    if shown is None:
        return _sentence("This release was measured on one side only: " + listed(_told(s) for s in released.scores))
    risk, use = shown.of(released)
    before = shown.of(original) if original else (None, None)
    return _sentence(f"{_kept(use, before[1])}, while {_at_risk(risk, before[0])}")


def _told(score: Score) -> str:
    return _phrase(score, in_words(score))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _kept(use: Score, before: Score | None) -> str:
    if before is None or before.value <= 0 or use.better == "lower":
        return _told(use)
    whole, share = number(before.value), said(round(use.value / before.value, 2), "share")
    if is_share(use.unit):
        return f"{_told(use)}, {share} of what the original has"
    return _phrase(use, f"{number(use.value)} of {whole} {use.unit} ({share})")


def _at_risk(risk: Score, before: Score | None) -> str:
    text = _told(risk)
    if before is None:
        return text
    way = "down from" if risk.value < before.value else "up from" if risk.value > before.value else "as before,"
    return f"{text}, {way} {said(before.value, risk.unit)}"


def _phrase(score: Score, amount: str) -> str:
    words = "{} are unique" if score.name == "uniques" else PHRASES.get(score.name.partition("(")[0])
    return words.format(amount) if words else f"{title(score.name)} is {amount}"


def meanings(scores: Scores, keys: Sequence[str]) -> list[tuple[str, str]]:
    """The two words a reader cannot do without, each in a sentence."""
    same = f"the same {listed(keys)}" if keys else "the same values in the columns an intruder may know"
    known = {
        "uniques": ("Unique", f"no other record in the file has {same}, so whoever knows these may find the record."),
        "entropy": (
            "Bits per record",
            "how finely the file tells records apart: each bit is the answer to one yes-or-no question about a record, "
            "so one bit less halves the number of groups a user can distinguish.",
        ),
    }
    used = {score.name.partition("(")[0] for score in scores}
    return [words for name, words in known.items() if name in used]


def _map(report: Report) -> Facts | None:
    ends = {"original": report.original, "nothing": report.nothing}
    shown = drawn(report.chosen.scores, report.policy)
    names = (shown.risk.name, shown.utility.name) if shown else ("", "")
    theory = expected_curve(report.frontier.trials, *names, report.before.records)
    return _drawn_map(report.frontier, policy=report.policy, chosen=report.chosen, theory=theory, **ends)


def _drawn_map(trials: Frontier, **facts: Any) -> Facts | None:
    """The map; none where a side was not measured."""
    try:
        return for_page(risk_utility_map(trials, **facts))
    except ParameterError:
        return None


def _limit_row(limit: Limit, told: Trial, exact: Trial) -> Facts:
    score = told.scores.named(limit.score)
    return {
        "name": title(score.name),
        "limit": f"{SIGNS[limit.sign]} {said(limit.bound, score.unit)}",
        "value": said(score.value, score.unit),
        "room": _room(abs(score.value - limit.bound), score.unit),
        "met": limit.holds(exact.scores.named(limit.score)),
    }


def _room(gap: float, unit: str) -> str:
    return f"{number(100 * gap)} percentage points" if is_share(unit) else f"{number(gap)} {unit}".rstrip()


def _score_row(score: Score, report: Report) -> Facts:
    cells = {"original": report.original, "released": report.chosen, "nothing": report.nothing}
    return {
        "name": title(score.name),
        "unit": score.unit,
        "side": score.side,
        "better": score.better,
        **{name: _cell(trial.scores.named(score.name)) if trial else None for name, trial in cells.items()},
    }


def _cell(score: Score) -> Facts:
    """A value, and beneath it what it rests on."""
    counted = score.unit.partition(" of ")[2]
    under = [f"{number(score.number)} {counted}"] if score.number is not None and counted else []
    if score.interval:
        under.append("{} to {}".format(*(said(end, score.unit) for end in score.interval)))
    if score.baseline is not None and score.side == "risk":
        under.append(f"by guessing {said(score.baseline, score.unit)}")
    return {"value": said(score.value, score.unit), "under": ", ".join(under)}


def _notes(trial: Trial) -> list[tuple[str, str]]:
    """Doubts that came with the scores of the release, each once."""
    return list(dict.fromkeys((title(score.name), note) for score in trial.scores for note in score.notes))


def _uniques(side: Assessment) -> str:
    return number(int(side.keys["uniques"][0]) if side.keys.height else 0)


def _key_rows(before: Assessment, after: Assessment) -> list[Facts]:
    """Per key, what would remain without it, before and after."""
    later = {row["key"]: row for row in after.keys.iter_rows(named=True)}
    rows = []
    for row in before.keys.iter_rows(named=True):
        pair = (row, later.get(row["key"]))
        rows.append({"key": row["key"], "sides": [_key_cell(side) for side in pair if side is not None]})
    return rows


def _key_cell(row: dict[str, Any]) -> Facts:
    share = row["without"] / row["uniques"] if row["uniques"] else 0.0
    return {
        "categories": number(row["categories"]),
        "without": number(row["without"]),
        "share": said(share, "share"),
        "bar": _bar(share),
    }


def _bar(share: float) -> str:
    return f"{100 * min(1.0, share):.1f}%"


def _categories(key: str, before: Assessment, after: Assessment) -> Facts:
    return {
        "key": key,
        "sides": [
            ("Before", _top(before.categories, key)),
            ("After", _top(after.categories, key)),
        ],
    }


def _top(table: pl.DataFrame, key: str) -> list[Facts]:
    """The categories of a key that hold the most uniques."""
    found = table.filter(pl.col("key") == key, pl.col("uniques") > 0).head(MOST_CATEGORIES)
    return [
        {
            "category": row["category"],
            "records": number(row["records"]),
            "uniques": number(row["uniques"]),
            "share": said(row["share"], "share"),
            "bar": _bar(row["share"]),
        }
        for row in found.iter_rows(named=True)
    ]


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
