"""Trials on the Balance page: plain data, the policy's choice, the risk-utility map and comparisons."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import isfinite
from pathlib import Path
from typing import Any

from cachetools import LRUCache, cached

from equipoise.data.hierarchy import Hierarchy
from equipoise.doors.report.page_parts import bound_words, for_page, with_error
from equipoise.doors.web.work.limits import Slot, known_scenarios, with_preset
from equipoise.ground.errors import EquipoiseError, ParameterError
from equipoise.masks.recode import Recode
from equipoise.methods.method import Mask
from equipoise.methods.score import Score, Scores
from equipoise.policies.policy import Limit, Policy, scored
from equipoise.policies.policy_file import Job
from equipoise.presentation.numbers import is_share, title, value_text
from equipoise.provenance.journal import SCORE_FIELDS, scores_of
from equipoise.recipe.catalogue import build, to_plain
from equipoise.recipe.recipe import Recipe, mask_words
from equipoise.search.frontier import Frontier
from equipoise.search.ranking import ahead_of, inside
from equipoise.search.risk_utility_map import Axes, axes, risk_utility_map, undominated
from equipoise.trials.trial import Trial

Plain = dict[str, Any]
MAX_TABLE_ROWS = 500
"""Trials listed in the table."""
DISPLAY_SEED = 0
"""Seed of recipes that are only displayed; the real seed stays in the journal."""
LIMIT_LAYERS = ("rectangle", "risk_bound", "utility_bound", "chosen")
"""Layers of the map that change with the limits."""
POINT_LAYERS = ("tried", "best", "chosen")


def plain_scores(scores: Scores) -> list[Plain]:
    """Scores as plain data, without detail."""
    values = [{name: getattr(score, name) for name in SCORE_FIELDS} for score in scores]
    return [{name: list(v) if isinstance(v, tuple) else v for name, v in one.items()} for one in values]


def plain_trial(trial: Trial) -> Plain:
    """A trial as plain data: its masks as in a policy, its scores, and the values of every draw."""
    masks = [plain_mask(mask) for mask in trial.recipe.masks]
    draws = [[score.value for score in scores] for scores in trial.draws]
    return {"masks": masks, "scores": plain_scores(trial.scores), "draws": draws}


def plain_mask(mask: Mask) -> Plain:
    """A mask as plain data, as in a policy."""
    return json.loads(json.dumps(to_plain(mask), default=_json_value))


def _json_value(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    return dict(value) if isinstance(value, Mapping) else str(value)


def recipe_of(masks: Sequence[Mapping[str, Any]], seed: int = DISPLAY_SEED) -> Recipe:
    """The recipe made of masks in plain data."""
    return Recipe(tuple(_mask(json.dumps(mask, sort_keys=True)) for mask in masks), seed)


@lru_cache(maxsize=2000)
def _mask(text: str) -> Mask:
    parameters = json.loads(text)
    return build(parameters.pop("use"), "mask", parameters)


def trial_of(plain: Mapping[str, Any]) -> Trial:
    """A trial from plain data."""
    scores = scores_of(plain["scores"])
    draws = tuple(
        Scores(replace(score, value=value, interval=None) for score, value in zip(scores, values, strict=True))
        for values in plain["draws"]
    )
    return Trial(recipe_of(plain["masks"]), scores, draws)


@dataclass(frozen=True)
class TrialResults:
    """The results of a run: its trials, and the two ends of the risk-utility map."""

    trials: tuple[Trial, ...]
    original: Trial
    nothing: Trial | None
    left_out: tuple[Mapping[str, str], ...] = ()
    records: int = 0
    masks: tuple[tuple[Plain, ...], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "TrialResults":
        nothing = plain["nothing"]
        return cls(
            tuple(map(trial_of, plain["trials"])),
            Trial(Recipe((), DISPLAY_SEED), scores_of(plain["original"]), name="original"),
            Trial(Recipe((), DISPLAY_SEED), scores_of(nothing), name="no data") if nothing else None,
            tuple(plain["left_out"]),
            plain["records"],
            tuple(tuple(trial["masks"]) for trial in plain["trials"]),
        )

    @cached_property
    def places(self) -> dict[int, int]:
        return {id(trial): place for place, trial in enumerate(self.trials)}

    def at(self, place: int) -> Trial:
        if not 0 <= place < len(self.trials):
            raise ParameterError("There is no such trial: load the page again.")
        return self.trials[place]


@cached(LRUCache(2), key=lambda name, result: name)
def results_of(name: str, result: Mapping[str, Any]) -> TrialResults:
    """The results of a run; cached for the last runs."""
    return TrialResults.of(result)


def policy_of(policy: Mapping[str, Any], folder: Path) -> Policy:
    """The limits and preferences of a plain policy, extended by its preset."""
    plain = with_preset(policy, folder)
    choose = plain.get("choose", {})
    return Policy(
        plain.get("limits", {}), choose.get("prefer", "utility"), tuple(plain.get("allow", ())),
        known_scenarios(policy, folder), _objective(policy, folder), extends=plain.get("extends"),
        assume_unknown=plain.get("assume_unknown", ()), keep_order=plain.get("output", {}).get("keep_order", False),
    )  # fmt: skip


def _objective(policy: Mapping[str, Any], folder: Path) -> Mapping[str, float]:
    """What the choice goes by: as the policy file would, once it can be run."""
    try:
        return Job.from_plain(policy, folder / "policy.toml").objective
    except EquipoiseError:
        return with_preset(policy, folder).get("choose", {}).get("weights", {})


@dataclass(frozen=True)
class PolicyChoice:
    """The trial that a policy chooses (the nearest where none meets the limits), and how many meet them."""

    at: int
    accepted: bool
    inside: int
    trial: Trial

    @property
    def mark(self) -> str:
        return "chosen" if self.accepted else "nearest"


def policy_choice(results: TrialResults, policy: Policy) -> PolicyChoice:
    """The trial that would be released under a policy."""
    trial = ahead_of(results.trials, policy)
    limits = policy.parsed
    many = sum(_meets(one, limits) for one in results.trials)
    return PolicyChoice(results.places[id(trial)], inside(policy, trial), many, trial)


def steps(trial: Trial, hierarchies: Mapping[str, Hierarchy]) -> list[str]:
    """What a trial does to the data, a step each; a level is told by what it groups, not by its name."""
    return [
        f"{mask.column} {hierarchies[mask.column].level(mask.level).words()}"
        if isinstance(mask, Recode) and mask.column in hierarchies
        else mask_words(mask)
        for mask in trial.recipe.masks
    ]


def _meets(trial: Trial, limits: Sequence[Limit]) -> bool:
    return all(limit.holds(scored(trial, limit)) for limit in limits)


def has_map(results: TrialResults) -> bool:
    """Whether both risk and utility were measured."""
    return {"risk", "utility"} <= {score.side for score in results.original.scores}


def axes_of_map(results: TrialResults, policy: Policy, risk: str | None, utility: str | None) -> Axes:
    """The two scores of the map; an unknown name, or one of the other side, is ignored."""
    sides = {score.name: score.side for score in results.original.scores}
    one = risk if risk in sides and sides[risk] == "risk" else None
    two = utility if utility in sides and sides[utility] == "utility" else None
    return axes(results.original.scores, risk=one, utility=two, policy=policy)


def map_spec(results: TrialResults, policy: Policy, choice: PolicyChoice, map_axes: Axes) -> Plain:
    """The risk-utility map for the page: points refer to their trial, and layers that change are named."""
    spec = for_page(
        risk_utility_map(
            Frontier((), results.trials), risk=map_axes.risk.name, utility=map_axes.utility.name, policy=policy,
            chosen=choice.trial, original=results.original, nothing=results.nothing, mark=choice.mark,
        )
    )  # fmt: skip
    places = {_spot(trial, map_axes): place for place, trial in reversed(list(enumerate(results.trials)))}
    return {**spec, "layer": [_layer(layer, places) for layer in spec["layer"]]}


def _spot(trial: Trial, map_axes: Axes) -> tuple[str, float, float]:
    risk, utility = map_axes.of(trial)
    return trial.words(), risk.value, utility.value


def _layer(layer: Plain, places: Mapping[tuple[str, float, float], int]) -> Plain:
    """A layer of the map without the zoom of the reports, which would interfere with dragging the limits."""
    bare = {key: value for key, value in layer.items() if key != "params"}
    rows = layer["data"]["values"]
    if layer["name"] in POINT_LAYERS:
        rows = [{**row, "at": places.get((row["recipe"], row["risk"], row["utility"]), -1)} for row in rows]
        bare["mark"] = {**layer["mark"], "cursor": "pointer"}
    return {**bare, "data": {"name": f"rows_{layer['name']}", "values": rows}}


def limit_rows(spec: Mapping[str, Any]) -> Plain:
    """The rows of the layers that change with the limits, by the name of their data."""
    layers = [layer for layer in spec["layer"] if layer["name"].startswith(LIMIT_LAYERS)]
    return {layer["data"]["name"]: layer["data"]["values"] for layer in layers}


def handles(slots: Sequence[Slot], results: TrialResults, map_axes: Axes) -> list[Plain]:
    """The limits shown on the map: the axis of each, and the factor of its number."""
    rows = []
    for place, slot in enumerate(slots):
        for score in slot.scores:
            name = scored(results.original, replace(slot.limit, score=score)).name
            axis = {map_axes.risk.name: "risk", map_axes.utility.name: "utility"}.get(name)
            if axis:
                factor = 100 if slot.share else 1
                rows.append(
                    {"place": place, "axis": axis, "factor": factor, "words": title(name), "sign": slot.limit.sign}
                )
                break
    return rows


def frontier_places(results: TrialResults, map_axes: Axes) -> set[int]:
    """The positions of the trials on the frontier."""
    return {results.places[id(trial)] for trial in undominated(results.trials, map_axes)}


def table(results: TrialResults, policy: Policy, map_axes: Axes, choice: PolicyChoice) -> Plain:
    """Table of trials and scores: the chosen one, those on the frontier, then the others; 500 at most."""
    best, limits = frontier_places(results, map_axes), policy.parsed
    order = sorted(range(len(results.trials)), key=lambda place: (place != choice.at, place not in best, place))
    return {
        "heads": [{"title": title(score.name), "better": score.better} for score in results.original.scores],
        "rows": [
            {
                "at": place,
                "words": results.trials[place].words(),
                "scores": [with_error(score) for score in results.trials[place].scores],
                "inside": _meets(results.trials[place], limits),
                "best": place in best,
                "chosen": place == choice.at,
            }
            for place in order[:MAX_TABLE_ROWS]
        ],
        "tried": len(results.trials),
    }


def trial_facts(results: TrialResults, policy: Policy, choice: PolicyChoice, place: int, pinned: int | None) -> Plain:
    """A trial compared with the original and with the current choice or a pinned trial."""
    trial, other = results.at(place), results.at(pinned) if pinned is not None and pinned != place else None
    return {
        "at": place,
        "words": trial.words(),
        "steps": trial.recipe.words().split("; "),
        "chosen": place == choice.at,
        "mark": choice.mark,
        "choice": choice.trial.words(),
        "choice_at": choice.at,
        "inside": _meets(trial, policy.parsed),
        "draws": len(trial.draws),
        "pinned": pinned,
        "other": other.words() if other else "",
        "scores": list(_rows(results, policy, trial, other or choice.trial)),
        "against": "the pinned one" if other else "the choice" if choice.accepted else "the nearest",
    }


def _rows(results: TrialResults, policy: Policy, trial: Trial, other: Trial) -> Iterator[Plain]:
    bounds: dict[str, list[Limit]] = {}
    for limit in policy.parsed:
        bounds.setdefault(scored(trial, limit).name, []).append(limit)
    for score in trial.scores:
        limits = bounds.get(score.name, [])
        was, beside = (one.scores.named(score.name) for one in (results.original, other))
        yield {
            "title": title(score.name),
            "side": score.side,
            "here": value_text(score.value, score.unit),
            "between": " to ".join(value_text(end, score.unit) for end in score.interval or ()),
            "unit": unit_of(score.unit),
            "was": value_text(was.value, was.unit),
            "beside": value_text(beside.value, beside.unit),
            "difference": difference(score, beside),
            "better": score.gap(beside) < 0,
            "worse": score.gap(beside) > 0,
            "limits": [{"words": bound_words(limit, score), "met": limit.holds(score)} for limit in limits],
            "notes": list(score.notes),
        }


def unit_of(unit: str) -> str:
    """The unit of a value, without the part that its sign already shows."""
    return unit.partition(" ")[2] if is_share(unit) else unit


def difference(score: Score, other: Score) -> str:
    """How a score differs from another in words.

    >>> difference(Score("entropy", 9.0, "higher", unit="bits per record"), Score("entropy", 9.5, "higher"))
    '0.5 less'
    """
    by = score.value - other.value
    if not isfinite(by):
        return "cannot be compared"
    if by == 0:
        return "the same"
    if score.gap(other) == 0:
        return "no difference beyond luck"
    text = value_text(abs(by), score.unit)
    points = text.replace("%", "points") if is_share(score.unit) else text
    return f"{points} {'more' if by > 0 else 'less'}"
