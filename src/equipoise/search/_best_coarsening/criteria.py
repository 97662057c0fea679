"""What a coarsening must satisfy, and what a node says of all finer ones.

Rules flag classes, whose records are suppressed. The mean risk is a number of the whole release: the mean over its
records of 1 / f, f being the records alike, and suppressed ones one class. Without missing keys that is classes
/ records. Coarsening only merges classes, so every f can only grow and the sum R of 1 / f over all records only fall. A
finer node has R' >= R; suppressing at most L of its records takes at most 1 each away and adds one class. Hence its
mean risk is at least (R - max(0, L - 1)) / n, whatever the rules are: where that is too much, every finer node fails.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.coarsening.lattice import Node
from equipoise.ground.arrays import Floats

RISK_TOLERANCE = 1e-9
"""A sum of risks this near its limit is on it."""


@dataclass(frozen=True)
class Criteria:
    """A rule that holds when at most `limit` records are suppressed, and the largest mean risk if there is a limit."""

    rule: Any
    limit: int
    mean_risk: float | None = None

    def satisfied(self, node: Node) -> bool:
        """The node may be released."""
        low = self.mean_risk is None or self._low(mean_risk(node) * node.lattice.records, node)
        return node.suppressed <= self.limit and low

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
