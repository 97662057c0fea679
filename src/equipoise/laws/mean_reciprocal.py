"""Mean of 1 / F for a class of F people of which f were sampled: the risk of each of its records.

Given f records in the sample, each sampled with probability p, the class has F people with
P(F) = C(F-1, f-1) p^f (1-p)^(F-f), F >= f (Benedetti and Franconi 1998). Then

E(1/F | f) = p^f / f 2F1(f, f; f+1; q) = p / f 2F1(1, 1; f+1; q) = p I_f, with q = 1 - p and I_f the integral of
s^(f-1) / (p + q s) over s in [0, 1].

The second form has positive terms n! q^n / ((f+1) ... (f+n)) that fall fast if f is `MIN_SERIES_SIZE` or more, or q up
to 1/2; else I_1 = log(1/p) / q and q I_(f+1) = 1/f - p I_f, where errors shrink by p/q at every step. So it is exact
and stable for every f and p: nothing overflows and nothing cancels.
"""

import numpy as np

from equipoise.data.cells import Cells
from equipoise.ground.arrays import Floats, Integers

MIN_SERIES_SIZE = 24
SERIES_TERMS = 60
"""Terms of the series: at f = 24 the sixtieth is below 1e-20, at q = 1/2 below 1e-18."""


def mean_reciprocal(f: Integers, p: Floats) -> Floats:
    """E(1/F | f) for classes of f sampled records, each sampled with probability p. O(classes).

    >>> mean_reciprocal(np.array([1, 1, 2, 200]), np.array([1.0, 0.5, 0.5, 0.5])).round(6).tolist()
    [1.0, 0.693147, 0.306853, 0.002506]
    """
    f, p = np.asarray(f, dtype=np.int64), np.asarray(p, dtype=np.float64)
    means = np.empty(len(f))
    quick = (f >= MIN_SERIES_SIZE) | (p >= 0.5)
    means[quick] = _series(f[quick], p[quick])
    means[~quick] = _steps(f[~quick], p[~quick])
    return means


def _series(f: Integers, p: Floats) -> Floats:
    term = p / f
    total = term.copy()
    for n in range(1, SERIES_TERMS):
        term = term * (n * (1 - p) / (f + n))
        total += term
    return np.asarray(total)


def _steps(f: Integers, p: Floats) -> Floats:
    q = 1 - p
    integral = -np.log(p) / q
    active = np.flatnonzero(f > 1)
    for size in range(1, int(f.max(initial=1))):
        integral[active] = (1 / size - p[active] * integral[active]) / q[active]
        active = active[f[active] > size + 1]
    return np.asarray(p * integral)


def of_cells(cells: Cells) -> Floats:
    """E(1/F | f) of each cell's class, with the sum of weights as its expected size; 1/f where it is not above f."""
    if "reciprocal" not in cells.memo:
        f, weight = cells.alike
        cells.memo["reciprocal"] = mean_reciprocal(np.maximum(f, 1), np.minimum(1.0, f / np.maximum(weight, 1e-300)))
    return np.asarray(cells.memo["reciprocal"])
