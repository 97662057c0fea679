"""The value near which most others like a person lie: the best guess where it must be near, not right on average."""

import numpy as np

from equipoise.ground.arrays import Floats, Integers

NEIGHBOURS = (10, 30, 100)
"""Others most alike, by whose values the likeliest is taken."""
ROWS_AT_ONCE = 500
NEGATIVE = 1e4
"""What sets the logarithms of negative values apart."""


def likeliest_values(guesses: Floats, goal: Floats, truth: Floats, p: float, units: Integers) -> list[Floats]:
    """For each number of neighbours the guess within the share `p` of most of their true values, none of which is 0.

    Neighbours are people of other units whose `guesses` of the `goal`, a column for each way to guess it, are nearest
    in units of their errors; the nearer count more. Wages in round numbers are hit at their heaps, where means lie
    between two of them. O(n log n + n neighbours^2).

    >>> truth = np.repeat([100.0, 150.0, -200.0], 40)
    >>> guess = likeliest_values(truth[:, None], truth, truth, 0.1, np.arange(120))[0]
    >>> np.unique(guess.round(6)).tolist()
    [-200.0, 100.0, 150.0]
    """
    from scipy.spatial import KDTree

    scaled = guesses / np.maximum(np.sqrt(((guesses - goal[:, None]) ** 2).mean(axis=0)), 1e-9)
    many = [size for size in NEIGHBOURS if size < len(truth)]
    if not many:
        return []
    _, places = KDTree(scaled).query(scaled, k=many[-1] + 1)
    logs = np.log(np.abs(truth)) + np.where(truth < 0, NEGATIVE, 0.0)
    values = np.where(units[places] == units[:, None], np.inf, logs[places])
    blocks = np.array_split(values, max(1, len(values) // ROWS_AT_ONCE))
    return [np.concatenate([_likeliest(block[:, : size + 1], p) for block in blocks]) for size in many]


def _likeliest(values: Floats, p: float) -> Floats:
    """The middle of the guesses that are near enough to most of the values of a row, as logarithms; inf is nobody's."""
    nearness = np.where(np.isinf(values), 0.0, 1.0 - np.arange(values.shape[1]) / (values.shape[1] + 1))
    order = np.argsort(values, axis=1)
    values, nearness = (np.take_along_axis(each, order, axis=1) for each in (values, nearness))
    width = np.log((1 + p) / (1 - p)) + 1e-9
    inside = (values[:, None] >= values[:, :, None]) & (values[:, None] <= values[:, :, None] + width)
    first = np.einsum("nij,nj->ni", inside, nearness).argmax(axis=1)[:, None]
    low = np.take_along_axis(values, first, axis=1)[:, 0]
    high = np.where(inside[np.arange(len(values)), first[:, 0]] & np.isfinite(values), values, -np.inf).max(axis=1)
    negative = low > NEGATIVE / 2
    low, high = (each - np.where(negative, NEGATIVE, 0.0) for each in (low, high))
    with np.errstate(invalid="ignore"):
        middle = ((1 + p) * np.exp(low) + (1 - p) * np.exp(high)) / 2
    return np.where(np.isfinite(middle), middle, 0.0) * np.where(negative, -1.0, 1.0)
