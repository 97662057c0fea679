"""Blank keys that other members of a household show: any reader of the release can fill them in."""

from dataclasses import replace

import polars as pl

from equipoise.data import engines
from equipoise.data.people import MIN_HOUSEHOLD_SHARE
from equipoise.data.records import Records

BLANK_MARK = "(blank) "
"""Before a value that stands in another member's row."""


def filled_by_members(released: Records, keys: tuple[str, ...]) -> Records:
    """A release with the keys of the dwelling filled in that a mask blanked for some members only. O(records).

    A key is the dwelling's where nearly all households that show it several times show one value. What is filled in is
    marked: who knows the method also sees that the row had a blank.

    >>> from equipoise.data.records import Law
    >>> from equipoise.data.roles import Roles
    >>> table = pl.DataFrame({"home": [1, 1, 2, 2], "roof": ["tin", None, "tile", "tile"]})
    >>> records = Records.of(table, Roles("roof", household="home"))
    >>> blanked = records.with_frame(table, Law("blanked", ("roof",), "one roof blanked"))
    >>> filled_by_members(blanked, ("roof",)).collect()["roof"].to_list()
    ['tin', '(blank) tin', 'tile', 'tile']
    """
    home, changed = released.roles.household, _changed(released)
    columns = [key for key in keys if key in changed]
    if home is None or not columns:
        return released
    table = released.collect()
    dwelling = [key for key in columns if table[key].null_count() and _of_dwelling(table, home, key)]
    filled = [_filled(key, home) for key in dwelling]
    return replace(released, frame=engines.like(released.frame, table.with_columns(filled))) if dwelling else released


def _filled(key: str, home: str) -> pl.Expr:
    """The key as text, with its blanks as other members show them."""
    text = pl.col(key).cast(pl.String)
    shown = pl.when(pl.col(home).is_not_null()).then(pl.lit(BLANK_MARK) + text.drop_nulls().first().over(home))
    return pl.coalesce(text, shown).alias(key)


def _changed(released: Records) -> set[str]:
    """Columns of masks that do not only recode."""
    return {column for law in released.history if not law.coarsens for column in law.columns}


def _of_dwelling(table: pl.DataFrame, home: str, key: str) -> bool:
    several = table.select(home, key).drop_nulls().group_by(home).agg(pl.len(), pl.col(key).n_unique().alias("values"))
    equal = several.filter(pl.col("len") > 1)["values"] == 1
    return len(equal) > 0 and int(equal.sum()) >= MIN_HOUSEHOLD_SHARE * len(equal)
