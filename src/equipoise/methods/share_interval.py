"""Confidence intervals of shares: Wilson's interval, and the excess of one share over another."""

from math import sqrt

Z = 1.959963984540054
"""The normal deviate of a 95 % interval."""


def wilson(share: float, n: float) -> tuple[float, float]:
    """The 95 % score interval of a share of n (Wilson 1927); 0 to 1 where n is 0.

    >>> [round(end, 4) for end in wilson(0.1, 50)]
    [0.0435, 0.2136]
    """
    if n <= 0:
        return 0.0, 1.0
    centre, half = share + Z * Z / (2 * n), Z * sqrt(max(0.0, share * (1 - share)) / n + Z * Z / (4 * n * n))
    low, high = (centre - half) / (1 + Z * Z / n), (centre + half) / (1 + Z * Z / n)
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def excess(attack: float, n: float, control: float, m: float) -> tuple[float, float, float]:
    """(a - c) / (1 - c): excess of the share a of n over the share c of m, relative to 1 - c, with its 95 % interval.

    The half widths of both Wilson intervals are carried through the formula to first order, as in Giomi et al. (2023);
    it may be below 0. Where c is 1 it is 0.

    >>> [round(part, 4) for part in excess(0.6, 1000, 0.2, 1000)]
    [0.5, 0.4591, 0.5409]
    """
    rest = 1.0 - control
    if rest <= 0:
        return 0.0, 0.0, 0.0
    one, two = ((high - low) / 2 for low, high in (wilson(attack, n), wilson(control, m)))
    value, error = (attack - control) / rest, sqrt((one / rest) ** 2 + (two * (1 - attack) / rest**2) ** 2)
    return value, value - error, min(1.0, value + error)
