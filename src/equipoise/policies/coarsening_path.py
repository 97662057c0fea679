"""Greedy path from the finest to the coarsest levels of the keys: which coarsenings a first policy tries."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from equipoise.coarsening.cells_at_nodes import Folds, Levels
from equipoise.coarsening.coded_levels import CodedLevels
from equipoise.data.cells import Cells
from equipoise.data.levels import ORIGINAL
from equipoise.ground.arrays import Integers

MAX_DEAR_LEVEL = 2
"""The level to which keys that should stay fine go as readily as others: ten years of age, quarters."""


@dataclass(frozen=True)
class PathStep:
    """The level of each coarsened key, the share of records in too small classes, and the key of most categories."""

    levels: dict[str, str]
    small: float
    widest: str


def coarsening_path(
    cells: Cells, least: int, *, dear: tuple[str, ...] = (), first: tuple[str, ...] = ()
) -> list[PathStep]:
    """Coarsenings from none to all, each with one key a level coarser than the one before; O(levels x keys x cells).

    The next key is that whose coarser level takes most records out of classes of fewer than `least`, for each bit of
    entropy that it loses. Levels of `dear` keys from the third on come last, those of `first` keys before all others.

    >>> table = pl.DataFrame({"age": [20, 21, 30], "sex": ["f", "f", "m"], "n": [1, 1, 4]})
    >>> cells = Cells.of(table, ("age", "sex"), {"age": eq.Hierarchy.intervals([10])})
    >>> path = coarsening_path(cells, 2)
    >>> [(step.levels, round(step.small, 2)) for step in path]
    [({}, 0.33), ({'age': '10'}, 0.0)]
    """
    ladders, codes = _ladders(cells)
    folds = Folds(ladders, codes, cells.n)
    price = [ladder.bits_lost for ladder in ladders]
    levels = [tuple(0 for _ in ladders)]
    while every := list(_coarser(levels[-1], ladders)):
        early = [step for step in every if _coarsens(step, levels[-1], ladders, first)]
        fine = [step for step in every if not _coarsens(step, levels[-1], ladders, dear, MAX_DEAR_LEVEL)]
        steps = early or fine or every
        now = _small(folds, levels[-1], least)
        gains = [now - _small(folds, step, least) for step in steps]
        costs = [sum(p[new] - p[old] for p, old, new in zip(price, levels[-1], step, strict=True)) for step in steps]
        levels.append(steps[int(np.argmax([gain / max(cost, 1e-9) for gain, cost in zip(gains, costs, strict=True)]))])
    return [_coarsening(node, ladders, _small(folds, node, least), dear) for node in levels]


def _coarsening(node: Levels, ladders: list[CodedLevels], small: float, dear: tuple[str, ...]) -> PathStep:
    own = {ladder.key: ladder.names[level] for ladder, level in zip(ladders, node, strict=True)}
    sizes = {ladder.key: len(ladder.labels[level]) for ladder, level in zip(ladders, node, strict=True)}
    widest = max(sizes, key=lambda key: (key not in dear, sizes[key]))
    return PathStep({key: name for key, name in own.items() if name != ORIGINAL}, small, widest)


def milestones(path: list[PathStep], shares: tuple[float, ...]) -> list[PathStep]:
    """The first coarsening at which at most each of these shares is in small classes, and the last one of all."""
    first = (next((step for step in path if step.small <= share), path[-1]) for share in (*shares, -1.0))
    return list({id(step): step for step in first}.values())


def _ladders(cells: Cells) -> tuple[list[CodedLevels], list[Integers]]:
    ladders, codes = [], []
    for key in cells.by:
        ladder, place = CodedLevels.of(key, cells.values(key), cells.counts(key), cells.hierarchies.get(key))
        ladders.append(ladder)
        codes.append(place[cells.cube.codes[cells.place(key)]])
    return ladders, codes


def _coarser(node: Levels, ladders: list[CodedLevels]) -> Iterator[Levels]:
    """The nodes with one key a level coarser."""
    for j, ladder in enumerate(ladders):
        yield from ((*node[:j], level, *node[j + 1 :]) for level in ladder.above[node[j]])


def _coarsens(new: Levels, old: Levels, ladders: list[CodedLevels], keys: tuple[str, ...], beyond: int = 0) -> bool:
    """Whether the step takes one of these keys beyond a level."""
    return any(a > max(b, beyond) and ladder.key in keys for a, b, ladder in zip(new, old, ladders, strict=True))


def _small(folds: Folds, node: Levels, least: int) -> float:
    n = folds.at(node).n
    return float(n[n < least].sum() / n.sum())
