"""Matches by an intruder who knows how likely each category of a key becomes another."""

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import code, group_coded

MAX_PAIRS, MIN_PEOPLE, STEP = 40_000_000, 200, 100
"""People x released cells x keys at most, people at least, and how many of them are searched for at a time."""
PRIOR_RECORDS = 3.0
"""Records of each category that moved beforehand as those of the whole key did."""


def likelihood_matches(original: pl.DataFrame, released: pl.DataFrame) -> float:
    """Share of people found in the released cell of the largest likelihood, by the best of three rules.

    >>> keys = pl.DataFrame({"age": [1, 1, 2, 2], "sex": ["m", "f", "m", "f"]})
    >>> likelihood_matches(keys, keys.with_columns(sex=pl.Series(["f", "m", "m", "f"])))
    0.5
    """
    truth, masked = _codes(original, released)
    cell, _ = group_coded([code(column) for column in released.iter_columns()])
    _, first, cell, counts = np.unique(cell, return_index=True, return_inverse=True, return_counts=True)
    goals, size = masked[:, first], max(MIN_PEOPLE, MAX_PAIRS // max(1, len(first) * len(truth)))
    people = np.random.default_rng(len(cell)).permutation(len(cell))[:size]
    expected = sum(np.log(np.bincount(key) / len(cell) + 1e-300)[goal] for key, goal in zip(masked, goals, strict=True))
    chances = [_Chances(x, z) for x, z in zip(truth, masked, strict=True)]
    right = np.zeros((3, len(people)))
    for at in range(0, len(people), STEP):
        some = people[at : at + STEP]
        logs = sum(key.of(some)[:, goal] for key, goal in zip(chances, goals, strict=True))
        for rule, penalty in enumerate((0.0, np.log(counts), expected)):
            right[rule, at : at + STEP] = _right(logs - penalty, cell[some], counts)
    return float(right.mean(axis=1).max())


def _right(scores: Floats, own: Integers, counts: Integers) -> Floats:
    """The probability that a random pick among the records of the best cells is the own one."""
    best = scores >= scores.max(axis=1, keepdims=True) - 1e-9
    return np.asarray(best[np.arange(len(own)), own] / (best * counts).sum(axis=1))


def _codes(original: pl.DataFrame, released: pl.DataFrame) -> tuple[Integers, Integers]:
    """Categories of every key in both files, a row for each key, numbered alike."""
    both = pl.concat([original, released.select(original.columns)], how="vertical_relaxed")
    codes = np.stack([code(column).codes.astype(np.int64) for column in both.iter_columns()])
    return codes[:, : original.height], codes[:, original.height :]


class _Chances:
    """log P(released category | original one) of a key, counted in the pairs: never less than what the law tells."""

    def __init__(self, truth: Integers, masked: Integers) -> None:
        self.truth, self.masked = truth, masked
        self.width = int(max(truth.max(), masked.max())) + 1
        self.shares = np.bincount(masked, minlength=self.width) / len(masked)
        self.stay = float((truth == masked).mean())
        self.order = np.argsort(truth, kind="stable")
        self.starts = np.searchsorted(truth[self.order], np.arange(self.width + 1))

    def of(self, people: Integers) -> Floats:
        """A row for each person, a column for each category."""
        categories, places = np.unique(self.truth[people], return_inverse=True)
        rows = np.empty((len(categories), self.width))
        for place, x in enumerate(categories):
            goals = self.masked[self.order[self.starts[x] : self.starts[x + 1]]]
            rows[place] = np.bincount(goals, minlength=self.width) + PRIOR_RECORDS * (1 - self.stay) * self.shares
            rows[place, x] += PRIOR_RECORDS * self.stay
        return np.asarray(np.log(np.maximum(rows, 1e-12) / rows.sum(axis=1, keepdims=True))[places])
