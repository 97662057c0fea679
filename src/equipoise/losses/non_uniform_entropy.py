"""Non-uniform entropy loss of coarsening and suppression, key by key, in bits."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.coarsening.lattice import Lattice, Node
from equipoise.ground.arrays import Floats
from equipoise.losses._key_weights import KeyWeights, key_weights, relative


@dataclass(frozen=True, slots=True)
class NonUniformEntropy:
    """Information about the original values that the released ones do not give, in bits, with suppressed records.

    sum over keys and records of - log2(a / b), a the records with the original value and b those with the coarsened
    one, plus for suppressed records - log2(c / s), c the suppressed records with the same coarsened value and s all
    suppressed ones. With `weights` (of keys, 1 unless given) each key's bits count by its weight over the mean weight.

    Source: De Waal and Willenborg (1999); Gionis and Tassa (2009), *k-anonymization with minimal loss of information*;
    suppressed records as in ARX.
    Misleads when keys depend on each other, and when few records are suppressed: s small makes them cheap.
    Cost: O(keys x suppressed classes) a node.

    >>> NonUniformEntropy({"age": 0.5})
    NonUniformEntropy(weights=(('age', 0.5),))
    """

    weights: KeyWeights = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", key_weights(self.weights))

    def of(self, node: Node) -> float:
        weights = relative(self.weights, node.lattice)
        return self.least(node) + sum(float(weight) * _withheld(node, j) for j, weight in enumerate(weights))

    def least(self, node: Node) -> float:
        return float(sum(p[level] for p, level in zip(self.parts(node.lattice), node.levels, strict=True)))

    def parts(self, lattice: Lattice, suppressed: int = 0) -> tuple[Floats, ...]:
        pairs = zip(relative(self.weights, lattice), lattice.ladders, strict=True)
        return tuple(weight * ladder.bits_lost for weight, ladder in pairs)

    def total(self, sums: Any) -> Any:
        return sums


def _withheld(node: Node, key: int) -> float:
    c = node.suppressed_by_category(key)
    c = c[c > 0]
    return float(c @ np.log2(node.suppressed / c)) if len(c) else 0.0
