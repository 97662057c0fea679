"""Domingo-Ferrer and Torra (2004), section 3.2: the dominance rule is flawed for every n and k."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.cells import Cells
from equipoise.rules import Dominance, counterexample

GRID = [(n, k) for n in (1, 2, 3, 4, 5) for k in (0.3, 0.5, 0.6, 0.7, 0.75, 0.85, 0.9, 0.95)]


def test_example_2() -> None:
    """r = 0.9 and N = 3 give k = 100/271; the tails are printed as 0.298893 and 0.315498."""
    found = counterexample(1, 100 / 271, contributors=3)
    assert found.ratio == pytest.approx(0.9, abs=1e-12)
    assert [round(tail, 6) for tail in found.tails] == [0.298893, 0.315498]
    assert found.sensitive[0] == pytest.approx(100 / 271)
    assert found.safe[0] == pytest.approx(0.3567, abs=5e-5)
    assert counterexample(1, 0.369, contributors=3).ratio == pytest.approx(0.90001, abs=5e-6)


@pytest.mark.parametrize(("n", "k"), GRID)
def test_theorem_1(n: int, k: float) -> None:
    """The two cells sum to 1, are called as the constructions say, and the safe one gives the closer bound."""
    found = counterexample(n, k)
    r, many = found.ratio, found.contributors
    assert (r**n - 1) / (r**many - 1) == pytest.approx(k, rel=1e-10)
    for cell in (found.safe, found.sensitive):
        assert sum(cell) == pytest.approx(1.0)
        assert all(np.diff(cell) <= 1e-12)
    rule = Dominance(n, k)
    assert [bool(rule.flag(one(c, n))[0]) for c in (found.safe, found.sensitive)] == [False, True]
    safe, sensitive = found.tails
    assert safe < sensitive
    assert safe == pytest.approx((1 - k) - k * r**n * (r - 1) / (r**n - 1), rel=1e-9)
    assert sensitive == pytest.approx((1 - k) - (1 - k) / (many - n), rel=1e-9)
    if many > max(n + 2, int(n / k) + 1):
        fewer = counterexample(n, k, contributors=many - 1)
        assert fewer.tails[0] >= fewer.tails[1]


def one(shares: tuple[float, ...], n: int) -> Cells:
    tops = {f"top{i + 1}": [1000 * shares[i]] for i in range(n)}
    return Cells.of(pl.DataFrame({"c": ["c"], "n": [len(shares)], "value": [1000.0], **tops}), ("c",))


def test_the_chart_has_every_contribution() -> None:
    found = counterexample(2, 0.8)
    rows = found.chart()["data"]["values"]
    assert len(rows) == 2 * found.contributors
    assert sum(row["share"] for row in rows) == pytest.approx(2.0)
    assert "(2, 0.8) dominance rule" in found.words


@pytest.mark.parametrize(("n", "k", "many"), [(0, 0.5, None), (1, 1.0, None), (1, 60, None), (2, 0.5, 3)])
def test_what_no_counterexample_has(n: int, k: float, many: int | None) -> None:
    with pytest.raises(eq.ParameterError):
        counterexample(n, k, contributors=many)
