"""The limits on a map: the rectangle that a policy accepts."""

from collections.abc import Sequence

from equipoise.methods.score import Score, Side
from equipoise.policies.policy import Limit
from equipoise.presentation.numbers import brief, value_text
from equipoise.presentation.style import DARK_GREEN, GREEN, Spec, labels, layer

Limits = dict[Side, tuple[Limit, ...]]
Pixel = int | str
BOUND: Spec = {"type": "rule", "color": GREEN, "strokeWidth": 1.5, "strokeDash": [6, 3], "clip": True, "aria": False}


def _span(limits: Sequence[Limit]) -> tuple[float | None, float | None]:
    """The tightest lower and upper bound."""
    low = max((limit.bound for limit in limits if limit.sign.startswith(">")), default=None)
    high = min((limit.bound for limit in limits if limit.sign.startswith("<")), default=None)
    return low, high


def _stretch(limits: Sequence[Limit], channel: str, field: str, ends: tuple[Pixel, Pixel]) -> tuple[Spec, Spec]:
    """From bound to bound, or to the edge of the map where there is none: the encoding, and the row it reads."""
    low, high = _span(limits)
    if low is not None and high is not None:
        return {f"{channel}2": {"field": f"{field}_far"}}, {field: low, f"{field}_far": high}
    if low is None and high is None:
        return {channel: {"value": ends[0]}, f"{channel}2": {"value": ends[1]}}, {}
    edge = ends[1] if high is None else ends[0]
    return {f"{channel}2": {"value": edge}}, {field: low if high is None else high}


def rectangle(risk: Score, utility: Score, limits: Limits, *, inside: bool = False, edge: bool = False) -> list[Spec]:
    """What a policy accepts: a shaded area, its bounds drawn, and named where a frontier leaves room.

    `inside` has the names in the area, for maps on which there is little beside it; `edge` that of utility above it.
    """
    if not any(limits.values()):
        return []
    across: tuple[Pixel, Pixel] = (0, "width") if utility.better == "higher" else ("width", 0)
    upward: tuple[Pixel, Pixel] = ("height", 0) if risk.better == "lower" else (0, "height")
    x, column = _stretch(limits["utility"], "x", "utility", across)
    y, row = _stretch(limits["risk"], "y", "risk", upward)
    area = {"type": "rect", "color": GREEN, "opacity": 0.12, "clip": True, "aria": False}
    levels = [part for place, limit in enumerate(limits["risk"]) for part in _level(place, limit, risk, x, column)]
    for place, limit in enumerate(limits["utility"]):
        levels += _upright(place, limit, utility, y, row, inside and utility.better == "higher", edge)
    return [layer("rectangle", [column | row], area, x | y), *levels]


def _level(place: int, limit: Limit, score: Score, x: Spec, column: Spec) -> list[Spec]:
    """A bound on risk, named at the useful end, which candidates seldom reach."""
    at = column | {"risk": limit.bound, "label": _bound(limit, score)}
    far = any(part.get("value") == "width" for part in x.values())
    spot: Spec = {"x": {"value": "width"}} if far else {} if "utility" in column else {"x": {"value": 0}}
    style: Spec = {"align": "right", "dx": -6} if far else {"align": "left", "dx": 6}
    words = labels(f"risk_bound_label_{place}", [at], spot, colour=DARK_GREEN, dy=11, **style)
    return [layer(f"risk_bound_{place}", [at], BOUND, x), words]


def _upright(place: int, limit: Limit, score: Score, y: Spec, row: Spec, inside: bool, edge: bool) -> list[Spec]:
    """A bound on utility."""
    at = row | {"utility": limit.bound, "label": _bound(limit, score)}
    spot: Spec = {} if row else {"y": {"value": 4}}
    corner: Spec = {"align": "left", "dx": 7, "dy": 26} if inside else {"align": "right", "dx": -7, "dy": 9}
    corner |= {"align": "left", "dx": 2 if row else 7, "dy": -10 if row else 9} if edge and not inside else {}
    words = labels(f"utility_bound_label_{place}", [at], spot, colour=DARK_GREEN, **corner)
    return [layer(f"utility_bound_{place}", [at], BOUND, y), words]


def _bound(limit: Limit, score: Score) -> str:
    sign = {"<=": "≤", ">=": "≥"}.get(limit.sign, limit.sign)
    return f"{brief(score.name)} {sign} {value_text(limit.bound, score.unit)}"
