"""Beta-binomial distribution, stable in logs for any size: y ~ Binomial(n, theta), theta ~ Beta(alpha, beta).

Differences of log-gamma lose all their digits where an argument is large (n = 10^7, or a precision of 10^10). Here the
leading terms are cancelled on paper, and only what is left is computed. With phi = alpha + beta, mu = alpha/phi,
p = y/n and the pooled mean m = (alpha + y)/(phi + n), Stirling's leading terms of the nine log-gammas add up to

    log P(y) = -phi KL(mu || m) - n KL(p || m) + the remainder of Stirling's formula for each log-gamma

with KL(p || m) = p log(p/m) + (1-p) log((1-p)/(1-m)), each part computed from its difference (as Loader 2000 does for
the binomial). y and n may be fractions (effective sample sizes): log-gamma takes the place of the factorials.
"""

from functools import reduce
from math import log, pi

import numpy as np

from equipoise.ground.arrays import Floats, Integers

STIRLING_MIN = 20.0
"""From this argument on Stirling's series, with the terms below, is exact to the last digit."""
MAX_SHORT_SUM = 64
"""Sums of at most this many terms are added one by one; longer ones are integrals."""
QUADRATURE_POINTS = 72
CHUNK_ROWS = 20_000
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def log_pmf(y: Floats, n: Floats, alpha: Floats | float, beta: Floats | float) -> Floats:
    """The log of P(y) = C(n, y) B(alpha + y, beta + n - y) / B(alpha, beta), within about 1e-13. Cost: O(rows).

    >>> log_pmf(np.array([1.0]), np.array([2.0]), 1.0, 1.0).round(12) + 0  # uniform on 0, 1, 2: -log 3
    array([-1.09861229])
    """
    y, n, a, b = np.broadcast_arrays(*(np.asarray(v, float) for v in (y, n, alpha, beta)))
    rest, phi = n - y, a + b
    shift = (y * b - rest * a) / (phi + n)
    yes, no = (a + y) / (phi + n), (b + rest) / (phi + n)
    drift = _divergence(a, phi * yes, shift) + _divergence(b, phi * no, -shift)
    drift = drift + _divergence(y, n * yes, -shift) + _divergence(rest, n * no, shift)
    prior = _remainder(a, 0) + _remainder(b, 0) - _remainder(phi, 0)
    posterior = _remainder(a + y, 0) + _remainder(b + rest, 0) - _remainder(phi + n, 0)
    return posterior - prior - drift + (_remainder(n, 1) - _remainder(y, 1) - _remainder(rest, 1))


def _divergence(x: Floats, mean: Floats, difference: Floats) -> Floats:
    """x log(x/mean) + mean - x, from the difference mean - x, which is known without cancellation."""
    from scipy.special import xlogy

    ratio = np.divide(difference, x, out=np.full(x.shape, np.inf), where=x > 0)
    far = np.divide(x, mean, out=np.zeros(x.shape), where=mean > 0)
    near = np.abs(difference) <= 0.1 * x
    return np.where(near, -x * _log1pmx(np.where(near & (x > 0), ratio, 0.0)), xlogy(x, far) + difference)


def _log1pmx(t: Floats) -> Floats:
    """log(1 + t) - t for |t| <= 0.1, by the series of the inverse hyperbolic tangent."""
    r = t / (2 + t)
    square = r * r
    tail = reduce(lambda sum_, odd: sum_ * square + 1 / odd, (15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0), np.zeros_like(r))
    return 2 * r * square * tail - r * t


def _remainder(x: Floats, one: int) -> Floats:
    """log Gamma(x + one) - (x log x - x), one being 0 or 1."""
    from scipy.special import gammaln, xlogy

    large = x >= STIRLING_MIN
    big, small = np.where(large, x, STIRLING_MIN), np.where(large, STIRLING_MIN, x)
    asymptotic = (one - 0.5) * np.log(big) + 0.5 * log(2 * pi) + _series(big)
    return np.where(large, asymptotic, gammaln(small + one) - xlogy(small, small) + small)


def _series(x: Floats) -> Floats:
    """Stirling's series for log Gamma: 1/(12 x) - 1/(360 x^3) + ..."""
    inverse = 1 / (x * x)
    return reduce(lambda sum_, term: sum_ * inverse + term, reversed(STIRLING), np.zeros_like(x)) / x


def rise(x: Floats | float, k: Floats, order: int) -> Floats:
    """Difference of log-gamma, or a derivative of it, from x to x + k, without cancellation.

    Order 0: log Gamma(x + k) - log Gamma(x) - k log x, which is sum over j < k of log(1 + j/x); order 1: the same of
    digamma, psi(x + k) - psi(x); order 2: of trigamma. Cost: O(rows).

    >>> rise(2.0, np.array([3.0]), 0).round(12)  # log(1 + 1/2) + log(1 + 2/2)
    array([1.09861229])
    """
    start, step = np.broadcast_arrays(np.asarray(x, float), np.asarray(k, float))
    large = start >= STIRLING_MIN
    if large.all():
        return _rise_large(start, step, order)
    grown = np.empty(start.shape)
    grown[large] = _rise_large(start[large], step[large], order)
    grown[~large] = _rise_small(start[~large], step[~large], order)
    return grown


def _rise_small(x: Floats, k: Floats, order: int) -> Floats:
    from scipy.special import gammaln, psi

    if order == 0:
        return np.asarray(gammaln(x + k) - gammaln(x) - k * np.log(x))
    return np.asarray(psi(x + k) - psi(x) if order == 1 else _trigamma(x + k) - _trigamma(x))


def _rise_large(x: Floats, k: Floats, order: int) -> Floats:
    t, end = k / x, x + k
    grown: Floats
    if order == 0:
        small = t <= 0.1
        bent = np.where(small, _log1pmx(np.where(small, t, 0.0)), np.log1p(t) - t)
        grown = x * bent + (k - 0.5) * np.log1p(t) + _series(end) - _series(x)
    elif order == 1:
        grown = np.log1p(t) + k / (2 * x * end) + _digamma_tail(end) - _digamma_tail(x)
    else:
        halves = k * (x + end) / (2 * x * x * end * end)
        grown = -k / (x * end) - halves + _trigamma_tail(end) - _trigamma_tail(x)
    return grown


def _trigamma(x: Floats) -> Floats:
    """psi'(x): twelve terms of sum over j of 1/(x + j)^2, then the series; five times as quick as the zeta function."""
    start = np.zeros_like(x)
    for j in range(12):
        start += 1 / np.square(x + j)
    end = x + 12
    return start + 1 / end + 0.5 / np.square(end) + _trigamma_tail(end)


def _digamma_tail(x: Floats) -> Floats:
    """psi(x) - log x + 1/(2 x): the derivative of Stirling's series."""
    i = 1 / (x * x)
    return -i * (1 / 12 - i * (1 / 120 - i * (1 / 252 - i * (1 / 240 - i / 132))))


def _trigamma_tail(x: Floats) -> Floats:
    """psi'(x) - 1/x - 1/(2 x^2)."""
    i = 1 / (x * x)
    return i / x * (1 / 6 - i * (1 / 30 - i * (1 / 42 - i * (1 / 30 - i * 5 / 66))))


def cdf(y: Floats, n: Floats, alpha: Floats | float, beta: Floats | float) -> Floats:
    """P(Y <= y): a short sum where y or n - y is small and whole, else an integral of one incomplete beta function.

    P(Y <= y) = P(theta < U) with U ~ Beta(y + 1, n - y) independent of theta, which also defines it between whole
    numbers, from -1 on; the narrower of the two laws is integrated by the trapezoidal rule in the logit, which
    converges geometrically. Within about 1e-12. Cost: O(64 rows), or O(72 rows) incomplete beta functions where y is
    large.

    >>> cdf(np.array([0.0, 1, 2]), np.array([2.0]), 1.0, 1.0).round(12)
    array([0.33333333, 0.66666667, 1.        ])
    """
    y, n, a, b = (np.array(v) for v in np.broadcast_arrays(*(np.asarray(v, float) for v in (y, n, alpha, beta))))
    shares = np.where(y >= n, 1.0, 0.0)
    inside = (y > -1) & (y < n)
    whole = inside & (y == np.floor(y)) & (n == np.floor(n))
    low = whole & (y < MAX_SHORT_SUM)
    high = whole & ~low & (n - y <= MAX_SHORT_SUM)
    long = inside & ~low & ~high
    shares[low] = _short_sum(y[low], n[low], a[low], b[low])
    shares[high] = 1 - _short_sum((n - y - 1)[high], n[high], b[high], a[high])
    shares[long] = _integrals(y[long], n[long], a[long], b[long])
    return np.clip(shares, 0.0, 1.0)


def _short_sum(y: Floats, n: Floats, a: Floats, b: Floats) -> Floats:
    """P(Y <= y) from P(y) downwards: P(k - 1)/P(k) = k (b + n - k) / ((n - k + 1) (a + k - 1))."""
    term = np.exp(log_pmf(y, n, a, b))
    total, k = term.copy(), y.copy()
    for _ in range(int(y.max(initial=0.0))):
        going = k > 0
        term = np.where(going, term * k * (b + n - k) / np.where(going, (n - k + 1) * (a + (k - 1)), 1.0), 0.0)
        total, k = total + term, np.maximum(k - 1, 0.0)
    return total


def _integrals(y: Floats, n: Floats, a: Floats, b: Floats) -> Floats:
    parts = [slice(start, start + CHUNK_ROWS) for start in range(0, len(y), CHUNK_ROWS)]
    return np.concatenate([_integral(y[part], n[part], a[part], b[part]) for part in parts] or [np.empty(0)])


def _integral(y: Floats, n: Floats, a: Floats, b: Floats) -> Floats:
    """E I_U(a, b) over U where U is narrower, else E (1 - I_theta(y + 1, n - y)) over theta."""
    from scipy.special import betainc, expit

    c, d = y + 1, n - y
    sampling = 1 / c + 1 / d <= 1 / a + 1 / b
    p, q, r, s = (np.where(sampling, *pair)[:, None] for pair in ((c, a), (d, b), (a, d), (b, c)))
    logit, density = _logit_beta(p, q)
    inner = betainc(r, s, expit(np.where(sampling[:, None], logit, -logit)))
    return (density * inner).sum(axis=1) / density.sum(axis=1)


def _logit_beta(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Nodes and weights for the law of the logit of Beta(p, q), to where its density is e^-40 of that at the mode.

    The nodes are even in t, with logit = mode + width sinh(t): close in the middle, far apart along a slow tail.
    """
    width = np.minimum(np.sqrt(1 / p + 1 / q), 3.0)
    lower, right = (np.arcsinh(_reach(*pair) / width) for pair in ((p, q), (q, p)))
    t = (lower + right) * np.linspace(0.0, 1.0, QUADRATURE_POINTS) - lower
    offset = width * np.sinh(t)
    fallen = np.where(t < 0, _fall(np.maximum(-offset, 0.0), p, q), _fall(np.maximum(offset, 0.0), q, p))
    return np.log(p / q) + offset, np.exp(-fallen) * np.cosh(t)


def _fall(distance: Floats, p: Floats, q: Floats) -> Floats:
    """Drop of the log-density of the logit of Beta(p, q) from its mode to a point this distance to the left."""
    return p * distance + (p + q) * np.log1p(p / (p + q) * np.expm1(-distance))


def _reach(p: Floats, q: Floats) -> Floats:
    """Distance to the left at which it has dropped by 40, by bisection."""
    low, high = np.zeros_like(p), (40 + (p + q) * np.log1p(p / q)) / p
    for _ in range(40):
        middle = (low + high) / 2
        near = _fall(middle, p, q) < 40
        low, high = np.where(near, middle, low), np.where(near, high, middle)
    return high


def collapse(*columns: Floats) -> tuple[Integers, Integers, Integers]:
    """Distinct rows: the first row of each kind, the kind of each row, and the number of rows of each kind.

    >>> [part.tolist() for part in collapse(np.array([5.0, 2.0, 5.0]), np.array([9.0, 9.0, 9.0]))]
    [[1, 0], [1, 0, 1], [1, 2]]
    """
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        code = np.unique(code * len(values) + place, return_inverse=True)[1]
    _, first, counts = np.unique(code, return_index=True, return_counts=True)
    return first, code, counts
