"""Audit of suppressed cells: what an attacker can compute from tables that suppress them, one or several."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.tables.linked_tables import Union
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import as_table
from equipoise.ground.errors import DataError, ParameterError
from equipoise.methods.method import Rule
from equipoise.methods.protection_levels import levels
from equipoise.tables.audits.attacker_intervals import AttackerIntervals
from equipoise.tables.audits.attacker_intervals import audit as intervals_of

MAX_WHOLE = 300
"""Suppressed cells up to which counts are audited in whole numbers."""
MAX_WHOLE_CELLS = 3_000
"""Cells and classes of records of linked tables up to which counts are audited in whole numbers."""
LEVEL_TOLERANCE = 1e-6
"""Share of its level by which an interval may fall short: rounding, not disclosure."""


def audit(table: Table, rule: Rule | None = None, *, whole: bool | None = None) -> pl.DataFrame:
    """The exact interval an attacker can compute for every suppressed cell of a table.

    One row per suppressed cell: its labels, `status`, true `value`, `lower` and `upper`, the least and the most it can
    be given all that is published, `exact` where they are the same, and `exposed` where the interval does not reach the
    protection levels of the `rule` (that of the suppression unless given). These are data: internal.

    With `whole` tables of counts are searched in whole numbers, which may be narrower; done unless told for up to 300
    suppressed cells. Misleads when the attacker knows more than that values are not negative and empty cells zero; of
    larger tables of counts in three and more dimensions the linear intervals can be too wide.
    Cost: at most two linear programs for each suppressed cell, split into what hangs together.

    >>> from equipoise.ground.randomness import Draws
    >>> people = eq.Records.of(pl.DataFrame({"k": ["a"] * 9 + ["b"] * 4 + ["c"]}), eq.Roles("k"))
    >>> made = eq.tables.Suppress(eq.rules.MinCount(3)).apply(eq.table(people, "k"), Draws(1))
    >>> audit(made).select("k", "lower", "upper", "exposed").rows()
    [('b', 0.0, 5.0, False), ('c', 0.0, 5.0, False)]
    """
    union, ranges = intervals([as_table(table, "audit")], whole)
    return verdicts(table, union.places[0], ranges, rule or rule_of(table))


def difference(old: Table, new: Table | Sequence[Table], rule: Rule | None = None) -> pl.DataFrame:
    """What the comparison of two releases, or of overlapping tables, gives away: an audit over all of them together.

    A cell is the set of records that it holds, whatever its columns and labels: it is known when any table publishes a
    cell with the same records and values, and all sums that follow hold (`Union`). Of ready tables, whose records are
    not known, cells are the same by their columns and labels, and must have the same value. One row per cell that a
    table suppresses, as in `audit`, with `published`, whether another table publishes it; a table that nothing was done
    to publishes everything.
    """
    others = [new] if isinstance(new, Table) else list(new)
    if not others:
        raise ParameterError("Give at least one other table to compare with.")
    return compared([as_table(table, "difference") for table in (old, *others)], rule)[1]


def compared(tables: Sequence[Table], rule: Rule | None = None) -> tuple[Union, pl.DataFrame]:
    """Tables as one system, and a row per cell that one of them suppresses (`difference`)."""
    union, ranges = intervals(tables)
    parts = []
    for number, (table, place) in enumerate(zip(tables, union.places, strict=True)):
        cells = verdicts(table, place, ranges, rule or rule_of(table))
        public = ~ranges.suppressed[place]
        hidden = pl.Series(table.published_values).is_nan().to_numpy()
        sensitive = pl.col("status") == "sensitive" if "status" in cells.columns else pl.lit(value=False)
        parts.append(
            cells.with_columns(pl.Series("published", public[hidden]), pl.lit(number).alias("table"))
            .with_columns(exact=pl.col("exact") | pl.col("published"))
            .with_columns(exposed=pl.col("exposed") | (pl.col("published") & sensitive))
        )
    return union, pl.concat(parts, how="diagonal")


def intervals(tables: Sequence[Table], whole: bool | None = None) -> tuple[Union, AttackerIntervals]:
    """The attacker's interval of every cell that no table publishes."""
    union = Union.of(tables)
    hidden = ~union.gathered([~np.isnan(table.published_values) for table in tables])
    changes = sum(int((np.abs(table.published_values - union.values[p]) > 1e-9 * np.maximum(1, union.values[p])).sum())
                  for table, p in zip(tables, union.places, strict=True))  # fmt: skip
    if changes:
        raise DataError(f"{changes:,} published cells differ from the table's values: audit is for suppressed cells.")
    counts = bool((union.values == np.round(union.values)).all()) and all(t.measured is None for t in tables)
    unknown = int((hidden & ~union.atoms).sum())
    exact = counts and unknown <= MAX_WHOLE and union.cells <= MAX_WHOLE_CELLS if whole is None else whole
    if exact and not counts:
        raise ParameterError("Only a table of whole counts can be audited in whole numbers.")
    high = np.where(union.empty, 0.0, np.inf)
    return union, intervals_of(union.additive, union.values, hidden, high=high, integer=exact, targets=~union.atoms)


def verdicts(table: Table, place: Any, ranges: AttackerIntervals, rule: Rule | None) -> pl.DataFrame:
    """A row per suppressed cell: its interval, whether it is known exactly, and whether within its protection level."""
    hidden = np.isnan(table.published_values)
    lower, upper, value = ranges.lower[place], ranges.upper[place], table.numbers("value")
    exposed = np.zeros(len(table), dtype=np.bool_)
    if rule is not None:
        distances = levels(rule, table)
        slack = LEVEL_TOLERANCE * np.maximum(1.0, distances["upper"].to_numpy())
        high, low = value + distances["upper"].to_numpy(), value - distances["lower"].to_numpy()
        exposed = rule.flag(table).to_numpy() & ((upper < high - slack) | (lower > low + slack))
    cells = table.table.select(*table.by, *(("status",) if "status" in table.more.columns else ()), value=value)
    return cells.with_columns(
        lower=lower, upper=upper, exact=pl.Series(ranges.disclosed()[place]), exposed=pl.Series(exposed)
    ).filter(pl.Series(hidden))


def rule_of(table: Table) -> Rule | None:
    """The rule that the table was last protected by."""
    laws = [law.detail for law in table.history if law.mask == "suppress"]
    rule = getattr(laws[-1], "rule", None) if laws else None
    return rule if isinstance(rule, Rule) else None
