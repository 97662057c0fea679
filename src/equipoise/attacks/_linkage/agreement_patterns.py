"""Agreement patterns of all pairs of records of two files, and the Fellegi-Sunter weights estimated from them.

A pattern is the set of variables on which a pair agrees, a whole number whose bit i stands for variable i. The number
of pairs that agree on at least the set S is the sum over value combinations of S of (records in the first file x
records in the second); Moebius inversion over the supersets of S gives the pairs that agree on exactly S. Single pairs
are never compared: the cost is 2^v roll-ups of the occupied cells. A missing value agrees with nothing.
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

MAX_VARIABLES = 12
"""Variables compared at most: 2^12 patterns."""
MAX_PAIRS = 1 << 62
MIN_PROBABILITY = 1e-9
"""Probabilities of agreement stay this far from 0 and 1, so that no weight is infinite."""
START_AGREEMENT = 0.9
MAX_EM_ROUNDS = 10_000
EM_TOLERANCE = 1e-8
WEIGHT_DECIMALS = 6
"""Decimals to which weights are rounded; equal weights are decided alike."""


@dataclass(frozen=True, eq=False, repr=False)
class CodedFiles:
    """Two files with their variables coded alike, and the cells (combinations of codes) that their records are in.

    `first` and `second` hold the codes of each variable, `first_cell` and `second_cell` the cell of each record,
    `sizes` the number of codes, `codes` those of each cell. A missing value has code 0 in the first file and the last
    code in the second, so that it agrees with nothing; `missing` says which variables have any.
    """

    sizes: tuple[int, ...]
    first: tuple[Integers, ...]
    second: tuple[Integers, ...]
    first_cell: Integers
    second_cell: Integers
    codes: tuple[Integers, ...]
    missing: tuple[bool, ...]

    @property
    def variables(self) -> int:
        return len(self.sizes)

    @property
    def larger(self) -> int:
        """Number of records of the larger file."""
        return max(len(self.first_cell), len(self.second_cell))

    @cached_property
    def first_counts(self) -> Integers:
        """Records of the first file in each cell."""
        return np.bincount(self.first_cell, minlength=len(self.codes[0]))

    @cached_property
    def second_counts(self) -> Integers:
        """Records of the second file in each cell."""
        return np.bincount(self.second_cell, minlength=len(self.codes[0]))

    def pattern(self, first: Integers, second: Integers) -> Integers:
        """Agreement pattern of each pair of a record of the first file and one of the second."""
        patterns = np.zeros(len(first), dtype=np.int64)
        for bit, (a, b) in enumerate(zip(self.first, self.second, strict=True)):
            patterns |= (a[first] == b[second]).astype(np.int64) << bit
        return patterns

    def groups(self, pattern: int, cells: Integers) -> tuple[Integers, int]:
        """Group number of each cell by its values of the variables in the pattern, and the number of groups."""
        variables = [i for i in range(self.variables) if pattern >> i & 1]
        if not variables:
            return np.zeros(len(cells), dtype=np.int64), 1
        ids, places = group([self.codes[i][cells] for i in variables], [self.sizes[i] for i in variables])
        return ids, len(places)


def code_files(first: pl.DataFrame, second: pl.DataFrame) -> CodedFiles:
    """Code the columns of two files alike; columns of different types are compared as text. O(n log n)."""
    if first.width > MAX_VARIABLES:
        width = first.width
        raise ParameterError(f"Agreement on {width} variables has 2^{width} patterns: name at most {MAX_VARIABLES}.")
    if first.height * second.height > MAX_PAIRS:
        raise ParameterError(f"{first.height:,} x {second.height:,} pairs are more than can be counted exactly.")
    height = first.height
    coded = [_code_alike(a, b) for a, b in zip(first.iter_columns(), second.iter_columns(), strict=True)]
    return join(tuple(c[0] for c in coded), tuple(c[1] for c in coded), tuple(c[2] for c in coded), height)


def join(sizes: tuple[int, ...], codes: tuple[Integers, ...], missing: tuple[bool, ...], height: int) -> CodedFiles:
    """Build the coded files from the codes of both, of which the first `height` belong to the first file."""
    ids, places = group(codes, sizes)
    halves = tuple(c[:height] for c in codes), tuple(c[height:] for c in codes)
    return CodedFiles(sizes, *halves, ids[:height], ids[height:], tuple(c[places] for c in codes), missing)


def _code_alike(a: pl.Series, b: pl.Series) -> tuple[int, Integers, bool]:
    """The number of codes, the codes of both columns one below the other, and whether some values are missing."""
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


def agreements(files: CodedFiles) -> Integers:
    """Number of pairs that agree on at least each set of variables. 2^v roll-ups of the cells.

    >>> files = code_files(pl.DataFrame({"x": [1, 1], "y": [1, 2]}), pl.DataFrame({"x": [1, 2], "y": [1, 2]}))
    >>> agreements(files).tolist(), exact_counts(agreements(files)).tolist()
    ([4, 2, 2, 1], [1, 1, 1, 1])
    """
    pairs = np.zeros(1 << files.variables, dtype=np.int64)
    order = sorted(range(files.variables), key=lambda i: -files.sizes[i])
    axes = tuple(pl.int_range(files.sizes[i], eager=True) for i in order)
    both, second = files.first_counts + files.second_counts, files.second_counts.astype(np.float64)
    _fill(pairs, Cube(axes, tuple(files.codes[i] for i in order), both, second), order, 0)
    return pairs


def _fill(pairs: Integers, cube: Cube, variables: Sequence[int], start: int) -> None:
    """Count the pairs that agree on all these variables, then, by recursion, on each subset not yet counted.

    A cell holds the records of both files and, as its weight, those of the second. The variable with most values is
    dropped first, so that most sets are counted from few cells.
    """
    second_counts = cube.total.astype(np.int64)
    pairs[sum(1 << i for i in variables)] = int(np.dot(cube.n - second_counts, second_counts))
    for place in range(start, len(variables)):
        remaining = [i for i in range(len(variables)) if i != place]
        _fill(pairs, cube.keep(remaining), [variables[i] for i in remaining], place)


def exact_counts(at_least: Integers) -> Integers:
    """Number of pairs that agree on exactly each set of variables, by Moebius inversion of the at-least counts."""
    pairs, step = at_least.copy(), 1
    while step < len(pairs):
        blocks = pairs.reshape(-1, 2, step)
        blocks[:, 0] -= blocks[:, 1]
        step *= 2
    return pairs


def bits(variables: int) -> Floats:
    """Matrix of all patterns: a row per pattern, a column per variable, 1 where they agree.

    >>> bits(2).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    """
    return (np.arange(1 << variables)[:, None] >> np.arange(variables) & 1).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Agreement:
    """Probabilities that matches (`m`) and other pairs (`u`) agree on each variable, and the share that match."""

    share: float
    m: Floats
    u: Floats
    rounds: int = 0
    converged: bool = True

    def of_patterns(self) -> tuple[Floats, Floats]:
        """Probability of each pattern among matches and among other pairs, if variables are independent in both."""
        table = bits(len(self.m))
        return np.exp(_logs(table, self.m)), np.exp(_logs(table, self.u))

    def weights(self) -> Floats:
        """Fellegi-Sunter weight log2(m / u) of each pattern."""
        table = bits(len(self.m))
        weights: Floats = (_logs(table, self.m) - _logs(table, self.u)) / np.log(2)
        return np.round(weights, WEIGHT_DECIMALS)


def _logs(table: Floats, chance: Floats) -> Floats:
    return np.asarray(table @ np.log(chance) + (1 - table) @ np.log1p(-chance))


def clip(chance: Floats) -> Floats:
    """Probabilities clipped away from 0 and 1."""
    return np.clip(chance, MIN_PROBABILITY, 1 - MIN_PROBABILITY)


def estimate(pairs: Integers, first: int, second: int) -> Agreement:
    """Estimate m and u by expectation-maximisation from the number of pairs of each pattern, true pairs unknown.

    Starts at m = 0.9 and u = the share of all pairs that agree. Two constraints hold in every round, each by the exact
    constrained maximum, so that the likelihood never falls and the classes cannot trade places: a record has at most
    one match (share of matches <= 1 / larger file), and matches agree at least as often as other pairs (m >= u, else
    the pooled share). Stops when no probability changes by 1e-8, or after 10,000 rounds, not `converged`.

    Source: Jaro (1989), section 4; Dempster, Laird and Rubin (1977).
    """
    occurring = np.flatnonzero(pairs)
    table, counts = bits(len(pairs).bit_length() - 1)[occurring], pairs[occurring] / pairs.sum()
    max_share = min(1 / max(first, second), 1 - MIN_PROBABILITY)
    u = clip(counts @ table)
    rates = Agreement(max_share, np.maximum(START_AGREEMENT, u), u)
    for rounds in range(1, MAX_EM_ROUNDS + 1):
        updated = _round(table, counts, rates, max_share)
        gaps = np.abs(updated.m - rates.m).max(), np.abs(updated.u - rates.u).max()
        change = max(*gaps, abs(updated.share / rates.share - 1))
        rates = updated
        if change < EM_TOLERANCE:
            return Agreement(rates.share, rates.m, rates.u, rounds)
    return Agreement(rates.share, rates.m, rates.u, MAX_EM_ROUNDS, False)


def _round(table: Floats, counts: Floats, rates: Agreement, max_share: float) -> Agreement:
    """One round of EM: the probability that pairs of each pattern match, then the m, u and share that fit best."""
    odds = np.log1p(-rates.share) - np.log(rates.share) + _logs(table, rates.u) - _logs(table, rates.m)
    match = counts / (1 + np.exp(np.minimum(odds, 700)))
    other = counts - match
    weigh, rest = max(float(match.sum()), 1e-300), max(float(other.sum()), 1e-300)
    agree, differ = match @ table, other @ table
    m, u = agree / weigh, differ / rest
    pooled = (agree + differ) / (weigh + rest)
    m, u = np.where(m < u, pooled, m), np.where(m < u, pooled, u)
    return Agreement(float(np.clip(weigh, 1e-18, max_share)), clip(m), clip(u))


def count_agreement(at_least: Integers, matches: Integers) -> Agreement:
    """m and u counted from all pairs that agree on each variable and the patterns of the true pairs."""
    width, total = len(at_least).bit_length() - 1, int(at_least[0])
    agree = np.array([int((matches >> i & 1).sum()) for i in range(width)], dtype=np.int64)
    every = at_least[1 << np.arange(width)]
    m = agree / max(1, len(matches))
    u = (every - agree) / (total - len(matches)) if total > len(matches) else every / total
    return Agreement(len(matches) / total, m, u)


LINK, CLERICAL, NON_LINK = 2, 1, 0
DECISIONS = ("non-link", "clerical", "link")


class PatternWeights(Protocol):
    """What decisions need: the probabilities and weights of patterns."""

    def of_patterns(self) -> tuple[Floats, Floats]: ...

    def weights(self) -> Floats: ...


def decide(rates: PatternWeights, false_match: float, false_nonmatch: float) -> Integers:
    """Fellegi-Sunter decision on each pattern: link (2), clerical review (1) or non-link (0).

    Patterns are taken from the largest weight down while the probability of them all among pairs that do not match
    stays within `false_match`: links; from the smallest up while that among matches stays within `false_nonmatch`:
    non-links; the others are clerical. Equal weights are decided alike; where both bounds allow it, the sign decides.

    Source: Fellegi and Sunter (1969), section 2.
    """
    m, u = rates.of_patterns()
    levels, place = np.unique(rates.weights(), return_inverse=True)
    non_link = np.cumsum(np.bincount(place, m)) <= false_nonmatch * (1 + MIN_PROBABILITY)
    false = np.cumsum(np.bincount(place, u)[::-1])[::-1] <= false_match * (1 + MIN_PROBABILITY)
    link = false & (~non_link | (levels > 0))
    decisions = np.where(link, LINK, np.where(non_link, NON_LINK, CLERICAL))
    return decisions[place]
