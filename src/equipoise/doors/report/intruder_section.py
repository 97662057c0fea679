"""Report section on intruders: a sentence for each scenario, and the most dangerous combinations of known columns."""

from collections.abc import Sequence
from math import isfinite, isnan

from equipoise.doors.report.page_parts import Facts, bar, for_page
from equipoise.intrusion.attack import Attack
from equipoise.intrusion.scenario import Scenario
from equipoise.methods.score import Score
from equipoise.presentation.numbers import listed, number, title, value_text
from equipoise.recipe.catalogue import known_method

MAX_KNOWLEDGE_ROWS = 12
"""Combinations of known columns listed at most."""
INTRUDER_AIMS = {
    "link": "Finds a person's record, knowing {known}",
    "inference": "Guesses {learnt}, knowing {known}",
    "interval": "Having found the record, comes close to {columns}",
    "singling_out": "Describes exactly one person",
}
"""The aim of each kind of intruder."""


def attack_section(attack: Attack | None) -> Facts | None:
    """The section of the internal report; None where no attack was tried."""
    if attack is None:
        return None
    rows = attack.worst(MAX_KNOWLEDGE_ROWS)
    return {
        "lead": attack.strongest.words,
        "scenarios": [
            {
                "words": s.words,
                "how": tried_attacks(s),
                "strongest": s is attack.strongest and len(attack.scenarios) > 1,
            }
            for s in attack.scenarios
        ],
        "worst": [_row(row) for row in rows.iter_rows(named=True)],
        "tried": number(attack.knowledge.height),
        "cut": attack.knowledge.height > rows.height,
        "steep": not attack.knowledge.is_empty() and attack.chart()["encoding"]["y"]["scale"].get("type") == "log",
        "notes": attack.notes,
    }


def before_and_after(attack: Attack | None, unprotected: Sequence[Score | None]) -> list[Facts]:
    """For each intruder, the strongest attack on the original file, on the release, and guessing."""
    if attack is None or not any(unprotected):
        return []
    return [_both(scenario, before) for scenario, before in zip(attack.scenarios, unprotected, strict=True)]


def _both(scenario: Scenario, before: Score | None) -> Facts:
    after = scenario.score
    return {
        "aim": INTRUDER_AIMS[scenario.kind].format(
            known=listed(scenario.known) if scenario.known else "",
            learnt=getattr(known_method(after.name, "measure"), "sensitive", "a sensitive value"),
            columns=_columns(after),
        ),
        "before": value_text(before.value, "share") if before else "not tried",
        "after": value_text(after.value, "share"),
        "guess": value_text(after.baseline, "share") if after.baseline is not None else "–",
        "bars": [bar(s.value) if s and isfinite(s.value) else "0%" for s in (before, after)],
    }


def _columns(score: Score) -> str:
    columns = getattr(known_method(score.name, "measure"), "columns", None)
    return listed(columns) if isinstance(columns, tuple) and columns else "the numeric columns"


def in_public(attack: Attack | None) -> str | None:
    """The sentence of the public report: the strongest linkage attack, rounded to a thousandth."""
    if attack is None or attack.strongest.kind != "link" or isnan(attack.strongest.score.value):
        return None
    share = value_text(round(attack.strongest.score.value, 3), "share")
    claim = f"the attacks tried on it {'are estimated to link' if attack.estimated else 'link'}"
    return f"Of people whose {listed(attack.strongest.known)} are known, {claim} {share} correctly at most."


def chart_of(attack: Attack | None) -> Facts | None:
    """The chart of success against knowledge; None where there is nothing to draw."""
    return for_page(attack.chart()) if attack is not None and not attack.knowledge.is_empty() else None


def tried_attacks(scenario: Scenario) -> str:
    """All attacks tried in a scenario, the most successful first; empty where there is only one."""
    if len(scenario.tried) < 2:
        return ""
    ranked = sorted(scenario.tried, key=lambda score: -score.value)
    attempts = listed(f"{_short(score)} {value_text(score.value, 'share')}" for score in ranked)
    return f"Tried: {attempts}."


def _short(score: Score) -> str:
    """The title of an attack without its parameters that the sentence already names."""
    return title(score.name, ("known", "variables", "columns")).lower()


def _row(row: Facts) -> Facts:
    low, high = (value_text(row[end], "share") for end in ("low", "high"))
    return {
        "known": row["known"],
        "size": row["size"],
        "value": value_text(row["value"], "share"),
        "between": f"{low} to {high}",
        "guess": value_text(row["baseline"], "share") if row["baseline"] is not None else "–",
        "bar": bar(row["value"]),
    }
