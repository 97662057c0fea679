"""The lattice of a file: its keys as ladders, and what rules say of each node."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.coarsening.cells_at_nodes import Fold, Folds, Levels
from equipoise.coarsening.coded_levels import CodedLevels
from equipoise.coarsening.lattice import Lattice, Node
from equipoise.data.cells import Cells
from equipoise.data.equivalence_classes import Classes
from equipoise.data.people import People
from equipoise.ground.arrays import Integers
from equipoise.ground.packed_keys import Cube, group
from equipoise.methods.protection_levels import Both, Either
from equipoise.methods.sensitive_values import sensitive_of


def lattice_of(cells: Cells, keys: tuple[str, ...], rule: Any) -> Lattice:
    """All levels of all hierarchies of these keys, over cells counted by them and by the rule's sensitive columns."""
    sensitive = sensitive_of([rule])
    finest = cells.margin((*keys, *sensitive))
    ladders, codes = [], []
    for key in keys:
        tree = finest.hierarchies.get(key)
        ladder, place = CodedLevels.of(key, finest.values(key), finest.counts(key), tree)
        ladders.append(ladder)
        codes.append(place[finest.cube.codes[finest.place(key)]])
    inner = {c: (finest.cube.codes[finest.place(c)].astype(np.int64), finest.values(c)) for c in sensitive}
    total = finest.total if _plain(rule) else None
    folds = Folds(ladders, codes, finest.n, inner, finest.hierarchies, total)
    wild = tuple(key for key in keys if key in finest.open and finest.values(key).null_count())
    return Lattice(tuple(ladders), finest.records, folds, wild, finest.people)


def _plain(rule: Any) -> bool:
    """A rule that looks at cells, not at classes, is among these."""
    parts = rule.rules if isinstance(rule, Either | Both) else ()
    return any(map(_plain, parts)) if parts else not hasattr(rule, "unsafe")


def node_at(lattice: Lattice, rule: Any, fold: Fold) -> Node:
    """A node with the verdict of the rule on its classes. O(classes)."""
    classes, stand = lattice.folds.classes(fold)
    if lattice.open:
        classes = replace(classes, matched=_cells(lattice, fold, classes, stand).alike[0])
    if lattice.people is not None:
        classes = replace(classes, people=_cells(lattice, fold, classes, stand).alike[0])
    return Node(lattice, fold.levels, classes, _unsafe(lattice, rule, fold, classes, stand), stand)


def _unsafe(lattice: Lattice, rule: Any, fold: Fold, classes: Classes, stand: Integers) -> Integers:
    if isinstance(rule, Either | Both):
        parts = [_unsafe(lattice, part, fold, classes, stand) for part in rule.rules]
        return np.any(parts, axis=0) if isinstance(rule, Either) else np.all(parts, axis=0)
    if hasattr(rule, "unsafe"):
        return rule.unsafe(classes)
    cells = _cells(lattice, fold, classes, stand)
    if hasattr(rule, "unsafe_at"):
        return rule.unsafe_at(lattice, fold.levels, cells)
    return rule.flag(cells).to_numpy()


def _cells(lattice: Lattice, fold: Fold, classes: Classes, stand: Integers) -> Cells:
    """The classes as cells of the coarsened keys."""
    weights = fold.n if fold.total is None else fold.total
    pairs = list(zip(lattice.ladders, fold.levels, strict=True))
    codes = tuple(ladder.steps[level][lattice.folds.codes[j][stand]] for j, (ladder, level) in enumerate(pairs))
    total = np.bincount(classes.ids, weights=weights).astype(np.float64, copy=False)
    cube = Cube(tuple(ladder.labels[level] for ladder, level in pairs), codes, classes.n, total)
    people = _people(lattice, fold.levels, stand)
    return Cells(tuple(ladder.key for ladder, _ in pairs), cube, open=lattice.open, people=people)


def _people(lattice: Lattice, levels: Levels, stand: Integers) -> People | None:
    """The people of each class: the class of every counted cell is that of the cell that represents it."""
    if lattice.people is None:
        return None
    pairs = zip(lattice.ladders, levels, lattice.folds.codes, strict=True)
    codes = [ladder.steps[level][own] for ladder, level, own in pairs]
    ids, first = group(codes, [int(code.max()) + 1 for code in codes])
    places = np.empty(len(first), dtype=np.int64)
    places[ids[stand]] = np.arange(len(stand))
    return lattice.people.moved(places[ids])


def walk(lattice: Lattice, selection: Integers | None = None) -> Iterator[Fold]:
    """Every node that is wanted (all, unless told), each rolled up from the one before it in one key.

    `wanted` may change on the way. Memory: a fold for each key and level.
    """
    targets = np.ones(lattice.shape, dtype=np.bool_) if selection is None else selection
    yield from _walk(lattice, lattice.folds.base, 0, targets.transpose(lattice.folds.order))


def _walk(lattice: Lattice, start: Fold, depth: int, selection: Integers) -> Iterator[Fold]:
    """The nodes that share the levels of the first keys, `wanted` being what is asked of them."""
    if depth == len(lattice.ladders):
        yield start
        return
    j = lattice.folds.order[depth]
    folds: dict[int, Fold] = {}
    for level in range(len(lattice.ladders[j])):
        if not selection[level].any():
            continue
        finer = next((folds[m] for m in reversed(folds) if lattice.ladders[j].within[m, level]), start)
        levels: Levels = (*start.levels[:j], level, *start.levels[j + 1 :])
        folds[level] = start if levels == start.levels else lattice.folds.up(finer, levels)
        yield from _walk(lattice, folds[level], depth + 1, selection[level])
