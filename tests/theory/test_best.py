"""The parameter under a limit against a fine grid and against closed forms; the curves as data."""

from math import inf, sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.theory import Theory, best, curve, mean

CASES: list[tuple[str, str, dict[str, Any], float, Any]] = [
    ("scale", "noise", {"n": 10, "s2": 4.0}, 0.5, np.linspace(0, 3, 30_001)),
    ("l2", "noise", {"n": 5, "s2": 1.0, "target": "outside"}, 0.7, np.linspace(0, 9, 30_001)),
    ("l2", "noise", {"n": 10, "s2": 4.0, "form": "naive"}, 0.4, np.linspace(0, 9, 30_001)),
    ("rate", "swapped", {"s2": 4.0, "d": 3.0}, 0.6, np.linspace(0, 1, 30_001)),
    ("rate", "swapped", {"s2": 1.0, "d": 3.0, "areas": (4, 6), "partners": 3}, 2.0, np.linspace(0, 1, 30_001)),
    ("rate", "swapped", {"s2": 4.0, "d": 3.0, "form": "naive"}, 0.1, np.linspace(0, 1, 30_001)),
    ("a2", "synthetic", {"n": 10, "s2": 4.0, "m": 2}, 0.25, np.linspace(0, 9, 30_001)),
    ("m", "synthetic", {"n": 10, "s2": 4.0}, 0.26, range(1, 400)),
    ("k", "synthetic", {"n": 10, "s2": 4.0, "m": 2}, 0.255, range(1, 400)),
]


@pytest.mark.evidence(every=2)
@pytest.mark.parametrize(("parameter", "method", "given", "limit", "grid"), CASES)
def test_the_optimum_is_that_of_a_fine_grid(
    parameter: str, method: str, given: dict[str, Any], limit: float, grid: Any
) -> None:
    """The optimum under a risk limit against a grid: never less useful, never riskier, equal to its step."""
    chosen = best(parameter, risk_at_most=limit, **given)
    values = [v if isinstance(v, int) else float(v) for v in grid]
    points = [(v, mean(method, **given, **{parameter: v})) for v in values]
    value, point = max(((v, p) for v, p in points if p.risk <= limit), key=lambda pair: pair[1].utility)
    assert chosen.point.risk <= limit
    assert chosen.point.utility >= point.utility
    assert chosen.value == pytest.approx(value, abs=values[1] - values[0] if method != "synthetic" else 9 / 30_000)
    assert chosen.binds
    assert isinstance(chosen.point, Theory)


def test_the_scale_in_closed_form() -> None:
    """(T + l2/(n-1)) l2 = M (T + l2 n/(n-1)), T = s2 n/(n-1), M = 1/R: the root of a quadratic."""
    n, s2, most = 10, 4.0, 0.5
    t, m = s2 * n / (n - 1), 1 / most
    b, c = t * (n - 1) - m * n, -m * t * (n - 1)
    l2 = (-b + sqrt(b**2 - 4 * c)) / 2
    assert best("l2", risk_at_most=most, n=n, s2=s2).value == pytest.approx(l2, rel=1e-12)
    assert best("scale", risk_at_most=most, n=n, s2=s2).value == pytest.approx(sqrt(l2 / s2), rel=1e-12)


def test_the_rate_in_closed_form() -> None:
    """Naive: p = 1/(R (2 s2 + d2)); the best linear snooper: q = s2 / (R s2 (2 s2 + d2) - 2 d2), p (1-p) = q."""
    s2, d = 4.0, 3.0
    assert best("rate", risk_at_most=0.1, s2=s2, d=d, form="naive").value == pytest.approx(1 / (0.1 * 17))
    q = s2 / (0.8 * s2 * 17 - 2 * d**2)
    assert best("rate", risk_at_most=0.8, s2=s2, d=d).value == pytest.approx((1 - sqrt(1 - 4 * q)) / 2)


def test_limits_on_naming_the_record() -> None:
    """identity <= 0.4 with K = 2: p from 0.6; below 1/(K+1) there is none."""
    given: dict[str, Any] = {"s2": 1.0, "d": 1.0, "areas": (3, 4), "partners": 2}
    assert best("rate", identity_at_most=0.4, **given).value == pytest.approx(0.6)
    assert best("rate", identity_at_most=1 / 3 + 1e-7, **given).value == pytest.approx(2 / 3, abs=1e-4)
    with pytest.raises(eq.InfeasibleError, match="No rate"):
        best("rate", identity_at_most=0.33, **given)
    both = best("rate", risk_at_most=2.0, identity_at_most=0.7, **given)
    assert both.point.risk <= 2.0
    assert both.point.identity is not None
    assert both.point.identity <= 0.7


def test_limits_that_nothing_keeps_and_limits_that_do_not_bind() -> None:
    with pytest.raises(eq.InfeasibleError, match="No scale"):
        best("scale", risk_at_most=0.5, n=10, s2=4.0, prior=(0.0, 1.0))
    with pytest.raises(eq.InfeasibleError, match="No rate"):
        best("rate", risk_at_most=0.01, s2=4.0, d=1.0)
    with pytest.raises(eq.InfeasibleError, match="No m"):
        best("m", risk_at_most=0.01, n=10, s2=4.0)
    free = best("m", risk_at_most=5.0, n=10, s2=4.0, at_most=50)
    assert (free.value, free.binds) == (50, False)
    still = best("l2", risk_at_most=5.0, n=10, s2=4.0, links=False)
    assert (still.value, still.binds) == (0.0, False)


def test_the_least_risk_a_swap_can_have_is_found() -> None:
    """A limit just above the least risk, which lies between the points of any grid."""
    given: dict[str, Any] = {"s2": 1.0, "d": 2.0, "areas": (3, 7), "partners": 7}
    grid = [mean("swapped", rate=p, **given).risk for p in np.linspace(0, 1, 20_001)]
    least = min(grid)
    assert best("rate", risk_at_most=least * (1 + 1e-9), **given).point.risk <= least * (1 + 1e-9)


@pytest.mark.parametrize(
    ("parameter", "given", "words"),
    [
        ("rat", {"risk_at_most": 1.0}, "Did you mean 'rate'"),
        ("rate", {"s2": 1.0, "d": 1.0}, "Give risk_at_most"),
        ("rate", {"s2": 1.0, "d": 1.0, "risk_at_most": 0.0}, "risk_at_most must be a finite number above 0"),
        ("rate", {"s2": 1.0, "d": 1.0, "identity_at_most": 40}, "Write 40 % as 0.4"),
        ("scale", {"n": 3, "s2": 1.0, "l2": 1.0, "risk_at_most": 1.0}, "one of l2"),
    ],
)
def test_bad_parameters_are_refused_in_words(parameter: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(eq.ParameterError, match=words):
        best(parameter, **given)


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("noise", {"n": 10, "s2": 4.0}),
        ("synthetic", {"n": 10, "s2": 4.0}),
        ("swapped", {"s2": 4.0, "d": 3.0, "areas": (6, 4), "partners": 2}),
    ],
)
def test_a_curve_is_its_points(method: str, given: dict[str, Any]) -> None:
    """A row per value, as `mean` gives it; along it utility and risk fall and rise together."""
    parameter = {"noise": "scale", "synthetic": "m", "swapped": "rate"}[method]
    table = curve(method, **given)
    assert table.columns[:5] == ["parameter", "utility", "risk", "strongest", "identity"]
    assert table.schema["identity"] == pl.Float64
    for row in table.iter_rows(named=True):
        value = int(row["parameter"]) if parameter == "m" else row["parameter"]
        point = mean(method, **given, **{parameter: value})
        assert (row["utility"], row["risk"], row["strongest"]) == (point.utility, point.risk, point.strongest)
        assert {name: row[name] for name in point.mse} == dict(point.mse)
    ordered = table.sort("utility")["risk"].to_list()
    assert ordered == sorted(ordered)


def test_a_curve_of_chosen_values() -> None:
    table = curve("noise", "l2", [0.0, 1.0, 16.0], n=10, s2=4.0)
    assert table["risk"].to_list()[0] == inf
    assert table["strongest"].to_list() == ["linked", "shrunk", "shrunk"]
    with pytest.raises(eq.ParameterError, match="needs the name"):
        curve("original", n=10, s2=4.0)
    with pytest.raises(eq.ParameterError, match="at least one value"):
        curve("noise", "l2", [], n=10, s2=4.0)
