"""The picture of a chart stands where the chart does."""

import re

import pytest

import equipoise as eq
from equipoise.presentation.svg import Chart, even_ticks, scaled, static_chart


def trials(*points):
    def one(risk, use, name):
        scores = [eq.Score("uniques", risk, "lower", unit="share"), eq.Score("entropy", use, "higher", unit="bits")]
        return eq.Trial(eq.Recipe(), scores, name=name)

    return [one(*point, f"t{i} <b>") for i, point in enumerate(points)]


@pytest.fixture
def chart():
    return eq.frontier(trials((0.01, 3.0), (0.04, 5.0), (0.09, 4.0))).chart()


def test_a_point_for_every_trial(chart):
    picture = static_chart(chart)
    marks = {name: body.count("<path") for name, body in re.findall(r'<g class="(\w+)_marks">(.*?)</g>', picture)}
    assert (marks["tried"], marks["best"], marks["best_line"]) == (1, 2, 1)
    assert 'role="img"' in picture
    assert picture.count("<svg") == picture.count("</svg>") == 1


def test_points_stand_where_the_scale_says(chart):
    y = scaled(chart["encoding"]["y"]["scale"], 368, 14)
    low, high = chart["encoding"]["y"]["scale"]["domain"]
    assert (y(low), y(high)) == (pytest.approx(368), pytest.approx(14))
    line = re.search(r'best_line_marks"><path d="M([\d. L]+)"', static_chart(chart))[1]
    spots = [tuple(map(float, spot.split())) for spot in line.split("L")]
    assert [spot[1] for spot in spots] == pytest.approx([y(0.01), y(0.04)], abs=0.06)
    assert spots[0][0] < spots[1][0]


def test_scales():
    assert scaled({"domain": [0, 10]}, 0, 100)(5) == 50
    assert scaled({"domain": [0, 10], "reverse": True}, 0, 100)(2) == 80
    assert scaled({"domain": [0.01, 1], "type": "log"}, 0, 100)(0.1) == pytest.approx(50)
    assert scaled({"domain": [0, 1], "type": "pow", "exponent": 0.5}, 0, 100)(0.25) == 50
    assert even_ticks(0, 1) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])


def test_a_notebook_gets_the_chart_and_the_picture(chart):
    bundle = chart._repr_mimebundle_()
    assert isinstance(chart, Chart)
    assert bundle["application/vnd.vegalite.v6+json"] == chart
    assert bundle["text/html"].startswith("<svg")
    assert bundle["text/plain"].startswith("Risk-utility map")


def test_a_band_goes_there_and_back():
    scale = {"domain": [0, 10]}
    layer = {
        "name": "band",
        "data": {"values": [{"x": 0, "low": 2, "high": 4}, {"x": 10, "low": 3, "high": 5}]},
        "mark": {"type": "area", "color": "#123456", "opacity": 0.2},
        "encoding": {"y": {"field": "low"}, "y2": {"field": "high"}},
    }
    axes = {"x": {"field": "x", "scale": scale, "axis": {}}, "y": {"field": "low", "scale": scale, "axis": {}}}
    picture = static_chart({"encoding": axes, "layer": [layer]})
    (path,) = re.findall(r'<g class="band_marks"><path d="M([^Z]*)Z"', picture)
    x, y = scaled(scale, 64, 704), scaled(scale, 368, 14)
    corners = [(0, 2), (10, 3), (10, 5), (0, 4)]
    assert path == "L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in corners)


def test_points_that_only_show_under_a_pointer_are_not_drawn(chart):
    for layer in chart["layer"]:
        if layer["name"] == "best":
            layer["encoding"]["opacity"] = {"condition": {"param": "near", "value": 1}, "value": 0}
    assert "best_marks" not in static_chart(chart)
