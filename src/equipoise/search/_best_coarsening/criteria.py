"""What a coarsening must satisfy, and what a node says of all finer ones.

Rules flag classes, whose records are suppressed. The mean risk is a number of the whole release: the mean over its
records of 1 / f, f being the records alike, and suppressed ones one class. Without missing keys that is classes
/ records. Coarsening only merges classes, so every f can only grow and the sum R of 1 / f over all records only fall. A
finer node has R' >= R; suppressing at most L of its records takes at most 1 each away and adds one class. Hence its
mean risk is at least (R - max(0, L - 1)) / n, whatever the rules are: where that is too much, every finer node fails.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from equipoise.coarsening.lattice import Node
from equipoise.data.cells import Cells
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import Cube
from equipoise.methods.protection_levels import Both, Either

RISK_TOLERANCE = 1e-9
"""A sum of risks this near its limit is on it."""


@dataclass(frozen=True)
class Criteria:
    """A rule that holds when at most `limit` records are suppressed, and the largest mean risk if there is a limit."""

    rule: Any
    limit: int
    mean_risk: float | None = None
    blanks_match: bool = False

    def satisfied(self, node: Node) -> bool:
        """The node may be released: the rule holds for its suppressed records too, which are a class without keys.

        Where a blank is declared to match anything (`blanks_match`) they are in every class.
        """
        low = self.mean_risk is None or self._low(mean_risk(node) * node.lattice.records, node)
        if not low or not 0 < node.suppressed <= self.limit or self.blanks_match:
            return low and node.suppressed <= self.limit
        return not flags_released(self.rule, node).any()

    def excludes_finer(self, node: Node) -> bool:
        """The mean risk is too large at this node and at every finer one."""
        if self.mean_risk is None:
            return False
        return not self._low(float(_risks(node).sum()) - max(0, self.limit - 1), node)

    def _low(self, risk: float, node: Node) -> bool:
        assert self.mean_risk is not None
        return risk <= self.mean_risk * node.lattice.records + RISK_TOLERANCE


def mean_risk(node: Node) -> float:
    """The mean over all records of 1 / the records alike, suppressed ones being one class. O(classes)."""
    return float(_risks(node)[~node.unsafe].sum() + (node.suppressed > 0)) / node.lattice.records


def _risks(node: Node) -> Floats:
    """The sum of 1 / f over the records of each class."""
    return node.n / np.maximum(node.classes.alike, 1)


def flags_released(rule: Any, node: Node) -> Integers:
    """The verdict of a rule on the released classes: those kept, in order, and last the records without keys.

    Suppressed records are missing from other classes where a rule looks at some of the keys. O(classes).
    """
    if isinstance(rule, Either | Both):
        parts = [flags_released(part, node) for part in rule.rules]
        return np.any(parts, axis=0) if isinstance(rule, Either) else np.all(parts, axis=0)
    kept = np.flatnonzero(~node.unsafe)
    if hasattr(rule, "unsafe"):
        place = np.full(len(node.n), len(kept))
        place[kept] = np.arange(len(kept))
        sizes = np.append(node.n[kept], node.suppressed)
        return rule.unsafe(replace(node.classes, n=sizes, ids=place[node.classes.ids], matched=None, groups=None))
    if hasattr(rule, "unsafe_at"):
        return np.zeros(len(kept) + 1, dtype=np.bool_)
    return rule.flag(_released_cells(node, kept)).to_numpy()


def _released_cells(node: Node, kept: Integers) -> Cells:
    """The kept classes as cells of the coarsened keys, and a cell without any key."""
    axes, codes = [], []
    for j, (ladder, level) in enumerate(zip(node.lattice.ladders, node.levels, strict=True)):
        own = ladder.steps[level][node.lattice.folds.codes[j][node.stand[kept]]]
        axes.append(pl.concat([ladder.labels[level].cast(pl.String), pl.Series([None], dtype=pl.String)]))
        codes.append(np.append(own, len(ladder.labels[level])))
    n = np.append(node.n[kept], node.suppressed)
    return Cells(tuple(ladder.key for ladder in node.lattice.ladders), Cube(tuple(axes), tuple(codes), n, n * 1.0))
