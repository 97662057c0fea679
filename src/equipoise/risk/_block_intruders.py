"""Intruders who weigh the records of a block of post-randomization by their other columns.

An intruder knows a person's keys (so the block), the law of the mask, the original counts and the released file. Who is
who in the block follows by Bayes' rule (`laws.block_posterior`), from what the other columns say of the original cell
by naive Bayes, by boosted trees, or by both (`laws.column_evidence`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats, Integers, runs
from equipoise.laws.block_posterior import assigned
from equipoise.laws.column_evidence import FOLDS, TruePairs, calibrated
from equipoise.laws.move_records import MovePlan

Evidence = Callable[[Integers, Integers], Floats]
"""How well the other columns of units go with the keys of cells, pair by pair, in logs."""
MAX_PAIRS = 1_000_000
"""Pairs of cells and units of a block up to which all are weighed; beyond, some of each."""
MAX_PEOPLE, MAX_RIVALS = 200, 500
"""People of a larger block who are searched for, and records drawn from it as their rivals."""
MAX_CELLS_OF_FOLD = 100
"""Cells of a block up to which all its records are in one fold."""
MAX_CALIBRATION_PAIRS = 20_000
MIN_LOG = -60.0
"""Records less likely than exp of this, relative to the likeliest, count as that likely."""


@dataclass(frozen=True, eq=False, repr=False)
class BlockFile:
    """Units of a moved file: original and released cell, rows `rows[starts[u] : starts[u + 1]]`; other columns."""

    plan: MovePlan
    cells: Integers
    released: Integers
    rows: Integers
    starts: Integers
    others: pl.DataFrame

    def cells_of_rows(self) -> Integers:
        """The original unit cell of every row."""
        cells = np.empty(len(self.rows), dtype=np.int64)
        cells[self.rows] = np.repeat(self.cells, np.diff(self.starts))
        return cells

    def evidence(self) -> dict[str, Evidence]:
        """Naive Bayes, boosted trees and both together, each with the weight that makes its certainty right."""
        pairs = self._true_pairs()
        kinds: dict[str, Evidence] = {"naive Bayes": self._of_units(pairs.naive_bayes)}
        kinds["boosted trees"] = self._of_units(pairs.trees)
        one, two = self._mates()
        differences = {name: _difference(kind, self.cells, one, two) for name, kind in kinds.items()}
        evidence = {name: _weighed([kind], calibrated([differences[name]])) for name, kind in kinds.items()}
        both = calibrated(list(differences.values()))
        return evidence | {"naive Bayes and boosted trees": _weighed(list(kinds.values()), both)}

    def _true_pairs(self) -> TruePairs:
        units, folds = self.plan.units, self._folds()
        people, of_rows = np.empty((2, len(self.rows)), dtype=np.int64)
        people[self.rows] = units.members[runs(units.starts[self.cells], units.starts[self.cells + 1])]
        of_rows[self.rows] = np.repeat(folds[self.cells], np.diff(self.starts))
        keys = units.cells.keys.select(units.keys)
        return TruePairs(keys, self.others, people, of_rows, folds if units.of_people else None)

    def _folds(self) -> Integers:
        """Fold of each cell: that of its block, or its own in a block of many cells; those that stay teach all."""
        law = self.plan.law
        own = np.where(law.cells_in_block > MAX_CELLS_OF_FOLD, np.arange(len(law)), law.block)
        return np.where(law.block >= 0, own % FOLDS, FOLDS + np.arange(len(law)) % FOLDS)

    def _of_units(self, of_people: Evidence) -> Evidence:
        """Evidence of units from that of their members, place by place."""
        units = self.plan.units
        if units.of_people:
            return of_people

        def scores(cells: Integers, whole: Integers) -> Floats:
            places = runs(units.starts[cells], units.starts[cells + 1])
            rows = self.rows[runs(self.starts[whole], self.starts[whole + 1])]
            owner = np.repeat(np.arange(len(cells)), np.diff(units.starts)[cells])
            return np.bincount(owner, of_people(units.members[places], rows), minlength=len(cells)).astype(np.float64)

        return scores

    def _mates(self) -> tuple[Integers, Integers]:
        """Pairs of units of one block and different cells."""
        block = self.plan.law.block[self.cells]
        rng = np.random.default_rng(len(block))
        moving = rng.permutation(np.flatnonzero(block >= 0))
        moving = moving[np.argsort(block[moving], kind="stable")]
        one, two = moving[:-1], moving[1:]
        mates = rng.permutation(np.flatnonzero((block[one] == block[two]) & (self.cells[one] != self.cells[two])))
        return one[mates[:MAX_CALIBRATION_PAIRS]], two[mates[:MAX_CALIBRATION_PAIRS]]

    def posteriors(self, evidence: Evidence) -> tuple[Floats, Floats]:
        """Of each cell: the largest probability that a record is a given person's, and whether that guess is right.

        NaN for cells that do not move, and for those of very large blocks that were not drawn.
        """
        best, right = np.full((2, len(self.plan.law)), np.nan)
        for cells, units in self._shapes():
            if cells.shape[1] * units.shape[1] <= MAX_PAIRS:
                best[cells], right[cells] = self._whole_blocks(cells, units, evidence)
            else:
                for block in range(len(cells)):
                    people, shares, hits = self._large_block(cells[block], units[block], evidence)
                    best[people], right[people] = shares, hits
        return best, right

    def _shapes(self) -> Iterator[tuple[Integers, Integers]]:
        """Blocks of one shape together: cells and units of each, block by block."""
        law = self.plan.law
        moving = law.moving[np.lexsort((-law.counts[law.moving], law.block[law.moving]))]
        ends = np.searchsorted(law.block[moving], np.arange(len(law.strength) + 1))
        units = np.argsort(law.block[self.cells], kind="stable")
        unit_ends = np.searchsorted(law.block[self.cells][units], np.arange(len(law.strength) + 1))
        shapes: dict[bytes, list[int]] = {}
        for block in range(len(law.strength)):
            shapes.setdefault(law.counts[moving[ends[block] : ends[block + 1]]].tobytes(), []).append(block)
        for blocks in shapes.values():
            at = np.array(blocks)
            yield (
                moving[runs(ends[at], ends[at + 1])].reshape(len(at), -1),
                units[runs(unit_ends[at], unit_ends[at + 1])].reshape(len(at), -1),
            )

    def _whole_blocks(self, cells: Integers, units: Integers, evidence: Evidence) -> tuple[Floats, Floats]:
        """Blocks of one shape, a few at a time."""
        step = max(1, MAX_PAIRS // (cells.shape[1] * units.shape[1]))
        parts = [
            self._weighed(cells[at : at + step], units[at : at + step], evidence) for at in range(0, len(cells), step)
        ]
        return np.concatenate([best for best, _ in parts]), np.concatenate([right for _, right in parts])

    def _weighed(self, cells: Integers, units: Integers, evidence: Evidence) -> tuple[Floats, Floats]:
        shape = len(cells), units.shape[1], cells.shape[1]
        counts = self.plan.law.counts[cells[0]]
        cell = np.broadcast_to(cells[:, None, :], shape).ravel()
        unit = np.broadcast_to(units[:, :, None], shape).ravel()
        logs = (self._log_chance(cell, self.released[unit]) + evidence(cell, unit)).reshape(shape)
        weights = np.exp(np.maximum(logs - logs.max(axis=2, keepdims=True), MIN_LOG))
        shares = assigned(weights, counts) / counts
        best = shares.max(axis=1)
        ties = shares >= best[:, None, :] * (1 - 1e-9)
        own = self.cells[units][:, :, None] == cells[:, None, :]
        return best, (ties & own).sum(axis=1) / ties.sum(axis=1) / counts

    def _log_chance(self, cells: Integers, goals: Integers) -> Floats:
        return np.log(np.maximum(self.plan.law.chance(cells, goals), 1e-300))

    def _large_block(self, cells: Integers, units: Integers, evidence: Evidence) -> tuple[Integers, Floats, Floats]:
        """Some people of a large block: their own records, those in their cell, and others drawn for all the rest.

        Each record is weighed against all who may have come to its cell, one at a time.
        """
        law = self.plan.law
        rng = np.random.default_rng(len(units))
        people = rng.permutation(cells[law.counts[cells] == law.counts[cells].min()])[:MAX_PEOPLE]
        rivals = rng.permutation(units)[:MAX_RIVALS]
        near = [units[(self.released[units] == person) | (self.cells[units] == person)] for person in people]
        far = [np.setdiff1d(rivals, mine) for mine in near]
        candidates = np.concatenate([part for parts in zip(near, far, strict=True) for part in parts])
        sizes = np.array([len(mine) + len(rest) for mine, rest in zip(near, far, strict=True)])
        starts, owner = np.cumsum(np.r_[0, sizes[:-1]]), np.repeat(np.arange(len(people)), sizes)
        odds = self._odds(people[owner], candidates, evidence)
        sums = [
            odds[at : at + len(mine)].sum()
            + odds[at + len(mine) : at + len(mine) + len(rest)].mean() * (len(units) - len(mine))
            for at, mine, rest in zip(starts, near, far, strict=True)
        ]
        shares = odds / np.maximum(np.array(sums), 1e-300)[owner]
        best = np.maximum.reduceat(shares, starts)
        ties = shares >= best[owner] * (1 - 1e-9)
        right = np.add.reduceat((ties & (self.cells[candidates] == people[owner])) * 1.0, starts) / np.add.reduceat(
            ties * 1.0, starts
        )
        return people, np.minimum(best, 1.0), right / law.counts[people]

    def _odds(self, cells: Integers, units: Integers, evidence: Evidence) -> Floats:
        """P(z | c) f(y | c) / f(z, y), the last by the records that stayed in z and those that came."""
        law, goals = self.plan.law, self.released[units]
        stay = law.counts[goals] * law.chance(goals, goals) * np.exp(np.clip(evidence(goals, units), -30, 30))
        log_odds = self._log_chance(cells, goals) + np.clip(evidence(cells, units), -30, 30)
        return np.asarray(np.exp(log_odds) / (stay + law.arrivals()[goals] + 1e-300))


def _difference(kind: Evidence, cells: Integers, one: Integers, two: Integers) -> Floats:
    """How much better two units go with their own cells than with each other's."""
    return kind(cells[one], one) + kind(cells[two], two) - kind(cells[two], one) - kind(cells[one], two)


def _weighed(kinds: list[Evidence], weights: Floats) -> Evidence:
    return lambda cells, units: np.asarray(
        sum((w * kind(cells, units) for w, kind in zip(weights, kinds, strict=True)), np.zeros(len(units)))
    )
