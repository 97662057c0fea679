"""JSON answers of the verbs (`--json`): plain data with stable keys, no data value unless asked for."""

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


def scores(results: Scores) -> dict[str, Any]:
    return {score.name: one(score) for score in results}


def one(score: Score) -> dict[str, Any]:
    """A score as plain data; numbers that are not finite are null, as JSON has none."""
    return {
        "value": _finite(score.value),
        "number": _finite(score.number),
        "unit": score.unit,
        "better": score.better,
        "interval": [_finite(end) for end in score.interval] if score.interval else None,
        "baseline": _finite(score.baseline),
        "notes": list(score.notes),
    }


def assessment(file: Path, records: Records, result: Assessment, show_values: bool) -> dict[str, Any]:
    rare = result.categories.filter(result.categories["uniques"] > 0)
    return {
        "file": str(file),
        "records": result.records,
        "keys": list(records.roles.keys),
        "scores": scores(result.scores),
        "by_key": result.keys.to_dicts(),
        "helps": result.helps.to_dicts(),
        "worst": (result.worst if show_values else result.worst.select("record", "risk", "alike")).to_dicts(),
        "revealing": result.revealing.to_dicts(),
        **({"categories": rare.to_dicts()} if show_values else {}),
    }


def release(result: Release, *, searched: bool) -> dict[str, Any]:
    """A release, and the number of candidates where there was a search."""
    return {
        "verdict": "accepted" if result.verdict else "refused",
        "reasons": list(result.verdict.reasons),
        "assumes": list(result.evidence["assumes"]),
        "done": [law.words for law in result.data.history],
        "masks": [to_plain(mask) for mask in result.trial.recipe.masks],
        "withheld": list(result.evidence["withheld"]),
        "scores": scores(result.trial.scores),
        "limits": dict(result.evidence["limits"]),
        **({"candidates": candidates(result)} if searched else {}),
        "folder": str(result.folder),
        "data": str(result.public / result.evidence["output"]["file"]),
        "report": str(result.report),
        "public_report": str(result.public / "report.html"),
    }


def attack(
    released: Sequence[Path], against: Path, result: Attack, people: pl.DataFrame | None, out: Path | None
) -> dict[str, Any]:
    """An attack; the people most at risk, by id or row, where they were asked for."""
    return {
        "released": [str(path) for path in released],
        "against": str(against),
        "people": result.records,
        "known": list(result.known),
        "truth": result.truth,
        "estimated": result.estimated,
        "scenarios": [_scenario(scenario) for scenario in result.scenarios],
        "strongest": result.scenarios.index(result.strongest),
        "knowledge": result.knowledge.to_dicts(),
        "notes": list(result.notes),
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


def candidates(result: Release) -> dict[str, int]:
    """The numbers of candidates tried, on the frontier and inside the limits."""
    policy = Policy(result.evidence["limits"])
    inside = sum(policy.judge(trial).accepted for trial in result.frontier.trials)
    return {"tried": len(result.frontier.trials), "frontier": len(result.frontier), "inside": inside}


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and isfinite(value) else None
