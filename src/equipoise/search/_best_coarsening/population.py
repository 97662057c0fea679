"""k-map on the lattice: how many people of a population are in each class of a node."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from equipoise.coarsening.cells_at_nodes import Levels
from equipoise.coarsening.coded_levels import CodedLevels
from equipoise.coarsening.lattice import Lattice
from equipoise.data.cells import Cells
from equipoise.data.levels import ORIGINAL
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import ParameterError
from equipoise.methods.protection_levels import Both, Either
from equipoise.methods.sensitive_values import Merging
from equipoise.rules import KMap


@dataclass(frozen=True, eq=False, repr=False)
class PeopleInClasses:
    """`KMap` with its population counted once: a row for each combination of keys, coded as the ladders code them."""

    merging: ClassVar[Merging] = "any"
    k: int
    codes: Mapping[str, Integers]
    people: Floats

    @classmethod
    def of(cls, rule: KMap, cells: Cells) -> "PeopleInClasses":
        register = rule.register(cells)
        codes = {}
        for key in cells.by:
            _, place = CodedLevels.of(key, cells.values(key), cells.counts(key), cells.hierarchies.get(key))
            codes[key] = place[_positions(register[key], cells.values(key))]
        return cls(rule.k, codes, register["__eq_people"].to_numpy())

    def unsafe_at(self, lattice: Lattice, levels: Levels, classes: Cells) -> Integers:
        """Which classes of a node have fewer than k people. O((classes + people) log)."""
        steps = zip(lattice.ladders, levels, strict=True)
        register = [ladder.steps[level][self.codes[ladder.key]] for ladder, level in steps]
        codes = [np.concatenate(pair) for pair in zip(classes.cube.codes, register, strict=True)]
        people = np.concatenate([np.zeros(len(classes)), self.people])
        places = [classes.by.index(key) for key in lattice.open]
        size = KMap.people_alike(classes.cube.axes, codes, people, places)[: len(classes)]
        return np.maximum(size, classes.alike[0]) < self.k


def count_people(rule: Any, cells: Cells, keys: tuple[str, ...]) -> Any:
    """The rule with the population of every `KMap` in it counted by the keys, ready for the search."""
    if isinstance(rule, Either | Both):
        return type(rule)(*(count_people(part, cells, keys) for part in rule.rules))
    if not isinstance(rule, KMap):
        return rule
    if rule.coarsen:
        raise ParameterError("What k_map is coarsened to is what is looked for: leave coarsen out.")
    return rule if rule.population is None else PeopleInClasses.of(rule, cells.margin(keys))


def suppressions(rule: Any, levels: Mapping[str, str]) -> tuple[Any, Any]:
    """The rule in two: what compares original values with a population, and so goes before the recodes; the rest."""
    parts = rule.rules if isinstance(rule, Either) else (rule,)
    before = [replace(part, coarsen=_texts(levels)) for part in parts if _compares(part)]
    after = [part for part in parts if not _compares(part)]
    return _joined(before), _joined(after)


def _compares(rule: Any) -> bool:
    if isinstance(rule, Both) and any(map(_compares, rule.rules)):
        raise ParameterError("With suppressed records k_map with a population cannot be joined by &: join it by |.")
    return isinstance(rule, KMap) and rule.population is not None


def _texts(levels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{key}={level}" for key, level in levels.items() if level != ORIGINAL)


def _joined(rules: list[Any]) -> Any:
    return None if not rules else rules[0] if len(rules) == 1 else Either(*rules)


def _positions(column: pl.Series, values: pl.Series) -> Integers:
    """The place of each value of a column among distinct values."""
    places = pl.DataFrame({"value": values, "place": np.arange(len(values))})
    return (
        column.to_frame("value")
        .join(places, on="value", how="left", nulls_equal=True, maintain_order="left")["place"]
        .to_numpy()
    )
