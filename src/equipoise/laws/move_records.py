"""Applying a transition law to records, each move decided by the record's own random draws."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.moving_units import Units, cell_of, household_profiles, members, units
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import ParameterError
from equipoise.ground.randomness import Draws
from equipoise.laws.cell_law import CellLaw


@dataclass(frozen=True, eq=False, repr=False)
class MovePlan:
    """The unit cells of a file, and the transition law of their units; for audits, the records before the move."""

    units: Units
    law: CellLaw
    before: Records | None = None

    def move(self, table: pl.DataFrame, ids: pl.Series, draws: Draws) -> pl.DataFrame:
        """The table with the keys of moved records replaced; row order, types and other columns as they were."""
        cells = cell_of(table, self.units.cells)
        targets = destinations(self.law, cells, draws.uniform(ids), draws.uniform(ids, 1))
        return self._with_keys(table, targets)

    def move_households(self, table: pl.DataFrame, household: str, draws: Draws) -> pl.DataFrame:
        """The table with whole households moved, each member to the keys of its place in the other household's list."""
        people = members(table, self.units.cells, self.units.people, household, None)
        homes = household_profiles(people)
        ids = homes["household"]
        goal = destinations(self.law, self._unit_cells(homes["profile"]), draws.uniform(ids), draws.uniform(ids, 1))
        starts = pl.DataFrame({"household": ids, "start": self.units.starts[goal]})
        people = people.join(starts, on="household", how="left", maintain_order="left").sort("row")
        return self._with_keys(table, self.units.members[(people["start"] + people["place"]).to_numpy()])

    def moving_units(self, table: pl.DataFrame, household: str | None) -> tuple[Integers, Integers, Integers]:
        """Units of a table before the move: the cell of each, and its rows, `rows[starts[u] : starts[u + 1]]`."""
        if self.units.of_people or household is None:
            every = np.arange(table.height + 1)
            return cell_of(table, self.units.cells), every[:-1], every
        people = members(table, self.units.cells, self.units.people, household, None)
        homes = household_profiles(people)
        sizes = homes["cell"].list.len().to_numpy().astype(np.int64)
        return self._unit_cells(homes["profile"]), people["row"].to_numpy(), np.r_[0, np.cumsum(sizes)]

    def cells_after(self, table: pl.DataFrame, rows: Integers, starts: Integers) -> Integers:
        """The cell of each unit in a table after the move, its rows being in the order of before."""
        cells = cell_of(table, self.units.cells)[rows]
        if self.units.of_people:
            return cells
        owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        listed = pl.DataFrame({"unit": owner, "cell": cells}).group_by("unit", maintain_order=True).agg("cell")
        return self._unit_cells(listed.select(pl.col("cell").cast(pl.List(pl.String)).list.join(",")).to_series())

    def _unit_cells(self, profiles: pl.Series) -> Integers:
        index = pl.DataFrame({"profile": self._profiles()}).with_row_index("unit")
        units_of = pl.DataFrame({"profile": profiles}).join(index, on="profile", how="left", maintain_order="left")
        return units_of["unit"].to_numpy().astype(np.int64)

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


def plan_of(released: Records) -> MovePlan:
    """Units and law of a release; a law without moves if its keys were only coarsened."""
    keys = set(released.roles.keys)
    laws = [
        law
        for law in released.history
        if not law.coarsens and (keys & {*law.columns} or isinstance(law.detail, MovePlan))
    ]
    if len(laws) == 1 and isinstance(laws[0].detail, MovePlan):
        _refuse_other_keys(released, laws[0].detail)
        return laws[0].detail
    if laws:
        raise ParameterError("The match probability is known for coarsened keys and for one Pram mask.")
    all_units = units(released, released.roles.keys, ())
    still = np.full(len(all_units), -1, dtype=np.int64)
    return MovePlan(all_units, CellLaw("mixing", all_units.counts, still, np.ones(len(all_units)), np.zeros(0)))


def _refuse_other_keys(released: Records, plan: MovePlan) -> None:
    """Refuse keys that Pram did not count by: an intruder who knows one sees smaller cells than the law's."""
    others = [key for key in released.roles.keys if key not in plan.units.cells.by]
    if others:
        raise ParameterError(
            f"The key {others[0]!r} was neither among the keys of Pram nor in its within: the match probability of an "
            "intruder who knows it is not bounded. Name it there."
        )


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
