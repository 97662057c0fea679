"""Non-uniform entropy loss of coarsening and suppression, key by key, in bits."""

from dataclasses import dataclass

import numpy as np

from equipoise.coarsening.lattice import Node
from equipoise.losses._key_weights import relative
from equipoise.losses.entropy import Entropy


@dataclass(frozen=True, slots=True)
class NonUniformEntropy(Entropy):
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

    def of(self, node: Node) -> float:
        weights = relative(self.weights, node.lattice)
        return self.least(node) + sum(float(weight) * _suppressed(node, j) for j, weight in enumerate(weights))


def _suppressed(node: Node, key: int) -> float:
    c = node.suppressed_by_category(key)
    c = c[c > 0]
    return float(c @ np.log2(node.suppressed / c)) if len(c) else 0.0
