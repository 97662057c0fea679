"""The posterior of a cell's population: against enumeration, against high precision, and against simulated truth."""
# ruff: noqa: N803, N806

from collections.abc import Callable
from fractions import Fraction
from math import comb
from typing import Any

import mpmath
import numpy as np
import pytest

import equipoise as eq
from equipoise.beta_binomial.expectations import expectations
from equipoise.beta_binomial.posterior import posterior


def rising(x: Fraction, k: int) -> Fraction:
    """x (x + 1) ... (x + k - 1)."""
    product = Fraction(1)
    for j in range(k):
        product *= x + j
    return product


def enumerated(y: int, n: int, N: int, alpha: Fraction, beta: Fraction) -> dict[int, Fraction]:
    """P(Y | y) by exact fractions: C(m, t) (a)_t (b)_(m-t) / (a + b)_m."""
    a, b, m = alpha + y, beta + n - y, N - n
    whole = rising(a + b, m)
    return {y + t: comb(m, t) * rising(a, t) * rising(b, m - t) / whole for t in range(m + 1)}


CASES = [
    (0, 3, 8, "1", "10"),
    (2, 3, 8, "1", "10"),
    (1, 5, 20, "1/2", "3/2"),
    (7, 20, 30, "1/2", "3/2"),
    (4, 4, 4, "2", "3"),
]
CASES += [(3, 10, 200, "1/2", "3/2"), (0, 1, 60, "1/100", "5"), (30, 40, 90, "7/3", "1/50")]


@pytest.mark.parametrize(("y", "n", "N", "alpha", "beta"), CASES)
def test_against_enumeration(y: int, n: int, N: int, alpha: str, beta: str) -> None:
    """Every probability, moment and expected loss to 1e-12."""
    exact = enumerated(y, n, N, Fraction(alpha), Fraction(beta))
    assert sum(exact.values()) == 1
    cell = posterior(y, n, N, float(Fraction(alpha)), float(Fraction(beta)))
    for value, chance in exact.items():
        assert cell.chance(value)[0] == pytest.approx(float(chance), rel=1e-12, abs=1e-300)
    mean = sum(value * chance for value, chance in exact.items())
    assert cell.mean[0] == pytest.approx(float(mean), rel=1e-12)
    spread = sum((value - mean) ** 2 * chance for value, chance in exact.items())
    assert cell.variance[0] == pytest.approx(float(spread), rel=1e-12, abs=1e-12)
    for size in (0.5, 10, 1e4):
        wanted = sum(float(chance) * np.exp(-value / size) for value, chance in exact.items())
        assert cell.decay(1 / size)[0] == pytest.approx(wanted, rel=1e-12)
    below = sum(float(chance) for value, chance in exact.items() if value < y + 3)
    assert cell.at_most(y + 2)[0] == pytest.approx(below, rel=1e-11)
    loss = cell.expect(lambda y, Y, n, N: y / (1 + Y) + n / N)[0]
    wanted = sum(float(chance) * (y / (1 + value) + n / N) for value, chance in exact.items())
    assert loss == pytest.approx(wanted, rel=1e-12)


LARGE = [
    (0, 50, 10_000_000, 0.5, 3.0, 10.0),
    (3, 4000, 10_000_000, 0.02, 400.0, 1000.0),
    (1, 1_000_000, 10_000_000, 0.5, 9.5, 2.0),
    (900, 1000, 10_000_000, 0.7, 0.2, 3e5),
    (250_000, 1_000_000, 10_000_000, 1.0, 3.0, 1e5),
    (5, 600, 5_000, 1.0, 10.0, 1.0),
]


def precise(y: int, n: int, N: int, alpha: float, beta: float, size: float) -> Any:
    """E exp(-Y/S) by an integral over theta with thirty digits, around the mode of the integrand."""
    mpmath.mp.dps = 30
    a, b, m = mpmath.mpf(alpha) + y, mpmath.mpf(beta) + n - y, N - n
    c = -mpmath.expm1(-mpmath.mpf(1 / size))

    def log(u: Any) -> Any:
        p = 1 / (1 + mpmath.exp(-u))
        return a * mpmath.log(p) + b * mpmath.log1p(-p) + m * mpmath.log1p(-c * p)

    lead, middle = c * (a + b + m), a + b + c * (a + m)
    p = 2 * a / (middle + mpmath.sqrt(middle * middle - 4 * lead * a))
    top = mpmath.log(p / (1 - p))
    step = 1 / mpmath.sqrt(-mpmath.diff(log, top, 2))
    reach = [0, 1, 2, 4, 6, 9, 13, 18, 25, 40, 70, 120, 250, 600, 2000]
    points = [top - r * step for r in reversed(reach)] + [top + r * step for r in reach[1:]]
    area = mpmath.quad(lambda u: mpmath.exp(log(u) - log(top)), points)
    whole = mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)
    return mpmath.log(area) + log(top) - whole - mpmath.mpf(y) / size


@pytest.mark.parametrize(("y", "n", "N", "alpha", "beta", "size"), LARGE)
def test_ten_million_people_against_high_precision(
    y: int, n: int, N: int, alpha: float, beta: float, size: float
) -> None:
    """Relative error below 1e-8, without overflow, by the integral and by the generic sum."""
    exact = mpmath.exp(precise(y, n, N, alpha, beta, size))
    cell = posterior(y, n, N, alpha, beta)
    assert float(abs(cell.decay(1 / size)[0] / exact - 1)) < 1e-8
    generic = cell.expect(lambda y, Y, n, N: np.exp(-Y / size))[0]
    assert float(abs(generic / exact - 1)) < 1e-8


def test_what_is_too_small_for_a_number_is_zero() -> None:
    cell = posterior([500_000, 0], [1_000_000, 1], [10_000_000, 10_000_000], 1.0, 1.0)
    assert cell.decay(1.0)[0] == 0.0
    assert 0 < cell.decay(1.0)[1] < 1e-6
    assert np.isfinite(cell.mean).all()


def test_functions_with_jumps_are_added_value_by_value() -> None:
    """A step far inside a long law: quadrature notices, and the sum is exact."""
    cell = posterior([2, 0], [10, 40], [60_000, 9_000], 0.5, 1.5)
    found = cell.expect(lambda y, Y, n, N: np.where(Y < 5000, 1.0, 0.0))
    np.testing.assert_allclose(found, cell.at_most(4999), rtol=1e-9)


def test_long_sums_of_smooth_functions() -> None:
    """Moments of long laws are known in closed form."""
    rng = np.random.default_rng(3)
    m, a, b = np.floor(10 ** rng.uniform(3.1, 7, 40)), 10 ** rng.uniform(-1, 4, 40), 10 ** rng.uniform(-1, 4, 40)
    np.testing.assert_allclose(expectations(lambda rows, t: np.ones_like(t), m, a, b), 1.0, rtol=1e-9)
    np.testing.assert_allclose(expectations(lambda rows, t: t, m, a, b), m * a / (a + b), rtol=1e-9)


def test_equal_cells_are_one_kind_and_fractions_work() -> None:
    """Effective sample sizes are fractions: information a = alpha + y_eff, people N - n."""
    cell = posterior([2, 2, 2], [10, 10, 10], 50, 0.5, 1.5, effective=([1.3, 1.3, 2.0], [6.5, 6.5, 10.0]))
    assert len(cell.kinds[0]) == 2
    assert cell.mean[0] == pytest.approx(2 + 40 * 1.8 / 8.5)
    assert cell.decay(0.1)[0] == pytest.approx(cell.expect(lambda y, Y, n, N: np.exp(-Y / 10))[0], rel=1e-12)
    assert cell.decay(0.1)[2] == pytest.approx(posterior(2, 10, 50, 0.5, 1.5).decay(0.1)[0])


@pytest.mark.parametrize("N", [30, 400, 60_000])
def test_the_interval_covers_what_it_says(N: int) -> None:
    """Truth drawn from the model: the share of Y inside equals the mean mass within four Monte Carlo errors."""
    rng = np.random.default_rng(N)
    n = rng.choice([5, 12, 20], 4000)
    theta = rng.beta(0.5, 3.0, 4000)
    y = rng.binomial(n, theta)
    truth = y + rng.binomial(N - n, theta)
    low, high, mass = posterior(y, n, N, 0.5, 3.0).interval()
    inside = (low <= truth) & (truth <= high)
    error = np.sqrt((mass * (1 - mass)).sum()) / len(mass)
    assert abs(inside.mean() - mass.mean()) < 4 * error
    assert (mass > 0.949999).all()


def test_the_interval_is_that_of_the_enumeration() -> None:
    for y, n, N in ((0, 5, 60), (3, 10, 200), (5, 5, 40), (2, 9, 9)):
        exact = enumerated(y, n, N, Fraction(1, 2), Fraction(3, 2))
        low, high, mass = (part[0] for part in posterior(y, n, N, 0.5, 1.5).interval(0.9))
        sums = np.cumsum([float(p) for p in exact.values()])
        assert low == y + np.searchsorted(sums, 0.05)
        assert high == y + np.searchsorted(sums, 0.95)
        assert mass == pytest.approx(sum(float(p) for value, p in exact.items() if low <= value <= high))


BAD: dict[str, Callable[[], Any]] = {
    "n is above N": lambda: posterior(1, 9, 8, 1, 1),
    "y is above n": lambda: posterior(4, 3, 8, 1, 1),
    "n is 0": lambda: posterior(0, 0, 8, 1, 1),
    "N is missing": lambda: posterior(0, 1, np.nan, 1, 1),
    "y is negative": lambda: posterior(-1, 1, 3, 1, 1),
    "alpha and beta": lambda: posterior(1, 1, 3, 0, 1),
    "finite": lambda: posterior(1, 1, 3, 1, 1).expect(lambda y, Y, n, N: np.log(Y - 1)),
    "loss is negative": lambda: posterior(1, 1, 3, 1, 1).expect(lambda y, Y, n, N: -Y),
    "give a number for each": lambda: posterior(1, 1, 3, 1, 1).expect(lambda y, Y, n, N: "much"),
    "smoother loss": lambda: posterior(1, 1, 10**9, 1, 1).expect(lambda y, Y, n, N: np.floor(Y) % 2),
    "mass of an interval": lambda: posterior(1, 1, 3, 1, 1).interval(95),
}


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("words", BAD)
def test_refusals(words: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=words):
        BAD[words]()
