"""Expectations of any function of a beta-binomial T: exact sums, and for long laws sums by quadrature.

A law of at most SHORT values is added up one by one. Of a longer one the first and last EDGE values are added, and
the sum in between is an integral over t with the end corrections of the midpoint rule (Gauss and Gregory),

    sum_{t=A}^{B} g(t) = int_{A-1/2}^{B+1/2} g dt - [d g]/24 + 17 [d^3 g]/5760 - 367 [d^5 g]/967680,

d the central differences at both ends. The integral is taken over panels that are even in logits and denser around the
mean. Every law is integrated twice, with 16 and with 12 points a panel: where the two disagree the function has jumps,
and all its values are added after all.
"""

from collections.abc import Callable

import numpy as np

from equipoise.beta_binomial.expected_decay import pieces
from equipoise.beta_binomial.law import log_pmf
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import ParameterError

SHORT = 1024
EDGE = 64
PIECE = 1 << 17
"""Numbers worked on at a time."""
AGREE = 1e-9
"""Relative difference of the two quadratures up to which the finer one is taken."""
FAINT = 1e-250
"""Differences below this are no sign of jumps: so small a number is not known to nine digits."""
PATIENCE = 5e7
"""Terms that may be added one by one where a function has jumps."""
FINE, COARSE, SMOOTH = 16, 12, 10
"""Points of a panel: of any function, of its check, and of a function that is known to be smooth."""
GRIDS = ((27, 36), (12, 12))
"""Even panel ends, and the reach around the mean in deviations: for any function, and for one known to be smooth."""
DIFFERENCES = np.array([[0, 0, -1, 1, 0, 0], [0, -1, 3, -3, 1, 0], [-1, 5, -10, 10, -5, 1]], dtype=np.float64)
GREGORY = np.array([-1 / 24, 17 / 5760, -367 / 967680]) @ DIFFERENCES

Term = Callable[[Integers, Floats], Floats]
"""The function of T: from places of laws (rows) and values of T (rows x values) to numbers of the same shape."""


def expectations(term: Term, m: Floats, a: Floats, b: Floats, *, smooth: bool = False) -> Floats:
    """E term(T) for each law BetaBinomial(m, a, b). Relative error 1e-9 or less for terms of one sign.

    `smooth` says that the term has no jumps and changes like a power of T: a light quadrature will do.

    Cost: O(m) for a short law, else O(1,600) for each, or O(m) again where the term has jumps.

    >>> law = np.array([5000.0]), np.array([1.0]), np.array([3.0])
    >>> round(float(expectations(lambda rows, t: t, *law)[0]), 6)
    1250.0
    """
    found = np.zeros(len(m))
    short = np.flatnonzero(m <= SHORT)
    found[short] = _added(term, short, m, a, b)
    long = np.flatnonzero(m > SHORT)
    for part in pieces(len(long), PIECE // 1500):
        found[long[part]] = _integrated(term, long[part], m, a, b, smooth)
    return found


def _added(term: Term, rows: Integers, m: Floats, a: Floats, b: Floats) -> Floats:
    """Value by value; laws of like length together."""
    found = np.zeros(len(rows))
    order = np.argsort(m[rows], kind="stable")
    start = 0
    while start < len(order):
        width = int(m[rows[order[min(len(order) - 1, start + PIECE // 8)]]]) + 1
        part = order[start : start + max(1, PIECE // width)]
        found[part] = _weighed(term, rows[part], _support(m[rows[part]]), m, a, b)
        start += len(part)
    return found


def _support(m: Floats) -> Floats:
    return np.broadcast_to(np.arange(m.max(initial=0.0) + 1), (len(m), int(m.max(initial=0.0)) + 1))


def _weighed(term: Term, rows: Integers, t: Floats, m: Floats, a: Floats, b: Floats) -> Floats:
    """Sum over t of P(T = t) term(t), values beyond m left out."""
    values = _product(term, rows, np.minimum(t, m[rows, None]), m, a, b)
    found: Floats = np.where(t <= m[rows, None], values, 0.0).sum(axis=1)
    return found


def _product(term: Term, rows: Integers, t: Floats, m: Floats, a: Floats, b: Floats) -> Floats:
    chance = np.exp(log_pmf(t, m[rows, None], a[rows, None], b[rows, None]))
    found: Floats = chance * term(rows, t)
    return found


def _integrated(term: Term, rows: Integers, m: Floats, a: Floats, b: Floats, smooth: bool) -> Floats:
    length = m[rows, None]
    near = np.arange(EDGE, dtype=np.float64)
    ends = np.concatenate([np.broadcast_to(near, (len(rows), EDGE)), length - near], axis=1)
    outer = _product(term, rows, ends, m, a, b).sum(axis=1)
    turn = np.arange(EDGE - 3, EDGE + 3, dtype=np.float64)
    low = _product(term, rows, np.broadcast_to(turn, (len(rows), 6)), m, a, b) @ GREGORY
    high = _product(term, rows, length - turn, m, a, b) @ GREGORY
    edges = _panels(m[rows], a[rows], b[rows], *GRIDS[smooth])
    fine = _integral(term, rows, edges, SMOOTH if smooth else FINE, m, a, b)
    total: Floats = outer + fine - low - high
    if smooth:
        return total
    coarse = _integral(term, rows, edges, COARSE, m, a, b)
    rough = np.flatnonzero(np.abs(fine - coarse) > AGREE * np.abs(total) + FAINT)
    if len(rough):
        total[rough] = _one_by_one(term, rows[rough], m, a, b)
    return total


def _panels(m: Floats, a: Floats, b: Floats, even: int, far: int) -> Floats:
    """Ends of the panels in logits u = ln((t + 1/2) / (m - t + 1/2)): even ones, and some around the mean."""
    last = np.log((m - EDGE + 1) / EDGE)
    wide = last[:, None] * np.linspace(-1, 1, even)
    p, q = a / (a + b), b / (a + b)
    spread = np.sqrt((a + b + m) / (a + b + 1) / (m * p * q))
    around = np.log(p / q)[:, None] + np.minimum(spread, 1.0)[:, None] * np.arange(-far, far + 1, 3)
    found: Floats = np.sort(np.clip(np.concatenate([wide, around], axis=1), -last[:, None], last[:, None]), axis=1)
    return found


def _integral(term: Term, rows: Integers, edges: Floats, points: int, m: Floats, a: Floats, b: Floats) -> Floats:
    """Gauss-Legendre over each panel, dt = (t + 1/2)(m - t + 1/2) / (m + 1) du."""
    node, weight = np.polynomial.legendre.leggauss(points)
    half = np.diff(edges, axis=1)[:, :, None] / 2
    u = (edges[:, :-1, None] + half * (1 + node)).reshape(len(rows), -1)
    length = m[rows, None]
    share = 1 / (1 + np.exp(-u))
    step = (length + 1) * share * (1 - share) * (half * weight).reshape(len(rows), -1)
    found: Floats = (_product(term, rows, (length + 1) * share - 0.5, m, a, b) * step).sum(axis=1)
    return found


def _one_by_one(term: Term, rows: Integers, m: Floats, a: Floats, b: Floats) -> Floats:
    """All values of long laws, where the term jumps from one to the next."""
    if m[rows].sum() > PATIENCE:
        raise ParameterError(
            f"The loss jumps or bends too sharply between population counts, and {m[rows].sum():,.0f} of them are too "
            "many to be added one by one: give a smoother loss, or losses.Threshold."
        )
    return np.array([_walked(term, rows[[place]], m, a, b) for place in range(len(rows))])


def _walked(term: Term, row: Integers, m: Floats, a: Floats, b: Floats) -> float:
    size = int(m[row[0]]) + 1
    total = 0.0
    for part in pieces(size, PIECE):
        t = np.arange(part.start, min(part.stop, size), dtype=np.float64)[None, :]
        total += float(_product(term, row, t, m, a, b).sum())
    return total
