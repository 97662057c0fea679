"""How many points lie in each of many boxes, and which of them is nearest to the middle, exactly.

A question is a box (an interval for every coordinate), a block that must agree, a centre with a weight for every
coordinate, and a point of its own. Points are held in trees, one for each block, halved at the median of their widest
coordinate. All questions of a part walk down together, as pairs of a question and a node: a node outside the box is
dropped, one inside is counted whole, any other is opened. No n x n matrix; the walk meets about as many nodes as the
surface of the box cuts, O(n^(1 - 1/d)) of them for d coordinates at worst.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from equipoise.attacks._nearest.cell_pairs_by_cost import runs
from equipoise.ground.arrays import Floats, Integers

LEAF = 16
"""Points of a node that is not halved any more."""
PART = 1 << 13
"""Questions that walk together."""
PAIRS = 1 << 20
"""Pairs of a question and a point tested at a time."""
WORKERS = 2
TIE = 1e-9
"""Distances that differ by no more than this share of themselves are equal."""


@dataclass(frozen=True, eq=False, repr=False)
class Points:
    """Coordinates (a row for each coordinate), codes of categories (a row for each), and the block of every point.

    Equal points are best given once, with how many they are in `counts`.
    """

    coordinates: Floats
    codes: Integers
    block: Integers
    counts: Integers

    def __len__(self) -> int:
        return len(self.block)

    def at(self, rows: Integers) -> "Points":
        coordinates, codes = (np.ascontiguousarray(part[:, rows]) for part in (self.coordinates, self.codes))
        return Points(coordinates, codes, self.block[rows], self.counts[rows])


@dataclass(frozen=True, eq=False, repr=False)
class Questions:
    """Boxes from `low` to `high`, ends included; `block` is -1 where no block agrees; `own` is a row of the points.

    The squared distance of a point is the sum of `weight` (point - centre)^2 and of the `penalties` of the codes that
    differ. Rows are coordinates or codes, columns are questions.
    """

    low: Floats
    high: Floats
    centre: Floats
    weight: Floats
    codes: Integers
    penalties: Floats
    block: Integers
    own: Integers

    def __len__(self) -> int:
        return len(self.block)


def inside(points: Points, asked: Questions) -> Integers:
    """The number of points in each box, codes left aside.

    >>> line = Points(np.array([[0.0, 1.0, 2.0, 5.0]]), np.zeros((0, 4), dtype=int), np.zeros(4, dtype=int), np.ones(4))
    >>> none, one = np.zeros((0, 1), dtype=int), np.zeros((1, 1))
    >>> inside(line, Questions(one + 1, one + 4, one, one, none, np.zeros(0), np.zeros(1, dtype=int), np.zeros(1)))
    array([2])
    """
    tree = Tree.of(points)
    found = np.zeros(len(asked), dtype=np.int64)
    _everyone(tree, asked, lambda rows: found.__setitem__(rows, _Count(tree, asked, rows).run()))
    return found


def first(points: Points, asked: Questions) -> Integers:
    """How many points of the box are as near as the own one, itself among them, where none is nearer; 0 elsewhere.

    >>> line = Points(np.array([[0.0, 1.0, 2.0, 5.0]]), np.zeros((0, 4), dtype=int), np.zeros(4, dtype=int), np.ones(4))
    >>> one, own = np.ones((1, 2)), np.array([0, 3])
    >>> sides = (one - 9, one + 9, one, one, np.zeros((0, 2), dtype=int), np.zeros(0), np.zeros(2, dtype=int), own)
    >>> first(line, Questions(*sides)).tolist()  # 0 has the centre, 1, before it; so has 5
    [0, 0]
    """
    tree = Tree.of(points)
    found = np.zeros(len(asked), dtype=np.int64)
    _everyone(tree, asked, lambda rows: found.__setitem__(rows, _First(tree, asked, rows).run()))
    return found


def _everyone(tree: "Tree", asked: Questions, answer: Any) -> None:
    """Questions in parts, those whose own points are near one another together, on all cores."""
    order = np.argsort(tree.place[asked.own.astype(np.int64)], kind="stable")
    parts = np.array_split(order, max(1, -(-len(order) // PART)))
    if len(parts) == 1:
        answer(parts[0])
        return
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(answer, parts))


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """The points in an order of their own, and nodes: ranges of them with their box and the first of two children.

    The first nodes are the roots of the blocks, by number; `child` is -1 for a node that is not halved.
    """

    points: Points
    order: Integers
    start: Integers
    end: Integers
    child: Integers
    low: Floats
    high: Floats

    @classmethod
    def of(cls, points: Points) -> "Tree":
        order = np.argsort(points.block, kind="stable")
        edges = np.searchsorted(points.block[order], np.arange(int(points.block.max(initial=-1)) + 2))
        start, end = edges[:-1], edges[1:]
        levels: list[tuple[Integers, ...]] = []
        many = len(start)
        while len(start):
            low, high = _bounds(points.coordinates, order, start, end)
            split = (end - start > LEAF) & ((high - low).max(axis=0, initial=0.0) > 0)
            child = np.full(len(start), -1)
            child[split] = many + 2 * np.arange(int(split.sum()))
            levels.append((start, end, child, low, high))
            order = _halved(points.coordinates, order, start[split], end[split], (high - low)[:, split])
            middle = (start[split] + end[split]) // 2
            start, end = _mixed(start[split], middle), _mixed(middle, end[split])
            many += len(start)
        joined = [np.concatenate(part, axis=-1) for part in zip(*levels, strict=True)]
        return cls(points.at(order), order, joined[0], joined[1], joined[2], joined[3], joined[4])

    @cached_property
    def place(self) -> Integers:
        """Where each point that was given stands in the order of the tree."""
        found = np.empty(len(self.order), dtype=np.int64)
        found[self.order] = np.arange(len(self.order))
        return found

    @cached_property
    def reached(self) -> Floats:
        """How many points stand before each place, equal ones counted."""
        found: Floats = np.r_[0.0, np.cumsum(self.points.counts)]
        return found


def _bounds(coordinates: Floats, order: Integers, start: Integers, end: Integers) -> tuple[Floats, Floats]:
    """The least and the largest coordinates of the points of each node; an empty one is nowhere."""
    low, high = np.full((len(coordinates), len(start)), np.inf), np.full((len(coordinates), len(start)), -np.inf)
    full = np.flatnonzero(end > start)
    places = np.column_stack([start[full], end[full]]).ravel()
    for row, values in enumerate(coordinates if len(full) else ()):
        ordered = np.append(values[order], 0.0)
        low[row, full] = np.minimum.reduceat(ordered, places)[::2]
        high[row, full] = np.maximum.reduceat(ordered, places)[::2]
    return low, high


def _halved(coordinates: Floats, order: Integers, start: Integers, end: Integers, width: Floats) -> Integers:
    """The order with the points of each of these nodes sorted by the coordinate in which they are farthest apart."""
    if not len(start):
        return order
    sizes, along = end - start, width.argmax(axis=0)
    places = runs(start, end)
    node, rows = np.repeat(np.arange(len(start)), sizes), order[places]
    values = coordinates[np.repeat(along, sizes), rows]
    done = order.copy()
    done[places] = rows[np.lexsort((values, node))]
    return done


def _mixed(one: Integers, two: Integers) -> Integers:
    return np.column_stack([one, two]).ravel()


class _Walk(ABC):
    """Questions of one part and the nodes they still have to look at."""

    def __init__(self, tree: Tree, asked: Questions, rows: Integers) -> None:
        self.tree, self.size = tree, len(rows)
        self.low, self.high = asked.low[:, rows], asked.high[:, rows]
        roots = asked.block[rows]
        self.asking = np.flatnonzero(roots >= 0)
        self.node = roots[self.asking]

    def run(self) -> Integers:
        while len(self.asking):
            touched, within = self._boxes()
            self.asking, self.node, within = self.asking[touched], self.node[touched], within[touched]
            opened = self.whole(within)
            leaf = self.tree.child[self.node] < 0
            for question, point in self._leaves(opened & leaf):
                self.meet(question, point)
            self.asking, self.node = self.asking[opened & ~leaf], self.tree.child[self.node[opened & ~leaf]]
            self.asking, self.node = np.repeat(self.asking, 2), _mixed(self.node, self.node + 1)
            self.forget()
        return self.answer()

    def _boxes(self) -> tuple[Any, Any]:
        """Whether each pair's node touches the question's box, and whether it lies inside."""
        touched = self.tree.end[self.node] > self.tree.start[self.node]
        within = touched.copy()
        for low, high, least, most in zip(self.low, self.high, self.tree.low, self.tree.high, strict=True):
            start, end, bottom, top = low[self.asking], high[self.asking], least[self.node], most[self.node]
            touched &= (top >= start) & (bottom <= end)
            within &= (bottom >= start) & (top <= end)
        return touched, within

    def _leaves(self, chosen: Any) -> Iterator[tuple[Integers, Integers]]:
        """The points in the box of the chosen pairs of a question and a leaf."""
        asking, node = self.asking[chosen], self.node[chosen]
        sizes = self.tree.end[node] - self.tree.start[node]
        edges = np.searchsorted(np.cumsum(sizes), np.arange(0, int(sizes.sum()) + PAIRS, PAIRS))
        for a, b in pairwise(edges.tolist()):
            question = np.repeat(asking[a:b], sizes[a:b])
            point = runs(self.tree.start[node[a:b]], self.tree.end[node[a:b]])
            held = np.ones(len(point), dtype=np.bool_)
            for low, high, values in zip(self.low, self.high, self.tree.points.coordinates, strict=True):
                found = values[point]
                held &= (found >= low[question]) & (found <= high[question])
            yield question[held], point[held]

    @abstractmethod
    def whole(self, within: Any) -> Any:
        """Deal with nodes inside the box; says which pairs have to be opened."""

    @abstractmethod
    def meet(self, question: Integers, point: Integers) -> None:
        """Deal with a point in the box of a question."""

    def forget(self) -> None:  # noqa: B027
        """Leave out questions that are settled: none, unless a walk says which."""

    @abstractmethod
    def answer(self) -> Integers:
        """What was found for each question."""


class _Count(_Walk):
    """Counts the points in each box."""

    def __init__(self, tree: Tree, asked: Questions, rows: Integers) -> None:
        super().__init__(tree, asked, rows)
        self.found = np.zeros(self.size)

    def whole(self, within: Any) -> Any:
        reached = self.tree.reached
        sizes = reached[self.tree.end[self.node[within]]] - reached[self.tree.start[self.node[within]]]
        self.found += np.bincount(self.asking[within], weights=sizes, minlength=self.size)
        return ~within

    def meet(self, question: Integers, point: Integers) -> None:
        self.found += np.bincount(question, weights=self.tree.points.counts[point], minlength=self.size)

    def answer(self) -> Integers:
        return self.found.astype(np.int64)


class _First(_Walk):
    """Counts the points of each box that are as near as the own one, until a nearer one is met."""

    def __init__(self, tree: Tree, asked: Questions, rows: Integers) -> None:
        super().__init__(tree, asked, rows)
        self.centre, self.weight, self.penalties = asked.centre[:, rows], asked.weight[:, rows], asked.penalties
        self.codes = asked.codes[:, rows]
        self.tied, self.beaten = np.zeros(self.size), np.zeros(self.size, dtype=np.bool_)
        self._own(tree.place[asked.own[rows].astype(np.int64)], asked.block[rows])
        self.forget()

    def _own(self, own: Integers, block: Integers) -> None:
        """How far the own point is; a question whose own point is not a candidate is lost already."""
        every = np.arange(self.size)
        distance = np.sqrt(self._squares(every, own))
        span = float(np.max(np.sqrt(self.weight) * (np.abs(self.centre)), initial=0.0))
        slack = TIE * distance + 8 * np.finfo(float).eps * span
        self.below, self.above = np.maximum(distance - slack, 0.0) ** 2, (distance + slack) ** 2
        self.below[distance <= slack] = -1.0
        self.beaten |= self.tree.points.block[own] != block
        for low, high, values in zip(self.low, self.high, self.tree.points.coordinates, strict=True):
            self.beaten |= (values[own] < low) | (values[own] > high)

    def _squares(self, question: Integers, point: Integers) -> Floats:
        found = np.zeros(len(question))
        for centre, weight, values in zip(self.centre, self.weight, self.tree.points.coordinates, strict=True):
            found += weight[question] * (values[point] - centre[question]) ** 2
        for mine, theirs, penalty in zip(self.codes, self.tree.points.codes, self.penalties, strict=True):
            found += np.where(mine[question] != theirs[point], penalty, 0.0)
        return found

    def whole(self, within: Any) -> Any:
        """A node that is inside the box and nearer throughout beats the own point; one that is farther is dropped."""
        near, far = np.zeros(len(self.node)), np.full(len(self.node), float(self.penalties.sum()))
        sides = zip(self.centre, self.weight, self.tree.low, self.tree.high, strict=True)
        for centre, weight, least, most in sides:
            middle, load = centre[self.asking], weight[self.asking]
            below, above = least[self.node] - middle, middle - most[self.node]
            near += load * np.maximum(np.maximum(below, above), 0.0) ** 2
            far += load * np.maximum(np.abs(below), np.abs(above)) ** 2
        self.beaten[self.asking[within & (far < self.below[self.asking])]] = True
        return (near <= self.above[self.asking]) & ~self.beaten[self.asking]

    def meet(self, question: Integers, point: Integers) -> None:
        squares = self._squares(question, point)
        self.beaten[question[squares < self.below[question]]] = True
        tied = (squares >= self.below[question]) & (squares <= self.above[question])
        self.tied += np.bincount(question[tied], weights=self.tree.points.counts[point[tied]], minlength=self.size)

    def forget(self) -> None:
        live = ~self.beaten[self.asking]
        self.asking, self.node = self.asking[live], self.node[live]

    def answer(self) -> Integers:
        return np.where(self.beaten, 0, self.tied).astype(np.int64)
