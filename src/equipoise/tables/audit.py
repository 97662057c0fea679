"""What an attacker can compute from tables that were published."""

from collections.abc import Sequence

import polars as pl

from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import as_table
from equipoise.ground.errors import ParameterError
from equipoise.methods.method import Rule
from equipoise.tables._suppression.suppress_tables import intervals, rule_of, verdicts


def audit(table: Table, rule: Rule | None = None, *, whole: bool | None = None) -> pl.DataFrame:
    """The exact interval an attacker can compute for every withheld cell of a table.

    One row per withheld cell: its labels, `status`, true `value`, `lower` and `upper`, the least and the most it can be
    given all that is published, `exact` where they are the same, and `exposed` where the interval does not reach the
    protection levels of the `rule` (that of the suppression unless given). These are data: internal.

    With `whole` tables of counts are searched in whole numbers, which may be narrower; done unless told for up to 300
    withheld cells. Misleads when the attacker knows more than that values are not negative and empty cells zero; of
    larger tables of counts in three and more dimensions the linear intervals can be too wide.
    Cost: at most two linear programs for each withheld cell, split into what hangs together.

    >>> from equipoise.ground.randomness import Draws
    >>> from equipoise.data.tables.table import table as tabulate
    >>> from equipoise.data.records import Records
    >>> from equipoise.data.roles import Roles
    >>> from equipoise.rules import MinCount
    >>> from equipoise.tables import Suppress
    >>> people = pl.DataFrame({"k": ["a"] * 9 + ["b"] * 4 + ["c"]})
    >>> made = Suppress(MinCount(3)).apply(tabulate(Records.of(people, Roles("k")), "k"), Draws(1))
    >>> audit(made).select("k", "lower", "upper", "exposed").rows()
    [('b', 0.0, 5.0, False), ('c', 0.0, 5.0, False)]
    """
    union, found, _ = intervals([as_table(table, "audit")], whole)
    return verdicts(table, union.places[0], found, rule or rule_of(table))


def difference(old: Table, new: Table | Sequence[Table], rule: Rule | None = None) -> pl.DataFrame:
    """What the comparison of two releases, or of overlapping tables, gives away: an audit over all of them together.

    A cell published in any of them is known. One row per cell that a table withholds, as in `audit`, with `published`,
    whether another table publishes it. Tables must be made from the same records; what they share must agree.
    """
    others = [new] if isinstance(new, Table) else list(new)
    if not others:
        raise ParameterError("Give at least one other table to compare with.")
    tables = [as_table(table, "difference") for table in (old, *others)]
    union, found, _ = intervals(tables)
    parts = []
    for number, (table, place) in enumerate(zip(tables, union.places, strict=True)):
        told = verdicts(table, place, found, rule or rule_of(table))
        known = ~found.suppressed[place]
        hidden = pl.Series(table.told).is_nan().to_numpy()
        parts.append(
            told.with_columns(pl.Series("published", known[hidden]), pl.lit(number).alias("table"))
            .with_columns(exact=pl.col("exact") | pl.col("published"))
            .with_columns(exposed=pl.col("exposed") | (pl.col("published") & (pl.col("status") == "sensitive")))
        )
    return pl.concat(parts, how="diagonal")
