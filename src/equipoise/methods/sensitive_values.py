"""Base of rules on sensitive values within equivalence classes, and their behaviour when classes merge.

Merging matters to a search over coarsenings. If a class that contains a safe one is always safe ("any"), the records
in unsafe classes can only decrease as keys get coarser. If only a merge of classes that are all safe is safe ("safe"),
that holds for files without an unsafe class. "" guarantees nothing.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, count
from equipoise.data.equivalence_classes import Classes, Split
from equipoise.data.moving_units import cell_of
from equipoise.data.records import Records
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import ParameterError
from equipoise.methods.parameters import check_fields
from equipoise.methods.protection_levels import Both, Either, Together

Merging = Literal["any", "safe", ""]
Others = Literal["apart", "known"]
TIE_TOLERANCE = 1e-9
"""A number this close to its limit counts as equal to it."""


class Attribute(Together, ABC):
    """Base of rules on the values of sensitive columns within equivalence classes (attribute disclosure).

    A class is unsafe when one of the columns is. With `others="known"` a column is examined among people whose other
    sensitive values are equal too (a remark of Machanavajjhala et al. 2007): an intruder may know those.
    """

    __slots__ = ()
    sensitive: Any
    others: Any

    @property
    def merging(self) -> Merging:
        """Merged from safe classes a class is safe, unless people are told apart by their other sensitive values."""
        return "safe" if self.others == "apart" else ""

    @abstractmethod
    def within(self, split: Split) -> Integers:
        """Flags of the classes that are unsafe by one column."""

    def unsafe(self, classes: Classes) -> Integers:
        """Flags of the unsafe classes."""
        classes = classes.together()
        if classes.matched is not None:
            raise ParameterError(
                "Rules about sensitive values take a missing key as a category here: use missing='category'."
            )
        flags = np.zeros(len(classes), dtype=np.bool_)
        for column in self.sensitive:
            rest = tuple(c for c in self.sensitive if c != column) if self.others == "known" else ()
            if rest:
                split, parent = classes.finer(column, rest)
                flags[parent[self.within(split)]] = True
            else:
                flags |= self.within(classes.split(column))
        return flags

    def flag(self, cells: Cells) -> pl.Series:
        """Cells counted by the keys and the sensitive columns: all cells of an unsafe class are flagged."""
        classes = Classes.of(cells, self.sensitive)
        return pl.Series("unsafe", self.unsafe(classes)[classes.ids])

    def explain(self, cell: Mapping[str, Any]) -> str:
        return "It depends on all cells of the class: flag a table to know."


def check(rule: Any) -> None:
    """Check the fields of a rule, which needs a sensitive column."""
    check_fields(rule)
    if not rule.sensitive:
        raise ParameterError("Name at least one sensitive column.")


def merging(rule: Any) -> Merging:
    """Behaviour of a rule, or of combined rules, when classes merge."""
    if isinstance(rule, Either):
        kinds = {merging(part) for part in rule.rules}
        return "" if "" in kinds else "safe" if "safe" in kinds else "any"
    if isinstance(rule, Both):
        return "any" if {merging(part) for part in rule.rules} == {"any"} else ""
    return getattr(rule, "merging", "")


def sensitive_of(rules: Sequence[Any]) -> tuple[str, ...]:
    """The sensitive columns of the rules, once each."""
    columns: list[str] = []
    for rule in rules:
        inner = rule.rules if isinstance(rule, Either | Both) else ()
        columns += sensitive_of(inner) if inner else getattr(rule, "sensitive", ())
    return tuple(dict.fromkeys(columns))


def chosen(rule: Any, data: Records, keys: Sequence[str], table: pl.DataFrame) -> Integers:
    """Flags of the records of a table in unsafe classes of equal keys, counted in the whole data."""
    cells = count(data, tuple(dict.fromkeys((*keys, *sensitive_of([rule])))))
    return flagged(rule, cells, keys)[cell_of(table, cells)]


def flagged(rule: Any, cells: Cells, keys: Sequence[str]) -> Integers:
    """Flags of the cells in classes of equal keys that a rule flags; cells may be split by sensitive columns.

    A rule on cells is applied to those of the keys alone. O(cells log cells).
    """
    if isinstance(rule, Either | Both):
        parts = [flagged(part, cells, keys) for part in rule.rules]
        return np.any(parts, axis=0) if isinstance(rule, Either) else np.all(parts, axis=0)
    own = sensitive_of([rule])
    inner = tuple(column for column in cells.by if column in own or column not in keys)
    classes = Classes.of(cells, inner)
    if hasattr(rule, "unsafe"):
        return rule.unsafe(classes)[classes.ids]
    return rule.flag(cells.margin(tuple(c for c in cells.by if c not in inner))).to_numpy()[classes.ids]
