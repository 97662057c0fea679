"""Entropy loss of coarsening, key by key, in bits."""

from dataclasses import dataclass
from typing import Any

from equipoise.coarsening.lattice import Lattice, Node
from equipoise.ground.arrays import Floats, Numbers
from equipoise.losses._key_weights import KeyWeights, key_weights, relative


@dataclass(frozen=True, slots=True)
class Entropy:
    """Information about the original values that the released ones do not give, in bits, over records and keys.

    sum over keys and records of - log2(a / b), a the records with the original value and b those with the released
    one. Suppressed records count as if they were not: use NonUniformEntropy where that matters. With `weights` (of
    keys, 1 unless given) each key's bits count by its weight over the mean weight.

    Source: De Waal and Willenborg (1999), *Information loss through global recoding and local suppression*; Gionis and
    Tassa (2009), the non-uniform entropy; the monotone form of ARX.
    Misleads when keys depend on each other: what one key tells of another is not counted.
    Cost: O(1) a node.

    >>> Entropy({"age": 0.5})
    Entropy(weights=(('age', 0.5),))
    """

    weights: KeyWeights = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", key_weights(self.weights))

    def of(self, node: Node) -> float:
        return self.least(node)

    def least(self, node: Node) -> float:
        return float(sum(p[level] for p, level in zip(self.parts(node.lattice), node.levels, strict=True)))

    def parts(self, lattice: Lattice, suppressed: int = 0) -> tuple[Floats, ...]:
        pairs = zip(relative(self.weights, lattice), lattice.ladders, strict=True)
        return tuple(weight * ladder.bits_lost for weight, ladder in pairs)

    def total(self, sums: Numbers) -> Any:
        return sums
