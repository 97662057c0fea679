"""Blank keys that other members of a household show: any reader of the release can fill them in."""

from dataclasses import replace

import polars as pl

from equipoise.data import engines
from equipoise.data.aligned_files import aligned, released_people
from equipoise.data.cells import Cells
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.levels import as_text
from equipoise.data.people import MIN_EQUAL_SHARE, MIN_HOUSEHOLD_SHARE
from equipoise.data.records import Records
from equipoise.ground.arrays import inverse
from equipoise.ground.errors import EngineError

BLANK_MARK = "(blank) "
"""Before a value that stands in another member's row."""


def filled_by_members(released: Records, original: Records | Cells, keys: tuple[str, ...]) -> Records:
    """A release with the keys filled in that a mask blanked for some members and others show. O(records).

    A key is told by others where most households that show it several times show one value; where nearly all do, it is
    the dwelling's, and one that came missing is read there too. What is filled in is marked: who knows the method also
    sees that the row had a blank.

    >>> from equipoise.data.records import Law
    >>> from equipoise.data.roles import Roles
    >>> table = pl.DataFrame({"home": [1, 1, 2, 2], "roof": ["tin", None, "tile", "tile"]})
    >>> records = Records.of(table, Roles("roof", household="home"))
    >>> blanked = records.with_frame(table, Law("blanked", ("roof",), "one roof blanked"))
    >>> filled_by_members(blanked, records, ("roof",)).collect()["roof"].to_list()
    ['tin', '(blank) tin', 'tile', 'tile']
    """
    released = _beside_finest(released, original, keys)
    home, changed = released.roles.household, _changed(released)
    columns = [key for key in keys if key in changed]
    if home is None or not columns:
        return released
    table = released.collect()
    shares = {key: _equal_share(table, home, key) for key in columns if table[key].null_count()}
    told = [key for key in shares if shares[key] >= MIN_EQUAL_SHARE]
    if not told:
        return released
    soft = [key for key in told if shares[key] < MIN_HOUSEHOLD_SHARE]
    came = _came_missing(released, original, table, soft)
    filled = [_filled(key, home, came.get(key)) for key in told]
    return replace(released, frame=engines.like(released.frame, table.with_columns(filled)))


def blanks_as_values(released: Records, keys: tuple[str, ...]) -> Records:
    """A release in which a blank key is a value of its own, whatever the roles say, where a mask may have blanked it.

    That a blank could be anything is for who looks for the records that fit a person. Counted among the records
    themselves it is too kind: those of others would hide whoever shows all keys.
    """
    if released.roles.missing == "category" or not _changed(released) & {*keys}:
        return released
    return replace(released, roles=replace(released.roles, missing="category"))


def _filled(key: str, home: str, came: pl.Series | None) -> pl.Expr:
    """The key as text, with its blanks as other members show them, unless they came missing."""
    text = pl.col(key).cast(pl.String)
    member = pl.col(home).is_not_null() & (pl.lit(True) if came is None else ~pl.lit(came))
    shown = pl.when(member).then(pl.lit(BLANK_MARK) + text.drop_nulls().mode().sort().first().over(home))
    return pl.coalesce(text, shown).alias(key)


def _came_missing(
    released: Records, original: Records | Cells, table: pl.DataFrame, keys: list[str]
) -> dict[str, pl.Series]:
    """Where the original has no value, in the order of the released rows; empty where people cannot be followed."""
    return {column.name: column.is_null() for column in _originals(released, original, table, keys)}


def _originals(released: Records, original: Records | Cells, table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """The true keys in the order of the released rows; no columns where people cannot be followed."""
    if not keys or not isinstance(original, Records):
        return pl.DataFrame()
    try:
        old = aligned(released, released_people(released, original), tuple(keys))[1]
    except EngineError:
        return pl.DataFrame()
    name = released.roles.id
    return old[inverse(table[name].arg_sort().to_numpy())] if name else old


def _beside_finest(released: Records, original: Records | Cells, keys: tuple[str, ...]) -> Records:
    """Keys coarsened record by record, with the finest category that a member shows beside a coarser one.

    Only keys of which most households have one true value, and where the original has their hierarchies.
    """
    home, trees = released.roles.household, original.roles.hierarchies if isinstance(original, Records) else {}
    local = {column for law in released.history if law.mask == "local_recode" for column in law.columns}
    names = [key for key in keys if key in local and key in trees]
    if home is None or not names:
        return released
    table = released.collect()
    truth = _originals(released, original, table, names).with_columns(table[home].alias(home))
    shared = [key for key in names if key in truth.columns and _equal_share(truth, home, key) >= MIN_EQUAL_SHARE]
    refined = [_refined(table[key].cast(pl.String), truth[key], table[home], trees[key]) for key in shared]
    return replace(released, frame=engines.like(released.frame, table.with_columns(refined))) if shared else released


def _refined(released: pl.Series, true: pl.Series, home: pl.Series, tree: Hierarchy) -> pl.Series:
    """A released key beside the finest category of the household, where its own is at a higher level."""
    rung = pl.repeat(len(tree.levels), len(released), eager=True)
    for place, level in reversed([*enumerate(tree.levels)]):
        text = as_text(level.label(true))
        same = ((released == text) | (released == text + f" ({level.name})")).fill_null(value=False)
        rung = rung.set(same, place)
    frame = pl.DataFrame({"shown": released, "rung": rung, "home": home})
    finest = pl.col("shown").sort_by("rung").first().over("home")
    higher = pl.col("rung") > pl.col("rung").min().over("home")
    beside = pl.when(higher).then(pl.format("{} (beside {})", "shown", finest)).otherwise("shown")
    return frame.select(beside.alias(released.name)).to_series()


def _changed(released: Records) -> set[str]:
    """Columns of masks that do not only recode."""
    return {column for law in released.history if not law.coarsens for column in law.columns}


def _equal_share(table: pl.DataFrame, home: str, key: str) -> float:
    """Of the households that show several values of a key, the share in which all are equal."""
    several = table.select(home, key).drop_nulls().group_by(home).agg(pl.len(), pl.col(key).n_unique().alias("values"))
    equal = several.filter(pl.col("len") > 1)["values"] == 1
    return float(equal.sum()) / len(equal) if len(equal) else 0.0
