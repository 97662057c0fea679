"""Static SVG of a Vega-Lite chart, for the parts of the language that our charts use.

For readers without scripts, and for notebooks. Marks have the CSS classes of Vega, so that a page styles both alike;
ink is `currentColor`, which follows the theme of the page.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10, sqrt
from typing import Any

from equipoise.presentation.numbers import number
from equipoise.presentation.style import INK, Spec

Row = Mapping[str, Any]
Scale = Callable[[float], float]
WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 14, 52
MAX_LAYER_POINTS = 200
"""Most points drawn of one layer."""


class Chart(dict[str, Any]):
    """A Vega-Lite specification that a notebook shows: by Vega where it can, else as static SVG."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        text = str(self.get("description", "Chart"))
        return {"application/vnd.vegalite.v6+json": dict(self), "text/html": static_chart(self), "text/plain": text}


@dataclass(frozen=True)
class Frame:
    """Pixel positions of values on the two axes."""

    x: Scale
    y: Scale
    encoding: Spec

    def place(self, channel: str, row: Row, encoding: Spec) -> float | None:
        """Position of a row on x, x2, y or y2; None where the layer does not define it."""
        definition = encoding.get(channel) or self.encoding.get(channel)
        if definition is None:
            return None
        if "value" in definition:
            return self._edge(channel, definition["value"])
        value = row.get(definition["field"])
        return None if value is None else (self.x if channel.startswith("x") else self.y)(float(value))

    def _edge(self, channel: str, value: float | str) -> float:
        far = {"width": WIDTH - LEFT - RIGHT, "height": HEIGHT - TOP - BOTTOM}
        start = LEFT if channel.startswith("x") else TOP
        return start + (far[value] if isinstance(value, str) else float(value))


def static_chart(spec: Spec) -> str:
    """The picture of a chart of points, lines, bands, rules, rectangles and texts over two numeric axes."""
    encoding = spec["encoding"]
    across = scaled(encoding["x"]["scale"], LEFT, WIDTH - RIGHT)
    upward = scaled(encoding["y"]["scale"], HEIGHT - BOTTOM, TOP)
    frame = Frame(across, upward, encoding)
    parts = [*_axis(encoding["x"], across, True), *_axis(encoding["y"], upward, False)]
    parts += [_layer(layer, frame) for layer in spec["layer"] if "mark" in layer and layer["data"]["values"]]
    description = escape(spec.get("description", "Chart"))
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" style="max-width:100%;height:auto"'
    font = 'font-family="system-ui, sans-serif" font-size="12" fill="currentColor"'
    return f'<svg role="img" aria-label="{description}" {size} {font}>{"".join(parts)}</svg>'


def scaled(scale: Spec, start: float, end: float) -> Scale:
    """A linear, square-root (or other power) or logarithmic scale from its domain to pixels."""
    low, high = (_stretch(scale)(value) for value in scale["domain"])
    start, end = (end, start) if scale.get("reverse") else (start, end)
    return lambda value: start + (_stretch(scale)(value) - low) / ((high - low) or 1.0) * (end - start)


def _stretch(scale: Spec) -> Scale:
    if scale.get("type") == "log":
        return lambda value: log10(max(value, 1e-300))
    if scale.get("type") == "pow":
        return lambda value: (abs(value) ** scale["exponent"]) * (1 if value >= 0 else -1)
    return lambda value: value


def _axis(channel: Spec, scale: Scale, level: bool) -> list[str]:
    """The line, the ticks with their numbers, and the title."""
    axis: Spec = channel["axis"]
    low, high = channel["scale"]["domain"]
    if axis.get("domain") is False:
        low, high = max(low, 0.0), min(high, 1.0)
    ticks = [tick for tick in axis.get("values") or even_ticks(low, high) if low <= tick <= high]
    share = "%" in axis.get("format", "") or axis.get("format", "").endswith("p")
    words = [f"{number(100 * tick)} %" if share else number(tick) for tick in ticks]
    title, ground = escape(str(axis.get("title") or "")), HEIGHT - BOTTOM
    if level:
        start, end = sorted((scale(low), scale(high)))
        lines = [f'<path d="M{start:.1f} {ground}H{end:.1f}" stroke="currentColor" stroke-opacity=".35"/>']
        spots = _without_overlap([(scale(t), w) for t, w in zip(ticks, words, strict=True)])
        lines += [_text(x, ground + 18, w, "middle", 0.75) for x, w in spots]
        return [*lines, _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, title, "middle")]
    lines = [
        f'<path d="M{LEFT} {scale(t):.1f}H{WIDTH - RIGHT}" stroke="currentColor" stroke-opacity=".12"/>' for t in ticks
    ]
    lines += [_text(LEFT - 8, scale(t) + 4, w, "end", 0.75) for t, w in zip(ticks, words, strict=True)]
    middle = (TOP + ground) / 2
    return [*lines, f'<g transform="rotate(-90 14 {middle:.0f})">{_text(14, middle, title, "middle")}</g>']


def _without_overlap(spots: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """The labels along an axis that do not overlap those before, a letter being about 7 pixels wide.

    >>> _without_overlap([(0.0, "80 %"), (30.0, "90 %"), (60.0, "100 %")])
    [(0.0, '80 %'), (60.0, '100 %')]
    """
    labels: list[tuple[float, str]] = []
    for x, words in sorted(spots):
        if not labels or x - labels[-1][0] >= 3.5 * (len(words) + len(labels[-1][1])) + 4:
            labels.append((x, words))
    return labels


def _text(x: float, y: float, words: str, anchor: str, opacity: float = 1.0) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill-opacity="{opacity:g}">{words}</text>'


def even_ticks(low: float, high: float) -> list[float]:
    """About six round numbers between the ends.

    >>> even_ticks(-0.4, 13.5)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    """
    raw = (high - low) / 7 or 1.0
    power = 10.0 ** floor(log10(raw))
    step = next(digit * power for digit in (1.0, 2.0, 5.0, 10.0) if digit * power >= raw * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(step * k, 12) for k in range(first, last + 1)]


def _layer(layer: Spec, frame: Frame) -> str:
    mark, encoding, rows = layer["mark"], layer.get("encoding", {}), layer["data"]["values"]
    kinds = {"point": _points, "line": _line, "area": _area, "rule": _rules, "rect": _rects, "text": _texts}
    draw = kinds.get(mark["type"])
    if draw is None or encoding.get("opacity", {}).get("value") == 0:
        return ""
    return f'<g class="{escape(str(layer.get("name", "layer")))}_marks">{draw(mark, encoding, rows, frame)}</g>'


def _colour(mark: Spec) -> str:
    colour = str(mark.get("color", INK))
    return "currentColor" if colour == INK else escape(colour)


def _points(mark: Spec, encoding: Spec, rows: Sequence[Row], frame: Frame) -> str:
    radius = sqrt(mark.get("size", 60) / 3.1416)
    paint = 'fill="{0}"' if mark.get("filled", True) else 'fill="none" stroke="{0}" stroke-width="2"'
    shape = _diamond if mark.get("shape") == "diamond" else _disc
    sampled = rows[:: max(1, -(-len(rows) // MAX_LAYER_POINTS))]
    spots = [
        (frame.place("x", row, encoding), frame.place("y", row, encoding), _hue(mark, encoding, row)) for row in sampled
    ]
    marks = [(shape(x, y, radius), paint.format(hue)) for x, y, hue in spots if x is not None and y is not None]
    return "".join(f'<path d="{path}" {look}/>' for path, look in marks)


def _hue(mark: Spec, encoding: Spec, row: Row) -> str:
    """Colour of a row from its colour field, else that of the layer."""
    colour = encoding.get("color", {})
    scale = colour.get("scale", {})
    hues = dict(zip(scale.get("domain", ()), scale.get("range", ()), strict=False))
    return escape(str(hues.get(row.get(colour.get("field")), ""))) or _colour(mark)


def _disc(x: float, y: float, r: float) -> str:
    return f"M{x - r:.1f} {y:.1f}a{r:.1f} {r:.1f} 0 1 0 {2 * r:.1f} 0a{r:.1f} {r:.1f} 0 1 0 {-2 * r:.1f} 0"


def _diamond(x: float, y: float, r: float) -> str:
    return f"M{x:.1f} {y - r:.1f}l{r:.1f} {r:.1f}l{-r:.1f} {r:.1f}l{-r:.1f} {-r:.1f}Z"


def _stroke(mark: Spec) -> str:
    dash = f' stroke-dasharray="{" ".join(map(str, mark["strokeDash"]))}"' if "strokeDash" in mark else ""
    wide = mark.get("strokeWidth", 1)
    return f'stroke="{_colour(mark)}" stroke-width="{wide:g}" stroke-opacity="{mark.get("opacity", 1):g}"{dash}'


def _line(mark: Spec, encoding: Spec, rows: Sequence[Row], frame: Frame) -> str:
    field = encoding.get("order", {}).get("field")
    ranked = sorted(rows, key=lambda row: float(row[field])) if field else rows
    spots = [(frame.place("x", row, encoding), frame.place("y", row, encoding)) for row in ranked]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in spots if x is not None and y is not None)
    return f'<path d="M{path}" fill="none" {_stroke(mark)}/>' if path else ""


def _area(mark: Spec, encoding: Spec, rows: Sequence[Row], frame: Frame) -> str:
    """A band between two lines."""
    spots = [(frame.place("x", row, encoding), *(frame.place(y, row, encoding) for y in ("y", "y2"))) for row in rows]
    band = [(x, low, high) for x, low, high in spots if x is not None and low is not None and high is not None]
    path = [*((x, low) for x, low, _ in band), *((x, high) for x, _, high in reversed(band))]
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in path)
    return f'<path d="M{line}Z" fill="{_colour(mark)}" fill-opacity="{mark.get("opacity", 1):g}"/>' if path else ""


def _box(row: Row, encoding: Spec, frame: Frame) -> tuple[float, float, float, float] | None:
    """The two corners of a rule or a rectangle."""
    x, y = frame.place("x", row, encoding), frame.place("y", row, encoding)
    if x is None or y is None:
        return None
    far_x, far_y = frame.place("x2", row, encoding), frame.place("y2", row, encoding)
    return x, y, x if far_x is None else far_x, y if far_y is None else far_y


def _rules(mark: Spec, encoding: Spec, rows: Sequence[Row], frame: Frame) -> str:
    boxes = [box for row in rows[:: max(1, -(-len(rows) // MAX_LAYER_POINTS))] if (box := _box(row, encoding, frame))]
    ends = (f'x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}"' for a, b, c, d in boxes)
    return "".join(f"<line {end} {_stroke(mark)}/>" for end in ends)


def _rects(mark: Spec, encoding: Spec, rows: Sequence[Row], frame: Frame) -> str:
    boxes = [box for row in rows if (box := _box(row, encoding, frame))]
    paint = f'fill="{_colour(mark)}" fill-opacity="{mark.get("opacity", 1):g}"'
    return "".join(f'<path d="M{a:.1f} {b:.1f}H{c:.1f}V{d:.1f}H{a:.1f}Z" {paint}/>' for a, b, c, d in boxes)


def _texts(mark: Spec, encoding: Spec, rows: Sequence[Row], frame: Frame) -> str:
    anchor = {"left": "start", "right": "end"}.get(mark.get("align", "center"), "middle")
    bold = ' font-weight="bold"' if mark.get("fontWeight") == "bold" else ""
    texts = []
    for row in rows[:MAX_LAYER_POINTS]:
        x, y = frame.place("x", row, encoding), frame.place("y", row, encoding)
        words = row.get(encoding.get("text", {}).get("field", "label"))
        if x is not None and y is not None and words is not None:
            spot = f'x="{x + mark.get("dx", 0):.1f}" y="{y + mark.get("dy", 0) + 4:.1f}"'
            texts.append(
                f'<text {spot} text-anchor="{anchor}" fill="{_colour(mark)}"{bold}>{escape(str(words))}</text>'
            )
    return "".join(texts)
