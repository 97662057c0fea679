"""All-m anonymity: minimum class size on every subset of m keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from equipoise.data.cells import Cells
from equipoise.data.key_subsets import smallest
from equipoise.methods.parameters import check_fields
from equipoise.methods.protection_levels import Together, refuse_uncounted
from equipoise.methods.sensitive_values import Merging


@dataclass(frozen=True, slots=True)
class AnySubset(Together):
    """A cell is unsafe when on some `m` of its columns fewer than `n` records are like it (all-m anonymity).

    min over all subsets V of m columns of |class on V| < n: for an intruder who knows m attributes of a person.
    Where there are no more than m columns this is `MinCount(n)`. Missing keys count as the roles say.

    Source: Terrovitis, Mamoulis and Kalnis (2008), *Privacy-preserving anonymization of set-valued data*,
    k^m-anonymity. Misleads when an intruder knows more than m of the keys.
    Cost: O(cells) for each way to take m of the columns.

    >>> cells = Cells.of(pl.DataFrame({"sex": ["f", "f", "m"], "age": [30, 31, 30], "n": [3, 3, 2]}))
    >>> AnySubset(1, 3).flag(cells).to_list(), AnySubset(1, 2).flag(cells).to_list()
    ([False, False, True], [False, False, False])
    """

    merging: ClassVar[Merging] = "any"
    m: int = 2
    n: int = 3

    def __post_init__(self) -> None:
        check_fields(self, m=1, n=1)

    def asks(self) -> tuple[int, int | None]:
        """The minimum size of a class, and on how many of the keys."""
        return self.n, self.m

    def flag(self, cells: Cells) -> pl.Series:
        refuse_uncounted(cells)
        return pl.Series("unsafe", (cells.n > 0) & (smallest(cells, self.m) < self.n))

    def explain(self, cell: Mapping[str, Any]) -> str:
        return "It depends on all cells that agree with it on some columns: flag a table to know."
