"""Shares with their error: the interval of one, and how far one lies above another."""

from math import sqrt

Z = 1.959963984540054
"""The normal deviate of a 95 % interval."""


def wilson(share: float, n: float) -> tuple[float, float]:
    """The 95 % score interval of a share of n (Wilson 1927); everything from 0 to 1 where n is 0.

    >>> [round(end, 4) for end in wilson(0.1, 50)]
    [0.0435, 0.2136]
    """
    if n <= 0:
        return 0.0, 1.0
    centre, half = share + Z * Z / (2 * n), Z * sqrt(max(0.0, share * (1 - share)) / n + Z * Z / (4 * n * n))
    low, high = (centre - half) / (1 + Z * Z / n), (centre + half) / (1 + Z * Z / n)
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def excess(attack: float, n: float, control: float, m: float) -> tuple[float, float, float]:
    """(a - c) / (1 - c): the share a of n above the share c of m, of what c leaves; with the ends of its 95 % interval.

    The half widths of both Wilson intervals are carried through the formula to first order, as in Giomi et al. (2023);
    it may be below 0. Where c is 1 nothing is left: 0.

    >>> [round(part, 4) for part in excess(0.6, 1000, 0.2, 1000)]
    [0.5, 0.4591, 0.5409]
    """
    left = 1.0 - control
    if left <= 0:
        return 0.0, 0.0, 0.0
    one, two = ((high - low) / 2 for low, high in (wilson(attack, n), wilson(control, m)))
    value, error = (attack - control) / left, sqrt((one / left) ** 2 + (two * (1 - attack) / left**2) ** 2)
    return value, value - error, min(1.0, value + error)
