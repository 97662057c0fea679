"""Class sizes on subsets of the keys, for an intruder who knows only a few attributes of a person."""

from collections.abc import Iterator
from itertools import combinations
from math import comb
from typing import Protocol, runtime_checkable

import numpy as np

from equipoise.data.cells import Cells
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import ParameterError
from equipoise.ground.packed_keys import group

MAX_KEY_SUBSETS = 100_000
"""Most subsets of keys that are examined."""


@runtime_checkable
class ClassSizes(Protocol):
    """A rule on class sizes alone: the minimum size, and on how many of the keys (None: all)."""

    def asks(self) -> tuple[int, int | None]: ...


def subsets(keys: tuple[str, ...], size: int | None) -> Iterator[tuple[str, ...]]:
    """All ways to take `size` of the keys; all keys together where there are no more, or no size.

    >>> list(subsets(("age", "sex"), 1)), list(subsets(("age", "sex"), 3))
    ([('age',), ('sex',)], [('age', 'sex')])
    """
    size = len(keys) if size is None else min(size, len(keys))
    if (many := comb(len(keys), size)) > MAX_KEY_SUBSETS:
        raise ParameterError(f"There are {many:,} ways to take {size} of {len(keys)} keys: too many.")
    return combinations(keys, size)


def smallest(cells: Cells, size: int | None) -> Integers:
    """The records of each cell's smallest class on any `size` of the keys. Cost: O(cells) for each subset."""
    if size is None or size >= len(cells.by):
        return cells.alike[0]
    sizes = np.full(len(cells), np.iinfo(np.int64).max)
    for columns in subsets(cells.by, size):
        ids, _ = group([cells.cube.codes[cells.place(c)] for c in columns], [len(cells.values(c)) for c in columns])
        sizes = np.minimum(sizes, cells.margin(columns).alike[0][ids])
    return sizes
