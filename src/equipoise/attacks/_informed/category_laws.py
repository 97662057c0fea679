"""Laws on categories: the probability that a person's record is released in each cell, and the guess by it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.attacks._informed.knowledge import IntruderFiles, RecordGuess, alike, joint, joint_both
from equipoise.attacks._nearest.points import distinct_rows
from equipoise.data.moving_units import cell_of
from equipoise.data.records import Law
from equipoise.ground.arrays import Booleans, Floats, Integers, runs
from equipoise.laws.cell_law import CellLaw
from equipoise.laws.column_transitions import Transition
from equipoise.laws.move_records import MovePlan

TIE_TOLERANCE = 1e-9
"""Relative difference up to which probabilities are equal."""
PAIRS_PER_PART = 1 << 20
"""Pairs of a kind of person and a released cell compared at a time."""
MIN_EXPECTED = 1e-12
"""Records that are expected in a released cell, at least."""
MAX_PAIRS = 1 << 28
"""Pairs beyond which cells are not compared one by one."""


@dataclass(frozen=True, eq=False, repr=False)
class Factor:
    """One law: `chance(i, j)` is the probability that person i is released with the value of row j.

    It depends on `who` the person is and `what` the row shows; `apart` has what must agree, by row and by person.
    `penalty` is twice the log of how much likelier it is to keep one's value than to get a certain other one.
    """

    who: tuple[Integers, ...]
    what: Integers
    own: Integers
    apart: tuple[Integers, Integers] | None
    chance: Callable[[Integers, Integers], Floats]
    penalty: float


def matrix(files: IntruderFiles, law: Law) -> Factor:
    """Factor of a transition matrix of one column (in each stratum); missing values stay missing."""
    transition: Transition = law.detail
    columns = (table[transition.column] for table in (files.released, files.original))
    released_codes, original_codes = (transition.places(column) for column in columns)
    stratum = transition.stratum(files.original) if transition.strata.columns else np.zeros(len(files), dtype=np.int64)
    stays = np.diagonal(transition.tables, axis1=1, axis2=2)[stratum, np.maximum(original_codes, 0)].mean()

    def chance(person: Integers, row: Integers) -> Floats:
        probability = transition.tables[stratum[person], original_codes[person], released_codes[row]]
        return np.where(original_codes[person] < 0, 1.0, probability)

    apart = (released_codes < 0).astype(np.int64), (original_codes < 0).astype(np.int64)
    penalty = _penalty(float(stays), transition.tables.shape[-1] - 1)
    return Factor((stratum, original_codes + 1), released_codes + 1, original_codes + 1, apart, chance, penalty)


def cell_transitions(files: IntruderFiles, law: Law) -> Factor:
    """Factor of post-randomization between cells of several keys, by a law with a few numbers for each cell."""
    plan: MovePlan = law.detail
    cell_law = plan.law
    released_cells, original_cells = (cell_of(table, plan.units.cells) for table in (files.released, files.original))
    still = np.arange(len(cell_law)) + int(cell_law.block.max(initial=-1)) + 1
    block = np.where(cell_law.block >= 0, cell_law.block, still)
    leave = float(cell_law.movers() / cell_law.counts.sum())
    others = float((cell_law.cells_in_block[original_cells] - 1).clip(1).mean())

    def chance(person: Integers, row: Integers) -> Floats:
        return _transition(cell_law, original_cells[person], released_cells[row])

    apart, penalty = (block[released_cells], block[original_cells]), _penalty(1 - leave, others)
    return Factor((original_cells,), released_cells, original_cells, apart, chance, penalty)


def _transition(law: CellLaw, old: Integers, new: Integers) -> Floats:
    """Probability of each move within a block; 1 where nothing moves."""
    same, strength = old == new, law.spread(law.strength)[old]
    if law.kind == "mixing":
        away = strength * law.share[new]
        probability = np.where(same, 1 - strength + away, away)
    else:
        leave = strength / law.counts[old]
        probability = np.where(same, 1 - leave, leave / np.maximum(law.cells_in_block[old] - 1, 1))
    return np.where(law.block[old] < 0, same.astype(np.float64), probability)


def swaps(files: IntruderFiles, law: Law) -> Factor:
    """Factor of swapping: a candidate is released with the value of one of its K partners with probability rate.

    A candidate is unique in its area by its keys; the released file shows it, because swapping leaves the table of keys
    and area unchanged. Anybody else may be a partner, with the rate times the share of candidates among those with the
    same keys. If the intruder does not know the area, everybody is a candidate with the public share of them.
    """
    parameters, size = law.parameters, len(files)
    keys = [alike(files.released[c], files.original[c]) for c in (*parameters["keys"], *parameters.get("within", ()))]
    group, own_group = joint_both(keys, size)
    codes = joint_both([alike(files.released[c], files.original[c]) for c in law.columns], size)
    released_codes, original_codes = codes
    released_cells = joint([group, released_codes], size)
    many, place = np.bincount(released_cells)[released_cells], joint_both([(group, own_group), codes], size)
    mine = np.bincount(place[0], minlength=int(place[1].max(initial=0)) + 1)[place[1]]
    partners = np.bincount(group, minlength=int(own_group.max(initial=0)) + 1)[own_group] - mine
    rate = _rates(files, law, partners, group, own_group)

    def chance(person: Integers, row: Integers) -> Floats:
        away = rate[person] * many[row] / np.maximum(partners[person], 1)
        return np.where(released_codes[row] == original_codes[person], 1 - rate[person], away)

    steps = np.unique(rate, return_inverse=True)[1]
    penalty = _penalty(1 - float(rate.mean()), float(partners.clip(1).mean()))
    return Factor((original_codes, steps, own_group), released_codes, original_codes, None, chance, penalty)


def _rates(files: IntruderFiles, law: Law, partners: Integers, group: Integers, own_group: Integers) -> Floats:
    """Probability that each person is swapped, as the intruder knows it."""
    parameters, size = law.parameters, len(files)
    rate = np.where(partners > 0, float(parameters["rate"]), 0.0)
    rate = np.minimum(rate, partners / (partners + 1)) if parameters.get("cap") else rate
    if parameters["attribute"] not in files.known:
        return rate * float(parameters["candidates"]) / size
    columns = (*parameters["keys"], parameters["attribute"])
    released_codes, original_codes = joint_both([alike(files.released[c], files.original[c]) for c in columns], size)
    sizes = np.bincount(released_codes, minlength=int(original_codes.max(initial=0)) + 1)
    most = int(max(group.max(initial=0), own_group.max(initial=0))) + 1
    candidates = np.bincount(group, weights=sizes[released_codes] == 1, minlength=most)
    partner_share = np.minimum(candidates / np.maximum(np.bincount(group, minlength=most), 1), 1.0)[own_group]
    rates = np.where(sizes[original_codes] == 1, rate, rate * partner_share)
    return np.where(files.original[parameters["attribute"]].is_null().to_numpy(), 0.0, rates)


def _penalty(stays: float, others: float) -> float:
    """Twice the log odds of keeping a value against getting a certain other one, between 0 and 60."""
    moves = max((1 - stays) / max(others, 1.0), 1e-13)
    return float(np.clip(2 * np.log(max(stays, 1e-13) / moves), 0.0, 60.0))


def weigh(
    name: str, files: IntruderFiles, exact: list[tuple[Integers, Integers]], factors: list[Factor]
) -> list[RecordGuess]:
    """Guess a record of the released cell with the largest probability per record: product of factors / its records.

    And per record that is expected in it, the sum of everybody's probabilities: a cell that came out fuller than
    expected is likelier to hold the person too; and by the probability alone. No guess if there are too many pairs.
    """
    pairs = CellPairs.of(len(files), exact, factors)
    if pairs.number > MAX_PAIRS:
        return []
    expected, alone = pairs.expected(), np.ones(len(pairs.rows))
    rivals = {name: pairs.counts, f"{name}, fewest rivals": expected, f"{name}, likeliest value": alone}
    return [pairs.guess(title, number) for title, number in rivals.items()]


@dataclass(frozen=True, eq=False, repr=False)
class CellPairs:
    """Kinds of people, and the released cells that agree with each in all that stayed.

    `cell` and `kind` are those of each row; `rows` and `people` have one row of each; `order[start : end]` are the
    cells that each kind is compared with.
    """

    factors: list[Factor]
    stays: Booleans
    cell: Integers
    rows: Integers
    counts: Integers
    kind: Integers
    people: Integers
    order: Integers
    start: Integers
    end: Integers

    @classmethod
    def of(cls, size: int, exact: list[tuple[Integers, Integers]], factors: list[Factor]) -> "CellPairs":
        block, sought = joint_both([*exact, *(f.apart for f in factors if f.apart)], size)
        cell, rows, counts = distinct_rows([block, *(f.what for f in factors)])
        kind, people, _ = distinct_rows([sought, *(column for f in factors for column in f.who)])
        order = np.argsort(block[rows], kind="stable")
        start, end = (np.searchsorted(block[rows][order], sought[people], side=side) for side in ("left", "right"))
        return cls(factors, block == sought, cell, rows, counts, kind, people, order, start, end)

    @property
    def number(self) -> int:
        return int((self.end - self.start).sum())

    def parts(self) -> Iterator[tuple[Integers, Integers, Floats]]:
        """Pairs of a kind and a cell, and the probability that a person of the kind is released in the cell."""
        for part in _parts(self.end - self.start):
            kinds = np.repeat(part, (self.end - self.start)[part])
            cells = self.order[runs(self.start[part], self.end[part])]
            yield kinds, cells, _product(self.factors, self.people[kinds], self.rows[cells])

    def expected(self) -> Floats:
        """Number of records that the laws put into each released cell on average."""
        numbers, sums = np.bincount(self.kind), np.zeros(len(self.rows))
        for kinds, cells, chance in self.parts():
            np.add.at(sums, cells, numbers[kinds] * chance)
        return np.maximum(sums, MIN_EXPECTED)

    def guess(self, name: str, rivals: Floats | Integers) -> RecordGuess:
        """One of the records of the cells whose probability, divided by the rivals in them, is the largest."""
        best, among = np.zeros(len(self.people)), np.zeros(len(self.people), dtype=np.int64)
        possible = np.zeros(len(self.people), dtype=np.int64)
        for kinds, cells, chance in self.parts():
            each = chance / rivals[cells]
            np.maximum.at(best, kinds, each)
            tied = (each > 0) & (each >= best[kinds] * (1 - TIE_TOLERANCE))
            np.add.at(among, kinds[tied], self.counts[cells[tied]])
            np.add.at(possible, kinds[each > 0], self.counts[cells[each > 0]])
        every = np.arange(len(self.cell))
        mine = np.where(self.stays, _product(self.factors, every, every) / rivals[self.cell], 0.0)
        right = (mine > 0) & (mine >= best[self.kind] * (1 - TIE_TOLERANCE))
        return RecordGuess(name, np.where(right, 1.0 / np.maximum(among[self.kind], 1), 0.0), possible[self.kind])


def _product(factors: list[Factor], people: Integers, rows: Integers) -> Floats:
    probability = np.ones(len(people))
    for factor in factors:
        probability *= factor.chance(people, rows)
    return probability


def _parts(work: Integers) -> Iterator[Any]:
    """Runs of kinds of people with about `PAIRS_PER_PART` pairs; none is cut in two."""
    steps = np.arange(PAIRS_PER_PART, int(work.sum()) + PAIRS_PER_PART, PAIRS_PER_PART)
    edges = np.searchsorted(np.cumsum(work), steps, side="left") + 1
    for part in np.split(np.arange(len(work)), np.unique(np.minimum(edges, len(work)))):
        if len(part):
            yield part
