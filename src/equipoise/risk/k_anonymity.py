"""k-anonymity: records whose class is smaller than k, on all keys or on any few of them."""

from dataclasses import dataclass, replace

import numpy as np

from equipoise.data.cells import Cells
from equipoise.data.key_subsets import smallest
from equipoise.data.records import Records
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score
from equipoise.risk._cell_score import KeyRisk, cell_score


@dataclass(frozen=True, slots=True)
class KAnonymity(KeyRisk):
    """Share (and number) of records in classes of fewer than `k`: 0 means that the file is k-anonymous.

    With `subsets` = m a record counts when its class is too small on any m of the keys: what an intruder needs who
    knows m things about a person (all-m anonymity). The detail has `smallest`, the size of the smallest of those
    classes, and `risk`, 1 where it is below k. Classes are counted by the roles' rule for missing keys.

    Source: Samarati and Sweeney (1998); for subsets Terrovitis, Mamoulis and Kalnis (2008), k^m-anonymity.
    Misleads when everybody in a class has the same sensitive value (see `AttributeDisclosure`, `rules.Diversity`) or
    when the file was perturbed. Cost: O(cells) for each subset of the keys; of K keys there are K over m.

    >>> table = pl.DataFrame({"sex": ["f", "f", "m"], "age": [30, 31, 30], "n": [3, 3, 2]})
    >>> cells = Cells.of(table)
    >>> KAnonymity(3).measure(cells, cells).number, KAnonymity(3, subsets=1).measure(cells, cells).number
    (2.0, 2.0)
    """

    k: int = 3
    subsets: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, k=1, subsets=1)

    def _score(self, released: Records | Cells, cells: Cells) -> Score:
        size = smallest(cells, self.subsets)
        score = cell_score(label(self), released, cells, np.where(size < self.k, 1.0, 0.0))
        behind = cells.table.with_columns(smallest=size, risk=np.where(size < self.k, 1.0, 0.0))
        return replace(score, cells=lambda: behind)
