"""What rules about sensitive values share: which columns, within which classes, and what merging classes does to them.

Merging matters to a search over coarsenings. If a class that holds a safe one is always safe ("any"), the records in
unsafe classes can only become fewer as keys get coarser. If only classes that are all safe make a safe one ("safe"),
that holds for files without an unsafe class. "" promises nothing.
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
from equipoise.data.roles import names
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import ParameterError
from equipoise.methods.protection_levels import Both, Either, Together

Merging = Literal["any", "safe", ""]
Others = Literal["apart", "known"]
TIE = 1e-9
"""A number this near its limit is on it."""


class Attribute(Together, ABC):
    """A rule about the values of sensitive columns within classes of equal keys.

    A class is unsafe when one of the columns is. With `others="known"` a column is looked at among people whose other
    sensitive values are equal too (a remark of Machanavajjhala et al. 2007): an intruder may know those.
    """

    __slots__ = ()
    sensitive: Any
    others: Any
    merging: Any

    @abstractmethod
    def within(self, split: Split) -> Integers:
        """Which classes are unsafe by one column."""

    def unsafe(self, classes: Classes) -> Integers:
        """Which classes are unsafe."""
        classes = classes.together()
        if classes.matched is not None:
            raise ParameterError(
                "Rules about sensitive values take a missing key as a category here: use missing='category'."
            )
        found = np.zeros(len(classes), dtype=np.bool_)
        for column in self.sensitive:
            rest = tuple(c for c in self.sensitive if c != column) if self.others == "known" else ()
            if rest:
                split, parent = classes.finer(column, rest)
                found[parent[self.within(split)]] = True
            else:
                found |= self.within(classes.split(column))
        return found

    def flag(self, cells: Cells) -> pl.Series:
        """Cells counted by the keys and the sensitive columns: all cells of an unsafe class are flagged."""
        classes = Classes.of(cells, self.sensitive)
        return pl.Series("unsafe", self.unsafe(classes)[classes.ids])

    def explain(self, cell: Mapping[str, Any]) -> str:
        return "It depends on all cells of the class: flag a table to know."


def check(rule: Any) -> None:
    """Column names as a tuple, and a known word for the other columns."""
    object.__setattr__(rule, "sensitive", names(rule.sensitive, "sensitive"))
    if not rule.sensitive:
        raise ParameterError("Name at least one sensitive column.")
    if rule.others not in ("apart", "known"):
        raise ParameterError(f"others must be 'apart' or 'known', got {rule.others!r}.")


def above(value: Any, name: str, least: float, strict: bool = True) -> None:
    """Refuse what is not a number above (or at) a bound."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
    if not fits or value < least or (strict and value == least):
        raise ParameterError(
            f"{name} must be a number {'above' if strict else 'of at least'} {least:g}, got {value!r}."
        )


def merging(rule: Any) -> Merging:
    """What merging classes does to a rule, also to rules that were joined."""
    if isinstance(rule, Either):
        kinds = {merging(part) for part in rule.rules}
        return "" if "" in kinds else "safe" if "safe" in kinds else "any"
    if isinstance(rule, Both):
        return "any" if {merging(part) for part in rule.rules} == {"any"} else ""
    found: Merging = getattr(rule, "merging", "")
    return found


def sensitive_of(rules: Sequence[Any]) -> tuple[str, ...]:
    """The sensitive columns that rules look at, once each."""
    found: list[str] = []
    for rule in rules:
        inner = rule.rules if isinstance(rule, Either | Both) else ()
        found += sensitive_of(inner) if inner else getattr(rule, "sensitive", ())
    return tuple(dict.fromkeys(found))


def chosen(rule: Any, data: Records, keys: Sequence[str], table: pl.DataFrame) -> Integers:
    """Which records of a table are in unsafe classes of equal keys, counted in the whole data."""
    cells = count(data, tuple(dict.fromkeys((*keys, *sensitive_of([rule])))))
    found: Integers = flagged(rule, cells, keys)[cell_of(table, cells)]
    return found


def flagged(rule: Any, cells: Cells, keys: Sequence[str]) -> Integers:
    """Which cells are in classes of equal keys that a rule calls unsafe; the cells may be split by sensitive columns.

    A rule that looks at cells is asked about those of the keys alone. O(cells log cells).
    """
    if isinstance(rule, Either | Both):
        parts = [flagged(part, cells, keys) for part in rule.rules]
        joined: Integers = np.any(parts, axis=0) if isinstance(rule, Either) else np.all(parts, axis=0)
        return joined
    own = sensitive_of([rule])
    inner = tuple(column for column in cells.by if column in own or column not in keys)
    classes = Classes.of(cells, inner)
    if hasattr(rule, "unsafe"):
        found: Integers = rule.unsafe(classes)[classes.ids]
        return found
    told: Integers = rule.flag(cells.margin(tuple(c for c in cells.by if c not in inner))).to_numpy()[classes.ids]
    return told
