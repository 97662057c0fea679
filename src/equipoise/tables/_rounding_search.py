"""Whole numbers near given ones, so that sums over many groups stay near too: a search by flips and swaps."""

from typing import Any

import numpy as np

from equipoise.ground.arrays import Floats, Integers

TRIES = 12
"""How many of the best flips are tried together with a second one before the search ends."""
STEPS = 20_000
"""The most flips; beyond that the best found so far stands."""
LEAST = 1e-9
"""Gains below this are rounding."""


def settle(holds: Any, parts: Floats, draws: Floats) -> Integers:
    """For each part in (0, 1) a 0 or 1, so that the groups that hold it keep their sums: holds @ up ~ holds @ parts.

    Minimises the sum over groups of (holds @ (parts - up))^2. It starts from systematic rounding (up where the running
    sum of the parts, from a drawn start, passes a whole number), then takes the flip that gains most, then pairs of
    flips, until none gains. Cost: O(parts) for each flip; at most `STEPS`.

    Source: Langsrud and Heldal (2018), *An algorithm for small count rounding of tabular data*, for the aim; the search
    is plain local descent.

    >>> import scipy.sparse as sparse
    >>> groups = sparse.csr_array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    >>> settle(groups, np.array([0.4, 0.7, 0.2]), np.array([0.1, 0.2, 0.3])).tolist()
    [0, 1, 0]
    """
    if not len(parts):
        return np.zeros(0, dtype=np.int64)
    search = _RoundingSearch(holds, parts, draws)
    while search.steps < STEPS and (search.single() or search.double()):
        pass
    return search.up.astype(np.int64)


class _RoundingSearch:
    """Where the search stands: what is up, and for each part the sum of the misses of the groups that hold it."""

    def __init__(self, holds: Any, parts: Floats, draws: Floats) -> None:
        self.by_part, self.by_group = holds.tocsc(), holds.tocsr()
        passed = np.floor(np.cumsum(parts) + draws[0])
        self.up = np.diff(passed, prepend=np.floor(draws[0])) > 0
        self.groups = np.diff(self.by_part.indptr).astype(np.float64)
        self.pull = self.by_group.T @ (self.by_group @ (parts - self.up))
        self.ties = LEAST * draws
        self.steps = 0

    def gains(self) -> Floats:
        """What each flip would take off the sum of squares."""
        sign = np.where(self.up, -1.0, 1.0)
        return 2.0 * sign * self.pull - self.groups

    def flip(self, part: int) -> None:
        groups = self.by_part.indices[self.by_part.indptr[part] : self.by_part.indptr[part + 1]]
        shared = self.by_group[groups].indices
        change = -1.0 if not self.up[part] else 1.0
        self.pull += change * np.bincount(shared, minlength=len(self.up))
        self.up[part] = not self.up[part]
        self.steps += 1

    def single(self) -> bool:
        gains = self.gains()
        best = int(np.argmax(gains + self.ties))
        if gains[best] > 2 * LEAST:
            self.flip(best)
            return True
        return False

    def double(self) -> bool:
        gains = self.gains()
        for first in np.argsort(-(gains + self.ties), kind="stable")[:TRIES].tolist():
            self.flip(first)
            after = self.gains()
            after[first] = -np.inf
            second = int(np.argmax(after + self.ties))
            if gains[first] + after[second] > 2 * LEAST:
                self.flip(second)
                return True
            self.flip(first)
        return False
