"""Type aliases for NumPy arrays, and two idioms of indexing."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[Any]
"""Whole numbers of any width, and flags used as such."""
Booleans = NDArray[np.bool_]
Numbers = Annotated[Any, "numbers"]
"""An array of numbers, or a number, that formulas take as it is."""


def inverse(order: Integers) -> Integers:
    """The place of each element in a sorting order.

    >>> inverse(np.array([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places


def runs(low: Integers, high: Integers) -> Integers:
    """Numbers low to high - 1 of every run, one run after the other.

    >>> runs(np.array([0, 5]), np.array([2, 8])).tolist()
    [0, 1, 5, 6, 7]
    """
    sizes = high - low
    return np.asarray(np.repeat(low - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum())))
