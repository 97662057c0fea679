"""How closely an attacker can bound the sensitive cells of a table, whatever was done to protect it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise.data.cells import amount
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Booleans, Floats
from equipoise.methods.method import Rule
from equipoise.methods.protection_levels import levels
from equipoise.tables.audits.attacker_intervals import too_close
from equipoise.tables.audits.changed_tables import CHANGING_METHODS, narrowed
from equipoise.tables.audits.suppressed_cells import intervals


@dataclass(frozen=True, eq=False, repr=False)
class Exposure:
    """For every cell its value x, the attacker's interval [low, high] and the levels that it needs below and above."""

    sensitive: Booleans
    value: Floats
    low: Floats
    high: Floats
    below: Floats
    above: Floats
    notes: tuple[str, ...] = ()

    @cached_property
    def exposed(self) -> Booleans:
        """Sensitive cells whose interval does not reach from x - below to x + above."""
        return self.sensitive & too_close(self.value, self.low, self.high, self.below, self.above)

    @cached_property
    def shortfall(self) -> Floats:
        """The share of [x - below, x + above] that the attacker can exclude; 0 for cells that are not exposed."""
        lacking = np.maximum(0.0, self.below - (self.value - self.low))
        lacking += np.maximum(0.0, self.above - (self.high - self.value))
        needed = self.below + self.above
        return np.divide(lacking, needed, out=np.zeros(len(needed)), where=self.exposed & (needed > 0))


def exposure(released: Table, original: Table, rule: Rule) -> Exposure:
    """What an attacker can compute from the released table of the cells that the rule calls sensitive in the original.

    A cell published as it is is known. Suppressed cells have the interval of `suppressed_cells.intervals`, changed ones
    that of `changed_tables.narrowed`. Cost: two linear programs for each cell that is not known, at most.
    """
    value, distances = amount(original), levels(rule, original)
    low, high, notes = _ranges(released)
    below, above = (distances[side].to_numpy() for side in ("lower", "upper"))
    return Exposure(rule.flag(original).to_numpy(), value, low, high, below, above, notes)


def _ranges(released: Table) -> tuple[Floats, Floats, tuple[str, ...]]:
    """The attacker's interval of every cell, and what it does not count with."""
    if "published" not in released.more.columns:
        return amount(released), amount(released), ()
    if released.history and released.history[-1].mask in CHANGING_METHODS:
        return narrowed(released)
    union, ranges = intervals([released])
    return ranges.lower[union.places[0]], ranges.upper[union.places[0]], ()
