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

from equipoise.attacks._linkage.agreement_patterns import Crossed, joined
from equipoise.ground.arrays import Floats, Integers

ROUNDS = 12
"""Times that the beliefs of both files are fitted to each other."""
CLOSE = 1e-3
"""Unless the expected number of matches of every file is met to this share before."""
SEED = 1990
"""Public seed of the rehearsal."""
TRIES = 500
"""Values drawn until one has the level that is wanted; then any will do."""

Level = Callable[[int, Integers, Integers], Integers]


class Right(Protocol):
    """Adds up, pair by pair made, what is right."""

    def pairs(self, a: Integers, b: Integers, pattern: Integers, made: Floats) -> None: ...

    def groups(
        self, pattern: int, cells: Integers, ids: Integers, here: Floats, there: Floats, largest: Floats
    ) -> None: ...


class Study(Protocol):
    """Two files, their pairs by pattern, and what the intruder goes by."""

    @property
    def files(self) -> Crossed: ...
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
    def ratios(self, values: Floats, here: bool) -> Floats: ...
    def link(self, right: Right) -> str: ...


class Truth:
    """Who is who is known: for each person the number of pairs made between their cell and their record's cell."""

    def __init__(self, files: Crossed, people: tuple[Integers, Integers], matches: Integers, patterns: int) -> None:
        self.a, self.b, self.size = files.one[people[0]], files.two[people[1]], len(files.here)
        self.files, self.flow, self.sums = files, np.zeros(len(people[0])), np.zeros(len(files.here))
        self.ordered = np.argsort(matches, kind="stable")
        self.ends = np.searchsorted(matches[self.ordered], np.arange(patterns + 1))

    def pairs(self, a: Integers, b: Integers, pattern: Integers, made: Floats) -> None:
        if not len(a):
            return
        place, found = self._places(a, b)
        self.flow += np.where(found, made[place], 0.0)

    def _places(self, a: Integers, b: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        """Where the true pair of each person stands among the candidates, which are in order, and whether it does."""
        key, wanted = a * self.size + b, self.a * self.size + self.b
        place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        return place, key[place] == wanted

    def groups(
        self, pattern: int, cells: Integers, ids: Integers, here: Floats, there: Floats, largest: Floats
    ) -> None:
        """Those of a group are paired at random: the people whose true pair has this pattern."""
        self.sums[cells] = largest[ids]
        people = self.ordered[self.ends[pattern] : self.ends[pattern + 1]]
        people = people[(here[self.a[people]] > 0) & (there[self.b[people]] > 0)]
        self.flow[people] += here[self.a[people]] * there[self.b[people]] / self.sums[self.a[people]]

    def risk(self) -> Floats:
        """Records of a cell are exchangeable: each of a x b pairs is made with probability pairs made / (a b)."""
        found: Floats = np.minimum(self.flow / (self.files.here[self.a] * self.files.there[self.b]), 1.0)
        return found


class Belief:
    """Who is who is not known: for each record of the first file the expected number of right pairs it is in.

    Records i and j match with probability P_ij = r_ij a_i b_j, r = m / u of their pattern. The factors make every row
    and column add up to 1 with nobody, whose share is such that the number of matches is the one expected (iterative
    proportional fitting). It spreads beliefs too evenly, and expects up to a tenth too few right pairs: it serves to
    compare records. `alone` is how likely each record of the second file is to match nobody. Cost: `ROUNDS` times two
    sums over all pairs, each 2^v groupings where they are counted.
    """

    def __init__(self, study: Study) -> None:
        files = study.files
        here, there = files.here.astype(np.float64), files.there.astype(np.float64)
        expected = min(study.share * float(study.pairs.sum()), here.sum(), there.sum())
        alone = here.sum() - expected, there.sum() - expected
        self.first, self.second = np.ones(len(here)), np.ones(len(here))
        for _ in range(ROUNDS):
            left = alone[1] / float((there * self.second).sum())
            self.second = 1 / np.maximum(study.ratios(here * self.first, False) + left, 1e-300)
            nobody = alone[0] / float((here * self.first).sum())
            sums = study.ratios(there * self.second, True) + nobody
            met = float((here * np.abs(self.first * sums - 1)).sum())
            self.first = 1 / np.maximum(sums, 1e-300)
            if met <= CLOSE * here.sum():
                break
        self.alone = np.minimum(left * self.second, 1.0)[files.two]
        self.ratio, self.files, self.right = np.exp2(study.weights), files, np.zeros(len(here))

    def pairs(self, a: Integers, b: Integers, pattern: Integers, made: Floats) -> None:
        chance = np.minimum(self.ratio[pattern] * self.first[a] * self.second[b], 1.0)
        self.right += np.bincount(a, made * chance, len(self.right))

    def groups(
        self, pattern: int, cells: Integers, ids: Integers, here: Floats, there: Floats, largest: Floats
    ) -> None:
        """Those of a group are paired at random: here x there / largest pairs of each two cells."""
        partners = np.bincount(ids, there[cells] * self.second[cells], len(largest)) / largest
        self.right[cells] += here[cells] * self.first[cells] * self.ratio[pattern] * partners[ids]

    def risk(self) -> Floats:
        """The expected right pairs of each record of the first file."""
        found: Floats = np.minimum(self.right / np.maximum(self.files.here, 1), 1.0)[self.files.one]
        return found


def drawn(
    files: Crossed, chances: Sequence[Floats], matches: int, level: Level, alone: Floats
) -> tuple[Crossed, tuple[Integers, Integers]]:
    """The first file and a second one drawn, and the rows of the people in both. O(records x variables).

    `chances` are the probabilities of the levels of each variable among matches, `level` says which one a pair of codes
    has, `alone` how likely each record of the second file is to match nobody: such records stay.
    """
    random = np.random.default_rng(SEED)
    people = random.permutation(len(files.one))[:matches]
    lots = random.standard_exponential(len(files.two)) / np.maximum(alone, 1e-12)
    strangers = np.argsort(lots, kind="stable")[: len(files.two) - matches]
    codes = []
    for i, chance in enumerate(chances):
        first, second = files.first[i].astype(np.int64), files.second[i].astype(np.int64)
        copied = _copied(first[people], second, chance, lambda a, b, i=i: level(i, a, b), random)  # type: ignore[misc]
        if files.missing[i]:
            copied[copied == 0] = files.sizes[i] - 1
        codes.append(np.concatenate([first, copied, second[strangers]]))
    made = joined(files.sizes, tuple(codes), files.missing, len(files.one))
    return made, (people, np.arange(matches))


def _copied(
    codes: Integers,
    pool: Integers,
    chance: Floats,
    level: Callable[[Integers, Integers], Integers],
    random: np.random.Generator,
) -> Integers:
    """The codes, or where another level than equal is drawn, values of the pool that have it."""
    wanted = np.searchsorted(np.cumsum(chance)[:-1], random.random(len(codes)), side="right")
    found, left = codes.copy(), np.flatnonzero(wanted < len(chance) - 1)
    for _ in range(TRIES):
        if not len(left):
            break
        found[left] = random.choice(pool, len(left))
        left = left[level(codes[left], found[left]) != wanted[left]]
    return found
