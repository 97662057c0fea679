"""Columns beside the keys by which people are singled out: found, and put into words."""

from collections.abc import Collection

import polars as pl

from equipoise.data.records import Records
from equipoise.risk import RevealingColumns

MAX_REVEALED_SHARE = 0.05
"""The share of people that columns may single out before a policy must say what becomes of them."""
NO_COLUMNS = pl.DataFrame(schema={"column": pl.String, "beside": pl.String, "share": pl.Float64, "number": pl.Int64})


def revealing(released: Records, original: Records, *, above: float = MAX_REVEALED_SHARE) -> pl.DataFrame:
    """Columns that single out more than a share of the people, alone, and pairs of others that do so together.

    A row has the `column`, the one `beside` it in a pair, the `share` of people and their `number`, the largest first.
    Cost: that of `RevealingColumns`, without the pairs that are left out.

    >>> import equipoise as eq, polars as pl
    >>> records = eq.read(pl.DataFrame({"age": [1, 1, 2], "rent": [310, 425, 480]}), eq.Roles("age"))
    >>> revealing(records, records)["column"].to_list()
    ['rent']
    """
    if released.synthetic:
        return NO_COLUMNS
    table = RevealingColumns().table(released, original, alone=above)[0].filter(pl.col("share") > above)
    alone = table.filter(pl.col("beside").is_null())["column"].implode()
    pairs = pl.col("beside").is_not_null()
    return table.filter(~pairs | ~(pl.col("column").is_in(alone) | pl.col("beside").is_in(alone)))


def without(table: pl.DataFrame, columns: Collection[str]) -> pl.DataFrame:
    """The rows in which none of these columns takes part."""
    names = pl.Series(list(columns), dtype=pl.String).implode()
    return table.filter(~pl.col("column").is_in(names) & ~pl.col("beside").fill_null("").is_in(names))


def enough_columns(table: pl.DataFrame) -> tuple[str, ...]:
    """Columns that take part in every row: each that does so alone, and of pairs the one that is in most of them."""
    chosen: list[str] = table.filter(pl.col("beside").is_null())["column"].to_list()
    rest = without(table, chosen)
    while rest.height:
        most = pl.concat([rest["column"], rest["beside"].alias("column")]).value_counts(sort=True)
        chosen.append(sorted(most.filter(pl.col("count") == pl.col("count").max())["column"])[0])
        rest = without(rest, chosen)
    return tuple(chosen)


def column_words(table: pl.DataFrame) -> list[str]:
    """Each row in words: 'rent' (97 % of the people)."""
    return [
        f"{' and '.join(repr(name) for name in (column, beside) if name)}{' together' if beside else ''} ({share:.0%})"
        for column, beside, share, _ in table.iter_rows()
    ]
