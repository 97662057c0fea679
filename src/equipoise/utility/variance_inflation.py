"""Variance that post-randomization adds to estimates of cells."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.records import Records
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import ParameterError
from equipoise.methods.method import label
from equipoise.methods.score import Score


@dataclass(frozen=True, slots=True)
class VarianceInflation:
    """By how much a random move of the keys inflates the variance of the estimated shares of the cells.

    Under multinomial sampling a cell's count has variance n pi (1 - pi), estimated by T (1 - T/n); the mask adds
    Var(S_j | T) = sum over i of T_i p_ji (1 - p_ji). The value is the mean over units of
    1 + Var(S_j | T) / (T_j (1 - T_j/n)), 1 when nothing is random. The detail has a row per cell: `n`,
    `added`, `inflation`.

    Source: Nayak and Adeshiyan (2016), *On invariant post-randomization for statistical disclosure control*.
    Misleads when users tabulate coarser cells than the keys: moves within a coarse cell add nothing there.
    Cost: O(cells).

    >>> records = eq.Records.of(pl.DataFrame({"k": ["a", "b", "b"]}), eq.Roles("k"))
    >>> VarianceInflation().measure(records, records).value
    1.0
    """

    def measure(self, released: Records, original: Records) -> Score:
        laws = [law for law in released.history if not law.coarsens]
        if not all(hasattr(law.detail, "law") for law in laws):
            raise ParameterError("The variance that a mask adds to cells is known for Pram only.")
        counts = laws[-1].detail.law.counts if laws else np.ones(1)
        added = sum((law.detail.law.variance() for law in laws), np.zeros(len(counts)))
        inflation = _inflation(counts, added)
        value = float(np.average(inflation, weights=counts))
        table = pl.DataFrame({"n": counts, "added": added, "inflation": inflation})
        return Score(label(self), value, side="utility", unit="times the sampling variance", cells=lambda: table)


def _inflation(counts: "Floats", added: Floats) -> Floats:
    sampling = counts * (1 - counts / counts.sum())
    return np.asarray(1 + np.divide(added, sampling, out=np.zeros(len(added)), where=sampling > 0))
