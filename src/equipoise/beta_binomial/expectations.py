"""Expectations of any function of a beta-binomial T: exact sums, and for long laws sums by quadrature.

A law of at most MAX_SUMMED_LENGTH values is summed term by term. Of a longer one the first and last EDGE_VALUES are
summed, and the sum in between is an integral over t with the end corrections of the midpoint rule (Gauss, Gregory),

    sum_{t=A}^{B} g(t) = int_{A-1/2}^{B+1/2} g dt - [d g]/24 + 17 [d^3 g]/5760 - 367 [d^5 g]/967680,

d the central differences at both ends. The integral is taken over panels that are even in logits and denser around the
mean. Every law is integrated twice, with 16 and with 12 points a panel: where the two disagree the function has jumps,
and all its values are summed instead.
"""

from collections.abc import Callable

import numpy as np

from equipoise.beta_binomial.expected_decay import pieces
from equipoise.beta_binomial.law import log_pmf
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import ParameterError

MAX_SUMMED_LENGTH = 1024
EDGE_VALUES = 64
CHUNK_NUMBERS = 1 << 17
"""Numbers computed at a time."""
QUADRATURE_TOLERANCE = 1e-9
"""Relative difference of the two quadratures up to which the finer one is used."""
MIN_DIFFERENCE = 1e-250
"""Smaller differences are no sign of jumps: numbers that small do not have nine correct digits."""
MAX_SUMMED_TERMS = 5e7
"""Most terms that are summed one by one where a function has jumps."""
FINE_POINTS, COARSE_POINTS, SMOOTH_POINTS = 16, 12, 10
"""Points of a panel: for any function, for its check, and for a function that is known to be smooth."""
PANEL_GRIDS = ((27, 36), (12, 12))
"""Number of even panel ends, and reach around the mean in deviations: for any function, and for a smooth one."""
DIFFERENCES = np.array([[0, 0, -1, 1, 0, 0], [0, -1, 3, -3, 1, 0], [-1, 5, -10, 10, -5, 1]], dtype=np.float64)
GREGORY = np.array([-1 / 24, 17 / 5760, -367 / 967680]) @ DIFFERENCES

Term = Callable[[Integers, Floats], Floats]
"""A function of T: maps row numbers of laws and values of T (rows x values) to numbers of the same shape."""


def expectations(term: Term, m: Floats, a: Floats, b: Floats, *, smooth: bool = False) -> Floats:
    """E term(T) for each law BetaBinomial(m, a, b). Relative error 1e-9 or less for terms of one sign.

    `smooth` says that the term has no jumps and changes like a power of T: a coarser quadrature is enough.

    Cost: O(m) for a short law, else O(1,600) for each, or O(m) again where the term has jumps.

    >>> law = np.array([5000.0]), np.array([1.0]), np.array([3.0])
    >>> round(float(expectations(lambda rows, t: t, *law)[0]), 6)
    1250.0
    """
    results = np.zeros(len(m))
    short = np.flatnonzero(m <= MAX_SUMMED_LENGTH)
    results[short] = _short_sums(term, short, m, a, b)
    long = np.flatnonzero(m > MAX_SUMMED_LENGTH)
    for part in pieces(len(long), CHUNK_NUMBERS // 1500):
        results[long[part]] = _long_sums(term, long[part], m, a, b, smooth)
    return results


def _short_sums(term: Term, rows: Integers, m: Floats, a: Floats, b: Floats) -> Floats:
    """Expectations of short laws, term by term; laws of similar length together."""
    sums = np.zeros(len(rows))
    order = np.argsort(m[rows], kind="stable")
    start = 0
    while start < len(order):
        width = int(m[rows[order[min(len(order) - 1, start + CHUNK_NUMBERS // 8)]]]) + 1
        part = order[start : start + max(1, CHUNK_NUMBERS // width)]
        sums[part] = _weighted_sum(term, rows[part], _support(m[rows[part]]), m, a, b)
        start += len(part)
    return sums


def _support(m: Floats) -> Floats:
    return np.broadcast_to(np.arange(m.max(initial=0.0) + 1), (len(m), int(m.max(initial=0.0)) + 1))


def _weighted_sum(term: Term, rows: Integers, t: Floats, m: Floats, a: Floats, b: Floats) -> Floats:
    """Sum over t of P(T = t) term(t), without values beyond m."""
    values = _product(term, rows, np.minimum(t, m[rows, None]), m, a, b)
    return np.where(t <= m[rows, None], values, 0.0).sum(axis=1)


def _product(term: Term, rows: Integers, t: Floats, m: Floats, a: Floats, b: Floats) -> Floats:
    chance = np.exp(log_pmf(t, m[rows, None], a[rows, None], b[rows, None]))
    return chance * term(rows, t)


def _long_sums(term: Term, rows: Integers, m: Floats, a: Floats, b: Floats, smooth: bool) -> Floats:
    length = m[rows, None]
    near = np.arange(EDGE_VALUES, dtype=np.float64)
    ends = np.concatenate([np.broadcast_to(near, (len(rows), EDGE_VALUES)), length - near], axis=1)
    outer = _product(term, rows, ends, m, a, b).sum(axis=1)
    turn = np.arange(EDGE_VALUES - 3, EDGE_VALUES + 3, dtype=np.float64)
    low = _product(term, rows, np.broadcast_to(turn, (len(rows), 6)), m, a, b) @ GREGORY
    high = _product(term, rows, length - turn, m, a, b) @ GREGORY
    edges = _panels(m[rows], a[rows], b[rows], *PANEL_GRIDS[smooth])
    fine = _integral(term, rows, edges, SMOOTH_POINTS if smooth else FINE_POINTS, m, a, b)
    total: Floats = outer + fine - low - high
    if smooth:
        return total
    coarse = _integral(term, rows, edges, COARSE_POINTS, m, a, b)
    rough = np.flatnonzero(np.abs(fine - coarse) > QUADRATURE_TOLERANCE * np.abs(total) + MIN_DIFFERENCE)
    if len(rough):
        total[rough] = _one_by_one(term, rows[rough], m, a, b)
    return total


def _panels(m: Floats, a: Floats, b: Floats, even: int, far: int) -> Floats:
    """Ends of the panels in logits u = ln((t + 1/2) / (m - t + 1/2)): even ones, and some around the mean."""
    last = np.log((m - EDGE_VALUES + 1) / EDGE_VALUES)
    wide = last[:, None] * np.linspace(-1, 1, even)
    p, q = a / (a + b), b / (a + b)
    spread = np.sqrt((a + b + m) / (a + b + 1) / (m * p * q))
    around = np.log(p / q)[:, None] + np.minimum(spread, 1.0)[:, None] * np.arange(-far, far + 1, 3)
    return np.sort(np.clip(np.concatenate([wide, around], axis=1), -last[:, None], last[:, None]), axis=1)


def _integral(term: Term, rows: Integers, edges: Floats, points: int, m: Floats, a: Floats, b: Floats) -> Floats:
    """Gauss-Legendre over each panel, dt = (t + 1/2)(m - t + 1/2) / (m + 1) du."""
    node, weight = np.polynomial.legendre.leggauss(points)
    half = np.diff(edges, axis=1)[:, :, None] / 2
    u = (edges[:, :-1, None] + half * (1 + node)).reshape(len(rows), -1)
    length = m[rows, None]
    share = 1 / (1 + np.exp(-u))
    step = (length + 1) * share * (1 - share) * (half * weight).reshape(len(rows), -1)
    return (_product(term, rows, (length + 1) * share - 0.5, m, a, b) * step).sum(axis=1)


def _one_by_one(term: Term, rows: Integers, m: Floats, a: Floats, b: Floats) -> Floats:
    """Expectations of long laws term by term, where the term has jumps."""
    if m[rows].sum() > MAX_SUMMED_TERMS:
        raise ParameterError(
            f"The loss jumps or bends too sharply between population counts, and {m[rows].sum():,.0f} of them are too "
            "many to be added one by one: give a smoother loss, or losses.Threshold."
        )
    return np.array([_sum_long_law(term, rows[[place]], m, a, b) for place in range(len(rows))])


def _sum_long_law(term: Term, row: Integers, m: Floats, a: Floats, b: Floats) -> float:
    size = int(m[row[0]]) + 1
    total = 0.0
    for part in pieces(size, CHUNK_NUMBERS):
        t = np.arange(part.start, min(part.stop, size), dtype=np.float64)[None, :]
        total += float(_product(term, row, t, m, a, b).sum())
    return total
