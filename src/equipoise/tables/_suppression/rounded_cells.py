"""Rounding of the cells that a suppression publishes."""

from typing import TYPE_CHECKING

import numpy as np

from equipoise.data.tables.additivity import Additive
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import additive
from equipoise.ground.arrays import Booleans, Floats
from equipoise.tables._controlled_rounding import controlled, split

if TYPE_CHECKING:
    from equipoise.tables.suppress import Suppress


def rounded_published(table: Table, hidden: Booleans, mask: "Suppress") -> Floats:
    """Multiples of the base for the published cells, NaN for hidden ones.

    Cells go to a multiple next to them, as near as can be so that relations between published cells alone still hold;
    where that cannot be, or is not asked for, each to the nearest. It is a function of the published values alone, so
    that nobody learns more of hidden cells than from these: the audit of the pattern holds.
    """
    relations, values = additive(table), np.where(hidden, 0.0, table.published_values)
    shown = np.asarray(abs(relations.matrix) @ hidden.astype(np.float64)) == 0
    own = Additive(relations.matrix[shown], relations.totals[shown], np.ones(int(shown.sum()), dtype=np.bool_))
    base = mask.round or 1
    low, part = split(values, base)
    adds_up = mask.rounding == "controlled"
    solution = controlled(own, low, part, np.full(len(values), 0.5), mask.seconds) if adds_up else None
    multiples = np.round(values / base) if solution is None else solution.multiples
    return np.where(hidden, np.nan, base * multiples)
