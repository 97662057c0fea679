"""Entropy loss of coarsening, key by key, in bits."""

from dataclasses import dataclass
from typing import Any

from equipoise.coarsening.lattice import Lattice, Node
from equipoise.ground.arrays import Floats


@dataclass(frozen=True, slots=True)
class Entropy:
    """Information about the original values that the released ones do not give, in bits, over records and keys.

    sum over keys and records of - log2(a / b), a the records with the original value and b those with the released
    one. Suppressed records count as if they were not: use NonUniformEntropy where that matters.

    Source: De Waal and Willenborg (1999), *Information loss through global recoding and local suppression*; Gionis and
    Tassa (2009), the non-uniform entropy; the monotone form of ARX.
    Misleads when keys depend on each other: what one key tells of another is not counted.
    Cost: O(1) a node.

    >>> Entropy()
    Entropy()
    """

    def of(self, node: Node) -> float:
        return float(sum(p[level] for p, level in zip(self.parts(node.lattice), node.levels, strict=True)))

    def least(self, node: Node) -> float:
        return self.of(node)

    def parts(self, lattice: Lattice, suppressed: int = 0) -> tuple[Floats, ...]:
        return tuple(ladder.bits_lost for ladder in lattice.ladders)

    def total(self, sums: Any) -> Any:
        return sums
