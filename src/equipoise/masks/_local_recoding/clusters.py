"""Local classes: records put together so that each is released only as coarse as its class needs.

Classes of at least k records are cut from the file by bisection, then improved in rounds: records move, change places
and found new classes, and pairs of classes nearby are pooled and cut anew. Every step lowers the cost, so that the
search ends; it does not prove the least cost, which is NP-hard to find (Meyerson and Williams 2004). Large files are
searched block by block, in the order of their costliest keys.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import group
from equipoise.masks._local_recoding.bisection import TIE, bisected, halves
from equipoise.masks._local_recoding.exchange import Groups, exchanged, founded, matched
from equipoise.masks._local_recoding.merge_cost import Boxes, Spans, joint, ranked

SEED = 20021
"""The search draws orders and pivots from this public seed: classes depend on the file alone."""
PATIENCE = 5
"""Rounds over which the gain is looked at."""
ENOUGH = 2e-3
"""The share of the cost that so many rounds must save for the search to go on."""
BLOCK = 40_000
"""Items that are searched together at most, few enough to stay in the processor's cache."""
SMALL = 20_000
"""Items times tries, up to which the search is begun anew."""
TRIES = 6
EXHAUSTIVE = 100_000
"""Items times combinations of levels, up to which the best coarsening of whole columns is found to begin from too."""

Unsafe = Callable[[Integers, Integers], Integers]
"""From the class of each item and the items' records to which classes are unsafe."""


@dataclass(frozen=True, eq=False, repr=False)
class Items:
    """Cells as items: a record each, but for the records that a large cell never needs to lend, which are one.

    `cell` is the cell of each item, `weights` its records.
    """

    cell: Integers
    weights: Integers

    @classmethod
    def of(cls, n: Integers, least: int) -> "Items":
        single = np.where(n > 2 * least, 2 * least - 1, n)
        rest = np.flatnonzero(n > single)
        cell = np.concatenate([np.repeat(np.arange(len(n)), single), rest])
        return cls(cell, np.concatenate([np.ones(int(single.sum()), dtype=np.int64), (n - single)[rest]]))


def islands(spans: Spans, codes: Integers) -> Integers:
    """The part of the file each cell must stay in: no level joins the categories that the coarsest one keeps apart."""
    tops = [span.steps[-1][column] for span, column in zip(spans, codes, strict=True)]
    return group(tops, [int(span.steps[-1].max()) + 1 for span in spans])[0]


def local_classes(
    spans: Spans, codes: Integers, items: Items, least: int, rounds: int, unsafe: Unsafe | None = None
) -> tuple[Integers, Boxes]:
    """The class of each item, and the box of each class.

    `codes` is the place of every cell for every key. Cells of one island have `least` records at least. With `unsafe`,
    classes that it names are then joined with others until it names none, or one alone in its island.
    """
    island, everyone = islands(spans, codes)[items.cell], np.arange(len(items.cell))
    whole = Groups(spans, codes[:, items.cell].astype(np.int32), items.weights, everyone, island, island, least)
    labels, last = np.empty(len(everyone), dtype=np.int64), 0
    for block in _blocks(whole):
        groups_of_block = _best(_part(whole, block, island[block]), rounds)
        labels[groups_of_block.origin] = groups_of_block.labels + last
        last += len(groups_of_block)
    groups = whole.with_labels(labels)
    if unsafe is not None:
        groups = _mended(groups, unsafe)
    labels[groups.origin] = groups.labels
    return labels, groups.boxes


def _blocks(whole: Groups) -> list[Integers]:
    """Items that are searched together: up to `BLOCK` in the order of the costliest keys, no island cut too short."""
    keys = sorted(range(len(whole.spans)), key=lambda j: -whole.spans[j].reach)
    columns = [whole.island, *(whole.codes[j] for j in keys)]
    order = ranked(columns, [int(whole.island.max()) + 1, *(whole.spans[j].size for j in keys)])
    island, cuts = whole.island[order], np.arange(BLOCK, len(order), BLOCK)
    first, last = (np.searchsorted(island, island[cuts], side=side) for side in ("left", "right"))
    cuts = np.where(cuts - first < whole.least, first, np.where(last - cuts < whole.least, last, cuts))
    return [np.sort(block) for block in np.split(order, np.unique(cuts)) if len(block)]


def _part(groups: Groups, items: Integers, labels: Integers) -> Groups:
    """Some items, in the classes given; they need not stand class by class."""
    return replace(
        groups, codes=groups.codes.take(items, axis=1), weights=groups.weights[items], origin=groups.origin[items],
        island=groups.island[items], labels=labels,
    )  # fmt: skip


def _best(part: Groups, rounds: int) -> Groups:
    """The best of several searches in a small file, from different starts; one search in a large one."""
    tries = int(np.clip(SMALL // len(part.island), 1, TRIES))
    starts = [part.island, *(_chunked(part, seed) for seed in range(1, tries))]
    if prod(len(span.steps) for span in part.spans) * len(part.island) <= EXHAUSTIVE:
        starts.append(_coarsened(part))
    results = (_searched(part, start, rounds, SEED + i) for i, start in enumerate(starts))
    return min(results, key=lambda groups: groups.total)


def _searched(part: Groups, start: Integers, rounds: int, seed: int) -> Groups:
    """Classes that were cut from those to start from, and improved."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(start))
    groups = _part(part, order, start[order])
    groups = groups.with_labels(bisected(part.spans, groups.codes, groups.weights, start[order], part.least, rng))
    totals = [groups.total]
    for i in range(rounds):
        groups = recut(founded(exchanged(groups, rng), rng), rng)
        totals.append(groups.total)
        if i >= PATIENCE and totals[-1 - PATIENCE] - totals[-1] <= ENOUGH * totals[-1]:
            break
    return groups


def _chunked(part: Groups, seed: int) -> Integers:
    """Classes to begin from: `least` items in a row, in the order of the keys, themselves in an order that is drawn."""
    keys, least = np.random.default_rng(seed).permutation(len(part.spans)), part.least
    order = ranked([part.island, *part.codes[keys]], [int(part.island.max()) + 1, *(part.spans[j].size for j in keys)])
    island = part.island[order]
    place, size = np.arange(len(order)) - np.searchsorted(island, island), np.bincount(island)[island]
    chunk = np.minimum(place // least, np.maximum(size // least - 1, 0))
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = group([island, chunk], [int(island.max()) + 1, int(chunk.max()) + 1])[0]
    return labels


def _coarsened(part: Groups) -> Integers:
    """The classes of the best coarsening with one level for each key: all combinations of levels are tried."""
    best, labels = np.inf, part.island
    for rungs in product(*(range(len(span.steps)) for span in part.spans)):
        levels = list(zip(part.spans, rungs, part.codes, strict=True))
        steps = [span.steps[rung][x] for span, rung, x in levels]
        ids, _ = group(steps, [int(step.max()) + 1 for step in steps])
        loss = float(sum(span.worth[rung][x] for span, rung, x in levels) @ part.weights)
        if loss < best and np.bincount(ids, weights=part.weights).min() >= part.least:
            best, labels = loss, ids
    return labels


def recut(groups: Groups, rng: np.random.Generator) -> Groups:
    """Pairs of classes nearby are pooled and cut anew, and large classes cut, where that lowers the cost."""
    lead = _paired(groups, rng)
    chosen = np.flatnonzero(lead[groups.labels] >= 0)
    if not len(chosen):
        return groups
    chosen = chosen[np.argsort(lead[groups.labels[chosen]], kind="stable")]
    pools = lead[groups.labels[chosen]]
    starts = np.flatnonzero(np.append(True, pools[1:] != pools[:-1]))
    weights = groups.weights[chosen]
    now = np.add.reduceat(weights * groups.cost[groups.labels[chosen]], starts)
    codes = groups.codes.take(chosen, axis=1)
    gain, late = halves(groups.spans, codes, weights, starts, now, groups.least, rng, keys=False)
    cut = np.repeat(gain > TIE, np.diff(np.append(starts, len(chosen))))
    labels = groups.labels.copy()
    labels[chosen[cut]] = (pools + len(groups) * late)[cut]
    return groups.with_labels(labels)


def _paired(groups: Groups, rng: np.random.Generator) -> Integers:
    """The first class of the pair each class is in, or its own where it is large and alone; -1 for the others."""
    lossy = groups.size * groups.cost
    pairs = next(groups.neighbours(rng, 1))
    first, second = groups.labels[pairs[0]], groups.labels[pairs[1]]
    worth = rng.random(len(first)) * (lossy[first] + lossy[second])
    keep = worth > TIE
    first, second = first[keep], second[keep]
    chosen = matched(worth[keep], first, second, len(groups))
    lead = np.where((groups.size >= 2 * groups.least) & (lossy > TIE), np.arange(len(groups)), -1)
    a, b = first[chosen], second[chosen]
    lead[a] = lead[b] = np.minimum(a, b)
    return lead


def _mended(groups: Groups, unsafe: Unsafe) -> Groups:
    """Unsafe classes are joined with the class nearby that costs least, until none can be."""
    rng = np.random.default_rng(SEED)
    while True:
        flags = unsafe(groups.labels[np.argsort(groups.origin)], groups.size)
        flags &= np.bincount(groups.island[groups.starts])[groups.island[groups.starts]] > 1
        if not flags.any():
            return groups
        ends = [groups.labels[np.concatenate(pair)] for pair in zip(*groups.neighbours(rng, 4), strict=True)]
        first, second = (end[flags[ends[0]] | flags[ends[1]]] for end in ends)
        delta = _dearer(groups, first, second)
        chosen = matched(-delta, first, second, len(groups))
        new = np.arange(len(groups))
        new[second[chosen]] = first[chosen]
        groups = groups.with_labels(new[groups.labels])


def _dearer(groups: Groups, first: Integers, second: Integers) -> Floats:
    """What it costs to join two classes."""
    size, lossy = groups.size, groups.size * groups.cost
    joined: Floats = (size[first] + size[second]) * joint(groups.spans, groups.boxes, first, groups.boxes, second)
    return joined - lossy[first] - lossy[second]
