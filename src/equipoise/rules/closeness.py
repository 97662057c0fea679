"""t-closeness: sensitive values in each class distributed nearly as in the whole file."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from equipoise.data.equivalence_classes import Split
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import ParameterError
from equipoise.ground.packed_keys import code
from equipoise.methods.parameters import share
from equipoise.methods.sensitive_values import TIE_TOLERANCE, Attribute, Others, check


@dataclass(frozen=True, slots=True)
class Closeness(Attribute):
    """A class is unsafe when its sensitive values are farther than `t` from those of the whole file (t-closeness).

    The distance is the earth mover's, between the class (p) and the file (q) over the file's m values:
    `equal`: 1/2 sum |p_i - q_i|; `ordered`: 1/(m - 1) sum over i of |sum over j <= i of (p_j - q_j)|, values in
    their order; `hierarchical`: over the column's hierarchy of height H, sum over its categories of
    height/H min(surplus, lack) of their children. The whole file includes records that are suppressed. A missing
    value counts as a value. Coarsening: classes that are all close make a close one.

    Source: Li, Li and Venkatasubramanian (2007), *t-closeness*.
    Misleads when values are few and t large: then nearly all classes pass.
    Cost: O(cells) for `equal`, O(classes x values) for the others.

    >>> ill = eq.Cells.of(pl.DataFrame({"town": ["a", "a", "b"], "ill": ["flu", "gout", "flu"], "n": [2, 2, 4]}))
    >>> Closeness("ill", 0.2).flag(ill).to_list()
    [True, True, True]
    """

    sensitive: tuple[str, ...]
    t: float = 0.2
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"
    others: Others = "apart"

    def __post_init__(self) -> None:
        check(self)
        share(self.t, "t", zero=True)

    def within(self, split: Split) -> Integers:
        return self.distances(split) > self.t + TIE_TOLERANCE

    def distances(self, split: Split) -> Floats:
        """Earth mover's distance of each class from the file."""
        if self.distance == "equal":
            return split.add(np.maximum(split.shares - split.whole[split.codes], 0))
        distances = np.zeros(split.size)
        groups = _tree(split) if self.distance == "hierarchical" else []
        for where, shares in split.tables():
            extra = shares - split.whole
            distances[where] = _tree_distance(extra, groups) if groups else _ordered_distance(extra)
        return distances


def _ordered_distance(extra: Floats) -> Floats:
    """Earth mover's distance over ordered values: each step between neighbours carries the surplus before it."""
    return np.abs(np.cumsum(extra, axis=1)).sum(axis=1) / max(1, extra.shape[1] - 1)


def _tree(split: Split) -> list[Integers]:
    """Category of each value at each level, up to one for all."""
    if split.tree is None:
        raise ParameterError(f"Column {split.values.name!r} has no hierarchy: give one in the roles.")
    if len(split.tree.branches) > 1:
        raise ParameterError(f"The hierarchy of {split.values.name!r} has several branches: give one of them.")
    levels = [code(level.label(split.values)).codes.astype(np.int64) for level in split.tree.levels[1:]]
    return levels if levels and not levels[-1].any() else [*levels, np.zeros(len(split.values), dtype=np.int64)]


def _tree_distance(extra: Floats, groups: list[Integers]) -> Floats:
    """Earth mover's distance over a hierarchy: surplus moves within each category, the rest goes up a level."""
    cost, child = np.zeros(len(extra)), np.arange(extra.shape[1])
    below = extra
    for height, group in enumerate(groups, start=1):
        first = np.unique(child, return_index=True)[1]
        parent, size = group[first], int(group.max()) + 1
        surplus, lack = (_sum_by_parent(np.maximum(side, 0), parent, size) for side in (below, -below))
        cost += np.minimum(surplus, lack).sum(axis=1) * height / len(groups)
        below, child = surplus - lack, group
    return cost


def _sum_by_parent(amounts: Floats, parent: Integers, size: int) -> Floats:
    sums = np.zeros((len(amounts), size))
    np.add.at(sums.T, parent, amounts.T)
    return sums
