"""IL1s: worked by hand, by its definition, and its laws."""

from math import pi, sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.utility import InformationLoss

NUMBERS = st.floats(-1e3, 1e3)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), min_size=2, max_size=30)


def file(weight: str | None = None, **columns: Any) -> eq.Records:
    return eq.read(pl.DataFrame(columns), eq.Roles(numeric=[c for c in columns if c != "w"], weight=weight))


def test_worked_by_hand() -> None:
    """x: 1.5/3 of sqrt(2) x 1; y: 2/3 of sqrt(2) x 2; the mean of both."""
    old = file(x=[1.0, 2.0, 3.0], y=[0.0, 2.0, 4.0])
    new = file(x=[1.0, 2.0, 4.5], y=[2.0, 2.0, 4.0])
    score = InformationLoss().measure(new, old)
    assert score.value == pytest.approx((0.5 / sqrt(2) + (2 / 3) / (2 * sqrt(2))) / 2)
    assert score.detail["loss"].to_list() == pytest.approx([0.5 / sqrt(2), 1 / (3 * sqrt(2))])
    assert (score.better, score.side) == ("lower", "utility")


@given(rows=ROWS)
def test_by_definition(rows: list[tuple[float, ...]]) -> None:
    """1/(n p) sum over records and columns of |x - x'| / (sqrt(2) S), S with n - 1; brute force."""
    table = np.array(rows)
    old, new = table[:, :2], table[:, 2:]
    wanted, columns = 0.0, 0
    for j in range(2):
        deviation = float(np.std(old[:, j], ddof=1))
        for i in range(len(rows)):
            gap = abs(old[i, j] - new[i, j])
            wanted += (gap / (sqrt(2) * deviation) if deviation > 0 else float(gap > 0)) / (2 * len(rows))
        columns += 0 < deviation < 1e-6 * (1 + np.abs(old[:, j]).max())
    if not columns:
        found = InformationLoss().measure(file(x=new[:, 0], y=new[:, 1]), file(x=old[:, 0], y=old[:, 1]))
        assert found.value == pytest.approx(wanted, rel=1e-6)


def test_it_is_a_mean_not_a_sum() -> None:
    """The same change in a file ten times as long loses the same, but for n - 1."""
    old, new = [1.0, 2.0, 3.0, 4.0] * 50, [2.0, 2.0, 3.0, 4.0] * 50
    short, long = ((new[:n], old[:n]) for n in (20, 200))
    one, ten = (InformationLoss().measure(file(x=a), file(x=b)).value for a, b in (short, long))
    assert one == pytest.approx(ten, rel=0.05)


def test_independent_draws_lose_what_the_docstring_says() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=100_000), rng.normal(size=100_000)
    assert InformationLoss().measure(file(x=y), file(x=x)).value == pytest.approx(sqrt(2 / pi), rel=0.01)


def test_weights_gaps_and_columns_without_spread() -> None:
    old = file("w", x=[1.0, 2.0, 3.0], y=[7.0, 7.0, 7.0], w=[1.0, 2.0, 1.0])
    new = file("w", x=[2.0, 2.0, None], y=[7.0, 8.0, 7.0], w=[1.0, 2.0, 1.0])
    score = InformationLoss().measure(new, old)
    deviation = sqrt((1 * (2 / 3) ** 2 + 2 * (1 / 3) ** 2) / 3 * 2)
    assert score.detail["loss"].to_list() == pytest.approx([(1 / 3) / (sqrt(2) * deviation), 0.5])
    assert score.notes == ("Weighted by 'w'.", "1 missing values were passed over.")


def test_laws() -> None:
    """0 for the file itself; more with more noise; other records are refused."""
    rng = np.random.default_rng(6)
    x, e = rng.normal(size=500), rng.normal(size=500)
    values = [InformationLoss().measure(file(x=x + c * e), file(x=x)).value for c in (0.0, 0.2, 0.4, 3.0)]
    assert values[0] == 0.0
    assert values == sorted(values)
    with pytest.raises(eq.EngineError, match="different records"):
        InformationLoss().measure(file(x=x[:10]), file(x=x))
