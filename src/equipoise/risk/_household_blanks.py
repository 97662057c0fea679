"""Blank keys that other members of a household tell: a blank roof beside a sister's roof hides nothing."""

from dataclasses import replace

import narwhals as nw
import polars as pl

from equipoise.data.records import Records

MIN_EQUAL_SHARE = 0.5
"""Share of the households with several values in which all are equal, from which on a key is one of the household."""
BLANK_MARK = "(blank) "
"""Before a value that stands in another member's row: the row is still one with a blank."""


def refilled(records: Records, by: tuple[str, ...]) -> Records:
    """The records with blank keys of households as other members tell them, marked, so that classes are what is seen.

    A key is the household's where its values agree in most households that have several. Without a household role or a
    blank the records as they are. One pass over the records.

    >>> import equipoise as eq
    >>> table = pl.DataFrame({"home": [1, 1, 2, 2], "roof": ["tile", None, "straw", "straw"]})
    >>> refilled(eq.read(table, eq.Roles("roof", household="home")), ("roof",)).collect()["roof"].to_list()
    ['tile', '(blank) tile', 'straw', 'straw']
    """
    home = records.roles.household
    keys = [key for key in by if key != home]
    if not home or not keys or home not in records.schema() or not _blank(records, keys):
        return records
    table = records.collect()
    filled = [column for key in keys if (column := _filled(table, key, home)) is not None]
    return replace(records, frame=nw.from_native(table.with_columns(filled).lazy())) if filled else records


def _blank(records: Records, keys: list[str]) -> bool:
    nulls = records.frame.select(nw.col(keys).null_count()).collect()
    return any(int(nulls[key].item()) for key in keys)


def _filled(table: pl.DataFrame, key: str, home: str) -> pl.Series | None:
    """The key with blanks filled in; None where it has none, or is none of the household's."""
    values = table.select(pl.col(home).alias("home"), pl.col(key).cast(pl.String).alias("key"))
    if not values["key"].null_count():
        return None
    told = pl.col("key").drop_nulls()
    homes = values.filter(pl.col("home").is_not_null()).group_by("home")
    homes_told = homes.agg(told.n_unique().alias("kinds"), told.len().alias("several"), told.first().alias("told"))
    several = homes_told.filter(pl.col("several") > 1)
    if not several.height or (several["kinds"] == 1).sum() < MIN_EQUAL_SHARE * several.height:
        return None
    joined = values.join(homes_told.filter(pl.col("kinds") == 1), on="home", how="left", maintain_order="left")
    return joined.select(pl.coalesce("key", pl.lit(BLANK_MARK) + pl.col("told")).alias(key)).to_series()
