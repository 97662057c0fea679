"""Random forests and extra trees (Breiman 2001; Geurts et al. 2006), for several values at once, in NumPy alone.

Each tree learns from two thirds of the records and guesses for the others, so that a record's guess is never learnt
from itself. All nodes of a level, of several trees, are split together: records stay sorted by each column within their
node, and running sums of what is left of the values after the node's mean give the gain of every cut. Extra trees draw
one cut for each column of a node and take the best of these: smoother, and better where values are noisy. Trees follow
bends, steps and products of columns that no sum of curves does.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers

MIN_TREES, MAX_TREES, MAX_DEPTH, MIN_LEAF = 40, 100, 12, 4
"""Trees: as many as the work allows."""
ASKED_TREES, EXTRA_DEPTH, ASKED_EXTRA_LEAF = 40, 20, 1
"""Trees where others are asked about, for all of them answer; extra trees grow deeper, and then to single records."""
BAG_SHARE, COLUMN_SHARE = 0.67, 0.6
"""Share of the records that teach a tree, and of the columns tried at a node; all of them in synthetic files."""
MAX_RECORDS, MIN_RECORDS, MAX_WORK = 3_000, 300, 30_000_000
"""Records at most and at least, and records x columns x values over all levels of all trees."""
ROWS_AT_ONCE, LEAST_GAIN = 32_000, 1e-9
"""Records x trees that grow together, so that nodes have numbers of 16 bits, which sort fast; the gain of a cut."""


def sampled_rows(rows: Integers, columns: int, values: int) -> Integers:
    """The rows that are used: all, or some drawn by a fixed public seed so that the work stays bounded."""
    work = MAX_WORK // (MIN_TREES * MAX_DEPTH * max(1, columns) * max(1, values))
    size = min(MAX_RECORDS, max(MIN_RECORDS, work))
    return rows if len(rows) <= size else np.sort(np.random.default_rng(size).permutation(rows)[:size])


def forest_guesses(
    x: Floats,
    y: Floats,
    asked: Floats | None = None,
    most: int = MAX_WORK,
    *,
    units: Integers | None = None,
    extra: bool = False,
) -> Floats:
    """Guesses of y, a column for each value, for the records themselves (by trees that have not seen them) or others.

    With `extra` by extra trees, which all records teach where others are asked about. Records of one of the `units` are
    seen together or not at all: else members of a household teach each other's value.
    O(trees x levels x records x columns x values), for at most `most` of these where more than 40 trees grow.

    >>> x = np.linspace(-1, 1, 400)[:, None]
    >>> guess = forest_guesses(x, np.abs(x))
    >>> bool(((guess - np.abs(x)) ** 2).mean() < 0.01 * np.abs(x).var())
    True
    """
    features = x if asked is None else np.concatenate([x, asked])
    centre, unit = y.mean(axis=0), np.maximum(y.std(axis=0), 1e-300)
    teaching = np.zeros((y.shape[1], len(features)))
    teaching[:, : len(y)] = ((y - centre) / unit).T
    rng = np.random.default_rng(len(features))
    sums, answers = np.zeros_like(teaching), np.zeros(len(features))
    work = MAX_DEPTH * max(1, features.size * y.shape[1])
    trees = min(MAX_TREES, max(MIN_TREES, most // work)) if asked is None else ASKED_TREES
    share = 1.0 if extra and asked is not None else BAG_SHARE
    grow = _Growth(rng, extra, asked is not None)
    step = max(1, ROWS_AT_ONCE // len(features))
    units = np.arange(len(y)) if units is None else np.unique(units, return_inverse=True)[1]
    for first in range(0, trees, step):
        bags = np.zeros((min(step, trees - first), len(features)), dtype=bool)
        bags[:, : len(y)] = (rng.random((len(bags), int(units.max(initial=0)) + 1)) < share)[:, units]
        leaves = _grown(features.T.copy(), teaching, bags, grow)
        counts = np.bincount(leaves[bags], minlength=int(leaves.max()) + 1)
        asks = ~bags & (counts[leaves] > 0)
        answers += asks.sum(axis=0)
        for total, value in zip(sums, teaching, strict=True):
            means = np.bincount(leaves[bags], np.tile(value, (len(bags), 1))[bags], len(counts)) / np.maximum(counts, 1)
            total += np.where(asks, means[leaves], 0.0).sum(axis=0)
    guesses = (sums / np.maximum(answers, 1)).T * unit + centre
    return guesses if asked is None else guesses[len(x) :]


@dataclass(frozen=True)
class _Growth:
    """How trees grow: random forests or extra trees, for the records themselves or for others."""

    rng: np.random.Generator
    extra: bool
    for_others: bool

    @property
    def leaf(self) -> int:
        return ASKED_EXTRA_LEAF if self.extra and self.for_others else MIN_LEAF

    @property
    def depth(self) -> int:
        return EXTRA_DEPTH if self.extra else MAX_DEPTH

    @property
    def column_share(self) -> float:
        return 1.0 if self.extra or self.for_others else COLUMN_SHARE


def _grown(x: Floats, y: Floats, bags: Booleans, growth: _Growth) -> Integers:
    """The leaf of every record (column) in every tree (row), each tree taught by the records of its bag."""
    trees, records = bags.shape
    rows, node = np.arange(bags.size), np.repeat(np.arange(trees), records)
    tiled, left = np.tile(x, trees), np.tile(y, trees)
    sorts = [np.arange(records)] if growth.extra else [np.argsort(column, kind="stable") for column in x]
    orders = np.stack([_sorted_rows(order, bags) for order in sorts])
    cuts = _random_cuts if growth.extra else _best_cuts
    for _ in range(growth.depth):
        orders = _with_room(orders, node, left, growth.leaf)
        if not orders.size:
            break
        cut, column = cuts(tiled, orders, node, left, growth)
        right = tiled[column[node], rows] > cut[node]
        node = node + np.r_[0, np.cumsum(np.isfinite(cut))[:-1]][node] + right
    return node.reshape(bags.shape)


def _sorted_rows(order: Integers, bags: Booleans) -> Integers:
    """Rows (tree x records + record) of the bags, tree by tree in the order of a column."""
    tree, place = np.nonzero(bags[:, order])
    return np.asarray(tree * bags.shape[1] + order[place])


def _with_room(orders: Integers, node: Integers, left: Floats, leaf: int) -> Integers:
    """Rows sorted by their nodes anew, those left out whose node is too small or too even to be cut."""
    rows, size = orders[0], int(node.max()) + 1
    nodes = node[rows]
    counts = np.bincount(nodes, minlength=size)
    variation = np.zeros(size)
    for value in left:
        rest = value[rows]
        rest -= (np.bincount(nodes, rest, size) / np.maximum(counts, 1))[nodes]
        variation += np.bincount(nodes, rest * rest, size)
        value[rows] = rest
    room = (counts >= 2 * leaf) & (variation > LEAST_GAIN)
    number = np.where(room, np.cumsum(room), 0).astype(np.int16)[node]
    without = int(counts[~room].sum())
    return np.stack([order[np.argsort(number[order], kind="stable")[without:]] for order in orders])


def _best_cuts(x: Floats, orders: Integers, node: Integers, left: Floats, growth: _Growth) -> tuple[Floats, Integers]:
    """Where every node is cut, infinity where it is not, and in which column.

    Sums of a node are 0, so that of n values, a with the sum s before the cut, the gain is s^2 (1 / a + 1 / (n - a)).
    """
    nodes = node[orders[0]]
    starts = np.flatnonzero(np.diff(nodes, prepend=-1))
    sizes = np.diff(starts, append=len(nodes))
    before = np.arange(1, len(nodes) + 1) - np.repeat(starts, sizes)
    after = np.repeat(sizes, sizes) - before
    factor = np.where((before >= MIN_LEAF) & (after >= MIN_LEAF), 1 / before + 1 / np.maximum(after, 1), 0.0)
    tried = growth.rng.random((len(orders), len(starts))) < growth.column_share
    tried[growth.rng.integers(0, len(orders), len(starts)), np.arange(len(starts))] = True
    gains = np.stack(list(_gains(x, orders, left, factor)))
    best = np.where(tried, np.maximum.reduceat(gains, starts, axis=1), 0.0)
    column = best.argmax(axis=0)
    highest = best[column, np.arange(len(starts))]
    chosen = np.repeat(column, sizes)
    at = np.flatnonzero(gains[chosen, np.arange(len(nodes))] >= np.repeat(np.maximum(highest, LEAST_GAIN), sizes))
    at = at[np.flatnonzero(np.diff(nodes[at], prepend=-1))]
    cut, columns = np.full(int(node.max()) + 1, np.inf), np.zeros(int(node.max()) + 1, dtype=np.int64)
    columns[nodes[at]] = chosen[at]
    cut[nodes[at]] = (x[chosen[at], orders[chosen[at], at]] + x[chosen[at], orders[chosen[at], at + 1]]) / 2
    return cut, columns


def _random_cuts(x: Floats, orders: Integers, node: Integers, left: Floats, growth: _Growth) -> tuple[Floats, Integers]:
    """As `_best_cuts`, but each column is cut at one point, drawn between the ends of its values in the node."""
    rows = orders[0]
    nodes = node[rows]
    starts = np.flatnonzero(np.diff(nodes, prepend=-1))
    sizes = np.diff(starts, append=len(nodes))
    values, places = left[:, rows], np.arange(len(starts))
    points, gains = np.empty((2, len(x), len(starts)))
    for column, along in enumerate(x[:, rows]):
        low, high = np.minimum.reduceat(along, starts), np.maximum.reduceat(along, starts)
        points[column] = low + (high - low) * growth.rng.random(len(starts))
        right = along > np.repeat(points[column], sizes)
        after = np.add.reduceat(right, starts, dtype=np.int64)
        before = sizes - after
        sums = np.add.reduceat(values * right, starts, axis=1)
        gain = (sums**2).sum(axis=0) * sizes / np.maximum(after * before, 1)
        gains[column] = np.where(np.minimum(after, before) >= growth.leaf, gain, 0.0)
    best = gains.argmax(axis=0)
    cut, columns = np.full(int(node.max()) + 1, np.inf), np.zeros(int(node.max()) + 1, dtype=np.int64)
    cut[nodes[starts]] = np.where(gains[best, places] > LEAST_GAIN, points[best, places], np.inf)
    columns[nodes[starts]] = best
    return cut, columns


def _gains(x: Floats, orders: Integers, left: Floats, factor: Floats) -> Iterator[Floats]:
    """Of each column the gain of a cut after every row, 0 between equal values."""
    for values, rows in zip(x, orders, strict=True):
        gain = np.zeros(len(rows))
        for value in left:
            running = np.cumsum(value[rows])
            gain += running * running
        gain *= factor
        along = values[rows]
        gain[:-1] *= along[1:] > along[:-1]
        yield gain
