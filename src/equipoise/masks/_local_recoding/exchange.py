"""Exchange: records that move to a class nearby, change places or found a new class, where that lowers the cost."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.masks._local_recoding.merge_cost import Boxes, Spans, cost, joint, ranked

NEAR = 2
"""Neighbours on each side, in an order of all records, whose classes are tried."""
TIE = 1e-9
"""A gain that is smaller is none."""
MATCHES = 3
"""Times that changes are picked among those left before they are worked out anew."""


@dataclass(frozen=True, eq=False, repr=False)
class Groups:
    """Classes of at least `least` records. Items stand class by class: a record each, or several alike that stay.

    `codes` is the place of each item for each key, `weights` its records, `origin` its number, `island` the part of the
    file it must stay in, `labels` its class.
    """

    spans: Spans
    codes: Integers
    weights: Integers
    origin: Integers
    island: Integers
    labels: Integers
    least: int

    def with_labels(self, labels: Integers) -> "Groups":
        """The same items in other classes. O(keys x items + items log items)."""
        order = ranked([labels], [int(labels.max()) + 1])
        labels = labels[order]
        numbered = np.cumsum(np.append(0, labels[1:] != labels[:-1]))
        return replace(
            self, codes=self.codes.take(order, axis=1), weights=self.weights[order], origin=self.origin[order],
            island=self.island[order], labels=numbered,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def starts(self) -> Integers:
        return np.flatnonzero(np.append(True, self.labels[1:] != self.labels[:-1]))

    @cached_property
    def counts(self) -> Integers:
        return np.diff(np.append(self.starts, len(self.labels)))

    @cached_property
    def size(self) -> Integers:
        """The records of each class."""
        return np.add.reduceat(self.weights, self.starts)

    @cached_property
    def boxes(self) -> Boxes:
        starts = self.starts
        return np.minimum.reduceat(self.codes, starts, axis=1), np.maximum.reduceat(self.codes, starts, axis=1)

    @cached_property
    def cost(self) -> Floats:
        """What a record of each class loses, over all keys."""
        return cost(self.spans, self.boxes)

    @property
    def total(self) -> float:
        return float(self.size @ self.cost)

    @cached_property
    def without(self) -> Boxes:
        """The box of each item's class without it: its own place where it is alone."""
        low, high = np.empty_like(self.codes), np.empty_like(self.codes)
        for j, x in enumerate(self.codes):
            low[j] = self._second(x, np.minimum, np.iinfo(x.dtype).max)
            high[j] = self._second(x, np.maximum, -1)
        alone = np.repeat(self.counts == 1, self.counts)
        low[:, alone] = high[:, alone] = self.codes[:, alone]
        return low, high

    def _second(self, x: Integers, extreme: Any, beyond: int) -> Integers:
        """The extreme of each item's class without it."""
        first = extreme.reduceat(x, self.starts)
        on = x == np.repeat(first, self.counts)
        next_ = extreme.reduceat(np.where(on, beyond, x), self.starts)
        next_ = np.where(np.add.reduceat(on.astype(np.int64), self.starts) > 1, first, next_)
        return np.where(on, np.repeat(next_, self.counts), np.repeat(first, self.counts))

    @cached_property
    def spared(self) -> Floats:
        """What its class would save without each item, the item's own loss included."""
        size, whole = self.size[self.labels], self.cost[self.labels]
        saving: Floats = size * whole - (size - self.weights) * cost(self.spans, self.without)
        return np.where(self.single, saving, 0.0)

    @cached_property
    def single(self) -> Integers:
        """Items that are one record, in a class with others: they may move."""
        return (self.weights == 1) & np.repeat(self.counts > 1, self.counts)

    @cached_property
    def worst(self) -> Integers:
        """The item of each class whose leaving saves most."""
        most = np.maximum.reduceat(self.spared, self.starts)
        at = np.flatnonzero(self.spared >= np.repeat(most, self.counts))[::-1]
        items = np.zeros(len(self), dtype=np.int64)
        items[self.labels[at]] = at
        return items

    def order(self, rng: Any) -> Integers:
        """Items so that similar ones stand together: by the keys in a drawn order, costly ones more often first."""
        reach = np.array([max(TIE, span.reach) for span in self.spans])
        keys = np.argsort(-rng.random(len(reach)) * reach**6)
        columns = [self.island, *(self.codes[j] for j in keys)]
        return ranked(columns, [int(self.island.max()) + 1, *(self.spans[j].size for j in keys)])

    def neighbours(self, rng: Any, near: int) -> Iterator[tuple[Integers, Integers]]:
        """Pairs of items near each other in an order, of one island and of different classes."""
        order = self.order(rng)
        for step in range(1, near + 1):
            first, second = order[:-step], order[step:]
            apart = (self.labels[first] != self.labels[second]) & (self.island[first] == self.island[second])
            yield first[apart], second[apart]


def exchanged(groups: Groups, rng: Any) -> Groups:
    """The classes after one round of moves and exchanges, each of which lowers the cost.

    Every item is tried in the classes of its neighbours in an order that is drawn. O(keys x items).
    """
    changes = [
        change
        for pair in groups.neighbours(rng, NEAR)
        for item, other in (pair, pair[::-1])
        for change in _changes(groups, item, other)
    ]
    gain, item, other = (np.concatenate(part) for part in zip(*changes, strict=True)) if changes else (np.zeros(0),) * 3
    if not len(gain):
        return groups
    moves = other >= len(groups.labels)
    source = groups.labels[item]
    target = np.where(moves, other - len(groups.labels), groups.labels[np.where(moves, 0, other)])
    chosen = matched(gain, source, target, len(groups))
    labels = groups.labels.copy()
    labels[item[chosen]] = target[chosen]
    swapped = chosen[~moves[chosen]]
    labels[other[swapped]] = source[swapped]
    return groups.with_labels(labels)


def _changes(groups: Groups, item: Integers, near: Integers) -> Iterator[tuple[Floats, Integers, Integers]]:
    """Gain, item, and the one it changes places with (the worst of a class near); or the number of items plus the class
    it moves to."""
    movable = groups.single[item] & (groups.spared[item] > TIE)
    item, near = item[movable], near[movable]
    own, to = groups.labels[item], groups.labels[near]
    free = groups.size[own] > groups.least
    x, b = item[free], to[free]
    joined = joint(groups.spans, (groups.codes, groups.codes), x, groups.boxes, b)
    gain = groups.spared[x] - (groups.size[b] + 1) * joined + groups.size[b] * groups.cost[b]
    good = gain > TIE
    yield gain[good], x[good], b[good] + len(groups.labels)
    ready = groups.single[groups.worst[to]]
    x, y = item[ready], groups.worst[to[ready]]
    gain = _swap(groups, x, y)
    good = gain > TIE
    yield gain[good], x[good], y[good]


def _swap(groups: Groups, x: Integers, y: Integers) -> Floats:
    """What is saved when two items change places."""
    own, to, point = groups.labels[x], groups.labels[y], (groups.codes, groups.codes)
    own_cost = joint(groups.spans, groups.without, x, point, y)
    other_cost = joint(groups.spans, groups.without, y, point, x)
    return groups.size[own] * (groups.cost[own] - own_cost) + groups.size[to] * (groups.cost[to] - other_cost)


def founded(groups: Groups, rng: Any) -> Groups:
    """The classes after records that several classes can spare have founded new ones, where that lowers the cost.

    Those who can leave are put in an order that is drawn; `least` of them in a row, of different classes, may be a new
    class. O(keys x least x items).
    """
    order = groups.order(rng)
    order = order[(groups.single & (groups.size > groups.least)[groups.labels])[order]]
    windows = _windows(groups, order)
    if not len(windows):
        return groups
    members = order[windows[:, None] + np.arange(groups.least)]
    box = groups.codes[:, members].min(axis=2), groups.codes[:, members].max(axis=2)
    gain = groups.spared[members].sum(axis=1) - groups.least * cost(groups.spans, box)
    rank = np.argsort(-gain, kind="stable")
    members = members[rank[: np.count_nonzero(gain > TIE)]]
    classes = groups.labels[members]
    best = np.full(len(groups), len(members))
    np.minimum.at(best, classes, np.arange(len(members))[:, None])
    won = members[(best[classes] == np.arange(len(members))[:, None]).all(axis=1)]
    labels = groups.labels.copy()
    labels[won] = len(groups) + np.arange(len(won))[:, None]
    return groups.with_labels(labels)


def _windows(groups: Groups, order: Integers) -> Integers:
    """Where `least` items in a row are of one island and of different classes, some of which are costly."""
    k, places = groups.least, np.arange(len(order))
    if len(order) < k:
        return places[:0]
    labels, island = groups.labels[order], groups.island[order]
    by_class = np.argsort(labels, kind="stable")
    last = np.full(len(order), -1)
    again = labels[by_class[1:]] == labels[by_class[:-1]]
    last[by_class[1:][again]] = by_class[:-1][again]
    newest, spared = last[: len(order) - k + 1].copy(), np.zeros(len(order) - k + 1)
    for i in range(k):
        part = slice(i, len(order) - k + 1 + i)
        np.maximum(newest, last[part], out=newest)
        spared += groups.spared[order[part]]
    fits = (newest < places[: len(newest)]) & (island[: len(newest)] == island[k - 1 :]) & (spared > TIE)
    return np.flatnonzero(fits)


def matched(gain: Floats, first: Integers, second: Integers, classes: int) -> Integers:
    """Pairs of classes, each class in one at most, those of the largest gain first. O(pairs log pairs)."""
    open_pairs = np.lexsort((second, first, -gain))
    free, chosen = np.ones(classes, dtype=np.bool_), []
    for _ in range(MATCHES):
        rank = np.arange(len(open_pairs))
        best = np.full(classes, len(open_pairs))
        for side in (first, second):
            best[side[open_pairs[::-1]]] = np.minimum(best[side[open_pairs[::-1]]], rank[::-1])
        won = (best[first[open_pairs]] == rank) & (best[second[open_pairs]] == rank)
        chosen.append(open_pairs[won])
        free[first[open_pairs[won]]] = free[second[open_pairs[won]]] = False
        open_pairs = open_pairs[free[first[open_pairs]] & free[second[open_pairs]]]
    return np.concatenate(chosen)
