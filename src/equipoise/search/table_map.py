"""The risk-utility map of a table: every method by its colour, its shape and its number."""

from typing import Any

from equipoise.ground.errors import ParameterError
from equipoise.ground.system import packaged
from equipoise.methods.score import Score
from equipoise.presentation.numbers import percent, title
from equipoise.presentation.style import VERMILLION, Spec, labels, points
from equipoise.recipe.catalogue import parse
from equipoise.search.risk_utility_map import Axes, axes, point_row, risk_utility_map, score_fields
from equipoise.search.table_comparison import TableComparison
from equipoise.trials.table_method_names import rule_text
from equipoise.trials.trial import Trial

METHOD_STYLES = {
    "suppress": ("#1f83c4", "circle"),
    "round": ("#bd8200", "square"),
    "cell key": ("#c2669f", "triangle-up"),
    "adjust": ("#14906b", "cross"),
}
"""Colour and shape of each method: told apart by either, on white and on black."""
OTHER_STYLE = ("#6e7781", "triangle-down")
REPLACED_LAYERS = ("tried", "best", "chosen", "chosen_label")
"""Layers of the map of records that are drawn here in another way; so are the curves."""
LABEL_GAP = (0.035, 0.06)
"""Points nearer than these shares of the width and the height share a label."""
ROOM_BELOW_ZERO = 0.08
"""Room below a risk of 0, as a part of the height: there is much to see at 0."""


def score_words(score: Score) -> str:
    """What a score of a table is, in plain words.

    >>> score_words(Score("suppressed(of='value')", 0.1, "lower"))
    'Share of the value suppressed'
    """
    try:
        measure: Any = parse(score.name, "measure")
    except ParameterError:
        return title(score.name)
    name, kind = score.name.partition("(")[0], getattr(measure, "of", getattr(measure, "kind", ""))
    within = getattr(measure, "within", 0)
    if name == "kept_margins" and within:
        return f"Share of totals published to within {percent(within)}"
    titles = packaged("search/table_axis_titles.toml")
    return titles.get(f"{name} {kind}") or titles.get(name) or title(score.name)


def score_name(score: Score) -> str:
    """The same with the rule that it goes by."""
    rule = getattr(parse(score.name, "measure"), "rule", None)
    return score_words(score) + (f", by {rule_text(rule)}" if rule is not None else "")


def table_map(compared: TableComparison, mark: str = "released") -> Spec:
    """The map of a table's methods as a Vega-Lite specification: further down is safer, further right more useful."""
    policy = compared.policy if compared.policy.limits else None
    spec = risk_utility_map(
        compared.frontier, policy=policy, chosen=compared.chosen, original=compared.original, mark=mark
    )
    plane = axes(compared.chosen.scores, policy=policy)
    for channel, score in (("y", plane.risk), ("x", plane.utility)):
        _explain(spec["encoding"][channel], score)
    points = [plane.of(trial) for trial in (*compared.trials, compared.original)]
    spec["encoding"]["x"]["scale"]["domain"] = _across([u.value for _, u in points], plane.utility)
    layers = [_renamed(layer, plane) for layer in spec["layer"] if not _elsewhere(layer["name"])]
    zoom = next(layer["params"] for layer in spec["layer"] if layer["name"] == "tried")
    methods = _methods(compared, plane) | {"params": zoom}
    spec["layer"] = [
        *layers,
        *_ringed(compared.chosen, plane, mark),
        methods,
        _numbers(compared, plane, spec["encoding"]),
    ]
    return spec


def _across(values: list[float], utility: Score) -> list[float]:
    """From the least to the most that was measured, room for a label on the useful side; limits may lie outside."""
    low, high = min(values), max(values)
    width = (high - low) or abs(high) or 1.0
    lower, right = (0.06, 0.12) if utility.better == "higher" else (0.12, 0.06)
    return [low - lower * width, high + right * width]


def _explain(channel: Spec, score: Score) -> None:
    """Axes in plain words, without numbers below 0, and with room below it."""
    channel["axis"] = {
        "labelExpr": "datum.value < 0 ? '' : datum.label",
        **channel["axis"],
        "title": score_words(score),
    }
    if channel["scale"].get("type") == "pow":
        high = 1.06 * channel["scale"]["domain"][1]
        channel["scale"]["domain"] = [-high * ROOM_BELOW_ZERO**2, high]


def _elsewhere(name: str) -> bool:
    return name in REPLACED_LAYERS or name.startswith("curve")


def _renamed(layer: Spec, axes: Axes) -> Spec:
    """The labels of limits in plain words."""
    for row in layer["data"]["values"]:
        for score in (axes.risk, axes.utility):
            if str(row.get("label", "")).startswith(f"{title(score.name)} "):
                bound = row["label"].removeprefix(title(score.name))
                row["label"] = "limit" + bound.replace("<=", "≤").replace(">=", "≥")
    if layer["name"].startswith("risk_bound_label"):
        layer["mark"] |= {"dy": -9, "align": "left", "dx": 6}
        layer["encoding"]["x"] = {"value": 0}
    if layer["name"] == "end_label":
        layer["mark"] |= {"align": "left", "dx": 11}
        for row in layer["data"]["values"]:
            row["label"] = "original"
    return layer


def _methods(compared: TableComparison, axes: Axes) -> Spec:
    """A point for every trial; the legend names the methods."""
    families = list(dict.fromkeys(trial.recipe.family for trial in compared.trials))
    looks = [METHOD_STYLES.get(name, OTHER_STYLE) for name in families]
    legend = {"title": None, "orient": "top", "symbolSize": 110, "labelFontSize": 13, "labelColor": "#57606a"}
    rows = [_row(trial, number, axes) for number, trial in enumerate(compared.trials, start=1)]
    layer = points("methods", rows, "recipe", score_fields([compared.chosen]), size=110)
    for channel, values in zip(("color", "shape"), zip(*looks, strict=True), strict=True):
        scale = {"domain": families, "range": list(values)}
        layer["encoding"][channel] = {"field": "family", "type": "nominal", "legend": legend, "scale": scale}
    return layer


def _row(trial: Trial, number: int, axes: Axes) -> Spec:
    row = point_row(trial, axes)
    return {**row, "recipe": f"{number} {row['recipe']}", "family": trial.recipe.family, "label": str(number)}


def _numbers(compared: TableComparison, axes: Axes, scales: Spec) -> Spec:
    """The number of each point; points that stand close share a label."""
    groups: list[list[tuple[int, float, float]]] = []
    places = [(number, *_spot(trial, axes, scales)) for number, trial in enumerate(compared.trials, start=1)]
    for number, x, y in sorted(places, key=lambda place: place[1:]):
        near = next((g for g in groups if abs(g[-1][1] - x) < LABEL_GAP[0] and abs(g[0][2] - y) < LABEL_GAP[1]), None)
        groups.append([(number, x, y)]) if near is None else near.append((number, x, y))
    rows = [_label(sorted(number for number, _, _ in group), compared, axes) for group in groups]
    return labels("method_numbers", rows, align="center", dy=-14, fontSize=12, fontWeight="bold")


def _spot(trial: Trial, axes: Axes, scales: Spec) -> tuple[float, float]:
    """Where a point stands, as shares of the width and the height."""
    risk, utility = axes.of(trial)
    low, high = scales["x"]["scale"]["domain"]
    most = scales["y"]["scale"]["domain"][1]
    return (utility.value - low) / (high - low), (max(0.0, risk.value) / most) ** 0.5 if most > 0 else 0.0


def _label(numbers: list[int], compared: TableComparison, axes: Axes) -> Spec:
    """The numbers of a group over its middle, at its highest point."""
    scores = [axes.of(compared.trials[number - 1]) for number in numbers]
    across = [utility.value for _, utility in scores]
    return {
        "risk": max(risk.value for risk, _ in scores),
        "utility": (min(across) + max(across)) / 2,
        "label": ", ".join(map(str, numbers)),
    }


def _ringed(chosen: Trial, axes: Axes, mark: str) -> list[Spec]:
    """A ring around what was published, or stands for it."""
    risk, utility = axes.of(chosen)
    row = {"risk": risk.value, "utility": utility.value, "label": mark}
    ring = {"type": "point", "filled": False, "shape": "circle", "size": 420, "color": VERMILLION, "strokeWidth": 2.5}
    return [
        {"name": "ring", "data": {"values": [row]}, "mark": {**ring, "opacity": 1, "aria": False}},
        labels("ring_label", [row], align="left", dx=15, dy=14, fontSize=13, fontWeight="bold"),
    ]
