"""Which cells of a table must stay uncertain and how far, and what an attacker is said to know of each beforehand."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.data.cells import amount, gross, may_be_negative
from equipoise.data.tables.a_priori import SAFE, SUPPRESSED, APriori, a_priori
from equipoise.data.tables.cell_status import structural
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Booleans, Floats
from equipoise.ground.errors import DataError
from equipoise.methods.method import Rule
from equipoise.methods.protection_levels import hides_zeros, levels, protection

if TYPE_CHECKING:
    from equipoise.tables.suppress import Suppress

FAR_OUT = 100.0
"""How many times the largest cell, without signs, a search lets cells move that an attacker knows no end of."""
WITHHELD_MARGIN = 0.2
"""Share of its value by which a cell withheld by hand stays uncertain both ways: the margin of `MinCount`."""


def suppression_of(table: Table) -> "Suppress | None":
    """The suppression that the table was last protected by, where it is known."""
    details = [law.detail for law in table.history if law.mask == "suppress"]
    return details[-1] if details and hasattr(details[-1], "rule") else None


def marks(table: Table, column: str | None) -> Booleans:
    """The cells that a column marks by a number other than 0; none without a column."""
    return np.zeros(len(table), dtype=np.bool_) if column is None else np.asarray(table.numbers(column) != 0)


def known_zeros(table: Table, rule: Rule | None) -> Booleans:
    """Cells that everybody knows to be empty: all empty ones, or where the rule hides them the structural zeros."""
    empty: Booleans = table.n == 0
    return empty & structural(table) if hides_zeros(rule, table) else empty


def limits_of(table: Table, columns: tuple[str, str] | None, zeros: Booleans) -> tuple[Floats, Floats]:
    """What the attacker knows of each cell beforehand: whether it may be negative, which are zero, the limits given."""
    low, high = np.where(may_be_negative(table) & ~zeros, -np.inf, 0.0), np.where(zeros, 0.0, np.inf)
    if columns is None:
        return low, high
    below, above = (table.numbers(name) for name in columns)
    return np.maximum(low, below), np.minimum(high, above)


def with_ends(tables: Sequence[Table], values: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Limits with ends far out for cells without any, for a search: what it finds within them is possible without.

    A program without ends may answer with a ray whose numbers no longer add up.
    """
    endless = np.isinf(low) & np.isinf(high)
    if not endless.any():
        return low, high
    far = FAR_OUT * max(1.0 * float(gross(table).max(initial=0.0)) for table in tables)
    return np.where(endless, values - far, low), np.where(endless, values + far, high)


def guards(table: Table, rule: Rule | None, mask: "Suppress | None") -> tuple[Booleans, Floats, Floats]:
    """Which cells are guarded, and how far below and above: by the rule, or because they are withheld by hand.

    A withheld cell keeps the share `WITHHELD_MARGIN` of its value both ways, as far as the attacker's own limits go.
    A-priori information goes before the rule: cells said to be safe are not guarded, levels that are given hold.
    """
    said = a_priori(table)
    flagged, below, above = np.zeros(len(table), dtype=np.bool_), np.zeros(len(table)), np.zeros(len(table))
    if rule is not None:
        distances = levels(rule, table)
        flagged = rule.flag(table).to_numpy()
        below, above = (distances[side].to_numpy() for side in ("lower", "upper"))
    by_hand = marks(table, mask.withhold if mask else None)
    if said is not None:
        flagged, by_hand = flagged & ~said.cells(SAFE), by_hand | said.cells(SUPPRESSED)
    withheld: Any = by_hand & (table.n > 0)
    value, (low, high) = amount(table), limits_of(table, mask.limits if mask else None, table.n == 0)
    margin = protection(withheld, WITHHELD_MARGIN * gross(table), table)
    fall, rise = (
        np.minimum(margin["lower"].to_numpy(), value - low),
        np.minimum(margin["upper"].to_numpy(), high - value),
    )
    flagged, below, above = flagged | withheld, np.maximum(below, fall), np.maximum(above, rise)
    return flagged, *(_stated_levels(flagged, below, above, said) if said is not None else (below, above))


def _stated_levels(flagged: Booleans, below: Floats, above: Floats, said: APriori) -> tuple[Floats, Floats]:
    """The levels with those that were given beforehand, which only cells that need protection can have."""
    given = ~np.isnan(said.lower)
    if (given & ~flagged).any():
        many = int((given & ~flagged).sum())
        raise DataError(f"Protection levels are given for {many:,} cells that are not sensitive: mark them u as well.")
    return np.where(given, said.lower, below), np.where(given, said.upper, above)
