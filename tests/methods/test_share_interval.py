"""Shares: the interval against another package, the excess against a simulation."""

import numpy as np
import pytest
from scipy.stats import binomtest

from equipoise.methods.share_interval import excess, wilson


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (1, 1), (37, 500)])
def test_the_interval_of_wilson(k: int, n: int) -> None:
    expected = binomtest(k, n).proportion_ci(method="wilson")
    assert wilson(k / n, n) == pytest.approx((expected.low, expected.high))


def test_nothing_known_of_nobody() -> None:
    assert wilson(0.0, 0) == (0.0, 1.0)


def test_the_excess_covers_the_truth() -> None:
    """(0.5 - 0.3) / 0.7, in 95 % of samples or so."""
    rng = np.random.default_rng(1)
    attack, control = rng.binomial(400, 0.5, 2000) / 400, rng.binomial(300, 0.3, 2000) / 300
    found = [excess(a, 400, c, 300) for a, c in zip(attack, control, strict=True)]
    covered = np.mean([low <= 2 / 7 <= high for _, low, high in found])
    assert 0.935 < covered < 0.965
    assert np.mean([value for value, _, _ in found]) == pytest.approx(2 / 7, abs=0.005)
    assert excess(0.4, 50, 1.0, 50) == (0.0, 0.0, 0.0)
    assert excess(0.2, 50, 0.4, 50)[0] == pytest.approx(-1 / 3)
