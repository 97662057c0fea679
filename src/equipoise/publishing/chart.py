"""Chart of a publication: risk against what is suppressed, the decision, and what other rules would give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.ground.arrays import Floats
from equipoise.presentation.numbers import fraction, listed, percent
from equipoise.presentation.style import (
    BLUE,
    FAMILIES,
    GREY,
    INK,
    VERMILLION,
    Spec,
    chart,
    labels,
    layer,
    line,
    quantity,
)
from equipoise.publishing.trade_off import TradeOff

if TYPE_CHECKING:
    from equipoise.publishing.other_rules import RuleComparison
    from equipoise.publishing.publication import Decision

WIDTH, HEIGHT = 720, 400
MAX_CURVE_STEPS = 100
"""Steps drawn of a long curve, in each direction."""
SAME_CURVE_PIXELS = 4.0
"""Curves that are nowhere more than so many pixels apart are drawn as one."""
STEEP_SHARE = 0.05
"""Where less than this is withheld for a fifth of the risk, the axis is stretched near 0."""
LETTER_PIXELS, LINE_PIXELS = 6.6, 15.0
"""Pixels that a letter and a line of a label take."""
CURVE_TITLES = {
    "optimal": "expected loss",
    "posterior mean": "largest expected population first",
    "minimum count": "largest count first",
    "weighted estimate": "weighted estimate plugged in",
    "synthetic estimate": "synthetic estimate plugged in",
    "random": "random suppression",
}
"""Rules as the chart and the tables call them; others by their own names."""


def rule_title(name: str) -> str:
    return CURVE_TITLES.get(name, name)


@dataclass(frozen=True, eq=False)
class _Path:
    """A curve as it is drawn, in shares and in pixels."""

    name: str
    withheld: Floats
    risk: Floats
    published: Floats
    steep: bool

    @property
    def x(self) -> Floats:
        return WIDTH * (np.sqrt(self.withheld) if self.steep else self.withheld)

    @property
    def y(self) -> Floats:
        return HEIGHT * (1 - self.risk)

    def at(self, x: Floats) -> Floats:
        """The height of the curve in pixels."""
        return np.interp(x, self.x, self.y)

    def apart(self, other: "_Path") -> float:
        """How far the curves are from each other at most, across or along, whichever is less, in pixels."""
        along = np.linspace(0, WIDTH, 121)
        up = np.abs(self.at(along) - other.at(along))
        heights = self.at(along)
        across = np.abs(np.interp(heights, self.y, self.x) - np.interp(heights, other.y, other.x))
        return float(np.minimum(up, across).max())

    def rows(self, **more: str) -> list[Spec]:
        return [
            {"withheld": round(w, 5), "risk": round(r, 5), "published": int(p), "at": i, **more}
            for i, (w, r, p) in enumerate(zip(self.withheld, self.risk, self.published, strict=True))
        ]


def curve_chart(comparison: "RuleComparison", decision: "Decision | None" = None) -> Spec:
    """Risk against what is withheld, both relative: the best order as a line, other rules dashed, chance dotted.

    Long curves are thinned to steps of theirs; rules that cannot be told apart share a line.
    """
    steep = comparison["optimal"].at_risk(0.2).withheld < STEEP_SHARE
    paths = {name: _path(name, curve, steep) for name, curve in comparison.items()}
    groups = _groups(paths)
    level = decision.risk if decision is not None else 0.2
    spots = _placed(groups, paths, decision)
    rivals = [name for name in groups if name not in ("optimal", "random")]
    layers = [
        _steps(paths["optimal"]),
        *([_chance(paths["random"])] if "random" in groups else []),
        *(_line(name, place, groups, comparison[name], paths[name], level) for place, name in enumerate(rivals)),
        line("best_line", paths["optimal"].rows(), "at", color=BLUE, strokeWidth=2.5),
        *([] if decision is None else _chosen(decision)),
        *(_label(name, spots[name], rivals, steep) for name in groups),
    ]
    title = {"text": "Publish or suppress", "subtitle": "What each rule must withhold for a lower risk."}
    words = _described(comparison, level, decision)
    return chart(layers, _axes(steep), title=title, description=words, size=(WIDTH, HEIGHT))


def _path(name: str, curve: TradeOff, steep: bool) -> _Path:
    """The steps of a curve, at most two hundred of them; chance is sampled, for it may be bent by the axis."""
    count, risk, withheld = (part[::-1].astype(np.float64) for part in curve.steps)
    withheld = np.clip(withheld, 0.0, 1.0)
    if len(count) <= 2:
        withheld = np.linspace(0, 1, 61) ** 2
        return _Path(name, withheld, 1 - withheld, count[0] * (1 - withheld), steep)
    if len(count) > 2 * MAX_CURVE_STEPS:
        ends = np.linspace(0, 1, MAX_CURVE_STEPS) ** (2 if steep else 1)
        places = np.unique(
            np.append(np.searchsorted(withheld, ends[:-1]), len(count) - 1 - np.searchsorted(risk[::-1], ends[:-1]))
        )
        count, risk, withheld = (part[np.append(places, len(count) - 1)] for part in (count, risk, withheld))
    return _Path(name, withheld, risk, count, steep)


def _groups(paths: Mapping[str, _Path]) -> dict[str, list[str]]:
    """Rules under the first one that they cannot be told apart from."""
    groups: dict[str, list[str]] = {}
    for name, path in paths.items():
        like = next((first for first in groups if paths[first].apart(path) < SAME_CURVE_PIXELS), name)
        groups.setdefault(like, []).append(name)
    return groups


@dataclass(frozen=True)
class _Spot:
    """Where a label stands: at a point of its curve, to its upper right or lower left."""

    text: str
    x: float
    y: float
    right: bool = True

    @property
    def box(self) -> tuple[float, float, float, float]:
        wide = LETTER_PIXELS * len(self.text) + 8
        start = self.x if self.right else self.x - wide
        top = self.y - LINE_PIXELS - 3 if self.right else self.y + 3
        return start, top, start + wide, top + LINE_PIXELS


def _placed(
    groups: Mapping[str, list[str]], paths: Mapping[str, _Path], decision: "Decision | None"
) -> dict[str, _Spot]:
    """Each label where it is on no other label, on few other curves, and far from them."""
    lines = np.concatenate([_dots(paths[name]) for name in groups])
    boxes = [] if decision is None else [_chosen_spot(decision, paths["optimal"].steep).box]
    spots_of: dict[str, _Spot] = {}
    for name, same in groups.items():
        text = _together(same)
        others = [paths[other] for other in groups if other != name]
        spots = [_Spot(text, x, y, right) for x, y in _dots(paths[name])[::4] for right in (True, False)]
        spots_of[name] = min(spots, key=lambda spot: _crowded(spot, boxes, lines, others))
        boxes.append(spots_of[name].box)
    return spots_of


def _together(names: Sequence[str]) -> str:
    """Rules that share a line."""
    if len(names) <= 2:
        return " = ".join(map(rule_title, names))
    return f"{rule_title(names[0])} (and {len(names) - 1} rules like it)"


def _dots(path: _Path) -> Floats:
    """Points of a curve that are near each other, in pixels."""
    along, across = np.linspace(0, WIDTH, 181), np.linspace(0, HEIGHT, 121)
    return np.concatenate(
        [np.column_stack([along, path.at(along)]), np.column_stack([np.interp(across, path.y, path.x), across])]
    )


def _crowded(spot: _Spot, boxes: Sequence[tuple[float, ...]], lines: Floats, others: Sequence[_Path]) -> float:
    start, top, right, bottom = spot.box
    outside = start < 0 or right > WIDTH or top < 0 or bottom > HEIGHT
    clash = any(start < b[2] and b[0] < right and top < b[3] and b[1] < bottom for b in boxes)
    inside = (lines > [start, top]).all(axis=1) & (lines < [right, bottom]).all(axis=1)
    clear = min((float(np.abs(path.at(np.array([spot.x])) - spot.y)[0]) for path in others), default=0.0)
    return 1e6 * (outside + clash) + 10 * float(inside.sum()) - min(clear, 60.0)


def _label(name: str, spot: _Spot, rivals: Sequence[str], steep: bool) -> Spec:
    place = rivals.index(name) if name in rivals else None
    colour = INK if place is None else FAMILIES[place % len(FAMILIES)]
    side: Spec = {"align": "left", "dx": 6, "dy": -9} if spot.right else {"align": "right", "dx": -6, "dy": 11}
    style: Spec = {"fontWeight": "bold"} if name == "optimal" else {"fontStyle": "italic"} if name == "random" else {}
    layer_name = {"optimal": "best_label", "random": "random_label"}.get(name, f"curve_label_{place}")
    along = (spot.x / WIDTH) ** (2 if steep else 1)
    row = {"withheld": round(along, 6), "risk": round(1 - spot.y / HEIGHT, 5), "label": spot.text}
    return labels(layer_name, [row], colour=colour, **side, **style)


def _axes(steep: bool) -> Spec:
    whole = {"domain": [0, 1]}
    stretched = {"type": "pow", "exponent": 0.5, **whole} if steep else whole
    ticks = {"values": [0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]} if steep else {}
    words = "Data withheld" + (" (square-root scale)" if steep else "")
    return {
        "x": quantity("withheld", stretched, title=words, format="~p", grid=False, **ticks),
        "y": quantity("risk", whole, title="Risk left, of that of publishing everything", format="~p"),
    }


def _chance(path: _Path) -> Spec:
    return line("random", path.rows(), "at", color=INK, strokeWidth=1.2, strokeDash=[1, 4], strokeCap="round")


def _line(name: str, place: int, groups: Mapping[str, list[str]], curve: TradeOff, path: _Path, level: float) -> Spec:
    """Another rule: hovering tells what it withholds at the risk of the decision."""
    share = f"{percent(curve.at_risk(level).withheld)} withheld"
    rows = path.rows(rule=" = ".join(map(rule_title, groups[name])).capitalize(), there=share)
    tooltip = [
        {"field": "rule", "type": "nominal", "title": "title"},
        {"field": "there", "type": "nominal", "title": f"At a risk of {percent(level)}"},
    ]
    mark = {"color": FAMILIES[place % len(FAMILIES)], "strokeWidth": 1.5, "strokeDash": [6, 4], "opacity": 0.9}
    return line(f"curve_{place}", rows, "at", {"tooltip": tooltip}, **mark)


def _steps(path: _Path) -> Spec:
    """The step of the best order that is nearest to the pointer; beneath the lines, which have tooltips too."""
    tooltip = [
        {"field": "published", "type": "quantitative", "title": "Cells published", "format": ","},
        {"field": "withheld", "type": "quantitative", "title": "Withheld", "format": ".1~%"},
        {"field": "risk", "type": "quantitative", "title": "Risk", "format": ".1~%"},
    ]
    near = {"type": "point", "on": "pointermove", "nearest": True, "clear": "pointerout"}
    opacity = {"condition": {"param": "near", "empty": False, "value": 1}, "value": 0}
    mark = {"type": "point", "filled": True, "color": BLUE, "size": 70, "clip": True, "aria": False}
    steps = layer("best", path.rows(), mark, {"tooltip": tooltip, "opacity": opacity})
    return steps | {"params": [{"name": "near", "select": near}]}


def _chosen(decision: "Decision") -> list[Spec]:
    """The decision, with lines to both axes."""
    row = {"withheld": decision.withheld, "risk": decision.risk, "label": _chosen_text(decision)}
    corner = [{**row, "withheld": 0.0, "at": 0}, {**row, "at": 1}, {**row, "risk": 0.0, "at": 2}]
    point = {"type": "point", "filled": True, "size": 150, "opacity": 1, "color": VERMILLION, "stroke": "white"}
    tooltip = {"tooltip": [{"field": "label", "type": "nominal", "title": "The decision"}]}
    side = _chosen_spot(decision, False).right
    place: Spec = {"align": "left", "dx": 10, "dy": -10} if side else {"align": "right", "dx": -10, "dy": 14}
    return [
        line("guides", corner, "at", color=GREY, strokeWidth=1, opacity=0.7),
        layer("chosen", [row], {**point, "clip": True}, {**tooltip, "description": {"field": "label"}}),
        labels("chosen_label", [row], **place, fontWeight="bold"),
    ]


def _chosen_text(decision: "Decision") -> str:
    risk = fraction(decision.risk) or percent(decision.risk)
    return f"decision: {percent(decision.withheld)} withheld, {risk} of the risk"


def _chosen_spot(decision: "Decision", steep: bool) -> _Spot:
    along = decision.withheld**0.5 if steep else decision.withheld
    return _Spot(_chosen_text(decision), WIDTH * along, HEIGHT * (1 - decision.risk), decision.withheld < 0.6)


def _described(comparison: "RuleComparison", level: float, decision: "Decision | None") -> str:
    """The chart in words, for those who hear it."""
    rest = (
        listed(
            f"{percent(curve.at_risk(level).withheld)} by {rule_title(name)}"
            for name, curve in comparison.items()
            if name != "optimal"
        )
        if len(comparison) > 1
        else "nothing else"
    )
    own = percent(comparison["optimal"].at_risk(level).withheld)
    lead = f"{decision.words} " if decision is not None else ""
    sentence = f"At a risk of {percent(level)}, {own} is withheld by expected loss; {rest}."
    return f"Risk against what is withheld. {lead}{sentence}"
