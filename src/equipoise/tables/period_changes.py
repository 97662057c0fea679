"""Differences of a protected table to the last period's: which cells are newly suppressed or published, and changes."""

import polars as pl

from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import as_table
from equipoise.ground.errors import ParameterError
from equipoise.tables._suppression.last_period import last_period

SAME_NUMBER = 1e-11
"""Share within which two numbers are the same: files have twelve digits."""


def period_changes(table: Table, before: str) -> pl.DataFrame:
    """A row per cell of a protected table: its labels, `change`, and the numbers published `before` and `now`.

    `before` is the released table of the last period, its folder or file. `change` is newly suppressed, newly
    published, changed, unchanged, suppressed in both, or new where the last period had no such cell. Both numbers are
    published ones: the frame holds nothing that the two releases do not tell everybody.

    >>> import tempfile
    >>> from equipoise.ground.randomness import Draws
    >>> people = eq.Records.of(pl.DataFrame({"k": ["a"] * 9 + ["b"] * 4 + ["c"]}), eq.Roles("k"))
    >>> made = eq.tables.Suppress(eq.rules.MinCount(3)).apply(eq.table(people, "k"), Draws(1))
    >>> old = pl.DataFrame({"k": ["Total", "a", "b"], "published": [12, 8, 4]})
    >>> with tempfile.TemporaryDirectory() as place:
    ...     old.write_csv(f"{place}/table.csv")
    ...     period_changes(made, f"{place}/table.csv").rows()[2:]
    [('b', 'newly suppressed', 4.0, None), ('c', 'new', None, None)]
    """
    cells = as_table(table, "period_changes")
    if taken := {"change", "before", "now"} & set(cells.by):
        raise ParameterError(f"Differences say something else under {min(taken)!r}: rename that column.")
    rows = last_period(cells, before).with_columns(now=pl.Series(cells.published_values).fill_nan(None))
    hidden, was = pl.col("now").is_null(), pl.col("suppressed")
    change = (
        pl.when(was.is_null()).then(pl.lit("new"))
        .when(hidden & was).then(pl.lit("suppressed in both"))
        .when(hidden).then(pl.lit("newly suppressed"))
        .when(was).then(pl.lit("newly published"))
        .when((pl.col("now") - pl.col("before")).abs() <= SAME_NUMBER * pl.col("now").abs()).then(pl.lit("unchanged"))
        .otherwise(pl.lit("changed"))
    )  # fmt: skip
    return cells.table.select(cells.by).hstack(rows.select(change.alias("change"), "before", "now"))
