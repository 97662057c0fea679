"""Prosecutor risk: an intruder who knows that the target is in the file."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from equipoise.data.cells import Cells
from equipoise.data.records import Records
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score
from equipoise.risk._cell_score import KeyRisk, cell_score


@dataclass(frozen=True, slots=True)
class Prosecutor(KeyRisk):
    """Probability that a prosecutor, who knows that one person is in the file, picks the right record: 1 / f.

    f is the number of records alike on the keys. `of="worst"` is the largest risk of any record, `of="mean"` the mean
    over records (classes / records where no key is missing). `number` counts the records at the worst risk, or is the
    expected number of right matches. The detail has the risk of every cell.

    Source: El Emam and Dankar (2008), *Protecting privacy using k-anonymity*; EMA policy 0070 limits the worst to 0.09.
    Misleads when the file was perturbed: then a class may hold somebody else. Cost: O(cells).

    >>> cells = Cells.of(pl.DataFrame({"age": [30, 31], "n": [2, 4]}))
    >>> Prosecutor().measure(cells, cells).value, round(Prosecutor("mean").measure(cells, cells).value, 4)
    (0.5, 0.3333)
    """

    of: Literal["worst", "mean"] = "worst"

    def __post_init__(self) -> None:
        check_fields(self)

    def _score(self, released: Records | Cells, cells: Cells) -> Score:
        risk = 1 / np.maximum(cells.alike[0], 1)
        score = cell_score(label(self), released, cells, risk)
        if self.of == "mean":
            return score
        worst = float(risk[cells.n > 0].max(initial=0.0))
        return replace(score, value=worst, number=float(cells.n[risk == worst].sum()), unit="share")
