"""What a page says about intruders: a sentence each, what they must know, and the most dangerous knowledge."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from equipoise.ground.errors import EquipoiseError
from equipoise.intrusion.attack import Attack
from equipoise.intrusion.scenario import Scenario
from equipoise.methods.score import Score
from equipoise.presentation.numbers import listed, number, said, title
from equipoise.presentation.svg import static_chart
from equipoise.recipe.catalogue import parse

Facts = dict[str, Any]
MOST = 12
"""Combinations listed."""
AIMS = {
    "link": "Finds a person's record, knowing {known}",
    "inference": "Guesses {learnt}, knowing {known}",
    "interval": "Having found the record, comes close to {columns}",
    "singling_out": "Describes exactly one person",
}
"""What each kind of intruder is after."""


def told(found: Attack | None) -> Facts | None:
    """The section for the officer; none where nothing was tried."""
    if found is None:
        return None
    rows = found.worst(MOST)
    return {
        "lead": found.strongest.words,
        "scenarios": [_scenario(s, s is found.strongest and len(found.scenarios) > 1) for s in found.scenarios],
        "worst": [_row(row) for row in rows.iter_rows(named=True)],
        "tried": number(found.knowledge.height),
        "cut": found.knowledge.height > rows.height,
        "steep": not found.knowledge.is_empty() and found.chart()["encoding"]["y"]["scale"].get("type") == "log",
        "notes": found.notes,
    }


def before_and_after(found: Attack | None, unprotected: Sequence[Score | None]) -> list[Facts]:
    """For each intruder, the strongest attack on the original file, on the release, and guessing."""
    if found is None or not any(unprotected):
        return []
    return [_both(scenario, before) for scenario, before in zip(found.scenarios, unprotected, strict=True)]


def _both(scenario: Scenario, before: Score | None) -> Facts:
    after = scenario.score
    return {
        "aim": AIMS[scenario.kind].format(
            known=listed(scenario.known) if scenario.known else "", learnt=_learnt(after), columns=_columns(after)
        ),
        "before": said(before.value, "share") if before else "not tried",
        "after": said(after.value, "share"),
        "guess": said(after.baseline, "share") if after.baseline is not None else "–",
        "bars": [f"{100 * min(1.0, s.value):.1f}%" if s and isfinite(s.value) else "0%" for s in (before, after)],
    }


def _learnt(score: Score) -> str:
    """The column that an attack wants to learn."""
    return str(getattr(_method(score), "sensitive", "a sensitive value"))


def _columns(score: Score) -> str:
    columns = getattr(_method(score), "columns", None)
    return listed(columns) if isinstance(columns, tuple) and columns else "the numeric columns"


def _method(score: Score) -> Any:
    try:
        return parse(score.name, "measure")
    except EquipoiseError:
        return None


def in_public(found: Attack | None) -> str | None:
    """The strongest attempt to link people, rounded to a thousandth: nothing else may be told in public."""
    if found is None or found.strongest.kind != "link" or found.strongest.score.value != found.strongest.score.value:
        return None
    share = said(round(found.strongest.score.value, 3), "share")
    tried = (
        "the attacks tried on it link" if found.truth != "unknown" else "the attacks tried on it are estimated to link"
    )
    return f"Of people whose {listed(found.strongest.known)} are known, {tried} {share} correctly at most."


def spec_of(found: Attack | None) -> Facts | None:
    """The chart of knowledge against success; none where there is nothing to draw."""
    return for_page(found.chart()) if found is not None and not found.knowledge.is_empty() else None


def charted(**specs: Facts | None) -> Facts:
    """The charts of a page, and each as it is without scripts."""
    return {"charts": specs, "pictures": {name: static_chart(spec) for name, spec in specs.items() if spec}}


def for_page(spec: Facts) -> Facts:
    """As wide as the page, on its background, under its own heading."""
    config = {**spec["config"], "background": "transparent"}
    return {**spec, "width": "container", "title": None, "config": config}


def _scenario(scenario: Scenario, strongest: bool) -> Facts:
    return {"words": scenario.words, "how": how(scenario), "strongest": strongest}


def how(scenario: Scenario) -> str:
    """Every attack that was tried, the best first, where there are several."""
    if len(scenario.tried) < 2:
        return ""
    ranked = sorted(scenario.tried, key=lambda score: -score.value)
    told = listed(f"{_short(score)} {said(score.value, 'share')}" for score in ranked)
    return f"Tried: {told}."


def _short(score: Score) -> str:
    """An attack without what the sentence has said already."""
    return title(score.name, ("known", "variables", "columns")).lower()


def _row(row: Facts) -> Facts:
    low, high = (said(row[end], "share") for end in ("low", "high"))
    return {
        "known": row["known"],
        "size": row["size"],
        "value": said(row["value"], "share"),
        "between": f"{low} to {high}",
        "guess": said(row["baseline"], "share") if row["baseline"] is not None else "–",
        "bar": f"{100 * min(1.0, row['value']):.1f}%",
    }
