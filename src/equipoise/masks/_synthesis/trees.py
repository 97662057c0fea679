"""Sequential trees: each column drawn from the leaf that the columns before it lead to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats, Integers, inverse
from equipoise.ground.errors import import_extra
from equipoise.ground.packed_keys import code, group_coded
from equipoise.masks._synthesis.variables import SynthesisVariable, weighted

CLASSES = 40
"""A tree tells apart this many categories, the most frequent ones; leaves hold the values themselves all the same."""

Visits = Sequence[tuple[str, ...]]
"""Columns in the order in which they are drawn; those that stand together are drawn from one record."""


@dataclass(frozen=True, eq=False, repr=False)
class Trees:
    """p(x1) p(x2 | x1) p(x3 | x1, x2) ..., each conditional a tree, each value one that was observed.

    A Bayesian bootstrap gives every record a weight, exponential(1), anew for each sample (Rubin 1981): trees are grown
    with the weights and a value is drawn from its leaf with probability proportional to them, so that samples differ
    as draws from a posterior do. Numbers are split by squared error, categories by the Gini index; categories as
    predictors stand in the order of their means (or of the first principal axis of their class shares), gaps go where
    they fit best as predictors and are values like any other to be drawn. Cost: O(columns^2 records log records).
    """

    variables: Mapping[str, SynthesisVariable]
    leaf: int

    def draw(
        self, visits: Visits, fixed: Sequence[str], rows: Integers, rng: np.random.Generator
    ) -> dict[str, pl.Series]:
        """New values of the visited columns. `rows` are the records whose kept columns stay, or as many as wanted."""
        chances = rng.exponential(size=len(next(iter(self.variables.values()))))
        donors = dict.fromkeys(fixed, rows)
        for visit in visits:
            donors |= dict.fromkeys(visit, self._donors(visit, donors, chances, len(rows), rng))
        return {name: self.variables[name].values.gather(donors[name]) for visit in visits for name in visit}

    def _donors(
        self,
        visit: tuple[str, ...],
        donors_of: Mapping[str, Integers],
        chances: Floats,
        size: int,
        rng: np.random.Generator,
    ) -> Integers:
        """The record that each synthetic record takes these columns from."""
        if not donors_of:
            return weighted(chances, size, rng)
        target = self._target(visit)
        pairs = [self._predictor(self.variables[name], target, donors) for name, donors in donors_of.items()]
        old, new = (np.column_stack(side) for side in zip(*pairs, strict=True))
        tree = grown(old, target, chances, self.leaf, rng)
        return _from_leaves(tree.apply(old), tree.apply(new), chances, rng)

    def _target(self, visit: tuple[str, ...]) -> Integers | Floats:
        """What the tree is to tell apart: numbers (a second column where they have gaps) or classes."""
        numbers = self.variables[visit[0]].numbers
        if len(visit) > 1 or numbers is None:
            return classes([self.variables[name] for name in visit])
        gaps = np.isnan(numbers)
        spread = float(np.nanstd(numbers)) if not gaps.all() else 0.0
        if spread == 0 or not gaps.any():
            return np.nan_to_num(numbers, nan=0.0)[:, None]
        centred = np.where(gaps, 0.0, (numbers - np.nanmean(numbers)) / spread)
        return np.column_stack([centred, gaps / gaps.std()])

    def _predictor(self, variable: SynthesisVariable, target: Any, donors: Integers) -> tuple[Floats, Floats]:
        """A column as the tree sees it, in the original and in the synthetic records."""
        if variable.numbers is not None:
            return variable.numbers, variable.numbers[donors]
        assert variable.coded is not None
        ranks = ordered(variable.codes, variable.coded.size, target)
        return ranks[variable.codes], ranks[variable.codes[donors]]


def grown(old: Floats, target: Any, chances: Floats, leaf: int, rng: np.random.Generator) -> Any:
    """A tree by scikit-learn."""
    trees = import_extra("sklearn.tree")
    kind = trees.DecisionTreeClassifier if target.ndim == 1 else trees.DecisionTreeRegressor
    tree = kind(min_samples_leaf=leaf, random_state=int(rng.integers(1 << 31)))
    return tree.fit(old, target, sample_weight=chances)


def classes(variables: Sequence[SynthesisVariable]) -> Integers:
    """The joint category of each record; those beyond the most frequent ones are one class."""
    coded = [v.coded or code(v.values) for v in variables]
    joint = group_coded(coded)[0]
    counts = np.bincount(joint)
    return np.minimum(inverse(np.argsort(-counts, kind="stable")), CLASSES)[joint]


def ordered(codes: Integers, size: int, target: Any) -> Floats:
    """A place for each category such that cuts between places are cuts that matter to the target.

    By the mean of the target (optimal for numbers and for two classes: Breiman et al. 1984, 4.2), or by the first
    principal axis of the class shares (Coppersmith, Hong and Hosking 1999).
    """
    counts = np.maximum(1, np.bincount(codes, minlength=size))
    if target.ndim == 2:
        return np.bincount(codes, weights=target[:, 0], minlength=size) / counts
    many = int(target.max()) + 1
    shares = np.bincount(codes * many + target, minlength=size * many).reshape(size, many) / counts[:, None]
    centred = shares - np.average(shares, axis=0, weights=counts)
    axis = np.linalg.eigh((centred.T * counts) @ centred)[1][:, -1]
    return np.round(centred @ (axis * np.sign(axis[np.abs(axis).argmax()])), 12)


def _from_leaves(old: Integers, new: Integers, chances: Floats, rng: np.random.Generator) -> Integers:
    """For each synthetic record an original one of the same leaf, by chance."""
    order = np.argsort(old, kind="stable")
    reached = np.cumsum(chances[order])
    start, stop = np.searchsorted(old[order], new, side="left"), np.searchsorted(old[order], new, side="right")
    below = np.r_[0.0, reached][start]
    ranks = np.searchsorted(reached, below + rng.random(len(new)) * (reached[stop - 1] - below), side="right")
    return order[np.clip(ranks, start, stop - 1)]
