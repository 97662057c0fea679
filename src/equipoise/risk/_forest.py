"""Random forest of regression trees (Breiman 2001), for several values at once, in NumPy alone.

Each tree learns from two thirds of the records and guesses for the others, so that a record's guess is never learnt
from itself. All nodes of a level are split together: records are sorted by a column within their node, and running sums
give the gain of every cut. Trees follow bends, steps and products of columns that no sum of curves does.
"""

from collections.abc import Iterator

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers

MIN_TREES, MAX_TREES, MAX_DEPTH, MIN_LEAF = 40, 150, 12, 4
"""Trees: as many as the work allows."""
BAG_SHARE, COLUMN_SHARE = 0.67, 0.6
"""Share of the records that teach a tree, and of the columns tried at a node; all of them in synthetic files."""
MAX_RECORDS, MIN_RECORDS, MAX_WORK = 3_000, 300, 30_000_000
"""Records at most and at least, and records x columns x values over all levels of all trees."""


def sampled_rows(rows: Integers, columns: int, values: int) -> Integers:
    """The rows that are used: all, or some drawn by a fixed public seed so that the work stays bounded."""
    work = MAX_WORK // (MIN_TREES * MAX_DEPTH * max(1, columns) * max(1, values))
    size = min(MAX_RECORDS, max(MIN_RECORDS, work))
    return rows if len(rows) <= size else np.sort(np.random.default_rng(size).permutation(rows)[:size])


def forest_guesses(x: Floats, y: Floats, asked: Floats | None = None) -> Floats:
    """Guesses of y, a column for each value, for the records themselves (by trees that have not seen them) or others.

    O(trees x levels x records x columns x values).

    >>> x = np.linspace(-1, 1, 400)[:, None]
    >>> guess = forest_guesses(x, np.abs(x))
    >>> bool(((guess - np.abs(x)) ** 2).mean() < 0.01 * np.abs(x).var())
    True
    """
    features = x if asked is None else np.concatenate([x, asked])
    centre, unit = y.mean(axis=0), np.maximum(y.std(axis=0), 1e-300)
    teaching = np.zeros((len(features), y.shape[1]))
    teaching[: len(y)] = (y - centre) / unit
    rng = np.random.default_rng(len(features))
    sums, trees = np.zeros_like(teaching), np.zeros(len(features))
    orders = [np.argsort(column, kind="stable") for column in features.T]
    work = MAX_DEPTH * max(1, features.size * y.shape[1])
    for _ in range(min(MAX_TREES, max(MIN_TREES, MAX_WORK // work))):
        bag = np.zeros(len(features), dtype=bool)
        bag[: len(y)] = rng.random(len(y)) < BAG_SHARE
        if not bag.any():
            continue
        leaf = _grown(features, orders, teaching, bag, rng, COLUMN_SHARE if asked is None else 1.0)
        counts, means = _means(leaf, teaching, bag)
        asks = ~bag & (counts[leaf] > 0)
        sums[asks] += means[leaf[asks]]
        trees[asks] += 1
    guesses = sums / np.maximum(trees, 1)[:, None] * unit + centre
    return guesses if asked is None else guesses[len(x) :]


def _means(leaf: Integers, y: Floats, bag: Booleans) -> tuple[Floats, Floats]:
    counts = np.bincount(leaf[bag], minlength=int(leaf.max()) + 1).astype(np.float64)
    sums = np.stack([np.bincount(leaf[bag], column, len(counts)) for column in y[bag].T], axis=1)
    return counts, sums / np.maximum(counts, 1)[:, None]


def _grown(
    x: Floats, orders: list[Integers], y: Floats, bag: Booleans, rng: np.random.Generator, tried_share: float
) -> Integers:
    """The leaf of every record in one tree that the records of the bag teach."""
    node = np.zeros(len(x), dtype=np.int64)
    orders = [order[bag[order]] for order in orders]
    for _ in range(MAX_DEPTH):
        size = int(node.max()) + 1
        gain, cut, column = np.full(size, 1e-9), np.full(size, np.inf), np.zeros(size, dtype=np.int64)
        tried = rng.random((len(orders), size)) < tried_share
        tried[rng.integers(0, len(orders), size), np.arange(size)] = True
        for place, (nodes, gains, cuts) in enumerate(_cuts(x, orders, y, node)):
            better = (gains > gain[nodes]) & tried[place, nodes]
            gain[nodes[better]], cut[nodes[better]], column[nodes[better]] = gains[better], cuts[better], place
        if np.isinf(cut).all():
            break
        right = x[np.arange(len(x)), column[node]] > cut[node]
        _, node = np.unique(2 * node + right, return_inverse=True)
    return node


def _cuts(x: Floats, orders: list[Integers], y: Floats, node: Integers) -> Iterator[tuple[Integers, Floats, Floats]]:
    """Of each column the best cut of every node that has one: the node, the gain and where it is cut."""
    for place, order in enumerate(orders):
        rows = order[np.argsort(node[order], kind="stable")]
        nodes, values = node[rows], x[rows, place]
        starts = np.flatnonzero(np.r_[True, nodes[1:] != nodes[:-1]])
        sizes = np.diff(np.r_[starts, len(rows)])
        running = np.cumsum(y[rows], axis=0)
        before = np.repeat(running[starts] - y[rows[starts]], sizes, axis=0)
        total = np.repeat(running[starts + sizes - 1], sizes, axis=0) - before
        left, number = running - before, np.arange(1, len(rows) + 1) - np.repeat(starts, sizes)
        rest = np.repeat(sizes, sizes) - number
        lower = (left**2).sum(axis=1) / number
        upper = ((total - left) ** 2).sum(axis=1) / np.maximum(rest, 1)
        gains = lower + upper - (total**2).sum(axis=1) / (number + rest)
        after = np.r_[values[1:], np.inf]
        gains[(number < MIN_LEAF) | (rest < MIN_LEAF) | (values >= after)] = -np.inf
        best = np.maximum.reduceat(gains, starts)
        at = np.flatnonzero((gains == np.repeat(best, sizes)) & np.isfinite(gains))
        at = at[np.r_[True, nodes[at][1:] != nodes[at][:-1]]] if len(at) else at
        yield nodes[at], gains[at], (values[at] + after[at]) / 2
