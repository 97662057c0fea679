"""l-diversity: enough different, well-spread sensitive values in each class."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from equipoise.data.equivalence_classes import Split
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import ParameterError, shown
from equipoise.methods.parameters import above
from equipoise.methods.sensitive_values import TIE_TOLERANCE, Attribute, Merging, Others, check


@dataclass(frozen=True, slots=True)
class Diversity(Attribute):
    """A class is unsafe when the sensitive values of its records are fewer than `l`, or dominated by few (l-diversity).

    With r_1 >= r_2 >= ... the records of each value in the class and p_i = r_i / n: `distinct` needs at least l values;
    `entropy` needs - sum p_i log p_i >= log l (l need not be whole); `recursive` needs r_1 < c (r_l + r_(l+1) + ...).
    A missing sensitive value counts as a value. With several `sensitive` columns each must hold, among people with
    equal keys, or with `others="known"` also with equal other sensitive values. Coarsening: more records never spoil a
    class that is diverse by `distinct`; by the others classes stay safe when all that are merged were.

    Source: Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam (2007), *l-diversity*.
    Misleads when values are different words for much the same, or one is rare in the file: see Closeness.
    Cost: O(cells), O(cells log cells) for `recursive`.

    >>> ill = eq.Cells.of(pl.DataFrame({"town": ["a", "a", "b"], "ill": ["flu", "gout", "flu"], "n": [2, 1, 4]}))
    >>> Diversity("ill", 2).flag(ill).to_list()
    [False, False, True]
    """

    sensitive: tuple[str, ...]
    l: float = 2  # noqa: E741
    kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: float | None = None
    others: Others = "apart"

    def __post_init__(self) -> None:
        check(self)
        above(self.l, "l", 1, strict=False)
        if self.kind != "entropy" and self.l != int(self.l):
            raise ParameterError(f"l must be a whole number for kind={self.kind!r}, got {shown(self.l)}.")
        if (self.kind == "recursive") != (self.c is not None):
            raise ParameterError("c goes with kind='recursive', and must be given there.")
        if self.c is not None:
            above(self.c, "c")

    @property
    def merging(self) -> Merging:
        return "any" if self.kind == "distinct" and self.others == "apart" else "safe" if self.others == "apart" else ""

    def within(self, split: Split) -> Integers:
        if self.kind == "distinct":
            return split.add((split.n > 0).astype(np.float64)) < self.l
        return self._entropy(split) if self.kind == "entropy" else self._recursive(split)

    def _entropy(self, split: Split) -> Integers:
        p = split.shares
        bits = -split.add(p * np.log(np.maximum(p, 1e-300)))
        return bits < np.log(self.l) - TIE_TOLERANCE

    def _recursive(self, split: Split) -> Integers:
        assert self.c is not None
        order = np.lexsort((-split.n, split.ids))
        ids, n = split.ids[order], split.n[order].astype(np.float64)
        rank = np.arange(len(ids)) - np.searchsorted(ids, ids)
        first = np.bincount(ids, weights=np.where(rank == 0, n, 0), minlength=split.size)
        rest = np.bincount(ids, weights=np.where(rank >= self.l - 1, n, 0), minlength=split.size)
        safe: Integers = first < self.c * rest * (1 - TIE_TOLERANCE)
        return ~safe
