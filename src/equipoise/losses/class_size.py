"""Average class size of a coarsened file."""

from dataclasses import dataclass
from typing import Any

from equipoise.coarsening.lattice import Lattice, Node
from equipoise.ground.arrays import Floats, Numbers


@dataclass(frozen=True, slots=True)
class ClassSize:
    """Average class size: records divided by classes, all suppressed records being one class.

    n / (kept classes + 1 if any record is suppressed). Divide by k for the normalised form of the paper.

    Source: LeFevre, DeWitt and Ramakrishnan (2006), *Mondrian multidimensional k-anonymity*, C_AVG; suppressed records
    as in ARX.
    Misleads when few huge classes stand beside many small ones: it is a mean over classes, not over records.
    Cost: O(classes) a node.

    >>> ClassSize()
    ClassSize()
    """

    def of(self, node: Node) -> float:
        safe = int((~node.unsafe).sum())
        return node.lattice.records / (safe + (safe < len(node.n)))

    def least(self, node: Node) -> float:
        return node.lattice.records / len(node.n)

    def parts(self, lattice: Lattice, suppressed: int = 0) -> tuple[Floats, ...] | None:
        return None

    def total(self, sums: Numbers) -> Any:
        return sums
