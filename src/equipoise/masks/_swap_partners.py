"""Pairing: pairs of records chosen so that nobody is in two."""

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.randomness import Draws


def compact(keys: pl.Series, draws: Draws) -> Integers:
    """One secret whole number for each key: draws made from it cost the same whatever the key's type."""
    return (draws.uniform(keys) * 2.0**53).astype(np.int64)


def disjoint(first: Integers, second: Integers, chance: Floats, size: int) -> Integers:
    """The places of the pairs that come first, by `chance`, among all pairs that share a member with them.

    Nobody is in two of the pairs chosen, for of two pairs that share a member only one can come first. `first` names
    everybody at most once. At least one pair is chosen. O(pairs).

    >>> disjoint(np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([0.5, 0.2, 0.9]), 4).tolist()
    [1]
    """
    bits = max(1, len(first).bit_length())
    order = ((chance * 2.0 ** (62 - bits)).astype(np.int64) << bits) | np.arange(len(first))
    best = np.full(size, np.iinfo(np.int64).max)
    best[first] = order
    np.minimum.at(best, second, order)
    return np.flatnonzero((order == best[first]) & (order == best[second]))
