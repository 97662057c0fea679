"""Post-randomization of the keys with a guarantee: no match is right with probability above xi."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl

from equipoise.data import engines
from equipoise.data.cells import count
from equipoise.data.moving_units import Units, units
from equipoise.data.records import Law, Records
from equipoise.data.roles import names
from equipoise.data.row_draws import rowwise, together
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import InfeasibleError, ParameterError, RolesError, require_columns
from equipoise.ground.randomness import Draws
from equipoise.laws.cell_law import CellLaw, law_of_blocks, leaving_law, mixing_law, theta_for
from equipoise.laws.move_records import MovePlan
from equipoise.masks._blocks_beside import AlikeRecords
from equipoise.methods.parameters import check_fields

AUTO = "auto"
CLAIMS = {
    "blocks": (
        "No intruder who knows a person's keys, that the person is in the file, the original counts and this method, "
        "and who sees the whole released table, can name a record that is the person's with probability above {xi:g}."
    ),
    "nayak": (
        "No intruder who knows a person's keys, that the person is in the file, the original counts and this method, "
        "and who picks at random among the records with those keys given their number, is right with probability above "
        "{xi:g}. An intruder who uses the other released counts as well can do better (use method='blocks')."
    ),
}
BESIDE_CLAIM = (
    " This counts what {columns} say of the keys, as naive Bayes and boosted trees measure it on these records, with a "
    "margin; risk.Recognisable measures it again. Another learner may put single people a little above {xi:g}."
)
VOID = (
    "Void if another column shows the original cell or makes moved records recognisable, or if a second release of the "
    "same data is drawn with another seed."
)


@dataclass(frozen=True, slots=True)
class Pram:
    """Move records between the cells of the keys at random, so that no match is right with probability above `xi`.

    method "blocks" (default): cells with T >= 1/xi stay; the others move within blocks of two cells, redrawn with the
    smallest probability lambda that meets the bound, to cell j with probability T_j / N, or within fully mixed blocks.
    The bound holds given ALL released counts, for every xi in (0, 1); the proof stands in `equipoise.laws.cell_law`.
    method "nayak": a record of a cell with T leaves with probability theta / T, theta the root of
    (1 - theta) / (1 - theta + theta^2) = xi, to another occupied cell with equal probability; needs xi >= 3/7, and the
    bound is given the count of the target's own cell only (his eq. 4).

    Both are invariant: the expected counts are the original ones (P T = T); `invariant="weights"` keeps the expected
    weighted totals instead (blocks only), with the same bound. `within` names columns whose joint values no record may
    leave (their margins are kept exactly), or a level of a key's hierarchy (`age@10`); "auto" moves records among
    similar cells, by the keys' hierarchies. With a household role whole households move, and the bound is for
    households; a file in which the role `person` repeats is refused. Cost: O(records + cells log cells).

    `beside` names other released columns that an intruder may read together with the keys: blocks are made of records
    alike in them, and moved so much that the posterior by keys and these columns, measured by naive Bayes and by
    boosted trees (extra `learn`), stays at xi or below; where it cannot, the mask says the smallest xi that it can
    hold. Without it the bound is for the keys alone: `risk.Recognisable` says what the other columns make of it.

    Source: Nayak (2015), *Identity disclosure risk control in microdata release via post-randomization*.
    Does not guard against what other released columns say of the keys unless `beside` names them (with `Pram(0.5)`
    alone 80 % of sample uniques are recognised in real files), a learner that reads `beside` better than these two (a
    forest of pairs put 1.5 % of testdata's uniques at 0.70 to 0.75 where xi was 0.7), attribute disclosure, or several
    releases drawn with different seeds.

    >>> Pram(0.8)
    Pram(xi=0.8, keys=None, within=None, method='blocks', invariant='counts', beside=None)
    """

    xi: float
    keys: tuple[str, ...] | None = None
    within: tuple[str, ...] | str | None = None
    method: Literal["blocks", "nayak"] = "blocks"
    invariant: Literal["counts", "weights"] = "counts"
    beside: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not 0 < self.xi < 1:
            hint = " Write 80 % as 0.8." if self.xi > 1 else " At 1 nothing is asked, at 0 nothing is possible."
            raise ParameterError(f"xi must be above 0 and below 1, got {self.xi:g}.{hint}")
        check_fields(self)
        if self.method == "nayak":
            theta_for(self.xi)
            if self.invariant == "weights":
                raise ParameterError("Nayak's matrix keeps counts, not weighted totals: use method='blocks'.")
        if self.within is not None:
            columns: Any = self.within
            pairs = [f"{c}@{level}" for c, level in columns.items()] if isinstance(columns, Mapping) else columns
            within = names(pairs, "within")
            object.__setattr__(self, "within", AUTO if within == (AUTO,) else within or None)
        if self.beside is not None:
            object.__setattr__(self, "beside", names(self.beside, "beside") or None)
        if self.beside and (self.method == "nayak" or self.within == AUTO):
            raise ParameterError("beside makes blocks of its own: leave out method='nayak' and within='auto'.")

    def apply(self, data: Records, draws: Draws) -> Records:
        plan = self.plan(data)
        law = replace(self.law(plan), detail=replace(plan, before=data))
        return data.with_frame(self._move(data, plan, draws), law)

    def plan(self, records: Records) -> MovePlan:
        """The units, and the law by which they move: from counts and key labels only."""
        keys = self.keys or records.roles.keys
        if not keys:
            raise RolesError("No keys were named: say which columns an intruder may know.")
        if self.invariant == "weights" and not records.roles.weight:
            raise RolesError("invariant='weights' needs a weight role.")
        _refuse_repeated(records)
        refuse_telling(records, keys, self._columns())
        moving_units = units(records, keys, self._columns())
        if self.beside:
            return MovePlan(moving_units, self._law_beside(records, moving_units, self.beside))
        try:
            return MovePlan(moving_units, self._law_of(moving_units))
        except InfeasibleError as error:
            raise InfeasibleError(f"{error}{self._cause(moving_units, error)}{self._nearest(records, keys)}") from None

    def law(self, plan: MovePlan) -> Law:
        """What the public may know: the method and its parameters, never the draws."""
        parameters: dict[str, Any] = {
            "xi": self.xi,
            "method": self.method,
            "keys": list(plan.units.keys),
            "invariant": self.invariant,
        }
        parameters |= (
            {"within": self.within if isinstance(self.within, str) else list(self.within)} if self.within else {}
        )
        parameters |= {"beside": list(self.beside)} if self.beside else {}
        return Law("pram", plan.units.keys, f"{self.words()}. {self.claim()}", parameters)

    def claim(self) -> str:
        """The guarantee, in words: which intruder, and what voids it."""
        beside = BESIDE_CLAIM.format(columns=", ".join(self.beside), xi=self.xi) if self.beside else ""
        return f"{CLAIMS[self.method].format(xi=self.xi)}{beside} {VOID}"

    def words(self) -> str:
        keys = ", ".join(self.keys) if self.keys else "the keys"
        limits = f" within {', '.join(self.within)}" if self.within else ""
        limits = " among similar records" if self.within == AUTO else limits
        limits += f" beside {', '.join(self.beside)}" if self.beside else ""
        return f"{keys} post-randomized{limits} so that no match is right with probability above {self.xi:g}"

    def _columns(self) -> tuple[str, ...]:
        return () if self.within is None or isinstance(self.within, str) else self.within

    def _law_of(self, moving_units: Units) -> CellLaw:
        order = _shuffled(len(moving_units)) if self.within is None else moving_units.similar()
        if self.method == "nayak":
            groups = _chunks(moving_units.groups, order, 3) if self.within == AUTO else moving_units.groups
            return leaving_law(moving_units.counts, groups, self.xi)
        weights = moving_units.weights if self.invariant == "weights" else None
        return mixing_law(moving_units.counts, moving_units.groups, order, self.xi, weights)

    def _law_beside(self, records: Records, moving_units: Units, beside: tuple[str, ...]) -> CellLaw:
        """The law of blocks alike in other columns, or a refusal with the smallest xi that they can hold."""
        require_columns(beside, records.schema())
        if moving := [column for column in beside if column in moving_units.cells.by]:
            raise RolesError(f"Column {moving[0]!r} is moved or in within: beside names other released columns.")
        if records.roles.household:
            raise RolesError("beside compares records, not households: leave out the household role, or beside.")
        columns = tuple(dict.fromkeys((*moving_units.cells.by, *beside)))
        file = AlikeRecords(moving_units, records.collect(*columns), beside, self.xi)
        blocks = file.blocks(self.xi)
        if blocks.worst:
            least = file.least(blocks.worst)
            smallest = f"the smallest xi is {least:g}" if least < 1 else "no xi below 1 can"
            raise InfeasibleError(f"xi = {self.xi:g} cannot be held beside {', '.join(beside)}: {smallest}.")
        weights = moving_units.weights if self.invariant == "weights" else None
        return law_of_blocks(moving_units.counts, blocks.block, blocks.bounds, weights)

    def _cause(self, moving_units: Units, error: InfeasibleError) -> str:
        """Which group lacks what: by its columns and size."""
        if error.cell is None:
            return ""
        alone = (moving_units.groups == moving_units.groups[error.cell]).sum() == 1
        cause = "all have the same keys, so they have nowhere to move" if alone else "they are too few to hide among"
        return f" One such group has {moving_units.group_words(error.cell, self._columns())}: {cause}."

    def _nearest(self, records: Records, keys: tuple[str, ...]) -> str:
        """Which column to leave out of `within` for the bound to be met."""
        for column in self._columns():
            rest = tuple(c for c in self._columns() if c != column)
            try:
                replace(self, within=rest or AUTO)._law_of(units(records, keys, rest))
            except InfeasibleError:
                continue
            return f" It works without {column!r}."
        if any(count(records, keys).values(key).null_count() for key in keys):
            return " Records that miss the same keys are a group too: fill those keys in, or leave the records out."
        return ""

    def _move(self, data: Records, plan: MovePlan, draws: Draws) -> engines.Frame | pl.DataFrame:
        if data.roles.household:
            return plan.move_households(together(data)[0], data.roles.household, draws)
        return rowwise(data, partial(plan.move, draws=draws))


def _refuse_repeated(records: Records) -> None:
    """Records of one person that move apart are compared by who knows that they are one person's."""
    person = records.roles.person
    if person and (people := records.collect(person)[person]).n_unique() < len(people):
        raise RolesError(
            f"Post-randomization moves records, and {person!r} has people with several: use masks.LocalSuppress, "
            "coarsen whole columns, or leave out the role person."
        )


def refuse_telling(records: Records, keys: tuple[str, ...], within: tuple[str, ...]) -> None:
    """Refuse a survey column that is a function of the keys: a moved record would show where it came from."""
    survey = (records.roles.weight, records.roles.sample, *records.roles.domain)
    for column in (c for c in survey if c and c not in keys and c not in within):
        both, alone = count(records, (*keys, column)), count(records, keys)
        several = alone.n > 1
        if several.any() and len(both.values(column)) > 1 and len(both) == len(alone):
            raise RolesError(
                f"Column {column!r} is a function of the keys, so it would show a moved record's original cell: "
                f"name it in within, or leave it out of the file."
            )


def _shuffled(size: int) -> Integers:
    """One big group: an order that has nothing to do with similarity, fixed by the number of cells."""
    return np.random.default_rng(size).permutation(size)


def _chunks(groups: Integers, order: Integers, least: int) -> Integers:
    """Groups of neighbours in the order, at least this many cells in each."""
    cells = np.lexsort((order, groups))
    sorted_groups = groups[cells]
    starts = np.flatnonzero(np.r_[True, sorted_groups[1:] != sorted_groups[:-1]])
    length = np.diff(np.r_[starts, len(cells)])
    run = np.repeat(np.arange(len(starts)), length)
    place = np.arange(len(cells)) - starts[run]
    chunk = np.minimum(place // least, np.maximum(length // least - 1, 0)[run])
    offset = np.cumsum(np.r_[0, np.maximum(length // least, 1)[:-1]])
    chunks = np.empty(len(cells), dtype=np.int64)
    chunks[cells] = offset[run] + chunk
    return chunks
