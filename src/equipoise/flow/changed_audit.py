"""The audit of a table whose numbers were changed: the interval of every cell that needs protection."""

import numpy as np
import polars as pl

from equipoise.core.codes import Floats
from equipoise.core.exposure import Exposure
from equipoise.core.linear import Booleans
from equipoise.core.margins import Table
from equipoise.core.method import Rule
from equipoise.core.perturbed import narrowed
from equipoise.core.sensitivity import amount, levels

SMALL = 3
"""Cells with fewer contributors may not be computed exactly, where no rule says which are sensitive."""


def changed_intervals(table: Table, rule: Rule | None) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """A row per cell that needs protection: what it can be given what is published and how far each may be changed.

    Whose intervals these are stands at `core.perturbed.narrowed`.
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
