"""Sample uniques: records alone, or among few, in their class of the keys."""

from dataclasses import dataclass

import numpy as np

from equipoise.data.cells import Cells
from equipoise.data.records import Records
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score
from equipoise.risk._cell_score import KeyRisk, cell_score


@dataclass(frozen=True, slots=True)
class Uniques(KeyRisk):
    """Share (and number) of records in classes of at most `k` records: sample uniques for k = 1.

    value = (1/n) sum over cells with f_c <= k of n_c, where f_c is n_c and, with `missing="any"`, the records that
    match because a key is missing; `risk` in the detail is 1 in those cells and 0 elsewhere.
    Source: Massell (1999), section III.a, the 1-cells of the table spanned by the keys.
    Misleads when the file is a small sample (a sample unique need not be unique in the population) or was perturbed
    (a unique may be somebody else). Cost: O(cells).

    >>> cells = Cells.of(pl.DataFrame({"age": [30, 31], "n": [1, 3]}))
    >>> Uniques().measure(cells, cells).value
    0.25
    """

    k: int = 1

    def __post_init__(self) -> None:
        check_fields(self, k=1)

    def _score(self, released: Records | Cells, cells: Cells) -> Score:
        return cell_score(label(self), released, cells, np.where(cells.alike[0] <= self.k, 1.0, 0.0))
