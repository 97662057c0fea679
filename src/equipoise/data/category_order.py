"""Distance between two categories of a key, and an order that keeps similar cells together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.hierarchy import Hierarchy
from equipoise.ground.arrays import Floats, Integers, inverse
from equipoise.ground.errors import EquipoiseError
from equipoise.ground.packed_keys import code

MAX_HALVINGS = 8
"""Ordered values without a hierarchy are halved this often to make one."""


@dataclass(frozen=True, eq=False, repr=False)
class CategoryCodes:
    """Code of each value of a key at every level, the finest first; values with equal codes share a category."""

    levels: tuple[Integers, ...]

    def distance(self, a: Integers, b: Integers) -> Floats:
        """0 for equal values, else the share of levels to climb until both are in one category (1: never).

        >>> town = CategoryCodes((np.array([0, 1, 2, 3]), np.array([0, 0, 1, 1])))
        >>> town.distance(np.array([0, 0, 0]), np.array([0, 1, 2])).tolist()
        [0.0, 0.5, 1.0]
        """
        climbed = np.zeros(len(a))
        for level in self.levels:
            climbed += level[a] != level[b]
        return climbed / len(self.levels)


def ladder(values: pl.Series, tree: Hierarchy | None) -> CategoryCodes:
    """Levels of a key: those of its hierarchy, halvings of its order for numbers and dates, or none."""
    finest = np.arange(len(values))
    if tree is not None:
        return CategoryCodes((finest, *_coarser(values, tree)))
    if values.dtype.is_numeric() or values.dtype.is_temporal():
        steps = max(1, min(MAX_HALVINGS, int(np.ceil(np.log2(max(2, len(values)))))))
        return CategoryCodes((finest, *(finest * 2**s // max(1, len(values)) for s in range(steps - 1, 0, -1))))
    return CategoryCodes((finest,))


def _coarser(values: pl.Series, tree: Hierarchy) -> list[Integers]:
    """Codes at each level of the first branch that fits the values; none where the column was recoded already."""
    try:
        return [code(level.label(values)).codes.astype(np.int64) for level in tree.branches[0].levels()]
    except EquipoiseError:
        return []


def similar_order(
    axes: Sequence[pl.Series], codes: Sequence[Integers], trees: Mapping[str, Hierarchy], names: Sequence[str]
) -> Integers:
    """The rank of each cell in an order that keeps cells with common coarse categories together. O(cells log cells)."""
    steps = [ladder(axis, trees.get(name)) for axis, name in zip(axes, names, strict=True)]
    deepest = max(len(step.levels) for step in steps)
    columns: list[Integers] = []
    for depth in range(deepest - 1, -1, -1):
        columns += [step.levels[depth][c] for step, c in zip(steps, codes, strict=True) if depth < len(step.levels)]
    return inverse(np.lexsort(tuple(reversed(columns))))
