"""Optimal partition of the leaves of a forest into pieces that are published together.

Leaves stand in the order of their paths, so that the leaves below any node, and below any run of neighbouring siblings,
are a range. A piece is one leaf, the whole of a node, or a run of up to `reach` neighbouring siblings. From the leaves
up, the best of a node is the smaller of telling it whole and the best way to cut its row of children into runs:

    best(node) = min(cost(node whole), min over cuts of the row: sum of best(child) for runs of one, cost(run) for more)

which is Bellman's principle on a tree, so the sum is the smallest of all such cuts. Cost: O(nodes x reach) pieces,
priced together for all rows of a height, in as many steps as the longest row has children.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError

Price = Callable[[Integers, Integers, int], Floats]
"""The costs of pieces: from their first leaves, their ends (the first leaf after each) and their height."""


@dataclass(frozen=True, eq=False, repr=False)
class Cut:
    """For each leaf the piece it is told in, pieces numbered from the left, and the height of that piece."""

    piece: Integers
    height: Integers
    cost: float

    @property
    def starts(self) -> Integers:
        """The first leaf of each piece."""
        return np.flatnonzero(np.append(True, self.piece[1:] != self.piece[:-1]))


@dataclass(frozen=True, eq=False, repr=False)
class _HeightNodes:
    """The nodes of one height: where each begins and ends, what the best way to tell it costs, and how it is told.

    `child` numbers the first node below, `back` tells for each place in the row below how long the last run is when
    the row is cut there, `whole` which nodes are told whole.
    """

    start: Integers
    stop: Integers
    best: Floats
    child: Integers
    back: Integers
    whole: NDArray[np.bool_]


def cheapest(paths: Sequence[Integers], price: Price, reach: int = 2) -> Cut:
    """The cheapest cut of a forest; `paths[h]` has for each leaf its ancestor at height h, `paths[0]` the leaf itself.

    >>> weight = np.array([1.0, 1.0, 5.0])
    >>> def price(start, stop, height):  # a piece below 2 costs 3, a merged one 1
    ...     sums = np.cumsum(np.append(0.0, weight))
    ...     return np.where(sums[stop] - sums[start] < 2, 3.0, 0.0) + np.where(stop - start > 1, 1.0, 0.0)
    >>> cut = cheapest([np.arange(3), np.zeros(3, dtype=int)], price)
    >>> cut.piece.tolist(), cut.cost
    ([0, 0, 1], 1.0)
    """
    leaves = np.arange(len(paths[0]))
    rows = [
        _HeightNodes(
            leaves, leaves + 1, price(leaves, leaves + 1, 0), leaves, leaves, np.ones(len(leaves), dtype=np.bool_)
        )
    ]
    for height, ancestors in enumerate(paths[1:], start=1):
        rows.append(_above(rows[-1], _starts(ancestors, rows[-1].start), height, price, reach))
    return _read_back(rows, len(leaves))


def _starts(ancestors: Integers, below: Integers) -> Integers:
    """The first leaf of each node of a height; every node below must lie in one."""
    starts = np.flatnonzero(np.append(True, ancestors[1:] != ancestors[:-1]))
    if len(np.unique(ancestors[starts])) < len(starts) or len(np.setdiff1d(starts, below)):
        raise DataError("The levels of the hierarchy do not nest, or its leaves are not in the order of their paths.")
    return starts


def _above(below: _HeightNodes, starts: Integers, height: int, price: Price, reach: int) -> _HeightNodes:
    """The row of the parents: each told whole, or its children cut into runs."""
    child = np.searchsorted(below.start, starts)
    many = np.diff(np.append(child, len(below.start)))
    stops = below.stop[child + many - 1]
    whole = np.where(many > 1, price(starts, stops, height), np.inf)
    cut, back = _runs(below, child, many, height, price, reach)
    return _HeightNodes(starts, stops, np.minimum(whole, cut), child, back, whole < cut)


def _runs(
    below: _HeightNodes, child: Integers, many: Integers, height: int, price: Price, reach: int
) -> tuple[Floats, Integers]:
    """The cheapest cut of each parent's children into runs of up to `reach`, and the last run at each place."""
    sums = np.zeros(len(below.start) + len(child))  # for parent p, places child[p] + p to child[p] + p + many[p]
    base = child + np.arange(len(child))
    back = np.ones(len(below.start), dtype=np.int64)
    for place in range(1, int(many.max(initial=0)) + 1):
        inside = np.flatnonzero(many >= place)
        last = child[inside] + place - 1
        best = sums[base[inside] + place - 1] + below.best[last]
        for length in range(2, min(reach, place) + 1):
            first = last - length + 1
            merged = sums[base[inside] + place - length] + price(below.start[first], below.stop[last], height)
            better = merged < best
            best = np.where(better, merged, best)
            back[last[better]] = length
        sums[base[inside] + place] = best
    return sums[base + many], back


def _read_back(rows: Sequence[_HeightNodes], leaves: int) -> Cut:
    """Read the best cut back from the roots down."""
    piece, high = np.zeros(leaves, dtype=np.int64), np.zeros(leaves, dtype=np.int64)
    nodes = np.arange(len(rows[-1].start))
    cost = float(rows[-1].best.sum())
    for height in range(len(rows) - 1, 0, -1):
        row, below = rows[height], rows[height - 1]
        whole = nodes[row.whole[nodes]]
        _mark(piece, high, row.start[whole], row.stop[whole], height)
        split = nodes[~row.whole[nodes]]
        stops = np.append(row.child, len(below.start))
        at, ends, first_child = stops[split + 1] - 1, [], row.child[split]
        while len(at):
            length = row.back[at]
            first = at - length + 1
            merged = length > 1
            _mark(piece, high, below.start[first[merged]], below.stop[at[merged]], height)
            ends.append(at[~merged])
            on = first > first_child
            at, first_child = first[on] - 1, first_child[on]
        nodes = np.sort(np.concatenate(ends)) if ends else np.array([], dtype=np.int64)
    piece[rows[0].start[nodes]] = 1
    return Cut(np.cumsum(piece) - 1, high, cost)


def _mark(piece: Integers, high: Integers, start: Integers, stop: Integers, height: int) -> None:
    """A piece begins at each start; its leaves are told at this height."""
    piece[start] = 1
    change = np.zeros(len(high) + 1, dtype=np.int64)
    np.add.at(change, start, height)
    np.add.at(change, stop, -height)
    high += np.cumsum(change)[:-1]
