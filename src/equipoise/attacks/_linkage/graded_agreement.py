"""Graded agreement: pairs that differ, are near, or are equal in each variable, compared within blocks.

Nearness is not an equivalence (18 is near 20, and 20 near 22), so roll-ups cannot count the pairs as they do for equal
values: each pair of distinct value combinations of the two files is compared once, a few hundred thousand at a time,
and counts for all pairs of records that have it. Only pairs with equal blocks are compared.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from equipoise.attacks._linkage import agreement_patterns as agreement
from equipoise.attacks._linkage.agreement_patterns import CodedFiles, code_files
from equipoise.attacks._linkage.string_similarity import Similarity, Words
from equipoise.attacks._nearest.cell_pairs_by_cost import parts
from equipoise.attacks._nearest.comparable_numbers import MICROSECONDS_PER_DAY, is_date, numbers
from equipoise.ground.arrays import Floats, Integers, runs
from equipoise.ground.errors import DataError, ParameterError
from equipoise.ground.packed_keys import group

MAX_COMPARED_PAIRS = 200_000_000
"""Pairs of distinct value combinations compared at most: about a minute."""
MAX_TABLE_PAIRS = 1 << 26
"""Pairs of values of a variable up to which nearness is looked up in a table."""
ROUNDING_SLACK = 1e-12
DIFFERS, NEAR = 0, 1
START_LEVELS = (0.9, 0.1, 0.8)
"""Starting values of EM: agreement with two levels; near and equal with three."""

Near = Callable[[Integers, Integers], Any]


@dataclass(frozen=True, eq=False, repr=False)
class ComparedFiles:
    """Two files whose pairs of cells are compared by level of agreement; a pattern is a row of `table`.

    A variable without a grade has the levels 0 differs, 1 equal; one with a grade 0 differs, 1 near, 2 equal.
    """

    files: CodedFiles
    variables: int
    near: Mapping[int, Near]

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Number of levels of each variable."""
        return tuple(3 if i in self.near else 2 for i in range(self.variables))

    @cached_property
    def _block(self) -> Integers:
        """Block of every cell."""
        places = range(self.variables, self.files.variables)
        if not places:
            return np.zeros(len(self.files.codes[0]), dtype=np.int64)
        return group([self.files.codes[i] for i in places], [self.files.sizes[i] for i in places])[0]

    def _packed(self, a: Integers, b: Integers) -> Integers:
        """Levels of each pair of cells, packed into one number."""
        packed = np.zeros(len(a), dtype=np.int64)
        for i in reversed(range(self.variables)):
            level = self.level(i, self.files.codes[i][a].astype(np.int64), self.files.codes[i][b].astype(np.int64))
            packed = packed * self.levels[i] + level
        return packed

    def level(self, i: int, one: Integers, two: Integers) -> Integers:
        """Level of agreement of each pair of codes of a variable, or of a block (0 differs, 1 equal)."""
        level: Integers = (one == two).astype(np.int64)
        if i in self.near:
            level *= self.levels[i] - 1
            level[(level == DIFFERS) & self.near[i](one, two)] = NEAR
        return level

    def _runs(self) -> tuple[Integers, Integers, Integers, Integers]:
        """Cells of the first file, and for each the run of second-file cells in its block, in the order returned."""
        first_cells, second_cells = np.flatnonzero(self.files.first_counts), np.flatnonzero(self.files.second_counts)
        order = second_cells[np.argsort(self._block[second_cells], kind="stable")]
        low, high = (np.searchsorted(self._block[order], self._block[first_cells], side=s) for s in ("left", "right"))
        return first_cells, order, low, high

    def chunks(self) -> Iterator[tuple[Integers, Integers, Integers]]:
        """All pairs of cells with equal blocks, and their packed levels."""
        first_cells, order, low, high = self._runs()
        many = int((high - low).sum())
        if many > MAX_COMPARED_PAIRS:
            raise ParameterError(
                f"{many:,} pairs of distinct value combinations are too many to compare one by one (at most "
                f"{MAX_COMPARED_PAIRS:,}): name blocks, columns that must be equal."
            )
        for part in parts(high - low):
            a = np.repeat(first_cells[part], (high - low)[part])
            b = order[runs(low[part], high[part])]
            yield a, b, self._packed(a, b)

    @cached_property
    def _counts(self) -> tuple[Integers, Integers]:
        """Packed levels that occur, in order, and the number of pairs of records that have them."""
        total = np.zeros(int(np.prod(self.levels)), dtype=np.int64)
        for a, b, packed in self.chunks():
            kinds, place = np.unique(packed, return_inverse=True)
            records = self.files.first_counts[a] * self.files.second_counts[b]
            total[kinds] += np.bincount(place, records).astype(np.int64)
        occurring = np.flatnonzero(total)
        return occurring, total[occurring]

    @property
    def pairs(self) -> Integers:
        """Number of pairs of records of each pattern."""
        return self._counts[1]

    @cached_property
    def table(self) -> Integers:
        """Patterns that occur: a row per pattern, the level of each variable."""
        remainder, columns = self._counts[0], []
        for size in self.levels:
            columns.append(remainder % size)
            remainder = remainder // size
        return np.stack(columns, axis=1)

    def place(self, packed: Integers) -> Integers:
        """Pattern number of packed levels that occur."""
        return np.searchsorted(self._counts[0], packed)

    def pattern(self, first: Integers, second: Integers) -> Integers:
        """Pattern of each pair of a record of the first file and one of the second; -1 where their blocks differ."""
        a, b = self.files.first_cell[first], self.files.second_cell[second]
        same = np.flatnonzero(self._block[a] == self._block[b])
        patterns = np.full(len(a), -1, dtype=np.int64)
        patterns[same] = self.place(self._packed(a[same], b[same]))
        return patterns

    def edges(self, rank: Integers) -> tuple[Integers, Integers, Integers]:
        """Pairs of cells whose pattern has a rank of at least 0, in order of the cells, and their patterns."""
        candidates = [(np.zeros(0, dtype=np.int64),) * 3]
        for a, b, packed in self.chunks():
            pattern = self.place(packed)
            chosen = np.flatnonzero(rank[pattern] >= 0)
            candidates.append((a[chosen], b[chosen], pattern[chosen]))
        a, b, pattern = (np.concatenate(column) for column in zip(*candidates, strict=True))
        order = np.lexsort((b, a))
        return a[order], b[order], pattern[order]

    def texts(self) -> list[str]:
        """Each pattern as text: 1 equal, ~ near, 0 differs."""
        marks = ["01", "0~1"]
        return ["".join(marks[self.levels[i] - 2][level] for i, level in enumerate(row)) for row in self.table.tolist()]


def compare(
    first: pl.DataFrame,
    second: pl.DataFrame,
    near: Mapping[str, float],
    blocks: tuple[str, ...],
    similarity: Similarity,
) -> ComparedFiles:
    """Prepare two files for graded comparison by the columns that are not blocks.

    `near` has the largest gap of numbers (of dates, in days) or the smallest similarity of texts that counts as near.

    >>> ages = pl.DataFrame({"age": [18, 30]}), pl.DataFrame({"age": [20, 18]})
    >>> files = compare(*ages, {"age": 4}, (), "jaro-winkler")
    >>> dict(zip(files.texts(), files.pairs.tolist()))
    {'0': 2, '~': 1, '1': 1}
    """
    columns = [c for c in first.columns if c not in blocks]
    files = code_files(first.select(*columns, *blocks), second.select(*columns, *blocks))
    grades = {i: _grade(first[c], second[c], files, i, near[c], similarity) for i, c in enumerate(columns) if c in near}
    return ComparedFiles(files, len(columns), grades)


def _grade(a: pl.Series, b: pl.Series, files: CodedFiles, place: int, limit: float, similarity: Similarity) -> Near:
    """Function that tells whether two codes of a variable are near."""
    codes = np.concatenate([files.first[place], files.second[place]]).astype(np.int64)
    if all(s.dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null) for s in (a, b)):
        if not limit < 1:
            raise ParameterError(f"near: the similarity of {a.name!r} must be below 1, got {limit:g}.")
        values = np.full(files.sizes[place], None, dtype=object)
        values[codes] = pl.concat([a.cast(pl.String), b.cast(pl.String)]).to_numpy()
        both = [np.unique(codes[: len(a)]), np.unique(codes[len(a) :])]
        words = Words(pl.Series(a.name, values.tolist(), dtype=pl.String), both[0], both[1], similarity)
        return _text_nearness(words, 1 - limit + ROUNDING_SLACK)
    if not all(s.dtype.is_numeric() or s.dtype.is_temporal() or s.dtype == pl.Null for s in (a, b)):
        raise DataError(f"near: column {a.name!r} holds neither numbers, dates nor text in both files.")
    amounts = np.full(files.sizes[place], np.nan)
    amounts[codes] = numbers(a, b)
    most = limit * (MICROSECONDS_PER_DAY if is_date(a) or is_date(b) else 1.0) * (1 + ROUNDING_SLACK)
    return lambda one, two: np.abs(amounts[one] - amounts[two]) <= most


def _text_nearness(words: Words, max_distance: float) -> Near:
    """Nearness of texts: pairs of similar values are listed first, then looked up."""
    size = len(words.values)
    one, two, _ = words.near(max_distance)
    if size * size <= MAX_TABLE_PAIRS:
        table = np.zeros((size, size), dtype=np.bool_)
        table[one, two] = True
        return lambda a, b: table[a, b]
    keys = one * size + two  # in order, as `near` gives them
    if not len(keys):
        return lambda a, b: np.zeros(len(a), dtype=np.bool_)

    def is_near(a: Integers, b: Integers) -> Any:
        sought = a * size + b
        return keys[np.minimum(np.searchsorted(keys, sought), len(keys) - 1)] == sought

    return is_near


@dataclass(frozen=True, eq=False)
class Rates:
    """The m- and u-probabilities of each level of each variable, and the share of pairs that match."""

    share: float
    m: tuple[Floats, ...]
    u: tuple[Floats, ...]
    table: Integers
    rounds: int = 0
    converged: bool = True

    def of_patterns(self) -> tuple[Floats, Floats]:
        """Probability of each pattern among matches and among other pairs, if variables are independent in both."""
        return np.exp(self._logs(self.m)), np.exp(self._logs(self.u))

    def weights(self) -> Floats:
        """log2(m / u) of each pattern."""
        weights: Floats = (self._logs(self.m) - self._logs(self.u)) / np.log(2)
        return np.round(weights, agreement.WEIGHT_DECIMALS)

    def _logs(self, chances: tuple[Floats, ...]) -> Floats:
        log_probability = np.zeros(len(self.table))
        for i, chance in enumerate(chances):
            log_probability += np.log(chance)[self.table[:, i]]
        return log_probability


def isotonic_rates(match: NDArray[Any], other: NDArray[Any]) -> tuple[Floats, Floats]:
    """Maximum likelihood m and u of a variable's levels from their counts, with m / u not falling from level to level.

    A near value then never weighs more than an equal one. The share of matches at each level is made to rise by pooling
    neighbours (isotonic regression), which is the exact maximum: Dykstra, Kochar and Robertson (1995).

    >>> m, u = isotonic_rates(np.array([1.0, 8.0, 1.0]), np.array([70.0, 10.0, 20.0]))
    >>> m.round(3).tolist(), u.round(3).tolist()
    ([0.1, 0.415, 0.485], [0.7, 0.138, 0.162])
    """
    total = match + other
    pools: list[tuple[float, float, int]] = []
    for a, t in zip(match.tolist(), total.tolist(), strict=True):
        pools.append((a, t, 1))
        while len(pools) > 1 and pools[-2][0] * pools[-1][1] >= pools[-1][0] * pools[-2][1]:
            one, two = pools[-2], pools[-1]
            pools[-2:] = [(one[0] + two[0], one[1] + two[1], one[2] + two[2])]
    share = np.concatenate([np.full(size, a / t if t else 0.0) for a, t, size in pools])
    fitted = share * total
    return _to_probabilities(fitted), _to_probabilities(total - fitted)


def _to_probabilities(counts: Floats) -> Floats:
    """Probabilities in proportion to counts, none at 0."""
    shares = np.maximum(counts / max(float(counts.sum()), 1e-300), agreement.MIN_PROBABILITY)
    return np.asarray(shares / shares.sum())


def estimate(compared: ComparedFiles) -> Rates:
    """Estimate m and u by expectation-maximisation from the pairs of each pattern, m / u rising from level to level.

    The share of matches is at most that of one match for each record of the smaller file. Source: Jaro (1989) and
    Winkler (1990), with as many levels as the comparison has.
    """
    table, counts = compared.table, compared.pairs / compared.pairs.sum()
    smaller = min(len(compared.files.first_cell), len(compared.files.second_cell))
    max_share = min(smaller / float(compared.pairs.sum()), 1 - agreement.MIN_PROBABILITY)
    every = [np.bincount(table[:, i], counts, size) for i, size in enumerate(compared.levels)]
    agree, *graded = START_LEVELS
    first = {2: np.array([1 - agree, agree]), 3: np.array([1 - sum(graded), *graded])}
    start = [isotonic_rates(first[len(u)] * max_share, u * (1 - max_share)) for u in every]
    rates = Rates(max_share, tuple(m for m, _ in start), tuple(u for _, u in start), table)
    for rounds in range(1, agreement.MAX_EM_ROUNDS + 1):
        updated = _round(rates, counts, max_share)
        gaps = (_largest_change(updated, rates, i) for i in range(len(every)))
        change = max(abs(updated.share / rates.share - 1), *gaps)
        rates = updated
        if change < agreement.EM_TOLERANCE:
            return Rates(rates.share, rates.m, rates.u, table, rounds)
    return Rates(rates.share, rates.m, rates.u, table, agreement.MAX_EM_ROUNDS, False)


def _largest_change(updated: Rates, rates: Rates, i: int) -> float:
    return float(max(np.abs(updated.m[i] - rates.m[i]).max(), np.abs(updated.u[i] - rates.u[i]).max()))


def _round(rates: Rates, counts: Floats, max_share: float) -> Rates:
    """One round of EM: the probability that pairs of each pattern match, then the m and u that fit best."""
    m, u = rates.of_patterns()
    match = counts * rates.share * m / np.maximum(rates.share * m + (1 - rates.share) * u, 1e-300)
    fitted = _fit(rates.table, match, counts - match, [len(chance) for chance in rates.m])
    share = float(np.clip(match.sum(), 1e-18, max_share))
    return Rates(share, tuple(m for m, _ in fitted), tuple(u for _, u in fitted), rates.table)


def _fit(table: Integers, match: Floats, other: Floats, sizes: list[int]) -> list[tuple[Floats, Floats]]:
    columns = [(table[:, i], size) for i, size in enumerate(sizes)]
    return [isotonic_rates(np.bincount(c, match, s), np.bincount(c, other, s)) for c, s in columns]


def count_rates(compared: ComparedFiles, matches: Integers, *, in_order: bool) -> Rates:
    """m and u counted from the patterns of true and other pairs; with `in_order`, made isotonic."""
    compared_matches = matches[matches >= 0]
    match = np.bincount(compared_matches, minlength=len(compared.table)).astype(np.float64)
    other = np.maximum(compared.pairs - match, 0.0)
    fitted = []
    for i, size in enumerate(compared.levels):
        both = [np.bincount(compared.table[:, i], of, size) for of in (match, other)]
        fitted.append(isotonic_rates(*both) if in_order else tuple(x / max(1.0, float(x.sum())) for x in both))
    share = float(
        np.clip(
            len(compared_matches) / compared.pairs.sum(), agreement.MIN_PROBABILITY**2, 1 - agreement.MIN_PROBABILITY
        )
    )
    return Rates(share, tuple(m for m, _ in fitted), tuple(u for _, u in fitted), compared.table)
