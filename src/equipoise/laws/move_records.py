"""Applying a transition law to records, each move decided by the record's own random draws."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.moving_units import Units, cell_of, household_profiles, members
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.randomness import Draws
from equipoise.laws.cell_law import CellLaw


@dataclass(frozen=True, eq=False, repr=False)
class MovePlan:
    """The unit cells of a file, and the transition law of their units."""

    units: Units
    law: CellLaw

    def move(self, table: pl.DataFrame, ids: pl.Series, draws: Draws) -> pl.DataFrame:
        """The table with the keys of moved records replaced; row order, types and other columns as they were."""
        cells = cell_of(table, self.units.cells)
        targets = destinations(self.law, cells, draws.uniform(ids), draws.uniform(ids, 1))
        return self._with_keys(table, targets)

    def move_households(self, table: pl.DataFrame, household: str, draws: Draws) -> pl.DataFrame:
        """The table with whole households moved, each member to the keys of its place in the other household's list."""
        people = members(table, self.units.cells, self.units.people, household, None)
        homes = household_profiles(people)
        profiles = pl.DataFrame({"profile": self._profiles()}).with_row_index("unit")
        unit = homes.join(profiles, on="profile", how="left", maintain_order="left")["unit"].to_numpy().astype(np.int64)
        ids = homes["household"]
        goal = destinations(self.law, unit, draws.uniform(ids), draws.uniform(ids, 1))
        starts = pl.DataFrame({"household": ids, "start": self.units.starts[goal]})
        people = people.join(starts, on="household", how="left", maintain_order="left").sort("row")
        return self._with_keys(table, self.units.members[(people["start"] + people["place"]).to_numpy()])

    def _with_keys(self, table: pl.DataFrame, cell: Integers) -> pl.DataFrame:
        new = self.units.cells.keys.select(self.units.keys)[cell]
        return table.with_columns(new.cast({c: table.schema[c] for c in self.units.keys}).get_columns())

    def _profiles(self) -> pl.Series:
        """The text of each household profile, as `household_profiles` writes it."""
        size = np.diff(self.units.starts)
        owner = np.repeat(np.arange(len(size)), size)
        listed = (
            pl.DataFrame({"unit": owner, "cell": self.units.members}).group_by("unit", maintain_order=True).agg("cell")
        )
        return listed.select(pl.col("cell").cast(pl.List(pl.String)).list.join(",")).to_series()


def destinations(law: CellLaw, cell: Integers, first: Floats, second: Floats) -> Integers:
    """New cell of each unit: `first` decides whether it is drawn, `second` where to. O(units log cells)."""
    goal = cell.copy()
    block = law.block[cell]
    chance = np.r_[law.strength, 0.0][block]
    chance = chance if law.kind == "mixing" else chance / law.counts[cell]
    movers = np.flatnonzero((block >= 0) & (first < chance))
    if not len(movers):
        return goal
    moving = law.moving
    moving = moving[np.argsort(law.block[moving], kind="stable")]
    size = np.bincount(law.block[moving], minlength=len(law.strength))
    start = np.cumsum(np.r_[0, size[:-1]])
    at = block[movers]
    if law.kind == "mixing":
        goal[movers] = _by_share(law, moving, size, start, at, second[movers])
        return goal
    place = np.empty(len(law), dtype=np.int64)
    place[moving] = np.arange(len(moving))
    other = np.minimum((second[movers] * (size[at] - 1)).astype(np.int64), size[at] - 2)
    other += other >= place[cell[movers]] - start[at]
    goal[movers] = moving[start[at] + other]
    return goal


def _by_share(
    law: CellLaw, moving: Integers, size: Integers, start: Integers, at: Integers, second: Floats
) -> Integers:
    """A cell of the block with probability equal to its share."""
    reached = np.cumsum(law.share[moving])
    before = np.r_[0.0, reached][start]
    ends = np.r_[0.0, reached][start + size]
    ranks = np.searchsorted(reached, before[at] + second * (ends - before)[at], side="right")
    return moving[np.clip(ranks, start[at], start[at] + size[at] - 1)]
