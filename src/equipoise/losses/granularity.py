"""Granularity (loss metric): the share of their domains that released values cover."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from equipoise.coarsening.coded_levels import CodedLevels
from equipoise.coarsening.lattice import Lattice, Node
from equipoise.ground.arrays import Floats, Integers, Numbers
from equipoise.losses._key_weights import KeyWeights, key_weights, relative
from equipoise.methods.parameters import check_fields


@dataclass(frozen=True, slots=True)
class Granularity:
    """Loss metric: the share of its domain that a released value covers, from 0 (unchanged) to 1 (all suppressed).

    For each key (A - n/D) / (n - n/D): A is the sum over kept records of the leaves under their value divided by D,
    plus the number of suppressed records; D are the leaves of the hierarchy, unoccupied ones included. Over the
    keys the geometric mean of 1 + loss, minus 1; with `mean="arithmetic"` the plain mean. A key of one value loses 0.
    With `weights` (of keys, 1 unless given) the means are weighted.

    Source: Iyengar (2002), *Transforming data to satisfy privacy constraints*, the LM metric; normalised and averaged
    as in ARX (Prasser et al. 2020).
    Misleads when users need rare values: every leaf counts the same, however many records have it.
    Cost: O(keys x suppressed classes) a node.

    >>> Granularity("median")
    Traceback (most recent call last):
    ...
    equipoise.ground.errors.ParameterError: mean must be 'geometric' or 'arithmetic', got 'median'.
    """

    mean: Literal["geometric", "arithmetic"] = "geometric"
    weights: KeyWeights = ()

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "weights", key_weights(self.weights))

    def of(self, node: Node) -> float:
        covered = node.covered() + node.suppressed
        losses = _losses(covered, node.lattice.records, np.array([ladder.domain for ladder in node.lattice.ladders]))
        parts = np.log1p(losses) if self.mean == "geometric" else losses
        return float(self.total((relative(self.weights, node.lattice) * parts).mean()))

    def least(self, node: Node) -> float:
        parts = self.parts(node.lattice)
        return float(self.total(np.float64(sum(p[level] for p, level in zip(parts, node.levels, strict=True)))))

    def parts(self, lattice: Lattice, suppressed: int = 0) -> tuple[Floats, ...]:
        parts = []
        for weight, ladder in zip(relative(self.weights, lattice), lattice.ladders, strict=True):
            covered = np.array([_covered(ladder, share, suppressed) for share in ladder.shares])
            losses = _losses(covered, lattice.records, np.array(ladder.domain))
            parts.append(weight * (np.log1p(losses) if self.mean == "geometric" else losses) / len(lattice.ladders))
        return tuple(parts)

    def total(self, sums: Numbers) -> Any:
        return np.expm1(sums) if self.mean == "geometric" else sums


def _losses(covered: Floats, records: int, domain: Integers) -> Floats:
    least = records / domain
    share = np.divide(covered - least, records - least, out=np.zeros_like(covered), where=domain > 1)
    return np.maximum(share, 0.0)


def _covered(ladder: CodedLevels, share: Floats, suppressed: int) -> float:
    """Sum of shares if at least so many records are suppressed: those whose values cover most already."""
    if not suppressed:
        return float(share @ ladder.counts)
    order = np.argsort(-share, kind="stable")
    counts = ladder.counts[order]
    dropped = np.clip(suppressed - (np.cumsum(counts) - counts), 0, counts)
    return float(share @ ladder.counts + (1 - share[order]) @ dropped)
