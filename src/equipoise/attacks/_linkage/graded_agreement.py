"""Graded agreement: pairs that differ, are near, or are equal in each variable, compared within blocks.

Nearness is not an equivalence (18 is near 20, and 20 near 22), so pairs are not counted by roll-ups as equal values
are: each pair of distinct value combinations of the two files is compared once, a few hundred thousand at a time, and
stands for as many pairs of records as it has. Only pairs with equal blocks are compared.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from equipoise.attacks._linkage.agreement_patterns import CLOSE, DIGITS, EDGE, ROUNDS, Crossed, crossed
from equipoise.attacks._linkage.string_similarity import Similarity, Words
from equipoise.attacks._nearest.cell_pairs_by_cost import parts, runs
from equipoise.attacks._nearest.comparable_numbers import DAY, is_date, numbers
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, ParameterError
from equipoise.ground.packed_keys import group

COMPARED = 200_000_000
"""Pairs of distinct value combinations that are compared at most: about a minute."""
TABLE = 1 << 26
"""Pairs of values of a variable whose nearness is kept as a table."""
SLACK = 1e-12
DIFFERS, NEAR = 0, 1
START = (0.9, 0.1, 0.8)
"""Where estimation starts: agreement of two levels; near and equal of three."""

Near = Callable[[Integers, Integers], Any]


@dataclass(frozen=True, eq=False, repr=False)
class Compared:
    """Two files whose pairs of cells are compared by levels; a pattern is a row of `table`, the levels of a pair.

    A variable without a grade has the levels 0 differs, 1 equal; one with a grade 0 differs, 1 near, 2 equal.
    """

    files: Crossed
    variables: int
    near: Mapping[int, Near]

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The number of levels of each variable."""
        return tuple(3 if i in self.near else 2 for i in range(self.variables))

    @cached_property
    def _block(self) -> Integers:
        """The block of every cell."""
        places = range(self.variables, self.files.variables)
        if not places:
            return np.zeros(len(self.files.codes[0]), dtype=np.int64)
        return group([self.files.codes[i] for i in places], [self.files.sizes[i] for i in places])[0]

    def _packed(self, a: Integers, b: Integers) -> Integers:
        """The levels of pairs of cells as one number."""
        found = np.zeros(len(a), dtype=np.int64)
        for i in reversed(range(self.variables)):
            level = self.level(i, self.files.codes[i][a].astype(np.int64), self.files.codes[i][b].astype(np.int64))
            found = found * self.levels[i] + level
        return found

    def level(self, i: int, one: Integers, two: Integers) -> Integers:
        """The level of each pair of codes of a variable, or of a block: 0 differs, 1 equal."""
        level: Integers = (one == two).astype(np.int64)
        if i in self.near:
            level *= self.levels[i] - 1
            level[(level == DIFFERS) & self.near[i](one, two)] = NEAR
        return level

    def _runs(self) -> tuple[Integers, Integers, Integers, Integers]:
        """Cells of the first file, and the run of those of the second in their block, in the order given."""
        here, there = np.flatnonzero(self.files.here), np.flatnonzero(self.files.there)
        order = there[np.argsort(self._block[there], kind="stable")]
        low, high = (np.searchsorted(self._block[order], self._block[here], side=s) for s in ("left", "right"))
        return here, order, low, high

    def chunks(self) -> Iterator[tuple[Integers, Integers, Integers]]:
        """All pairs of cells with equal blocks, and their packed levels."""
        here, order, low, high = self._runs()
        many = int((high - low).sum())
        if many > COMPARED:
            raise ParameterError(
                f"{many:,} pairs of distinct value combinations are too many to compare one by one (at most "
                f"{COMPARED:,}): name blocks, columns that must be equal."
            )
        for part in parts(high - low):
            a = np.repeat(here[part], (high - low)[part])
            b = order[runs(low[part], high[part])]
            yield a, b, self._packed(a, b)

    @cached_property
    def _counts(self) -> tuple[Integers, Integers]:
        """The packed levels that occur, in order, and the pairs of records that have them."""
        total = np.zeros(int(np.prod(self.levels)), dtype=np.int64)
        for a, b, packed in self.chunks():
            kinds, place = np.unique(packed, return_inverse=True)
            total[kinds] += np.bincount(place, self.files.here[a] * self.files.there[b]).astype(np.int64)
        seen = np.flatnonzero(total)
        return seen, total[seen]

    @property
    def pairs(self) -> Integers:
        """Pairs of records by pattern."""
        return self._counts[1]

    @cached_property
    def table(self) -> Integers:
        """A row per pattern that occurs, the level of each variable."""
        left, columns = self._counts[0], []
        for size in self.levels:
            columns.append(left % size)
            left = left // size
        return np.stack(columns, axis=1)

    def place(self, packed: Integers) -> Integers:
        """The pattern of packed levels that occur."""
        return np.searchsorted(self._counts[0], packed)

    def pattern(self, first: Integers, second: Integers) -> Integers:
        """The pattern of these pairs of records of the first and the second file; -1 where their blocks differ."""
        a, b = self.files.one[first], self.files.two[second]
        same = np.flatnonzero(self._block[a] == self._block[b])
        found = np.full(len(a), -1, dtype=np.int64)
        found[same] = self.place(self._packed(a[same], b[same]))
        return found

    def edges(self, rank: Integers) -> tuple[Integers, Integers, Integers]:
        """Pairs of cells whose pattern has a rank of at least 0, in order of the cells, and their patterns."""
        found = [(np.zeros(0, dtype=np.int64),) * 3]
        for a, b, packed in self.chunks():
            pattern = self.place(packed)
            kept = np.flatnonzero(rank[pattern] >= 0)
            found.append((a[kept], b[kept], pattern[kept]))
        a, b, pattern = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.lexsort((b, a))
        return a[order], b[order], pattern[order]

    def texts(self) -> list[str]:
        """Each pattern as a word: 1 equal, ~ near, 0 differs."""
        marks = ["01", "0~1"]
        return ["".join(marks[self.levels[i] - 2][level] for i, level in enumerate(row)) for row in self.table.tolist()]


def compare(
    first: pl.DataFrame,
    second: pl.DataFrame,
    near: Mapping[str, float],
    blocks: tuple[str, ...],
    similarity: Similarity,
) -> Compared:
    """Two files ready to be compared by the columns that are no blocks.

    `near` has the largest gap of numbers (of dates, in days) or the least similarity of texts that counts as near.

    >>> ages = pl.DataFrame({"age": [18, 30]}), pl.DataFrame({"age": [20, 18]})
    >>> found = compare(*ages, {"age": 4}, (), "jaro-winkler")
    >>> dict(zip(found.texts(), found.pairs.tolist()))
    {'0': 2, '~': 1, '1': 1}
    """
    columns = [c for c in first.columns if c not in blocks]
    files = crossed(first.select(*columns, *blocks), second.select(*columns, *blocks))
    grades = {i: _grade(first[c], second[c], files, i, near[c], similarity) for i, c in enumerate(columns) if c in near}
    return Compared(files, len(columns), grades)


def _grade(a: pl.Series, b: pl.Series, files: Crossed, place: int, limit: float, similarity: Similarity) -> Near:
    """What says whether two codes of a variable are near."""
    codes = np.concatenate([files.first[place], files.second[place]]).astype(np.int64)
    if all(s.dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null) for s in (a, b)):
        if not limit < 1:
            raise ParameterError(f"near: the similarity of {a.name!r} must be below 1, got {limit:g}.")
        values = np.full(files.sizes[place], None, dtype=object)
        values[codes] = pl.concat([a.cast(pl.String), b.cast(pl.String)]).to_numpy()
        both = [np.unique(codes[: len(a)]), np.unique(codes[len(a) :])]
        words = Words(pl.Series(a.name, values.tolist(), dtype=pl.String), both[0], both[1], similarity)
        return _listed(words, 1 - limit + SLACK)
    if not all(s.dtype.is_numeric() or s.dtype.is_temporal() or s.dtype == pl.Null for s in (a, b)):
        raise DataError(f"near: column {a.name!r} holds neither numbers, dates nor text in both files.")
    amounts = np.full(files.sizes[place], np.nan)
    amounts[codes] = numbers(a, b)
    most = limit * (DAY if is_date(a) or is_date(b) else 1.0) * (1 + SLACK)
    return lambda one, two: np.abs(amounts[one] - amounts[two]) <= most


def _listed(words: Words, most: float) -> Near:
    """Texts: the pairs of values that are near are found first, then looked up."""
    size = len(words.values)
    one, two, _ = words.near(most)
    if size * size <= TABLE:
        table = np.zeros((size, size), dtype=np.bool_)
        table[one, two] = True
        return lambda a, b: table[a, b]
    keys = one * size + two  # in order, as `near` gives them
    if not len(keys):
        return lambda a, b: np.zeros(len(a), dtype=np.bool_)

    def found(a: Integers, b: Integers) -> Any:
        wanted = a * size + b
        return keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted

    return found


# --- what levels say about matches ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rates:
    """How often matches (`m`) and other pairs (`u`) have each level of each variable, and the share that match."""

    share: float
    m: tuple[Floats, ...]
    u: tuple[Floats, ...]
    table: Integers
    rounds: int = 0
    converged: bool = True

    def of_patterns(self) -> tuple[Floats, Floats]:
        """The probability of each pattern among matches and among other pairs, variables being independent in both."""
        return np.exp(self._logs(self.m)), np.exp(self._logs(self.u))

    def weights(self) -> Floats:
        """log2(m / u) of each pattern."""
        found: Floats = (self._logs(self.m) - self._logs(self.u)) / np.log(2)
        return np.round(found, DIGITS)

    def _logs(self, chances: tuple[Floats, ...]) -> Floats:
        found = np.zeros(len(self.table))
        for i, chance in enumerate(chances):
            found += np.log(chance)[self.table[:, i]]
        return found


def ordered(match: NDArray[Any], other: NDArray[Any]) -> tuple[Floats, Floats]:
    """The likeliest m and u of a variable's levels from their counts, if m / u may not fall from level to level.

    A near value then never says more for a match than an equal one. The share of matches at each level is made to rise
    by pooling neighbours (isotonic regression), which is the exact maximum: Dykstra, Kochar and Robertson (1995).

    >>> m, u = ordered(np.array([1.0, 8.0, 1.0]), np.array([70.0, 10.0, 20.0]))
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
    return _inside(fitted), _inside(total - fitted)


def _inside(counts: Floats) -> Floats:
    """Probabilities in proportion to counts, away from 0."""
    found = np.maximum(counts / max(float(counts.sum()), 1e-300), EDGE)
    answer: Floats = found / found.sum()
    return answer


def estimate(compared: Compared) -> Rates:
    """Expectation-maximisation on the pairs of each pattern, levels kept in order.

    The share of matches is at most that of one match for each record of the smaller file. Source: Jaro (1989) and
    Winkler (1990), with as many levels as the comparison has.
    """
    table, counts = compared.table, compared.pairs / compared.pairs.sum()
    smaller = min(len(compared.files.one), len(compared.files.two))
    most = min(smaller / float(compared.pairs.sum()), 1 - EDGE)
    every = [np.bincount(table[:, i], counts, size) for i, size in enumerate(compared.levels)]
    first = {2: np.array([1 - START[0], START[0]]), 3: np.array([1 - sum(START[1:]), *START[1:]])}
    start = [ordered(first[len(u)] * most, u * (1 - most)) for u in every]
    now = Rates(most, tuple(m for m, _ in start), tuple(u for _, u in start), table)
    for done in range(1, ROUNDS + 1):
        new = _round(now, counts, most)
        moved = max(abs(new.share / now.share - 1), *(_moved(new, now, i) for i in range(len(every))))
        now = new
        if moved < CLOSE:
            return Rates(now.share, now.m, now.u, table, done)
    return Rates(now.share, now.m, now.u, table, ROUNDS, False)


def _moved(new: Rates, now: Rates, i: int) -> float:
    return float(max(np.abs(new.m[i] - now.m[i]).max(), np.abs(new.u[i] - now.u[i]).max()))


def _round(now: Rates, counts: Floats, most: float) -> Rates:
    """One round: how likely each pattern's pairs match, then the levels that fit best."""
    m, u = now.of_patterns()
    match = counts * now.share * m / np.maximum(now.share * m + (1 - now.share) * u, 1e-300)
    fitted = _fit(now.table, match, counts - match, [len(chance) for chance in now.m])
    share = float(np.clip(match.sum(), 1e-18, most))
    return Rates(share, tuple(m for m, _ in fitted), tuple(u for _, u in fitted), now.table)


def _fit(table: Integers, match: Floats, other: Floats, sizes: list[int]) -> list[tuple[Floats, Floats]]:
    columns = [(table[:, i], size) for i, size in enumerate(sizes)]
    return [ordered(np.bincount(c, match, s), np.bincount(c, other, s)) for c, s in columns]


def counted(compared: Compared, matches: Integers, *, in_order: bool) -> Rates:
    """m and u counted from the patterns of the true pairs and of all others; `in_order`: such as `ordered` gives."""
    seen = matches[matches >= 0]
    match = np.bincount(seen, minlength=len(compared.table)).astype(np.float64)
    other = np.maximum(compared.pairs - match, 0.0)
    fitted = []
    for i, size in enumerate(compared.levels):
        both = [np.bincount(compared.table[:, i], of, size) for of in (match, other)]
        fitted.append(ordered(*both) if in_order else tuple(x / max(1.0, float(x.sum())) for x in both))
    share = float(np.clip(len(seen) / compared.pairs.sum(), EDGE**2, 1 - EDGE))
    return Rates(share, tuple(m for m, _ in fitted), tuple(u for _, u in fitted), compared.table)
