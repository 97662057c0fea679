"""Discernibility metric: the number of records each record cannot be distinguished from."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.coarsening.lattice import Lattice, Node
from equipoise.ground.arrays import Floats, Numbers


@dataclass(frozen=True, slots=True)
class Discernibility:
    """Discernibility: every record costs the size of its class, a suppressed one the size of the file.

    DM = sum over kept classes of n_c^2, plus n for each suppressed record. From n (all different) to n^2.

    Source: Bayardo and Agrawal (2005), *Data privacy through optimal k-anonymization*, the discernibility metric.
    Misleads when values matter: it sees how records are grouped, not how coarse their values are.
    Cost: O(classes) a node. Coarser is never cheaper while the same records are suppressed.

    >>> Discernibility()
    Discernibility()
    """

    def of(self, node: Node) -> float:
        safe = node.n[~node.unsafe].astype(np.float64)
        return float(safe @ safe) + float(node.lattice.records) * node.suppressed

    def least(self, node: Node) -> float:
        n = node.n.astype(np.float64)
        return float(n @ n)

    def parts(self, lattice: Lattice, suppressed: int = 0) -> tuple[Floats, ...] | None:
        return None

    def total(self, sums: Numbers) -> Any:
        return sums
