"""What an attacker can compute from a table whose numbers were changed: rounded, or moved by cell keys."""

import numpy as np
import polars as pl

from equipoise.core.codes import Floats, Integers
from equipoise.core.margins import Table
from equipoise.core.method import Rule
from equipoise.core.sensitivity import amount, levels
from equipoise.core.suppression import audit
from equipoise.core.tabular import additive

MOST = 2_000
"""Cells up to which the relations of the table are used to narrow the intervals."""
SMALL = 3
"""Cells with fewer contributors may not be computed exactly, where no rule says which are sensitive."""
SAFE = 1e-6
"""Share of its level by which an interval may fall short: rounding, not disclosure."""


def changed_intervals(table: Table, rule: Rule | None) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The interval of every cell that needs protection, given the published numbers and how far each may be changed.

    The attacker knows the law (a base, a largest change), that nothing is negative and, for up to `MOST` cells, all
    relations: two linear programs for each cell. Misleads when he knows that counts are whole, or how likely a change
    is: then the interval is not all that he knows.
    """
    low, high = _limits(table)
    value = amount(table)
    notes: tuple[str, ...] = ()
    low, high = np.minimum(low, value), np.maximum(high, value)
    if len(table) <= MOST:
        found = audit(additive(table), value, np.ones(len(table), dtype=np.bool_), low=low, high=high)
        low, high = found.lower, found.upper
    else:
        notes = (f"The relations of a table of more than {MOST:,} cells were not used to narrow its intervals.",)
    return _verdicts(table, rule, low, high), notes


def _verdicts(table: Table, rule: Rule | None, low: Floats, high: Floats) -> pl.DataFrame:
    value = amount(table)
    asked, lower, upper = _wanted(table, rule)
    slack = SAFE * np.maximum(1.0, upper)
    short = asked & ((high < value + upper - slack) | (low > value - lower + slack))
    told = table.table.select(*table.by, "status").with_columns(
        value=value, lower=low, upper=high,
        exact=pl.Series(asked & (high - low <= 1e-9 * np.maximum(1.0, value))), exposed=pl.Series(short),
    )  # fmt: skip
    return told.filter(pl.Series(asked))


def _wanted(table: Table, rule: Rule | None) -> tuple[Integers, Floats, Floats]:
    """Which cells need protection, and how far each way."""
    if rule is None:
        few = table.known("contributors")
        nothing = np.zeros(len(table))
        return (few > 0) & (few < SMALL), nothing, nothing
    known = levels(rule, table)
    return rule.flag(table).to_numpy(), known["lower"].to_numpy(), known["upper"].to_numpy()


def _limits(table: Table) -> tuple[Floats, Floats]:
    """What each cell can be by itself: as far from what is published as the law allows."""
    law, told = table.history[-1], table.told
    if law.mask == "cell_key":
        weight = np.divide(table.total, table.n, out=np.zeros(len(table)), where=table.n > 0)
        far = law.parameters["most"] * weight
        return np.maximum(told - far, 0.0), told + far
    base = float(law.parameters["base"])
    if law.parameters["kind"] == "small":
        return _small(table, told, base)
    far = base * (1 + int(law.parameters.get("beyond", 0)))
    return np.maximum(told - far, 0.0), told + far


def _small(table: Table, told: Floats, base: float) -> tuple[Floats, Floats]:
    """Inner counts published as 0 or the base may be any below it; other inner ones are true, margins are free."""
    hidden, inner = (told == 0) | (told == base), table.inner
    low = np.where(inner & ~hidden, told, 0.0)
    high = np.where(inner, np.where(hidden, base, told), np.inf)
    return low, high
