"""How sure a link is: the share of an intruder's pairs that are right.

Counted where the true pairs are known (`Truth`), expected where they are not (`Belief`), and checked in a simulated
file in which they are known: as many records of the second file as matches are expected are drawn as copies of records
of the first, each variable with the level of agreement that matches have, other values from those the second file
holds; the rest are records of the second file that seem to match nobody. Linkage finds as much in it as in the real
file, if the estimates hold.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.attacks._linkage.agreement_patterns import CodedFiles, join
from equipoise.ground.arrays import Floats, Integers

MAX_FITTING_ROUNDS = 12
"""Rounds of iterative proportional fitting at most."""
FITTING_TOLERANCE = 1e-3
"""Share of the records by which the row sums may be off when fitting stops."""
SIMULATION_SEED = 1990
"""Public seed of the simulated file."""
MAX_DRAWS = 500
"""Draws of a value until one has the level of agreement sought; then the last one is used."""

Level = Callable[[int, Integers, Integers], Integers]


class PairTally(Protocol):
    """Adds up how many of an intruder's pairs are right."""

    def pairs(self, a: Integers, b: Integers, pattern: Integers, weights: Floats) -> None: ...

    def groups(
        self, pattern: int, cells: Integers, ids: Integers, first_left: Floats, second_left: Floats, largest: Floats
    ) -> None: ...


class Study(Protocol):
    """Two files, their pairs by pattern, and the weights and decisions of the intruder."""

    @property
    def files(self) -> CodedFiles: ...
    @property
    def pairs(self) -> Integers: ...
    @property
    def weights(self) -> Floats: ...
    @property
    def decisions(self) -> Integers: ...
    @property
    def share(self) -> float: ...
    @property
    def order(self) -> list[int]: ...
    def texts(self) -> list[str]: ...
    def ratios(self, values: Floats, of_first: bool) -> Floats: ...
    def link(self, right: PairTally) -> str: ...


class Truth:
    """Tally where the true pairs are known: for each person, the pairs made between the cells of their two records."""

    def __init__(self, files: CodedFiles, people: tuple[Integers, Integers], matches: Integers, patterns: int) -> None:
        self.a, self.b, self.size = files.first_cell[people[0]], files.second_cell[people[1]], len(files.first_counts)
        self.files, self.flow, self.sums = files, np.zeros(len(people[0])), np.zeros(len(files.first_counts))
        self.ordered = np.argsort(matches, kind="stable")
        self.ends = np.searchsorted(matches[self.ordered], np.arange(patterns + 1))

    def pairs(self, a: Integers, b: Integers, pattern: Integers, weights: Floats) -> None:
        if not len(a):
            return
        place, is_candidate = self._places(a, b)
        self.flow += np.where(is_candidate, weights[place], 0.0)

    def _places(self, a: Integers, b: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        """Position of each person's true pair among the candidates, which are in order, and whether it is one."""
        key, true_key = a * self.size + b, self.a * self.size + self.b
        place = np.minimum(np.searchsorted(key, true_key), len(key) - 1)
        return place, key[place] == true_key

    def groups(
        self, pattern: int, cells: Integers, ids: Integers, first_left: Floats, second_left: Floats, largest: Floats
    ) -> None:
        """Add the people whose true pair has this pattern; records of a group are paired at random."""
        self.sums[cells] = largest[ids]
        people = self.ordered[self.ends[pattern] : self.ends[pattern + 1]]
        people = people[(first_left[self.a[people]] > 0) & (second_left[self.b[people]] > 0)]
        self.flow[people] += first_left[self.a[people]] * second_left[self.b[people]] / self.sums[self.a[people]]

    def risk(self) -> Floats:
        """Probability that each true pair is made: pairs made / (a b), as the records of a cell are exchangeable."""
        return np.minimum(self.flow / (self.files.first_counts[self.a] * self.files.second_counts[self.b]), 1.0)


class Belief:
    """Tally where the true pairs are unknown: the expected number of right pairs of each record of the first file.

    Records i and j match with probability P_ij = r_ij a_i b_j, r = m / u of their pattern. The factors make every row
    and column, with the probability of no match, add up to 1, and the number of matches the expected one (iterative
    proportional fitting). Probabilities come out too even, with up to a tenth too few right pairs: they serve to
    compare records. `alone` is the probability that a record of the second file has no match. Cost:
    `MAX_FITTING_ROUNDS` times two sums over all pairs, each 2^v groupings where they are counted.
    """

    def __init__(self, study: Study) -> None:
        files = study.files
        first_counts, second_counts = files.first_counts.astype(np.float64), files.second_counts.astype(np.float64)
        expected = min(study.share * float(study.pairs.sum()), first_counts.sum(), second_counts.sum())
        alone = first_counts.sum() - expected, second_counts.sum() - expected
        self.first, self.second = np.ones(len(first_counts)), np.ones(len(first_counts))
        for _ in range(MAX_FITTING_ROUNDS):
            no_match_second = alone[1] / float((second_counts * self.second).sum())
            self.second = 1 / np.maximum(study.ratios(first_counts * self.first, False) + no_match_second, 1e-300)
            no_match_first = alone[0] / float((first_counts * self.first).sum())
            sums = study.ratios(second_counts * self.second, True) + no_match_first
            misfit = float((first_counts * np.abs(self.first * sums - 1)).sum())
            self.first = 1 / np.maximum(sums, 1e-300)
            if misfit <= FITTING_TOLERANCE * first_counts.sum():
                break
        self.alone = np.minimum(no_match_second * self.second, 1.0)[files.second_cell]
        self.ratio, self.files, self.right = np.exp2(study.weights), files, np.zeros(len(first_counts))

    def pairs(self, a: Integers, b: Integers, pattern: Integers, weights: Floats) -> None:
        chance = np.minimum(self.ratio[pattern] * self.first[a] * self.second[b], 1.0)
        self.right += np.bincount(a, weights * chance, len(self.right))

    def groups(
        self, pattern: int, cells: Integers, ids: Integers, first_left: Floats, second_left: Floats, largest: Floats
    ) -> None:
        """Add groups paired at random: first_left x second_left / largest pairs of each two cells."""
        partners = np.bincount(ids, second_left[cells] * self.second[cells], len(largest)) / largest
        self.right[cells] += first_left[cells] * self.first[cells] * self.ratio[pattern] * partners[ids]

    def risk(self) -> Floats:
        """Expected right pairs of each record of the first file."""
        return np.asarray(np.minimum(self.right / np.maximum(self.files.first_counts, 1), 1.0)[self.files.first_cell])


def simulate(
    files: CodedFiles, chances: Sequence[Floats], matches: int, level: Level, alone: Floats
) -> tuple[CodedFiles, tuple[Integers, Integers]]:
    """The first file and a simulated second one, and the rows of the people in both. O(records x variables).

    `chances` are the probabilities of the levels of each variable among matches, `level` gives the level of a pair of
    codes, `alone` the probability that a record of the second file has no match: such records stay.
    """
    random = np.random.default_rng(SIMULATION_SEED)
    people = random.permutation(len(files.first_cell))[:matches]
    lots = random.standard_exponential(len(files.second_cell)) / np.maximum(alone, 1e-12)
    strangers = np.argsort(lots, kind="stable")[: len(files.second_cell) - matches]
    codes = []
    for i, chance in enumerate(chances):
        first, second = files.first[i].astype(np.int64), files.second[i].astype(np.int64)
        copied = _copy_codes(first[people], second, chance, lambda a, b, i=i: level(i, a, b), random)  # type: ignore[misc]
        if files.missing[i]:
            copied[copied == 0] = files.sizes[i] - 1
        codes.append(np.concatenate([first, copied, second[strangers]]))
    simulated = join(files.sizes, tuple(codes), files.missing, len(files.first_cell))
    return simulated, (people, np.arange(matches))


def _copy_codes(
    codes: Integers,
    pool: Integers,
    chance: Floats,
    level: Callable[[Integers, Integers], Integers],
    random: np.random.Generator,
) -> Integers:
    """The codes, or values of the pool with the level of agreement that was drawn where it is not equal."""
    levels = np.searchsorted(np.cumsum(chance)[:-1], random.random(len(codes)), side="right")
    simulated, pending = codes.copy(), np.flatnonzero(levels < len(chance) - 1)
    for _ in range(MAX_DRAWS):
        if not len(pending):
            break
        simulated[pending] = random.choice(pool, len(pending))
        pending = pending[level(codes[pending], simulated[pending]) != levels[pending]]
    return simulated
