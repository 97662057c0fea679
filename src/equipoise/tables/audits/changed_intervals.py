"""The audit of a table whose numbers were changed: the interval of every cell that needs protection."""

import numpy as np
import polars as pl

from equipoise.data.cells import amount
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Booleans, Floats
from equipoise.methods.method import Rule
from equipoise.methods.protection_levels import levels
from equipoise.tables.audits.changed_tables import narrowed
from equipoise.tables.audits.exposure import Exposure

SMALL = 3
"""Cells with fewer contributors may not be computed exactly, where no rule says which are sensitive."""


def changed_intervals(table: Table, rule: Rule | None) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """A row per cell that needs protection: what it can be given what is published and how far each may be changed.

    Whose intervals these are stands at `tables.audits.changed_tables.narrowed`.
    """
    low, high, notes = narrowed(table)
    found = Exposure(*_wanted(table, rule, low, high))
    exact = found.sensitive & (high - low <= 1e-9 * np.maximum(1.0, found.value))
    told = table.table.select(*table.by, "status").with_columns(
        value=found.value, lower=low, upper=high, exact=pl.Series(exact), exposed=pl.Series(found.exposed)
    )
    return told.filter(pl.Series(found.sensitive)), notes


def _wanted(
    table: Table, rule: Rule | None, low: Floats, high: Floats
) -> tuple[Booleans, Floats, Floats, Floats, Floats, Floats]:
    """Which cells need protection, what is known of them, and how far each way they need it."""
    if rule is None:
        few, nothing = table.known("contributors"), np.zeros(len(table))
        return (few > 0) & (few < SMALL), amount(table), low, high, nothing, nothing
    known = levels(rule, table)
    below, above = (known[side].to_numpy() for side in ("lower", "upper"))
    return rule.flag(table).to_numpy(), amount(table), low, high, below, above
