"""What each verb answers with `--json`: plain data with stable keys, no data value unless asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.policies.policy import Policy
from equipoise.recipe.catalogue import to_plain

if TYPE_CHECKING:
    import polars as pl

    from equipoise.data.records import Records
    from equipoise.inspection.assess import Assessment
    from equipoise.intrusion.attack import Attack
    from equipoise.intrusion.scenario import Scenario
    from equipoise.methods.score import Score, Scores
    from equipoise.releases.release import Release


def show(answer: dict[str, Any]) -> None:
    print(json.dumps(answer, indent=2, allow_nan=False))


def scores(found: Scores) -> dict[str, Any]:
    return {score.name: one(score) for score in found}


def one(score: Score) -> dict[str, Any]:
    """A score; numbers that are not finite are null, as JSON has none."""
    return {
        "value": _finite(score.value),
        "number": _finite(score.number),
        "unit": score.unit,
        "better": score.better,
        "interval": [_finite(end) for end in score.interval] if score.interval else None,
        "baseline": _finite(score.baseline),
        "notes": list(score.notes),
    }


def assessment(file: Path, records: Records, found: Assessment, show_values: bool) -> dict[str, Any]:
    values = {"categories": found.categories.filter(found.categories["uniques"] > 0).to_dicts()} if show_values else {}
    return {
        "file": str(file),
        "records": found.records,
        "keys": list(records.roles.keys),
        "scores": scores(found.scores),
        "by_key": found.keys.to_dicts(),
        "helps": found.helps.to_dicts(),
        "worst": found.worst.to_dicts(),
        **values,
    }


def release(made: Release, *, searched: bool) -> dict[str, Any]:
    """A release, and how many candidates it was chosen from where there was a search."""
    return {
        "verdict": "accepted" if made.verdict else "refused",
        "reasons": list(made.verdict.reasons),
        "done": [law.words for law in made.data.history],
        "masks": [to_plain(mask) for mask in made.trial.recipe.masks],
        "withheld": list(made.evidence["withheld"]),
        "scores": scores(made.trial.scores),
        "limits": dict(made.evidence["limits"]),
        **({"candidates": candidates(made)} if searched else {}),
        "folder": str(made.folder),
        "data": str(made.public / made.evidence["output"]["file"]),
        "report": str(made.report),
        "public_report": str(made.public / "report.html"),
    }


def attack(
    released: Sequence[Path], against: Path, found: Attack, people: pl.DataFrame | None, out: Path | None
) -> dict[str, Any]:
    """What intruders could do; the people most at risk, by id or row, where they were asked for."""
    return {
        "released": [str(path) for path in released],
        "against": str(against),
        "people": found.records,
        "known": list(found.known),
        "truth": found.truth,
        "estimated": found.estimated,
        "scenarios": [_scenario(scenario) for scenario in found.scenarios],
        "strongest": found.scenarios.index(found.strongest),
        "knowledge": found.knowledge.to_dicts(),
        "notes": list(found.notes),
        **({"exposed": people.to_dicts()} if people is not None else {}),
        "report": str(out) if out else None,
    }


def _scenario(scenario: Scenario) -> dict[str, Any]:
    return {
        "kind": scenario.kind,
        "known": list(scenario.known),
        "words": scenario.words.replace("\xa0", " "),
        "attack": scenario.score.name,
        "score": one(scenario.score),
        "tried": scores(scenario.tried),
    }


def candidates(made: Release) -> dict[str, int]:
    """How many were tried, how many nobody beats, how many are inside the limits."""
    policy = Policy(made.evidence["limits"])
    inside = sum(policy.judge(trial).accepted for trial in made.frontier.trials)
    return {"tried": len(made.frontier.trials), "frontier": len(made.frontier), "inside": inside}


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and isfinite(value) else None
