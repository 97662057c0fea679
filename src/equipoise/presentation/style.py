"""Chart style: colours, fonts, labels and scales of all charts."""

from collections.abc import Sequence
from math import floor, inf, log10
from typing import Any

Spec = dict[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
"""Version of Vega-Lite; nothing is fetched from this address."""
GREY, BLUE, GREEN, VERMILLION = "#6e7781", "#0072B2", "#009E73", "#D55E00"
"""From the palette of Okabe and Ito, distinguishable by readers who are colour-blind."""
FAMILIES = ("#882255", "#117733", "#8a6d00", "#332288", "#AA4499", "#7a4b1e", "#44617b", "#661100")
"""Dark enough to read as text; distinguished by their labels as well."""
INK, DARK_GREEN = "#1f2328", "#00694d"
NO_SHARE = "datum.value < -1e-9 || datum.value > 1.000000001"
NO_TICK: dict[str, Any] = {"condition": {"test": NO_SHARE, "value": 0}, "value": 1}
SHARE_AXIS: dict[str, Any] = {"domain": False, "labelExpr": f"{NO_SHARE} ? '' : datum.label", "tickOpacity": NO_TICK}
"""An axis of shares has room for labels beyond 0 and 100 %, but no tick, no number and no line there."""


def chart(layers: list[Spec], encoding: Spec, *, title: Spec, description: str, size: tuple[int, int]) -> Spec:
    """A chart of layers on common axes, in our style; `description` is for those who hear it."""
    head = {"$schema": SCHEMA, "title": title, "description": description, "width": size[0], "height": size[1]}
    return head | {"encoding": encoding, "layer": layers, "config": look()}


def layer(name: str, rows: Sequence[Spec], mark: Spec, encoding: Spec | None = None) -> Spec:
    return {"name": name, "data": {"values": list(rows)}, "mark": mark, "encoding": encoding or {}}


def line(name: str, rows: Sequence[Spec], order: str, encoding: Spec | None = None, **mark: Any) -> Spec:
    """A line through the points of its rows, in the order of a field."""
    place = {"order": {"field": order, "type": "quantitative"}}
    return layer(name, rows, {"type": "line", "clip": True, "aria": False, **mark}, place | (encoding or {}))


def points(name: str, rows: Sequence[Spec], heading: str, tooltip: Sequence[Spec], **mark: Any) -> Spec:
    """A point for each row, told by the field `heading` and what the tooltip adds."""
    title = {"field": heading, "type": "nominal", "title": "title"}
    encoding = {"tooltip": [title, *tooltip], "description": {"field": heading, "type": "nominal"}}
    return layer(name, rows, {"type": "point", "filled": True, "opacity": 1, "clip": True, **mark}, encoding)


def quantity(field: str, scale: Spec, **axis: Any) -> Spec:
    """An axis of numbers."""
    return {"field": field, "type": "quantitative", "scale": {"nice": False, **scale}, "axis": axis}


def labels(name: str, rows: Sequence[Spec], spot: Spec | None = None, colour: str = INK, **mark: Any) -> Spec:
    """Text at the points of its rows."""
    style = {"type": "text", "fontSize": 12, "color": colour, "clip": True, "aria": False, **mark}
    return layer(name, rows, style, {"text": {"field": "label", "type": "nominal"}, **(spot or {})})


def error_bars(name: str, channel: str, rows: Sequence[Spec]) -> Spec:
    """A line from `name`_low to `name`_high in each row."""
    ends = {channel: {"field": f"{name}_low", "type": "quantitative"}, f"{channel}2": {"field": f"{name}_high"}}
    mark = {"type": "rule", "color": GREY, "opacity": 0.45, "clip": True, "aria": False}
    return layer(f"{name}_error", rows, mark, ends)


def zoom() -> Spec:
    """Zoom and pan: drag, wheel with Ctrl (or pinch), double-click to reset; the page itself still scrolls."""
    return {
        "name": "zoom",
        "select": {"type": "interval", "zoom": "wheel![event.ctrlKey || event.metaKey]"},
        "bind": "scales",
    }


def domain(values: Sequence[float], room: float) -> list[float]:
    """Axis domain from the least value (0 where that is near) to the greatest, with room for a label after it."""
    low, high = min(values), max(values)
    low = 0.0 if 0 <= low < high / 2 else low
    width = high - low or abs(high) or 1.0
    return [low - room * width, high + max(room, 0.1) * width]


def rooted(values: Sequence[float], room: float) -> Spec:
    """A square-root scale from just below 0, so that a risk of 0 is clear of the axis; linear for negative values."""
    if min(values) < 0:
        return {"domain": domain(values, room), "zero": False}
    high = (1.05 + room) * max(values) or 1.0
    return {"type": "pow", "exponent": 0.5, "domain": [-high * 0.025**2, high]}


def root_ticks(values: Sequence[float]) -> list[float]:
    """Ticks at 0 and 1, 2, 5 of each decade, as far down as they are apart on a square-root scale."""
    high = max(values)
    if min(values) < 0 or high <= 0:
        return []
    top = floor(log10(high))
    ticks: list[float] = []
    for tick in (float(f"{digit}e{power}") for power in range(top, top - 4, -1) for digit in (5, 2, 1)):
        above = (ticks[-1] / high) ** 0.5 if ticks else inf
        if tick <= high and min(above - (tick / high) ** 0.5, (tick / high) ** 0.5) > 0.06:
            ticks.append(tick)
    return [0.0, *reversed(ticks)]


def look() -> Spec:
    """Vega-Lite configuration of fonts, lines and titles."""
    lines = {"gridColor": "#e6e9ed", "domainColor": "#8c959f", "tickColor": "#8c959f"}
    return {
        "background": "white",
        "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
        "view": {"stroke": None},
        "axis": {**lines, "labelColor": "#57606a", "titleColor": INK, "labelFontSize": 12, "titleFontSize": 12.5}
        | {"titleFontWeight": 500, "titlePadding": 10, "labelPadding": 6},
        "title": {"anchor": "start", "subtitleColor": "#57606a", "offset": 16},
    }
