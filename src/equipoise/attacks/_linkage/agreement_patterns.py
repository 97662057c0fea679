"""Agreement patterns of all pairs of records of two files, and what they say about which pairs are matches.

A pattern is the set of variables on which a pair agrees, a whole number whose bit i stands for variable i. The pairs
that agree on at least the set S number sum over value combinations of S of (records here x records there); Moebius
inversion over the supersets of S leaves the pairs that agree on exactly S. No pair is ever looked at: the cost is that
of 2^v roll-ups of the cells both files occupy. A missing value agrees with nothing, not even with a missing value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import polars as pl

from equipoise.attacks._nearest.comparable_numbers import is_date
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import ParameterError, RolesError
from equipoise.ground.packed_keys import Cube, code, group

MOST = 12
"""Variables that can be compared: 2^12 patterns."""
PAIRS = 1 << 62
EDGE = 1e-9
"""Probabilities of agreement are kept this far from 0 and 1, so that no weight is infinite."""
START = 0.9
ROUNDS = 10_000
CLOSE = 1e-8
DIGITS = 6
"""Weights that are equal to so many decimals are equal: they are decided alike."""


@dataclass(frozen=True, eq=False, repr=False)
class Crossed:
    """Two files as codes that mean the same in both; `cells` has the records of both, numbered by equal codes.

    `first` and `second` hold the codes of each variable, `one` and `two` the cell of each record, `sizes` the number
    of codes. A missing value has another code in the second file (the last) than in the first (0), so that it agrees
    with nothing; `missing` says which variables have any.
    """

    sizes: tuple[int, ...]
    first: tuple[Integers, ...]
    second: tuple[Integers, ...]
    one: Integers
    two: Integers
    codes: tuple[Integers, ...]
    missing: tuple[bool, ...]

    @property
    def variables(self) -> int:
        return len(self.sizes)

    @cached_property
    def here(self) -> Integers:
        """Records of the first file in each cell."""
        return np.bincount(self.one, minlength=len(self.codes[0]))

    @cached_property
    def there(self) -> Integers:
        """Records of the second file in each cell."""
        return np.bincount(self.two, minlength=len(self.codes[0]))

    def pattern(self, first: Integers, second: Integers) -> Integers:
        """The pattern of the pairs of these records of the first and the second file."""
        found = np.zeros(len(first), dtype=np.int64)
        for bit, (a, b) in enumerate(zip(self.first, self.second, strict=True)):
            found |= (a[first] == b[second]).astype(np.int64) << bit
        return found

    def groups(self, pattern: int, cells: Integers) -> tuple[Integers, int]:
        """These cells numbered by their values of the variables in the pattern, and how many numbers there are."""
        kept = [i for i in range(self.variables) if pattern >> i & 1]
        if not kept:
            return np.zeros(len(cells), dtype=np.int64), 1
        ids, places = group([self.codes[i][cells] for i in kept], [self.sizes[i] for i in kept])
        return ids, len(places)


def crossed(first: pl.DataFrame, second: pl.DataFrame) -> Crossed:
    """Code the columns of two files alike; columns of different types are compared as text. O(n log n)."""
    if first.width > MOST:
        raise ParameterError(f"Agreement on {first.width} variables has 2^{first.width} patterns: name at most {MOST}.")
    if first.height * second.height > PAIRS:
        raise ParameterError(f"{first.height:,} x {second.height:,} pairs are more than can be counted exactly.")
    height = first.height
    coded = [_alike(a, b) for a, b in zip(first.iter_columns(), second.iter_columns(), strict=True)]
    return joined(tuple(c[0] for c in coded), tuple(c[1] for c in coded), tuple(c[2] for c in coded), height)


def joined(sizes: tuple[int, ...], codes: tuple[Integers, ...], missing: tuple[bool, ...], height: int) -> Crossed:
    """Two files from the codes of both, the first `height` those of the first file."""
    ids, places = group(codes, sizes)
    halves = tuple(c[:height] for c in codes), tuple(c[height:] for c in codes)
    return Crossed(sizes, *halves, ids[:height], ids[height:], tuple(c[places] for c in codes), missing)


def _alike(a: pl.Series, b: pl.Series) -> tuple[int, Integers, bool]:
    """How many codes there are, those of both columns, one below the other, and whether some are missing."""
    if a.dtype.is_nested() or b.dtype.is_nested() or pl.Object in (a.dtype, b.dtype):
        raise RolesError(f"Column {a.name!r} must hold single values to be compared.")
    if a.dtype != b.dtype and is_date(a, b):
        a, b = a.cast(pl.Datetime("us")), b.cast(pl.Datetime("us"))
    elif a.dtype != b.dtype and not (a.dtype.is_numeric() and b.dtype.is_numeric()):
        a, b = a.cast(pl.String), b.cast(pl.String)
    both = code(pl.concat([pl.DataFrame(a), pl.DataFrame(b.alias(a.name))], how="vertical_relaxed").to_series())
    if not both.values.null_count():
        return both.size, both.codes, False
    apart = both.codes.astype(np.uint32)
    apart[len(a) :][apart[len(a) :] == 0] = both.size
    return both.size + 1, apart, True


def agreements(files: Crossed) -> Integers:
    """For each set of variables, the number of pairs that agree on at least these. 2^v roll-ups of the cells.

    >>> files = crossed(pl.DataFrame({"x": [1, 1], "y": [1, 2]}), pl.DataFrame({"x": [1, 2], "y": [1, 2]}))
    >>> agreements(files).tolist(), exactly(agreements(files)).tolist()
    ([4, 2, 2, 1], [1, 1, 1, 1])
    """
    found = np.zeros(1 << files.variables, dtype=np.int64)
    order = sorted(range(files.variables), key=lambda i: -files.sizes[i])
    axes = tuple(pl.int_range(files.sizes[i], eager=True) for i in order)
    there = files.there.astype(np.float64)
    _fill(found, Cube(axes, tuple(files.codes[i] for i in order), files.here + files.there, there), order, 0)
    return found


def _fill(found: Integers, cube: Cube, kept: Sequence[int], start: int) -> None:
    """The pairs of these cells that agree on all kept variables, then without each one that was not yet dropped.

    A cell holds the records of both files and, as its weight, those of the second. The variable with most values is
    dropped first, so that most sets are counted from few cells.
    """
    there = cube.total.astype(np.int64)
    found[sum(1 << i for i in kept)] = int(np.dot(cube.n - there, there))
    for place in range(start, len(kept)):
        left = [i for i in range(len(kept)) if i != place]
        _fill(found, cube.keep(left), [kept[i] for i in left], place)


def exactly(at_least: Integers) -> Integers:
    """Moebius inversion: from the pairs that agree on at least each set to those that agree on exactly this set."""
    found, step = at_least.copy(), 1
    while step < len(found):
        blocks = found.reshape(-1, 2, step)
        blocks[:, 0] -= blocks[:, 1]
        step *= 2
    return found


def bits(variables: int) -> Floats:
    """A row per pattern, a column per variable: 1 where they agree.

    >>> bits(2).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    """
    return (np.arange(1 << variables)[:, None] >> np.arange(variables) & 1).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Agreement:
    """How often matches (`m`) and other pairs (`u`) agree on each variable, and the share of pairs that match."""

    share: float
    m: Floats
    u: Floats
    rounds: int = 0
    converged: bool = True

    def of_patterns(self) -> tuple[Floats, Floats]:
        """The probability of each pattern among matches and among other pairs, variables being independent in both."""
        table = bits(len(self.m))
        return np.exp(_logs(table, self.m)), np.exp(_logs(table, self.u))

    def weights(self) -> Floats:
        """log2(m / u) of each pattern: what agreement and disagreement say for a match."""
        table = bits(len(self.m))
        found: Floats = (_logs(table, self.m) - _logs(table, self.u)) / np.log(2)
        return np.round(found, DIGITS)


def _logs(table: Floats, chance: Floats) -> Floats:
    found: Floats = table @ np.log(chance) + (1 - table) @ np.log1p(-chance)
    return found


def inside(chance: Floats) -> Floats:
    """Probabilities away from 0 and 1."""
    return np.clip(chance, EDGE, 1 - EDGE)


def estimate(pairs: Integers, first: int, second: int) -> Agreement:
    """Expectation-maximisation on the number of pairs of each pattern, without knowing which pairs match.

    Starts at m = 0.9 and u = the share of all pairs that agree. Two things an intruder knows are kept in every round,
    each by the exact constrained maximum, so that the likelihood still never falls and the two classes cannot trade
    places: a record has at most one match (share of matches <= 1 / larger file), and matches agree at least as often
    as other pairs (m >= u, the pooled share where that fails). Stops when no probability moves by more than 1e-8, or
    after 10,000 rounds: then `converged` is False.

    Source: Jaro (1989), section 4; Dempster, Laird and Rubin (1977).
    """
    seen = np.flatnonzero(pairs)
    table, counts = bits(len(pairs).bit_length() - 1)[seen], pairs[seen] / pairs.sum()
    most = min(1 / max(first, second), 1 - EDGE)
    u = inside(counts @ table)
    now = Agreement(most, np.maximum(START, u), u)
    for done in range(1, ROUNDS + 1):
        new = _round(table, counts, now, most)
        moved = max(np.abs(new.m - now.m).max(), np.abs(new.u - now.u).max(), abs(new.share / now.share - 1))
        now = new
        if moved < CLOSE:
            return Agreement(now.share, now.m, now.u, done)
    return Agreement(now.share, now.m, now.u, ROUNDS, False)


def _round(table: Floats, counts: Floats, now: Agreement, most: float) -> Agreement:
    """One round: how likely each pattern's pairs match, then the shares that fit best."""
    odds = np.log1p(-now.share) - np.log(now.share) + _logs(table, now.u) - _logs(table, now.m)
    match = counts / (1 + np.exp(np.minimum(odds, 700)))
    other = counts - match
    weigh, rest = max(float(match.sum()), 1e-300), max(float(other.sum()), 1e-300)
    agree, differ = match @ table, other @ table
    m, u = agree / weigh, differ / rest
    pooled = (agree + differ) / (weigh + rest)
    m, u = np.where(m < u, pooled, m), np.where(m < u, pooled, u)
    return Agreement(float(np.clip(weigh, 1e-18, most)), inside(m), inside(u))


def known(at_least: Integers, matches: Integers) -> Agreement:
    """m and u counted: from all pairs that agree on each variable, and the patterns of the pairs that do match."""
    width, total = len(at_least).bit_length() - 1, int(at_least[0])
    agree = np.array([int((matches >> i & 1).sum()) for i in range(width)], dtype=np.int64)
    every = at_least[1 << np.arange(width)]
    m = agree / max(1, len(matches))
    u = (every - agree) / (total - len(matches)) if total > len(matches) else every / total
    return Agreement(len(matches) / total, m, u)


LINK, CLERICAL, APART = 2, 1, 0
DECISIONS = ("non-link", "clerical", "link")


class PatternWeights(Protocol):
    """Probabilities and weights of patterns."""

    def of_patterns(self) -> tuple[Floats, Floats]: ...

    def weights(self) -> Floats: ...


def decide(rates: PatternWeights, false_match: float, false_nonmatch: float) -> Integers:
    """Which patterns are links (2), which need a clerk (1), which are non-links (0).

    Patterns are taken from the largest weight down while the probability of them all among pairs that do not match
    stays within `false_match`: links; from the smallest up while that among matches stays within `false_nonmatch`:
    non-links; the others lie between. Equal weights are decided alike; what both bounds allow goes by its sign.

    Source: Fellegi and Sunter (1969), section 2.
    """
    m, u = rates.of_patterns()
    levels, place = np.unique(rates.weights(), return_inverse=True)
    lost = np.cumsum(np.bincount(place, m)) <= false_nonmatch * (1 + EDGE)
    false = np.cumsum(np.bincount(place, u)[::-1])[::-1] <= false_match * (1 + EDGE)
    link = false & (~lost | (levels > 0))
    found = np.where(link, LINK, np.where(lost, APART, CLERICAL))
    return found[place]
