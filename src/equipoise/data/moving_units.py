"""Units of post-randomization: records, or whole households where there is a household role.

The cell of a household is the sorted list of its members' cells. Households move among households of the same size (and
the same `within` values and missing keys, member by member), and each member takes the keys of its place in the list.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.category_order import similar_order
from equipoise.data.cells import Cells, count
from equipoise.data.cells import cell_of as cell_of
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import RolesError
from equipoise.ground.packed_keys import code

Columns = tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Units:
    """Cells of the units: how many units are in each, their weight, and the group within which they may move.

    `cells` are those of persons, by the keys and then the other `within` columns. Unit cell u has the person cells
    `members[starts[u] : starts[u + 1]]`: one, unless units are households. `people` is the group of each person cell.
    """

    keys: Columns
    cells: Cells
    counts: Integers
    weights: Floats
    groups: Integers
    members: Integers
    starts: Integers
    people: Integers

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def of_people(self) -> bool:
        return len(self.members) == len(self.counts) == len(self.cells)

    def similar(self) -> Integers:
        """Rank of each unit cell in an order that keeps similar ones together (by their first member)."""
        cube, size = self.cells.cube, len(self.keys)
        order = similar_order(cube.axes[:size], cube.codes[:size], self.cells.hierarchies, self.keys)
        return np.argsort(np.argsort(order[self.members[self.starts[:-1]]], kind="stable"), kind="stable")

    def group_words(self, cell: int, within: Columns) -> str:
        """The group of a unit cell by its number, columns and size, never by a value of the data."""
        group = np.flatnonzero(self.groups == self.groups[cell])
        people = self.members[self.starts[cell] : self.starts[cell + 1]]
        unit = "records" if self.of_people else f"households of {len(people)}"
        gaps = [key for key in self.keys if self.cells.keys[key].gather(people).null_count()]
        place = f"number {self.groups[cell] + 1:,} in the order of {', '.join(within)}" if within else ""
        lacks = f"with no {', '.join(gaps)}" if gaps else ""
        where = "; ".join(part for part in (place, lacks) if part)
        size = f"{int(self.counts[group].sum()):,} {unit} in {len(group):,} cell{'s' if len(group) != 1 else ''}"
        return f"{size} of the keys{f' ({where})' if where else ''}"


def units(records: Records, keys: Columns, within: Columns) -> Units:
    """The unit cells of a file: O(cells) after counting for records, O(records log records) for households."""
    extra = tuple(c for c in within if c not in keys and c.partition("@")[0] not in keys)
    cells = count(records, (*keys, *extra))
    groups = _groups(cells, keys, within)
    if not records.roles.household:
        return Units(
            keys, cells, cells.n, cells.total, groups, np.arange(len(cells)), np.arange(len(cells) + 1), groups
        )
    people = members(records.collect(), cells, groups, records.roles.household, records.roles.weight)
    return _households(people, keys, cells, groups)


def members(table: pl.DataFrame, cells: Cells, groups: Integers, household: str, weight: str | None) -> pl.DataFrame:
    """Every person with row, household, cell, group, weight and position in the household's sorted list."""
    if table[household].null_count():
        raise RolesError(f"{table[household].null_count():,} records have no household in {household!r}.")
    cell = cell_of(table, cells)
    people = pl.DataFrame({"household": table[household], "cell": cell, "group": groups[cell]}).with_row_index("row")
    people = people.with_columns(weight=table[weight].cast(pl.Float64) if weight else pl.lit(1.0))
    people = people.sort("household", "group", "cell", "row")
    return people.with_columns(place=pl.int_range(pl.len()).over("household"))


def _households(people: pl.DataFrame, keys: Columns, cells: Cells, groups: Integers) -> Units:
    profiles = (
        household_profiles(people)
        .group_by("profile")
        .agg(pl.len().alias("n"), pl.col("weight").sum(), pl.col("cell").first(), pl.col("where").first())
    )
    profiles = profiles.sort("profile")
    return Units(
        keys,
        cells,
        profiles["n"].cast(pl.Int64).to_numpy(),
        profiles["weight"].to_numpy(),
        code(profiles["where"]).codes.astype(np.int64),
        profiles["cell"].explode().cast(pl.Int64).to_numpy(),
        np.r_[0, np.cumsum(profiles["cell"].list.len().to_numpy().astype(np.int64))],
        groups,
    )


def household_profiles(people: pl.DataFrame) -> pl.DataFrame:
    """One row per household: the list of its members' cells, as text too, and of their groups."""
    listed = people.group_by("household", maintain_order=True).agg("cell", "group", pl.col("weight").sum())
    texts = [pl.col(c).cast(pl.List(pl.String)).list.join(",") for c in ("cell", "group")]
    return listed.with_columns(texts[0].alias("profile"), texts[1].alias("where"))


def _within_column(cells: Cells, name: str) -> pl.Series:
    """A `within` column, or `column@level`: its category at a level of its hierarchy."""
    column, mark, level = name.partition("@")
    if name in cells.by or not mark:
        return cells.keys[name]
    labels = cells.hierarchy(column).level(level).label(cells.values(column))
    return labels.gather(pl.Series(cells.cube.codes[cells.place(column)].astype(np.uint32))).alias(name)


def _groups(cells: Cells, keys: Columns, within: Columns) -> Integers:
    """Groups of equal `within` values and equal null patterns, so that moves neither create nor fill nulls."""
    groups = [_within_column(cells, name) for name in within]
    nulls = [cells.keys[c].is_null().alias(f"{c} is null") for c in keys if cells.values(c).null_count()]
    if not groups and not nulls:
        return np.zeros(len(cells), dtype=np.int64)
    texts = pl.DataFrame([*groups, *nulls]).select(
        pl.concat_str(pl.all().cast(pl.String).fill_null("\x00"), separator="\x1f")
    )
    return code(texts.to_series()).codes.astype(np.int64)
