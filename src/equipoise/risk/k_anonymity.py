"""Records whose class is smaller than k, on all keys or on any few of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np

from equipoise.core.cell_score import cell_score
from equipoise.core.cells import Cells
from equipoise.core.codes import Integers, group
from equipoise.core.errors import ParameterError
from equipoise.core.method import as_cells, label
from equipoise.core.records import Records
from equipoise.core.roles import Roles
from equipoise.core.score import Score, not_applicable

MOST = 100_000
"""Subsets of keys that are looked at, at most."""


@dataclass(frozen=True, slots=True)
class KAnonymity:
    """Share (and number) of records in classes of fewer than `k`: 0 means that the file is k-anonymous.

    With `subsets` = m a record counts when its class is too small on any m of the keys: what an intruder needs who
    knows m things about a person (all-m anonymity). The detail has `smallest`, the size of the smallest of those
    classes, and `risk`, 1 where it is below k. Classes are counted by the roles' rule for missing keys.

    Source: Samarati and Sweeney (1998); for subsets Terrovitis, Mamoulis and Kalnis (2008), k^m-anonymity.
    Misleads when everybody in a class has the same sensitive value (see `AttributeDisclosure`, `rules.Diversity`) or
    when the file was perturbed. Cost: O(cells) for each subset of the keys; of K keys there are K over m.

    >>> import polars as pl
    >>> table = pl.DataFrame({"sex": ["f", "f", "m"], "age": [30, 31, 30], "n": [3, 3, 2]})
    >>> cells = Cells.of(table)
    >>> KAnonymity(3).measure(cells, cells).number, KAnonymity(3, subsets=1).measure(cells, cells).number
    (2.0, 2.0)
    """

    k: int = 3
    subsets: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("k", self.k), ("subsets", self.subsets)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ParameterError(f"{name} must be a whole number, at least 1, got {value!r}.")

    def by(self, roles: Roles) -> tuple[str, ...]:
        return roles.keys

    def measure(self, released: Records | Cells, original: Records | Cells) -> Score:
        if isinstance(released, Records) and released.synthetic:
            return not_applicable(label(self), "lower")
        cells = as_cells(released, self.by(released.roles)) if isinstance(released, Records) else released
        smallest = self._smallest(cells)
        score = cell_score(label(self), released, cells, np.where(smallest < self.k, 1.0, 0.0))
        behind = cells.table.with_columns(smallest=smallest, risk=np.where(smallest < self.k, 1.0, 0.0))
        return replace(score, cells=lambda: behind)

    def _smallest(self, cells: Cells) -> Integers:
        """The size of each cell's smallest class."""
        if self.subsets is None or self.subsets >= len(cells.by):
            return cells.alike[0]
        found = np.full(len(cells), np.iinfo(np.int64).max)
        for columns in self._subsets(cells):
            ids, _ = group([cells.cube.codes[cells.place(c)] for c in columns], [len(cells.values(c)) for c in columns])
            found = np.minimum(found, cells.margin(columns).alike[0][ids])
        return found

    def _subsets(self, cells: Cells) -> Iterator[tuple[str, ...]]:
        assert self.subsets is not None
        many = comb(len(cells.by), self.subsets)
        if many > MOST:
            raise ParameterError(f"There are {many:,} ways to take {self.subsets} of {len(cells.by)} keys: too many.")
        return combinations(cells.by, self.subsets)
