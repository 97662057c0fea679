"""Trials as plain data and back; the choice among them, the map, and what a trial is beside others."""

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import isfinite
from pathlib import Path
from typing import Any

from equipoise.doors.report.intruder_section import for_page
from equipoise.doors.web.work.limits import SIGNS, Slot, known_scenarios, whole
from equipoise.ground.errors import ParameterError
from equipoise.methods.method import Mask
from equipoise.methods.score import Score, Scores
from equipoise.policies.policy import Limit, Policy, scored
from equipoise.presentation.numbers import is_share, said, title
from equipoise.provenance.journal import SCORE_FIELDS
from equipoise.recipe.catalogue import build, to_plain
from equipoise.recipe.recipe import Recipe
from equipoise.search.frontier import Frontier
from equipoise.search.ranking import ahead_of, inside
from equipoise.search.risk_utility_map import Axes, axes, risk_utility_map, undominated
from equipoise.trials.trial import Trial

Plain = dict[str, Any]
MOST = 500
"""Trials that a table lists."""
SEED = 0
"""Recipes on the page only tell what they do; the seed that was drawn with stays in the journal."""
MOVING = ("rectangle", "risk_bound", "utility_bound", "chosen")
"""Layers of the map that change with the limits."""
POINTS = ("tried", "best", "chosen")


def plain_scores(scores: Scores) -> list[Plain]:
    """Scores without what is behind them."""
    return [{name: _plain(getattr(score, name)) for name in SCORE_FIELDS} for score in scores]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def plain_trial(trial: Trial) -> Plain:
    """A trial: its masks as a policy writes them, its scores, and the values of every draw."""
    masks = [plain_mask(mask) for mask in trial.recipe.masks]
    draws = [[score.value for score in scores] for scores in trial.draws]
    return {"masks": masks, "scores": plain_scores(trial.scores), "draws": draws}


def plain_mask(mask: Mask) -> Plain:
    """A mask as a policy writes it."""
    found: Plain = json.loads(json.dumps(to_plain(mask), default=_listed))
    return found


def _listed(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    return dict(value) if isinstance(value, Mapping) else str(value)


def scores_of(plain: Sequence[Mapping[str, Any]]) -> Scores:
    """Scores from plain data."""
    return Scores(Score(**{**one, "interval": _pair(one["interval"]), "notes": tuple(one["notes"])}) for one in plain)


def _pair(found: Sequence[float] | None) -> tuple[float, float] | None:
    return None if found is None else (found[0], found[1])


def recipe_of(masks: Sequence[Mapping[str, Any]], seed: int = SEED) -> Recipe:
    """The recipe of plain masks."""
    return Recipe(tuple(_mask(json.dumps(mask, sort_keys=True)) for mask in masks), seed)


@lru_cache(maxsize=2000)
def _mask(text: str) -> Mask:
    given = json.loads(text)
    made: Mask = build(given.pop("use"), "mask", given)
    return made


def trial_of(plain: Mapping[str, Any]) -> Trial:
    """A trial from plain data."""
    scores = scores_of(plain["scores"])
    draws = tuple(
        Scores(replace(score, value=value, interval=None) for score, value in zip(scores, values, strict=True))
        for values in plain["draws"]
    )
    return Trial(recipe_of(plain["masks"]), scores, draws)


@dataclass(frozen=True)
class Tried:
    """What a run has tried: the trials, and the two ends of the map."""

    trials: tuple[Trial, ...]
    original: Trial
    nothing: Trial | None
    left_out: tuple[Mapping[str, str], ...] = ()
    records: int = 0
    masks: tuple[tuple[Plain, ...], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Tried":
        nothing = plain["nothing"]
        return cls(
            tuple(map(trial_of, plain["trials"])),
            Trial(Recipe((), SEED), scores_of(plain["original"]), name="original"),
            Trial(Recipe((), SEED), scores_of(nothing), name="no data") if nothing else None,
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


_KNOWN: OrderedDict[str, Tried] = OrderedDict()


def tried_of(name: str, result: Mapping[str, Any]) -> Tried:
    """What a run has tried, made once for each of the last runs."""
    if name not in _KNOWN:
        _KNOWN[name] = Tried.of(result)
        while len(_KNOWN) > 2:
            _KNOWN.popitem(last=False)
    return _KNOWN[name]


def policy_of(policy: Mapping[str, Any], folder: Path) -> Policy:
    """What must hold and what is preferred, of a plain policy with its preset filled in."""
    plain = whole(policy, folder)
    choose = plain.get("choose", {})
    return Policy(
        plain.get("limits", {}), choose.get("prefer", "utility"), tuple(plain.get("allow", ())),
        known_scenarios(policy, folder), choose.get("weights", {}), extends=plain.get("extends"),
    )  # fmt: skip


@dataclass(frozen=True)
class PolicyChoice:
    """The choice a policy makes: the place of the trial (the nearest where none is inside), and how many are inside."""

    at: int
    accepted: bool
    inside: int
    trial: Trial

    @property
    def mark(self) -> str:
        return "chosen" if self.accepted else "nearest"


def answer(found: Tried, policy: Policy) -> PolicyChoice:
    """The trial that would be released under a policy; as `chosen_of` has it."""
    trial = ahead_of(found.trials, policy)
    limits = policy.parsed
    many = sum(_meets(one, limits) for one in found.trials)
    return PolicyChoice(found.places[id(trial)], inside(policy, trial), many, trial)


def _meets(trial: Trial, limits: Sequence[Limit]) -> bool:
    return all(limit.holds(scored(trial, limit)) for limit in limits)


def has_map(found: Tried) -> bool:
    """Whether both sides were measured."""
    return {"risk", "utility"} <= {score.side for score in found.original.scores}


def shown_axes(found: Tried, policy: Policy, risk: str | None, utility: str | None) -> Axes:
    """The two scores of the map; a name that is of the other side, or unknown, is passed over."""
    sides = {score.name: score.side for score in found.original.scores}
    one = risk if risk in sides and sides[risk] == "risk" else None
    two = utility if utility in sides and sides[utility] == "utility" else None
    return axes(found.original.scores, risk=one, utility=two, policy=policy)


def map_spec(found: Tried, policy: Policy, made: PolicyChoice, shown: Axes) -> Plain:
    """The risk-utility map of the reports, for the page: points know their trial, and what moves has a name."""
    spec = for_page(
        risk_utility_map(
            Frontier((), found.trials), risk=shown.risk.name, utility=shown.utility.name, policy=policy,
            chosen=made.trial, original=found.original, nothing=found.nothing, mark=made.mark,
        )
    )  # fmt: skip
    places = {_spot(trial, shown): place for place, trial in reversed(list(enumerate(found.trials)))}
    return {**spec, "layer": [_layer(layer, places) for layer in spec["layer"]]}


def _spot(trial: Trial, shown: Axes) -> tuple[str, float, float]:
    risk, utility = shown.of(trial)
    return trial.words(), risk.value, utility.value


def _layer(layer: Plain, places: Mapping[tuple[str, float, float], int]) -> Plain:
    """A layer without the zoom of the reports, which would take the drag of the limits."""
    made = {key: value for key, value in layer.items() if key != "params"}
    rows = layer["data"]["values"]
    if layer["name"] in POINTS:
        rows = [{**row, "at": places.get((row["recipe"], row["risk"], row["utility"]), -1)} for row in rows]
        made["mark"] = {**layer["mark"], "cursor": "pointer"}
    return {**made, "data": {"name": f"rows_{layer['name']}", "values": rows}}


def moving(spec: Mapping[str, Any]) -> Plain:
    """The rows of the layers that change with the limits, by the name of their data."""
    layers = [layer for layer in spec["layer"] if layer["name"].startswith(MOVING)]
    return {layer["data"]["name"]: layer["data"]["values"] for layer in layers}


def handles(slots: Sequence[Slot], found: Tried, shown: Axes) -> list[Plain]:
    """The limits that the map shows: on which axis each is, and how its number is typed."""
    made = []
    for place, slot in enumerate(slots):
        for score in slot.scores:
            name = scored(found.original, replace(slot.limit, score=score)).name
            axis = {shown.risk.name: "risk", shown.utility.name: "utility"}.get(name)
            if axis:
                factor = 100 if slot.share else 1
                made.append(
                    {"place": place, "axis": axis, "factor": factor, "words": title(name), "sign": slot.limit.sign}
                )
                break
    return made


def frontier_places(found: Tried, shown: Axes) -> set[int]:
    """The trials on the line of the map."""
    return {found.places[id(trial)] for trial in undominated(found.trials, shown)}


def table(found: Tried, policy: Policy, shown: Axes, made: PolicyChoice) -> Plain:
    """Every trial with every score: the chosen one, those on the frontier, then the others; 500 at most."""
    best, limits = frontier_places(found, shown), policy.parsed
    order = sorted(range(len(found.trials)), key=lambda place: (place != made.at, place not in best, place))
    return {
        "heads": [{"title": title(score.name), "better": score.better} for score in found.original.scores],
        "rows": [
            {
                "at": place,
                "words": found.trials[place].words(),
                "scores": [value(score) for score in found.trials[place].scores],
                "inside": _meets(found.trials[place], limits),
                "best": place in best,
                "chosen": place == made.at,
            }
            for place in order[:MOST]
        ],
        "tried": len(found.trials),
    }


def value(score: Score) -> str:
    """A value, and half the width of its interval where draws differ."""
    text = said(score.value, score.unit)
    return f"{text} ± {said(score.error, score.unit)}" if score.error and isfinite(score.error) else text


def trial_facts(found: Tried, policy: Policy, made: PolicyChoice, place: int, pinned: int | None) -> Plain:
    """A trial beside the original, the current choice, and one that was pinned."""
    trial, other = found.at(place), found.at(pinned) if pinned is not None and pinned != place else None
    return {
        "at": place,
        "words": trial.words(),
        "steps": trial.recipe.words().split("; "),
        "chosen": place == made.at,
        "mark": made.mark,
        "choice": made.trial.words(),
        "choice_at": made.at,
        "inside": _meets(trial, policy.parsed),
        "draws": len(trial.draws),
        "pinned": pinned,
        "other": other.words() if other else "",
        "scores": list(_rows(found, policy, trial, other or made.trial)),
        "against": "the pinned one" if other else "the choice" if made.accepted else "the nearest",
    }


def _rows(found: Tried, policy: Policy, trial: Trial, other: Trial) -> Iterator[Plain]:
    bounds: dict[str, list[Limit]] = {}
    for limit in policy.parsed:
        bounds.setdefault(scored(trial, limit).name, []).append(limit)
    for score in trial.scores:
        limits = bounds.get(score.name, [])
        was, beside = (one.scores.named(score.name) for one in (found.original, other))
        yield {
            "title": title(score.name),
            "side": score.side,
            "here": said(score.value, score.unit),
            "between": " to ".join(said(end, score.unit) for end in score.interval or ()),
            "unit": unit_of(score.unit),
            "was": said(was.value, was.unit),
            "beside": said(beside.value, beside.unit),
            "difference": difference(score, beside),
            "better": score.gap(beside) < 0,
            "worse": score.gap(beside) > 0,
            "limits": [
                {"words": f"{SIGNS[limit.sign]} {said(limit.bound, score.unit)}", "met": limit.holds(score)}
                for limit in limits
            ],
            "notes": list(score.notes),
        }


def unit_of(unit: str) -> str:
    """What a value is of, where its own sign does not say it."""
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
    points = (
        f"{said(abs(by), score.unit)}".replace("%", "points") if is_share(score.unit) else said(abs(by), score.unit)
    )
    return f"{points} {'more' if by > 0 else 'less'}"
