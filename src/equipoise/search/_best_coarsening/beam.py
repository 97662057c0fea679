"""Beam search for a good node of a lattice too large to prove, with a bound on the loss.

The search goes down from the coarsest node, keeping the `WIDTH` best nodes of each step that satisfy the rules, then
tries to trade one key's level for another's. The bound: a file that satisfies the rules on all keys does so on some of
them. So the keys are put into groups small enough to count every node of each, and the cheapest nodes of the groups
that satisfy the rules cost, added up, no more than any node of the whole.
"""

from itertools import islice, product
from typing import Any

import numpy as np
import polars as pl

from equipoise.coarsening.cells_at_nodes import Levels
from equipoise.coarsening.lattice import CoarseningLoss, Lattice, Node
from equipoise.data.cells import Cells
from equipoise.methods.sensitive_values import merging
from equipoise.search._best_coarsening.criteria import Criteria
from equipoise.search._best_coarsening.exact import CountedNode, SearchClock, counted_node, level_column
from equipoise.search._best_coarsening.nodes import lattice_of, node_at, walk

BEAM_NODES = 16
"""Nodes kept at each step down."""
MAX_GROUP_NODES = 3000
"""Nodes of a group of keys that is counted for the bound."""
MAX_START_NODES = 64
"""Coarsest nodes to start from, where hierarchies have several."""
TRADE_ROUNDS = 5
"""How often levels are traded between keys."""


class Beam:
    """What was counted so far, the best of it, and the bound."""

    def __init__(
        self, cells: Cells, lattice: Lattice, criteria: Criteria, loss: CoarseningLoss, clock: SearchClock
    ) -> None:
        self.cells, self.lattice, self.criteria, self.loss, self.clock = cells, lattice, criteria, loss, clock
        self.known: dict[Levels, CountedNode] = {}
        self.best: CountedNode | None = None
        self.least = -np.inf

    def run(self) -> bool:
        """Look for a good node; False when stopped early."""
        with self.clock.stoppable():
            tops = islice(product(*(ladder.tops for ladder in self.lattice.ladders)), MAX_START_NODES)
            front = [one for one in map(self._try, tops) if one.satisfied]
            self._bounded()
            self._down(front)
            for _ in range(TRADE_ROUNDS):
                if not self._traded():
                    break
            self.clock.finish(self.lattice.nodes)
            return True
        return False

    @property
    def lower_bound(self) -> float:
        return min(self.least, self.best.loss) if self.best else self.least

    @property
    def evaluated(self) -> int:
        return len(self.known)

    def frame(self) -> pl.DataFrame:
        """A row for each node that was counted."""
        nodes = list(self.known.values())
        levels = {
            level_column(ladder): [ladder.names[one.levels[j]] for one in nodes]
            for j, ladder in enumerate(self.lattice.ladders)
        }
        numbers: dict[str, list[Any]] = {
            name: [getattr(one, name) for one in nodes] for name in ("loss", "classes", "suppressed")
        }
        table = pl.DataFrame({**levels, **numbers})
        bound = pl.lit(None, dtype=pl.Float64).alias("bound")
        satisfied = pl.Series([one.satisfied for one in nodes], dtype=pl.Boolean)
        return table.with_columns(bound, known=pl.lit("counted"), satisfied=satisfied)

    def _try(self, levels: Levels) -> CountedNode:
        if levels not in self.known:
            node = node_at(self.lattice, self.criteria.rule, self.lattice.folds.at(levels))
            candidate = counted_node(node, self.loss.of(node), self.criteria)
            self.known[levels] = candidate
            if candidate.satisfied and (self.best is None or candidate.rank < self.best.rank):
                self.best = candidate
            self.clock.tick(lambda: len(self.known), self.lattice.nodes)
        return self.known[levels]

    def _down(self, front: list[CountedNode]) -> None:
        """From the coarsest nodes to finer ones, while they satisfy the rules."""
        while front:
            finer = dict.fromkeys(node for one in front for node in self._steps(one.levels, down=True))
            candidates = [self._try(node) for node in finer]
            front = sorted((one for one in candidates if one.satisfied), key=lambda one: one.rank)[:BEAM_NODES]

    def _steps(self, levels: Levels, down: bool) -> list[Levels]:
        return [
            (*levels[:j], to, *levels[j + 1 :])
            for j, ladder in enumerate(self.lattice.ladders)
            for to in (ladder.below if down else ladder.above)[levels[j]]
        ]

    def _traded(self) -> bool:
        """One key coarser, another finer: whether that was any better."""
        if self.best is None:
            return False
        before = self.best
        for coarser in self._steps(before.levels, down=False):
            for node in self._steps(coarser, down=True):
                if node != before.levels and self._bound(node) < self.best.loss:
                    self._try(node)
        return self.best is not before

    def _bound(self, levels: Levels) -> float:
        parts = self.loss.parts(self.lattice)
        if parts is None:
            return -np.inf
        return float(self.loss.total(np.float64(sum(p[level] for p, level in zip(parts, levels, strict=True)))))

    def _bounded(self) -> None:
        """The lower bound, from groups of keys; from the uncoarsened file where the loss is not made of parts."""
        parts = self.loss.parts(self.lattice)
        if parts is None:
            finest = node_at(self.lattice, self.criteria.rule, self.lattice.folds.at((0,) * len(self.lattice.shape)))
            self.least = self.loss.least(finest)
            return
        kind = merging(self.criteria.rule)
        counts = kind == "any" or (kind == "safe" and self.criteria.limit == 0)
        sums = [self._cheapest(group, parts) if counts else _free(group, parts) for group in self._groups()]
        self.least = float(self.loss.total(np.float64(sum(sums))))

    def _groups(self) -> list[list[int]]:
        """Keys in groups of few nodes, those of many values together: they are the ones that single people out."""
        groups: list[list[int]] = []
        size = MAX_GROUP_NODES + 1
        for j in sorted(range(len(self.lattice.shape)), key=lambda j: -self.lattice.ladders[j].size):
            size *= self.lattice.shape[j]
            if size > MAX_GROUP_NODES:
                groups.append([])
                size = self.lattice.shape[j]
            groups[-1].append(j)
        return groups

    def _cheapest(self, group: list[int], parts: tuple[Any, ...]) -> float:
        """The least that the levels of these keys cost where the rules hold for them alone."""
        keys = tuple(self.lattice.ladders[j].key for j in group)
        lattice = lattice_of(self.cells, keys, self.criteria.rule)
        least = np.inf
        for fold in walk(lattice):
            cost = sum(parts[j][level] for j, level in zip(group, fold.levels, strict=True))
            if cost < least and self._possible(node_at(lattice, self.criteria.rule, fold)):
                least = cost
            self.clock.tick(lambda: 0, self.lattice.nodes)
        return float(least)

    def _possible(self, node: Node) -> bool:
        """Levels of some keys alone do not rule out that all keys together satisfy the criteria."""
        return node.suppressed <= self.criteria.limit and not self.criteria.excludes_finer(node)


def _free(group: list[int], parts: tuple[Any, ...]) -> float:
    return float(sum(parts[j].min() for j in group))
