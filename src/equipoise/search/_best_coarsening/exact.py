"""The best node of a lattice, proven: nodes that cannot be better or cannot satisfy the rules are never counted.

Three facts prune (Kohlmayer et al. 2012, *Flash*; El Emam et al. 2009, *OLA*). Where merging keeps classes safe, a node
that suppresses too many records is no better when it is finer. A loss is at least what its levels alone cost. And a
finer node suppresses at least as many records as a coarser one, each of which costs something. A limit on the mean risk
prunes too: see `criteria`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from equipoise.coarsening.cells_at_nodes import Levels
from equipoise.coarsening.coded_levels import CodedLevels
from equipoise.coarsening.lattice import CoarseningLoss, Lattice, Node
from equipoise.ground.arrays import Floats
from equipoise.ground.progress import Progress
from equipoise.methods.sensitive_values import merging
from equipoise.search._best_coarsening.criteria import Criteria, mean_risk
from equipoise.search._best_coarsening.nodes import node_at, walk

REPORT_SECONDS = 0.1
"""Seconds between reports."""
MAX_COUNTED_RATIO = 8
"""When more than one node in so many was counted, the rest is counted in the order that makes each quickly."""
MAX_RAISED = 200_000
"""Nodes up to which bounds are raised by what coarser nodes suppress."""
MIN_SLICED_CELLS = 100_000
"""Cells from which slices are worth their making."""
SLICE_SHARE = 0.1
"""The share of records that a slice should have."""
MAX_SLICES = 3
"""Slices that are made, of as many keys."""


class Stopped(Exception):
    """Time is up, or the search was stopped."""


@dataclass
class SearchClock:
    """When to report, and when to stop."""

    seconds: float | None
    progress: Progress | None
    start: float = field(default_factory=time.monotonic)
    told: float = 0.0
    interrupted: bool = False

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Work that ends here when it is stopped."""
        try:
            yield
        except Stopped:
            return
        except KeyboardInterrupt:
            self.interrupted = True

    def finish(self, total: int) -> None:
        if self.progress is not None:
            self.progress(total, total, "nodes of the lattice")

    def tick(self, steps: Callable[[], int], total: int) -> None:
        now = time.monotonic() - self.start
        if self.seconds is not None and now > self.seconds:
            raise Stopped
        if self.progress is not None and now - self.told >= REPORT_SECONDS:
            self.told = now
            if self.progress(steps(), total, "nodes of the lattice") is False:
                self.interrupted = True
                raise Stopped


LATTICE_COLUMNS = ("loss", "bound", "classes", "suppressed", "known", "satisfied")
"""Columns of the frame of a lattice beside the levels of its keys."""


def level_column(ladder: CodedLevels) -> str:
    """The name of the column with a key's levels: its own, unless the frame has one of that name."""
    return f"{ladder.key} level" if ladder.key in LATTICE_COLUMNS else ladder.key


@dataclass(frozen=True)
class CountedNode:
    """A node that was counted, and whether it satisfies the criteria."""

    levels: Levels
    loss: float
    suppressed: int
    classes: int
    mean_risk: float
    satisfied: bool

    @property
    def rank(self) -> tuple[float, int, Levels]:
        return self.loss, self.suppressed, self.levels


def counted_node(node: Node, loss: float, criteria: Criteria) -> CountedNode:
    """What is kept of a node."""
    return CountedNode(node.levels, loss, node.suppressed, len(node.n), mean_risk(node), criteria.satisfied(node))


class LatticeSearch:
    """What is known of each node: whether it is open, its bound, and what was counted."""

    def __init__(self, lattice: Lattice, criteria: Criteria, loss: CoarseningLoss, clock: SearchClock) -> None:
        self.lattice, self.criteria, self.loss, self.clock = lattice, criteria, loss, clock
        kind = merging(criteria.rule)
        self.fewer = kind == "any"
        self.prunes = self.fewer or (kind == "safe" and criteria.limit == 0)
        shape, parts = lattice.shape, loss.parts(lattice)
        self.separable = parts is not None
        few = self.fewer and lattice.nodes <= MAX_RAISED
        self.raises = few and _differ(parts, loss.parts(lattice, lattice.records))
        self.bound = np.full(shape, -np.inf) if parts is None else loss.total(lattice.sums(parts))
        self.open = np.ones(shape, dtype=np.bool_)
        self.failed = np.zeros(shape, dtype=np.bool_)
        self.losses = np.full(shape, np.nan)
        self.suppressed = np.full(shape, -1)
        self.classes = np.full(shape, -1)
        self.satisfied = np.zeros(shape, dtype=np.bool_)
        self.slices = slices(lattice) if self.fewer and not lattice.open else ()
        self.evaluated = 0
        self.best: CountedNode | None = None

    def run(self, whole: bool) -> bool:
        """Look for the best node; False when stopped before it was proven."""
        with self.clock.stoppable():
            if whole:
                for fold in walk(self.lattice):
                    self._note(node_at(self.lattice, self.criteria.rule, fold), prune=False)
            else:
                self._prove()
            self.clock.finish(self.lattice.nodes)
            return True
        return False

    @property
    def lower_bound(self) -> float:
        """No node that satisfies the rules costs less."""
        least = float(self.bound[self.open].min()) if self.open.any() else np.inf
        return min(least, self.best.loss if self.best else np.inf)

    def _prove(self) -> None:
        """Halve chains while that finds better nodes; then count the coarsest open nodes, which none can spare."""
        self._visit(tuple(ladder.tops[0] for ladder in self.lattice.ladders))
        best = None
        while self.open.any():
            if self.evaluated > self.lattice.nodes // MAX_COUNTED_RATIO:
                self._rest()
                return
            place = np.unravel_index(int(np.argmin(np.where(self.open, self.bound, np.inf))), self.lattice.shape)
            levels = tuple(int(level) for level in place)
            if not self.prunes:
                self._visit(levels)
            elif self.best is not best or not self.separable:
                best = self.best
                self._halve(self._chain(levels))
            else:
                self._visit(self._chain(levels)[-1])

    def _rest(self) -> None:
        """Where little could be ruled out: the open nodes in the order in which each is quickly made."""
        for fold in walk(self.lattice, self.open):
            self._note(node_at(self.lattice, self.criteria.rule, fold), prune=True)

    def _chain(self, levels: Levels) -> list[Levels]:
        """Coarser and coarser open nodes, each the next that may cost least."""
        chain = [levels]
        while True:
            coarser = [node for node in self._above(chain[-1]) if self.open[node]]
            if not coarser:
                return chain
            chain.append(min(coarser, key=lambda node: (self.bound[node], node)))

    def _above(self, levels: Levels) -> list[Levels]:
        return [
            (*levels[:j], up, *levels[j + 1 :])
            for j, ladder in enumerate(self.lattice.ladders)
            for up in ladder.above[levels[j]]
        ]

    def _halve(self, chain: list[Levels]) -> None:
        """Find where a chain begins to satisfy the rules."""
        low, high = 0, len(chain) - 1
        while low <= high:
            middle = (low + high) // 2
            levels = chain[middle]
            if self.open[levels]:
                self._visit(levels)
            if self.failed[levels] or (self.suppressed[levels] >= 0 and not self.satisfied[levels]):
                low = middle + 1
            else:
                high = middle - 1

    def _visit(self, levels: Levels) -> None:
        if self._hopeless(levels):
            finer = self.lattice.finer(levels)
            self.failed[finer] = True
            self.open[finer] = False
            self.clock.tick(lambda: int((~self.open).sum()), self.lattice.nodes)
            return
        self._note(node_at(self.lattice, self.criteria.rule, self.lattice.folds.at(levels)), prune=True)

    def _hopeless(self, levels: Levels) -> bool:
        """Too many of a part of the records are suppressed already."""
        part = next((one.lattice for one in self.slices if one.covers(levels)), None)
        return (
            part is not None
            and node_at(part, self.criteria.rule, part.folds.at(levels)).suppressed > self.criteria.limit
        )

    def _note(self, node: Node, prune: bool) -> None:
        levels = node.levels
        self.evaluated += 1
        self.open[levels] = False
        self.suppressed[levels], self.classes[levels] = node.suppressed, len(node.n)
        satisfied = self.satisfied[levels] = self.criteria.satisfied(node)
        if satisfied or not prune:
            self.losses[levels] = self.loss.of(node)
        if satisfied:
            candidate = counted_node(node, float(self.losses[levels]), self.criteria)
            self.best = candidate if self.best is None else min(self.best, candidate, key=lambda one: one.rank)
        if prune:
            self._prune(node)
        self.clock.tick(lambda: int((~self.open).sum()), self.lattice.nodes)

    def _prune(self, node: Node) -> None:
        finer = self.lattice.finer(node.levels)
        if (node.suppressed > self.criteria.limit and self.prunes) or self.criteria.excludes_finer(node):
            self.failed[finer] = True
            self.open[finer] = False
        elif self.raises and node.suppressed:
            self._raise(finer, node.suppressed)
        if not self.separable:
            coarser = self.lattice.coarser(node.levels)
            self.bound[coarser] = np.maximum(self.bound[coarser], self.loss.least(node))
        if self.best is not None:
            self.open &= self.bound < self.best.loss

    def _raise(self, finer: tuple[Any, ...], suppressed: int) -> None:
        """Finer nodes suppress at least as many records."""
        parts = self.loss.parts(self.lattice, suppressed)
        assert parts is not None
        bound = self.loss.total(self.lattice.sums(parts))[finer]
        self.bound[finer] = np.maximum(self.bound[finer], bound)


def _differ(one: tuple[Floats, ...] | None, two: tuple[Floats, ...] | None) -> bool:
    """Suppressing records costs something."""
    return bool(one and two and any((a != b).any() for a, b in zip(one, two, strict=True)))


@dataclass(frozen=True, eq=False, repr=False)
class Slice:
    """The lattice of the records in one category of a key, a part of a large file that refutes many nodes early.

    At a level as coarse as a node's or coarser, they hold whole classes of that node: if too many of them are in unsafe
    classes already, so are too many of all.
    """

    key: int
    level: int
    lattice: Lattice

    def covers(self, levels: Levels) -> bool:
        """The classes of a node are wholly in the slice or wholly outside."""
        return bool(self.lattice.ladders[self.key].within[levels[self.key], self.level])


def slices(lattice: Lattice) -> tuple[Slice, ...]:
    """Slices near the wanted share, by keys whose coarser levels tell them: none for small files."""
    if len(lattice.folds.base) < MIN_SLICED_CELLS:
        return ()
    candidates = []
    for j, ladder in enumerate(lattice.ladders):
        for level in range(len(ladder)):
            counts = np.bincount(ladder.steps[level], weights=ladder.counts) / lattice.records
            category = int(np.argmin(np.abs(counts - SLICE_SHARE)))
            if SLICE_SHARE / 2 <= counts[category] <= 3 * SLICE_SHARE:
                candidates.append(
                    (-int(ladder.within[:, level].sum()), abs(counts[category] - SLICE_SHARE), j, level, category)
                )
    chosen: dict[int, Slice] = {}
    for _, _, j, level, category in sorted(candidates):
        if j not in chosen and len(chosen) < MAX_SLICES:
            folds = lattice.folds.part(j, lattice.ladders[j].steps[level] == category)
            chosen[j] = Slice(j, level, replace(lattice, folds=folds))
    return tuple(chosen.values())
