"""What laws on categories say: with what probability the record of a person is released in each cell."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.attacks._informed.candidates import distinct
from equipoise.attacks._informed.knowledge import IntruderFiles, RecordGuess, alike, joint, joint_both
from equipoise.attacks._nearest.cell_pairs_by_cost import runs
from equipoise.data.moving_units import cell_of
from equipoise.data.records import Law
from equipoise.ground.arrays import Floats, Integers
from equipoise.laws.cell_law import CellLaw
from equipoise.laws.column_transitions import Transition
from equipoise.laws.move_records import MovePlan

TIE = 1e-9
"""Chances that differ by no more than this share of themselves are equal."""
PAIRS = 1 << 20
"""Pairs of a kind of person and a released cell weighed at a time."""
MOST = 1 << 28
"""Pairs beyond which cells are not weighed one by one."""


@dataclass(frozen=True, eq=False, repr=False)
class Factor:
    """One law: `chance(i, j)` is the probability that person i is released with the value of row j.

    It depends on `who` the person is and `what` the row shows; `apart` has what must agree, by person and by row.
    `penalty` is twice the log of how much likelier it is to keep one's value than to get a certain other one.
    """

    who: tuple[Integers, ...]
    what: Integers
    own: Integers
    apart: tuple[Integers, Integers] | None
    chance: Callable[[Integers, Integers], Floats]
    penalty: float


def matrix(files: IntruderFiles, law: Law) -> Factor:
    """A transition matrix for one column (in each stratum); missing values stay missing."""
    told: Transition = law.detail
    here, there = (told.places(table[told.column]) for table in (files.released, files.original))
    stratum = told.stratum(files.original) if told.strata.columns else np.zeros(len(files), dtype=np.int64)
    stays = np.diagonal(told.tables, axis1=1, axis2=2)[stratum, np.maximum(there, 0)].mean()

    def chance(person: Integers, row: Integers) -> Floats:
        found = told.tables[stratum[person], there[person], here[row]]
        return np.where(there[person] < 0, 1.0, found)

    apart = (here < 0).astype(np.int64), (there < 0).astype(np.int64)
    penalty = _penalty(float(stays), told.tables.shape[-1] - 1)
    return Factor((stratum, there + 1), here + 1, there + 1, apart, chance, penalty)


def moved(files: IntruderFiles, law: Law) -> Factor:
    """Post-randomization between cells of several keys, by a law kept as a few numbers for each cell."""
    plan: MovePlan = law.detail
    cell_law = plan.law
    here, there = (cell_of(table, plan.units.cells) for table in (files.released, files.original))
    still = np.arange(len(cell_law)) + int(cell_law.block.max(initial=-1)) + 1
    block = np.where(cell_law.block >= 0, cell_law.block, still)
    leave = float(cell_law.movers() / cell_law.counts.sum())
    others = float((cell_law.cells_in_block[there] - 1).clip(1).mean())

    def chance(person: Integers, row: Integers) -> Floats:
        return _transition(cell_law, there[person], here[row])

    return Factor((there,), here, there, (block[here], block[there]), chance, _penalty(1 - leave, others))


def _transition(law: CellLaw, old: Integers, new: Integers) -> Floats:
    """The probability of each move within a block; 1 where nothing moves."""
    same, strength = old == new, law.spread(law.strength)[old]
    if law.kind == "mixing":
        away = strength * law.share[new]
        found = np.where(same, 1 - strength + away, away)
    else:
        leave = strength / law.counts[old]
        found = np.where(same, 1 - leave, leave / np.maximum(law.cells_in_block[old] - 1, 1))
    return np.where(law.block[old] < 0, same.astype(np.float64), found)


def swapped(files: IntruderFiles, law: Law) -> Factor:
    """Swapping: a candidate with K possible partners is released with a partner's value with probability rate.

    A candidate is alone in its area with its keys, which the released file shows, for the table of keys and area is
    kept. Anybody else may be a partner, with the rate times the candidates among those with the same keys. Without the
    area known, everybody is a candidate with the public share of them.
    """
    given, size = law.parameters, len(files)
    keys = [alike(files.released[c], files.original[c]) for c in (*given["keys"], *given.get("within", ()))]
    group, own_group = joint_both(keys, size)
    here, there = joint_both([alike(files.released[c], files.original[c]) for c in law.columns], size)
    shown = joint([group, here], size)
    many, place = np.bincount(shown)[shown], joint_both([(group, own_group), (here, there)], size)
    mine = np.bincount(place[0], minlength=int(place[1].max(initial=0)) + 1)[place[1]]
    partners = np.bincount(group, minlength=int(own_group.max(initial=0)) + 1)[own_group] - mine
    rate = _rates(files, law, partners, group, own_group)

    def chance(person: Integers, row: Integers) -> Floats:
        away = rate[person] * many[row] / np.maximum(partners[person], 1)
        return np.where(here[row] == there[person], 1 - rate[person], away)

    steps = np.unique(rate, return_inverse=True)[1]
    stays = 1 - float(rate.mean())
    return Factor((there, steps, own_group), here, there, None, chance, _penalty(stays, float(partners.clip(1).mean())))


def _rates(files: IntruderFiles, law: Law, partners: Integers, group: Integers, own_group: Integers) -> Floats:
    """The probability with which each person is swapped, as the intruder knows it."""
    given, size = law.parameters, len(files)
    rate = np.where(partners > 0, float(given["rate"]), 0.0)
    rate = np.minimum(rate, partners / (partners + 1)) if given.get("cap") else rate
    if given["attribute"] not in files.known:
        return rate * float(given["candidates"]) / size
    columns = (*given["keys"], given["attribute"])
    here, there = joint_both([alike(files.released[c], files.original[c]) for c in columns], size)
    sizes = np.bincount(here, minlength=int(there.max(initial=0)) + 1)
    most = int(max(group.max(initial=0), own_group.max(initial=0))) + 1
    candidates = np.bincount(group, weights=sizes[here] == 1, minlength=most)
    drawn = np.minimum(candidates / np.maximum(np.bincount(group, minlength=most), 1), 1.0)[own_group]
    found = np.where(sizes[there] == 1, rate, rate * drawn)
    return np.where(files.original[given["attribute"]].is_null().to_numpy(), 0.0, found)


def _penalty(stays: float, others: float) -> float:
    """Twice the log of the odds of one's own value against a certain other one, 0 if that is likelier, 60 at most."""
    moves = max((1 - stays) / max(others, 1.0), 1e-13)
    return float(np.clip(2 * np.log(max(stays, 1e-13) / moves), 0.0, 60.0))


def weigh(
    name: str, files: IntruderFiles, exact: list[tuple[Integers, Integers]], factors: list[Factor]
) -> RecordGuess | None:
    """The released cell with the largest chance for each of its records: product of chances / records in it.

    Kinds of people are weighed against the released cells that agree with them in all else; None where there are too
    many pairs for that.
    """
    size = len(files)
    block, sought = joint_both([*exact, *(f.apart for f in factors if f.apart)], size)
    cell, rows, counts = distinct([block, *(f.what for f in factors)])
    kind, people, _ = distinct([sought, *(column for f in factors for column in f.who)])
    order = np.argsort(block[rows], kind="stable")
    start, end = (np.searchsorted(block[rows][order], sought[people], side=side) for side in ("left", "right"))
    if int((end - start).sum()) > MOST:
        return None
    best, among = np.zeros(len(people)), np.zeros(len(people), dtype=np.int64)
    held = np.zeros(len(people), dtype=np.int64)
    for part in _parts(end - start):
        asking = np.repeat(part, (end - start)[part])
        asked = order[runs(start[part], end[part])]
        each = _product(factors, people[asking], rows[asked]) / counts[asked]
        np.maximum.at(best, asking, each)
        tied = (each > 0) & (each >= best[asking] * (1 - TIE))
        np.add.at(among, asking[tied], counts[asked[tied]])
        np.add.at(held, asking[each > 0], counts[asked[each > 0]])
    mine = np.where(block == sought, _product(factors, np.arange(size), np.arange(size)) / counts[cell], 0.0)
    right = (mine > 0) & (mine >= best[kind] * (1 - TIE))
    return RecordGuess(name, np.where(right, 1.0 / np.maximum(among[kind], 1), 0.0), held[kind])


def _product(factors: list[Factor], people: Integers, rows: Integers) -> Floats:
    found = np.ones(len(people))
    for factor in factors:
        found *= factor.chance(people, rows)
    return found


def _parts(work: Integers) -> Iterator[Any]:
    """Runs of kinds of people with about `PAIRS` pairs; none is cut in two."""
    edges = np.searchsorted(np.cumsum(work), np.arange(PAIRS, int(work.sum()) + PAIRS, PAIRS), side="left") + 1
    for part in np.split(np.arange(len(work)), np.unique(np.minimum(edges, len(work)))):
        if len(part):
            yield part
