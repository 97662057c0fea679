"""The beta-binomial law: against 60-digit arithmetic, exact fractions and SciPy's sums."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import special, stats

from equipoise.beta_binomial.law import cdf, collapse, log_pmf, rise

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


def bernoulli(last: int) -> list[Fraction]:
    numbers = [Fraction(1)]
    for m in range(1, last + 1):
        numbers.append(-sum((comb(m + 1, k) * numbers[k] for k in range(m)), Fraction(0)) / (m + 1))
    return numbers


EVEN = bernoulli(40)[2::2]


def log_gamma(x: Decimal) -> Decimal:
    """To some 50 digits: moved beyond 60 by the recurrence, then twenty terms of Stirling's series."""
    shift = Decimal(0)
    while x < 60:
        shift, x = shift + x.ln(), x + 1
    terms = (
        Decimal(b.numerator) / (b.denominator * 2 * k * (2 * k - 1)) / x ** (2 * k - 1) for k, b in enumerate(EVEN, 1)
    )
    return (x - Decimal("0.5")) * x.ln() - x + (2 * PI).ln() / 2 + sum(terms) - shift


def precise(y: float, n: float, alpha: float, beta: float) -> Decimal:
    y_, n_, a, b = (Decimal(v) for v in (y, n, alpha, beta))
    top = log_gamma(n_ + 1) + log_gamma(a + y_) + log_gamma(b + n_ - y_) + log_gamma(a + b)
    return top - sum(map(log_gamma, (y_ + 1, n_ - y_ + 1, a + b + n_, a, b)))


@pytest.mark.parametrize("n", [1, 2, 7.5, 40, 19_999, 10**7])
@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 1.5), (1e-6, 3.0), (2e-7, 8e-7), (25, 12), (1e6, 4e3), (3e9, 7e9)])
def test_log_probability_to_thirteen_digits(n: float, alpha: float, beta: float) -> None:
    """In 60-digit arithmetic: tiny and huge shapes, samples from 1 to ten million, fractions too."""
    with localcontext() as context:
        context.prec = 60
        for y in {0.0, float(n), np.floor(n / 3), np.floor(n * alpha / (alpha + beta))}:
            exact = precise(y, n, alpha, beta)
            got = Decimal(float(log_pmf(np.array([y]), np.array([float(n)]), alpha, beta)[0]))
            assert abs(got - exact) <= Decimal("2e-13") * max(1, abs(exact))


def fractions(n: int, alpha: Fraction, beta: Fraction) -> list[Fraction]:
    def rising(x: Fraction, k: int) -> Fraction:
        return Fraction(1) if k == 0 else rising(x, k - 1) * (x + k - 1)

    return [comb(n, y) * rising(alpha, y) * rising(beta, n - y) / rising(alpha + beta, n) for y in range(n + 1)]


@pytest.mark.parametrize(
    ("n", "alpha", "beta"), [(1, "1/2", "3/2"), (12, "1/3", "7"), (90, "5/2", "1/8"), (200, "40", "9")]
)
def test_by_exact_fractions(n: int, alpha: str, beta: str) -> None:
    exact = fractions(n, Fraction(alpha), Fraction(beta))
    y, size = np.arange(n + 1.0), np.full(n + 1, float(n))
    shapes = float(Fraction(alpha)), float(Fraction(beta))
    assert np.exp(log_pmf(y, size, *shapes)) == pytest.approx([float(p) for p in exact], rel=1e-12)
    assert cdf(y, size, *shapes) == pytest.approx(np.cumsum([float(p) for p in exact]), abs=1e-11)


@pytest.mark.parametrize(
    ("alpha", "beta"), [(0.5, 1.5), (0.01, 2.0), (30.0, 70.0), (1e5, 3e5), (1e10, 1e10), (2.0, 1e4)]
)
@pytest.mark.parametrize("n", [5, 150, 3000])
def test_distribution_function_adds_up(n: int, alpha: float, beta: float) -> None:
    """Every y, so that the short sums from both ends and the integrals between them are all crossed."""
    y = np.arange(-1.0, n + 2)
    summed = np.cumsum(np.exp(log_pmf(np.arange(n + 1.0), np.full(n + 1, float(n)), alpha, beta)))
    expected = np.concatenate([[0.0], summed, [1.0]])
    assert cdf(y, np.array([float(n)]), alpha, beta) == pytest.approx(expected, abs=2e-11)


def test_distribution_function_of_ten_million() -> None:
    """With the uniform prior every y is equally likely; a prior without spread is the binomial."""
    y, n = np.array([0.0, 99, 1e4, 5e6, 9_999_990]), np.full(5, 1e7)
    assert cdf(y, n, 1.0, 1.0) == pytest.approx((y + 1) / (n + 1), rel=1e-9)
    y = np.array([4_998_000.0, 5_000_000.0, 5_003_000.0])
    assert cdf(y, n[:3], 5e15, 5e15) == pytest.approx(stats.binom.cdf(y, 10**7, 0.5), abs=1e-8)


def test_between_whole_numbers() -> None:
    """P(theta < U), U ~ Beta(y + 1, n - y): by direct quadrature."""
    from scipy.integrate import quad

    def integrand(u: float, y: float, n: float) -> float:
        return float(stats.beta.pdf(u, y + 1, n - y) * special.betainc(0.7, 1.9, u))

    for y, n in ((0.4, 3.7), (2.5, 11.25), (80.5, 200.5)):
        expected = quad(integrand, 0, 1, args=(y, n), points=[(y + 1) / (n + 1)], epsabs=1e-12)[0]
        assert cdf(np.array([y]), np.array([n]), 0.7, 1.9)[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("x", [1e-6, 0.3, 5.0, 19.9, 20.1, 400.0, 1e9])
def test_growth_of_log_gamma(x: float) -> None:
    """Order 0 in 60 digits, orders 1 and 2 as finite sums: psi(x+k) - psi(x) = sum 1/(x+j), psi' that of -1/(x+j)^2."""
    for k in (0, 1, 3, 70, 1000):
        j = np.arange(k)
        with localcontext() as context:
            context.prec = 60
            exact = float(log_gamma(Decimal(x) + k) - log_gamma(Decimal(x)) - k * Decimal(x).ln())
        step = np.array([float(k)])
        assert rise(x, step, 0)[0] == pytest.approx(exact, rel=1e-12, abs=1e-13)
        assert rise(x, step, 1)[0] == pytest.approx(np.sum(1 / (x + j)), rel=1e-12, abs=1e-20)
        assert rise(x, step, 2)[0] == pytest.approx(-np.sum(1 / (x + j) ** 2), rel=1e-11, abs=1e-20)


def test_equal_rows_once() -> None:
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 4, 500).astype(float) for _ in range(3)]
    first, kind, counts = collapse(*columns)
    rows = np.column_stack(columns)
    assert (rows[first][kind] == rows).all()
    assert len(first) == len(np.unique(rows, axis=0))
    assert counts.sum() == 500
