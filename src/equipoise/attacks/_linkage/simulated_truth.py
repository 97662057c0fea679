"""A rehearsal: a file drawn from what was estimated, in which it is known who is who.

The second file is drawn anew: as many records as matches are expected are copies of records of the first, each variable
with the level of agreement that matches have, other values from those the second file holds; the rest are records of
the second file that seem to match nobody. What linkage finds in it is what it finds in the file, if the estimates hold.
"""

from collections.abc import Callable, Sequence

import numpy as np

from equipoise.attacks._linkage.agreement_patterns import Crossed, joined
from equipoise.ground.arrays import Floats, Integers

SEED = 1990
"""Public seed of the rehearsal."""
TRIES = 500
"""Values drawn until one has the level that is wanted; then any will do."""

Level = Callable[[int, Integers, Integers], Integers]


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
