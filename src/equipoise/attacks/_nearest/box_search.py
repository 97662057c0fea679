"""Exact range search in k-d trees: the number of points in each of many boxes, and whether an own point is nearest.

A question is a box (an interval for every coordinate), a block that must agree, a centre with a weight for every
coordinate, and an own point. Points are in trees, one for each block, split at the median of their widest coordinate.
All questions of a part descend together, as pairs of a question and a node: a node outside the box is dropped, one
inside is counted whole, any other is opened. No n x n matrix; the search visits about as many nodes as the surface of
the box cuts, O(n^(1 - 1/d)) of them for d coordinates at worst.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from equipoise.ground.arrays import Floats, Integers, inverse, runs

LEAF_POINTS = 16
"""Points up to which a node is not split."""
QUESTIONS_PER_PART = 1 << 13
"""Questions that descend the trees together."""
PAIRS_PER_BATCH = 1 << 20
"""Pairs of a question and a point tested at a time."""
WORKERS = 2
TIE_TOLERANCE = 1e-9
"""Relative difference up to which distances are equal."""


@dataclass(frozen=True, eq=False, repr=False)
class Points:
    """Coordinates and category codes of points (a row for each coordinate or category), and their blocks.

    Equal points are best given once, with their number in `counts`.
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


def count_inside(points: Points, questions: Questions) -> Integers:
    """Number of points in each box, whatever their codes.

    >>> line = Points(np.array([[0.0, 1.0, 2.0, 5.0]]), np.zeros((0, 4), dtype=int), np.zeros(4, dtype=int), np.ones(4))
    >>> none, one = np.zeros((0, 1), dtype=int), np.zeros((1, 1))
    >>> box = (one + 1, one + 4, one, one, none, np.zeros(0), np.zeros(1, dtype=int), np.zeros(1))
    >>> count_inside(line, Questions(*box))
    array([2])
    """
    return _answered(points, questions, _Count)


def count_ties(points: Points, questions: Questions) -> Integers:
    """Number of points of the box as near as the own one, itself included, if none is nearer; else 0.

    >>> line = Points(np.array([[0.0, 1.0, 2.0, 5.0]]), np.zeros((0, 4), dtype=int), np.zeros(4, dtype=int), np.ones(4))
    >>> one, own = np.ones((1, 2)), np.array([0, 3])
    >>> sides = (one - 9, one + 9, one, one, np.zeros((0, 2), dtype=int), np.zeros(0), np.zeros(2, dtype=int), own)
    >>> count_ties(line, Questions(*sides)).tolist()  # the point at the centre, 1, is nearer than 0 and than 5
    [0, 0]
    """
    return _answered(points, questions, _First)


def _answered(points: Points, questions: Questions, walk: "type[_Walk]") -> Integers:
    """The questions answered in parts, on all cores; a part has questions whose own points are near one another."""
    tree, counts = Tree.of(points), np.zeros(len(questions), dtype=np.int64)
    order = np.argsort(tree.place[questions.own.astype(np.int64)], kind="stable")
    parts = np.array_split(order, max(1, -(-len(order) // QUESTIONS_PER_PART)))
    with ThreadPoolExecutor(WORKERS) as pool:
        answers = pool.map(lambda rows: walk(tree, questions, rows).run(), parts)
    counts[order] = np.concatenate(list(answers))
    return counts


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """k-d trees, one for each block: the points in tree order, and nodes with their range, box and first child.

    The first nodes are the roots of the blocks, by number; `child` is -1 for a leaf.
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
            split = (end - start > LEAF_POINTS) & ((high - low).max(axis=0, initial=0.0) > 0)
            child = np.full(len(start), -1)
            child[split] = many + 2 * np.arange(int(split.sum()))
            levels.append((start, end, child, low, high))
            order = _sort_nodes(points.coordinates, order, start[split], end[split], (high - low)[:, split])
            middle = (start[split] + end[split]) // 2
            start, end = _interleave(start[split], middle), _interleave(middle, end[split])
            many += len(start)
        joined = [np.concatenate(part, axis=-1) for part in zip(*levels, strict=True)]
        return cls(points.at(order), order, joined[0], joined[1], joined[2], joined[3], joined[4])

    @cached_property
    def place(self) -> Integers:
        """Position of each given point in the order of the tree."""
        return inverse(self.order)

    @cached_property
    def cumulative(self) -> Floats:
        """Cumulative number of points before each position, equal ones counted."""
        return np.asarray(np.r_[0.0, np.cumsum(self.points.counts)])


def _bounds(coordinates: Floats, order: Integers, start: Integers, end: Integers) -> tuple[Floats, Floats]:
    """Smallest and largest coordinates of the points of each node; infinite for an empty one."""
    low, high = np.full((len(coordinates), len(start)), np.inf), np.full((len(coordinates), len(start)), -np.inf)
    full = np.flatnonzero(end > start)
    places = np.column_stack([start[full], end[full]]).ravel()
    for row, values in enumerate(coordinates if len(full) else ()):
        ordered = np.append(values[order], 0.0)
        low[row, full] = np.minimum.reduceat(ordered, places)[::2]
        high[row, full] = np.maximum.reduceat(ordered, places)[::2]
    return low, high


def _sort_nodes(coordinates: Floats, order: Integers, start: Integers, end: Integers, width: Floats) -> Integers:
    """Order with the points of each of these nodes sorted along their widest coordinate."""
    if not len(start):
        return order
    sizes, along = end - start, width.argmax(axis=0)
    places = runs(start, end)
    node, rows = np.repeat(np.arange(len(start)), sizes), order[places]
    values = coordinates[np.repeat(along, sizes), rows]
    sorted_rows = order.copy()
    sorted_rows[places] = rows[np.lexsort((values, node))]
    return sorted_rows


def _interleave(one: Integers, two: Integers) -> Integers:
    return np.column_stack([one, two]).ravel()


class _Walk(ABC):
    """Search of one part: pairs of a question and a node still to visit."""

    def __init__(self, tree: Tree, questions: Questions, rows: Integers) -> None:
        self.tree, self.size = tree, len(rows)
        self.low, self.high = questions.low[:, rows], questions.high[:, rows]
        roots = questions.block[rows]
        self.question = np.flatnonzero(roots >= 0)
        self.node = roots[self.question]

    def run(self) -> Integers:
        while len(self.question):
            touched, within = self._boxes()
            self.question, self.node, within = self.question[touched], self.node[touched], within[touched]
            opened = self.whole(within)
            leaf = self.tree.child[self.node] < 0
            for question, point in self._leaves(opened & leaf):
                self.meet(question, point)
            self.question, self.node = self.question[opened & ~leaf], self.tree.child[self.node[opened & ~leaf]]
            self.question, self.node = np.repeat(self.question, 2), _interleave(self.node, self.node + 1)
            self.forget()
        return self.answer()

    def _boxes(self) -> tuple[Any, Any]:
        """Whether the node of each pair touches the question's box, and whether it lies inside."""
        touched = self.tree.end[self.node] > self.tree.start[self.node]
        within = touched.copy()
        for low, high, least, most in zip(self.low, self.high, self.tree.low, self.tree.high, strict=True):
            start, end, bottom, top = low[self.question], high[self.question], least[self.node], most[self.node]
            touched &= (top >= start) & (bottom <= end)
            within &= (bottom >= start) & (top <= end)
        return touched, within

    def _leaves(self, chosen: Any) -> Iterator[tuple[Integers, Integers]]:
        """The points in the box of the chosen pairs of a question and a leaf."""
        asking, node = self.question[chosen], self.node[chosen]
        sizes = self.tree.end[node] - self.tree.start[node]
        edges = np.searchsorted(np.cumsum(sizes), np.arange(0, int(sizes.sum()) + PAIRS_PER_BATCH, PAIRS_PER_BATCH))
        for a, b in pairwise(edges.tolist()):
            question = np.repeat(asking[a:b], sizes[a:b])
            point = runs(self.tree.start[node[a:b]], self.tree.end[node[a:b]])
            in_box = np.ones(len(point), dtype=np.bool_)
            for low, high, values in zip(self.low, self.high, self.tree.points.coordinates, strict=True):
                coordinate = values[point]
                in_box &= (coordinate >= low[question]) & (coordinate <= high[question])
            yield question[in_box], point[in_box]

    @abstractmethod
    def whole(self, within: Any) -> Any:
        """Handle nodes inside the box; returns which pairs have to be opened."""

    @abstractmethod
    def meet(self, question: Integers, point: Integers) -> None:
        """Handle points in the boxes of questions."""

    def forget(self) -> None:  # noqa: B027
        """Drop settled questions: none, unless a subclass says which."""

    @abstractmethod
    def answer(self) -> Integers:
        """Answer to each question."""


class _Count(_Walk):
    """Search that counts the points in each box."""

    def __init__(self, tree: Tree, questions: Questions, rows: Integers) -> None:
        super().__init__(tree, questions, rows)
        self.counts = np.zeros(self.size)

    def whole(self, within: Any) -> Any:
        reached = self.tree.cumulative
        sizes = reached[self.tree.end[self.node[within]]] - reached[self.tree.start[self.node[within]]]
        self.counts += np.bincount(self.question[within], weights=sizes, minlength=self.size)
        return ~within

    def meet(self, question: Integers, point: Integers) -> None:
        self.counts += np.bincount(question, weights=self.tree.points.counts[point], minlength=self.size)

    def answer(self) -> Integers:
        return self.counts.astype(np.int64)


class _First(_Walk):
    """Search that counts the points of each box as near as the own one, until a nearer one is met."""

    def __init__(self, tree: Tree, questions: Questions, rows: Integers) -> None:
        super().__init__(tree, questions, rows)
        self.centre, self.weight = questions.centre[:, rows], questions.weight[:, rows]
        self.codes, self.penalties = questions.codes[:, rows], questions.penalties
        self.tied, self.beaten = np.zeros(self.size), np.zeros(self.size, dtype=np.bool_)
        self._own(tree.place[questions.own[rows].astype(np.int64)], questions.block[rows])
        self.forget()

    def _own(self, own: Integers, block: Integers) -> None:
        """Set the distance of the own point; a question whose own point is not in the box is beaten already."""
        every = np.arange(self.size)
        distance = np.sqrt(self._squares(every, own))
        span = float(np.max(np.sqrt(self.weight) * (np.abs(self.centre)), initial=0.0))
        slack = TIE_TOLERANCE * distance + 8 * np.finfo(float).eps * span
        self.below, self.above = np.maximum(distance - slack, 0.0) ** 2, (distance + slack) ** 2
        self.below[distance <= slack] = -1.0
        self.beaten |= self.tree.points.block[own] != block
        for low, high, values in zip(self.low, self.high, self.tree.points.coordinates, strict=True):
            self.beaten |= (values[own] < low) | (values[own] > high)

    def _squares(self, question: Integers, point: Integers) -> Floats:
        squares = np.zeros(len(question))
        for centre, weight, values in zip(self.centre, self.weight, self.tree.points.coordinates, strict=True):
            squares += weight[question] * (values[point] - centre[question]) ** 2
        for mine, theirs, penalty in zip(self.codes, self.tree.points.codes, self.penalties, strict=True):
            squares += np.where(mine[question] != theirs[point], penalty, 0.0)
        return squares

    def whole(self, within: Any) -> Any:
        """A node inside the box and nearer throughout beats the own point; one farther away is dropped."""
        near, far = np.zeros(len(self.node)), np.full(len(self.node), float(self.penalties.sum()))
        sides = zip(self.centre, self.weight, self.tree.low, self.tree.high, strict=True)
        for centre, weight, least, most in sides:
            middle, load = centre[self.question], weight[self.question]
            below, above = least[self.node] - middle, middle - most[self.node]
            near += load * np.maximum(np.maximum(below, above), 0.0) ** 2
            far += load * np.maximum(np.abs(below), np.abs(above)) ** 2
        self.beaten[self.question[within & (far < self.below[self.question])]] = True
        return (near <= self.above[self.question]) & ~self.beaten[self.question]

    def meet(self, question: Integers, point: Integers) -> None:
        squares = self._squares(question, point)
        self.beaten[question[squares < self.below[question]]] = True
        tied = (squares >= self.below[question]) & (squares <= self.above[question])
        self.tied += np.bincount(question[tied], weights=self.tree.points.counts[point[tied]], minlength=self.size)

    def forget(self) -> None:
        live = ~self.beaten[self.question]
        self.question, self.node = self.question[live], self.node[live]

    def answer(self) -> Integers:
        return np.where(self.beaten, 0, self.tied).astype(np.int64)
