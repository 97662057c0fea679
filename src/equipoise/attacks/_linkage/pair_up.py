"""Link the records of two files one to one, by the weights of their agreement patterns.

`CountedPairs` has the number of pairs of each pattern (equal or not); `ListedPairs` has compared pairs one by one
(graded agreement). Both pair the heaviest candidates by linear sum assignment and the rest cells to cells, and report
every pair to a `PairTally`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from equipoise.attacks._linkage import graded_agreement
from equipoise.attacks._linkage.agreement_patterns import (
    NON_LINK,
    Agreement,
    CodedFiles,
    agreements,
    clip,
    count_agreement,
    decide,
    estimate,
    exact_counts,
)
from equipoise.attacks._linkage.assignment import assign, components, mutual, spread
from equipoise.attacks._linkage.evaluate import PairTally, simulate
from equipoise.attacks._linkage.graded_agreement import ComparedFiles
from equipoise.ground.arrays import Floats, Integers

MAX_ASSIGNED_RECORDS = 100_000
"""Records of a file up to which the assignment is solved; in larger files cells are assigned to cells."""
MAX_ASSIGNED_PAIRS = 1_000_000
"""Candidate pairs among which it is solved at most."""
MAX_GREEDY_PAIRS = 4_000_000
"""Candidate pairs at most where they are paired from the largest weight down."""
MAX_LISTED_PAIRS = 20_000_000
"""Candidate pairs listed at most where pairs are compared one by one."""
TIE_BREAKS = 3
"""Assignments averaged, ties broken at random in each; a single one beyond `MAX_RECORDS_TIE_BROKEN` records."""
MAX_RECORDS_TIE_BROKEN = 10_000
TIE_NOISE = 1e-6
UNCHANGED_SHARE = 0.9
"""Share of values assumed unchanged by an intruder who weighs pairs by how rare their values are."""
TIE_SEED = 1969
"""Public seed of the tie-breaking: the measure is the same every time."""


@dataclass(frozen=True, eq=False, repr=False)
class Bounds:
    """Probabilities of a false link and of a false non-link, and what the intruder `knows`.

    That is m and u estimated by EM ("patterns"), taken from the true pairs ("truth"), or how rare each value is, with m
    assumed ("values").
    """

    false_match: float
    false_nonmatch: float
    knows: str


class RatedPairs:
    """Mixin of pairs: what follows from the rates of agreement and the bounds on errors."""

    bounds: Bounds
    rates: Any

    @property
    def share(self) -> float:
        return self.rates.share

    @cached_property
    def weights(self) -> Floats:
        return self.rates.weights()

    @cached_property
    def decisions(self) -> Integers:
        return decide(self.rates, self.bounds.false_match, self.bounds.false_nonmatch)


@dataclass(frozen=True, eq=False, repr=False)
class CountedPairs(RatedPairs):
    """All pairs of two files by the set of variables on which they are equal."""

    files: CodedFiles
    bounds: Bounds
    people: tuple[Integers, Integers] | None
    fixed_rates: Agreement | None = None

    @cached_property
    def at_least(self) -> Integers:
        return agreements(self.files)

    @cached_property
    def pairs(self) -> Integers:
        """Number of pairs of each pattern."""
        return exact_counts(self.at_least)

    @cached_property
    def matches(self) -> Integers | None:
        """Pattern of each true pair."""
        return None if self.people is None else self.files.pattern(*self.people)

    @cached_property
    def truth(self) -> Agreement | None:
        return None if self.matches is None else count_agreement(self.at_least, self.matches)

    @cached_property
    def guess(self) -> Agreement:
        return estimate(self.pairs, len(self.files.first_cell), len(self.files.second_cell))

    @cached_property
    def rates(self) -> Agreement:
        """The m and u the intruder uses, with m never below u."""
        if self.fixed_rates is not None:
            return self.fixed_rates
        if self.bounds.knows == "values":
            u = clip(self.at_least[1 << np.arange(self.files.variables)] / float(self.at_least[0]))
            return Agreement(1 / self.files.larger, clip(u + UNCHANGED_SHARE * (1 - u)), u)
        if self.truth is None or self.bounds.knows == "patterns":
            return self.guess
        return replace(self.truth, m=clip(np.maximum(self.truth.m, self.truth.u)), u=clip(self.truth.u))

    @cached_property
    def order(self) -> list[int]:
        """The patterns of candidate pairs, the largest weight first; of equal ones that which agrees on more."""
        agree = np.bitwise_count(np.arange(len(self.pairs)))
        down = np.lexsort((np.arange(len(self.pairs)), -agree.astype(np.int64), -self.weights))
        return [int(s) for s in down if self.decisions[s] != NON_LINK]

    def rehearsal(self, alone: Floats) -> "CountedPairs":
        """The same linkage with a second file simulated from the estimates, whose true pairs are known."""
        chances = [np.array([1 - m, m]) for m in self.rates.m]
        files, people = simulate(self.files, chances, _expected(self), _equal, alone)
        return CountedPairs(files, self.bounds, people, self.rates)

    def texts(self) -> list[str]:
        """Each pattern as text: 1 equal, 0 differs."""
        return ["".join("01"[s >> i & 1] for i in range(self.files.variables)) for s in range(len(self.pairs))]

    @cached_property
    def head(self) -> tuple[int, list[int]]:
        """Number of patterns, from the largest weight down, that the assignment can take, and their minimal sets.

        Whatever agrees on a minimal set is a candidate, so only pairs that agree on one are listed.
        """
        least: list[int] = []
        rare = self.bounds.knows == "values"
        if self.files.larger > MAX_ASSIGNED_RECORDS and not rare:
            return 0, least
        for size, s in enumerate(self.order):
            wider = [t for t in least if t & s != s] + [s]
            if sum(int(self.at_least[t]) for t in wider) > (MAX_GREEDY_PAIRS if rare else MAX_ASSIGNED_PAIRS):
                return size, least
            least = wider
        return len(self.order), least

    def link(self, right: PairTally) -> str:
        """Make the pairs, and say how."""
        files, (head_size, _) = self.files, self.head
        if not head_size:
            first_left, second_left = (n.astype(np.float64) for n in (files.first_counts, files.second_counts))
            self._share(first_left, second_left, self.order, right)
            return "Cells were assigned to cells, the heaviest first."
        a, b, pattern = self._candidates()
        rest = ", of lighter ones cells to cells" if head_size < len(self.order) else ""
        if self.bounds.knows == "values":
            self._rarest_first(a, b, pattern, right)
            return f"Pairs of the {head_size:,} heaviest patterns were made from the largest weight down{rest}."
        weight = self.weights[pattern] - (self.weights[self.order[:head_size]].min() - 1.0)
        for first_left, second_left in _assignments(files, a, b, pattern, weight, right):
            self._share(first_left, second_left, self.order[head_size:], right)
        return f"Pairs of the {head_size:,} heaviest patterns were made by linear sum assignment{rest}."

    def _rarest_first(self, a: Integers, b: Integers, pattern: Integers, right: PairTally) -> None:
        """Pair from the largest weight down, ties broken at random; the remaining records by pattern."""
        files, ties = self.files, np.random.default_rng(TIE_SEED).random(len(a))
        weight = self.weights[pattern] + self._rarity(a, pattern) + TIE_NOISE * ties
        pairs = mutual(a, b, weight, files.first_counts, files.second_counts)
        right.pairs(a, b, pattern, pairs)
        self._share(*_unpaired(files, a, b, pairs), self.order[self.head[0] :], right)

    def _rarity(self, cells: Integers, pattern: Integers) -> Floats:
        """Weight added for how rare the agreeing values are: sum of log2(u / their share).

        A pair that does not match agrees on a value with its share g in the second file, and on any value with u.
        """
        rarity = np.zeros(len(cells))
        for i, codes in enumerate(self.files.codes):
            shares = np.bincount(codes, self.files.second_counts, self.files.sizes[i]) / len(self.files.second_cell)
            agree = np.flatnonzero(pattern >> i & 1)
            rarity[agree] += np.log2(self.rates.u[i] / shares[codes[cells[agree]]])
        return rarity

    def _share(self, first_left: Floats, second_left: Floats, patterns: list[int], right: PairTally) -> None:
        """Pair the remaining records of each cell (both arrays change in place), by one grouping for each pattern.

        Weights never fall when a pair agrees on more (m >= u). So when pattern S has its turn, no two remaining records
        agree on more than S: those of a group with equal values of S agree on exactly S, and are paired at random,
        `first_left x second_left / larger of the group's sums`. What remains is an expected number.
        """
        cells = np.arange(len(first_left))
        for pattern in patterns:
            if not first_left.any() or not second_left.any():
                break
            cells = cells[(first_left[cells] > 0) | (second_left[cells] > 0)]
            ids, size = self.files.groups(pattern, cells)
            ours, theirs = np.bincount(ids, first_left[cells], size), np.bincount(ids, second_left[cells], size)
            largest = np.maximum(ours, theirs)
            right.groups(pattern, cells, ids, first_left, second_left, largest)
            first_left[cells] *= 1 - (theirs / largest)[ids]
            second_left[cells] *= 1 - (ours / largest)[ids]

    def _candidates(self) -> tuple[Integers, Integers, Integers]:
        """Pairs of cells that agree on a minimal set, in order, and their patterns.

        For each minimal set the pairs that agree on it and on no earlier one.
        """
        files, (_, least), candidates = self.files, self.head, []
        cell_ids = np.arange(len(files.first_counts))
        for turn, pattern in enumerate(least):
            ids, _ = files.groups(pattern, cell_ids)
            grouped = pl.DataFrame({"cell": cell_ids.astype(np.uint32), "group": ids.astype(np.uint32)})
            ours, theirs = (grouped.filter(pl.Series(n > 0)) for n in (files.first_counts, files.second_counts))
            both = ours.join(theirs, on="group").drop("group")
            a, b = both["cell"].to_numpy(), both["cell_right"].to_numpy()
            agree = _pattern(files, a, b)
            new = np.ones(len(a), dtype=np.bool_)
            for earlier in least[:turn]:
                new &= agree & earlier != earlier
            candidates.append((a[new], b[new], agree[new]))
        a, b, agree = (np.concatenate(parts) for parts in zip(*candidates, strict=True))
        order = np.lexsort((b, a))
        return a[order].astype(np.int64), b[order].astype(np.int64), agree[order].astype(np.int64)

    def ratios(self, values: Floats, of_first: bool) -> Floats:
        """Sum over all cells of m / u times their values, for each cell; the same from either file.

        m / u is a product over variables of the ratios of agreement and disagreement; multiplied out, it is a sum over
        sets S of a number times 1[the pair agrees on S], so that 2^v groupings of the cells give all sums.
        """
        yes, no = self.rates.m / self.rates.u, (1 - self.rates.m) / (1 - self.rates.u)
        cells, sums = np.arange(len(values)), np.zeros(len(values))
        for pattern in range(len(self.pairs)):
            factor = np.prod([yes[i] - no[i] if pattern >> i & 1 else no[i] for i in range(self.files.variables)])
            ids, size = self.files.groups(pattern, cells)
            sums += factor * np.bincount(ids, values, size)[ids]
        return sums


def _equal(place: int, one: Integers, two: Integers) -> Integers:
    return np.asarray((one == two).astype(np.int64))


def _expected(study: "CountedPairs | ListedPairs") -> int:
    """Expected number of matches, at least one."""
    most = min(len(study.files.first_cell), len(study.files.second_cell))
    return int(np.clip(round(study.share * float(study.pairs.sum())), 1, most))


def _pattern(files: CodedFiles, a: Integers, b: Integers) -> Integers:
    """Agreement pattern of pairs of cells."""
    patterns = np.zeros(len(a), dtype=np.uint16)
    for bit, codes in enumerate(files.codes):
        patterns |= (codes[a] == codes[b]).astype(np.uint16) << bit
    return patterns


def _assignments(
    files: CodedFiles, a: Integers, b: Integers, pattern: Integers, weight: Floats, right: PairTally
) -> Iterator[tuple[Floats, Floats]]:
    """Tally the best assignment, ties broken in several ways, and yield the unpaired records of each cell.

    The assignment leaves no two candidates unpaired, so the remaining records belong to the lighter patterns. Every way
    of breaking ties has the same weight.
    """
    random, parts = np.random.default_rng(TIE_SEED), components(a, b, len(files.first_counts))
    times = TIE_BREAKS if files.larger <= MAX_RECORDS_TIE_BROKEN else 1
    for _ in range(times):
        pairs = assign(a, b, weight, files.first_counts, files.second_counts, random, parts)
        right.pairs(a, b, pattern, pairs / times)
        first_left, second_left = _unpaired(files, a, b, pairs)
        yield first_left / times, second_left / times


def _unpaired(files: CodedFiles, a: Integers, b: Integers, pairs: Floats) -> tuple[Floats, Floats]:
    """Records of each cell that are in no pair, of the first and of the second file."""
    size = len(files.first_counts)
    return files.first_counts - np.bincount(a, pairs, size), files.second_counts - np.bincount(b, pairs, size)


@dataclass(frozen=True, eq=False, repr=False)
class ListedPairs(RatedPairs):
    """Pairs of two files compared by levels within blocks."""

    compared: ComparedFiles
    bounds: Bounds
    people: tuple[Integers, Integers] | None
    fixed_rates: graded_agreement.Rates | None = None

    @property
    def files(self) -> CodedFiles:
        return self.compared.files

    @property
    def pairs(self) -> Integers:
        return self.compared.pairs

    @cached_property
    def matches(self) -> Integers | None:
        """Pattern of each true pair; -1 outside blocks."""
        return None if self.people is None else self.compared.pattern(*self.people)

    @cached_property
    def truth(self) -> graded_agreement.Rates | None:
        matches = self.matches
        return None if matches is None else graded_agreement.count_rates(self.compared, matches, in_order=False)

    @cached_property
    def guess(self) -> graded_agreement.Rates:
        return graded_agreement.estimate(self.compared)

    @cached_property
    def rates(self) -> graded_agreement.Rates:
        if self.fixed_rates is not None:
            return replace(self.fixed_rates, table=self.compared.table)
        if self.matches is None or self.bounds.knows != "truth":
            return self.guess
        return graded_agreement.count_rates(self.compared, self.matches, in_order=True)

    @cached_property
    def order(self) -> list[int]:
        """The patterns of candidate pairs, the largest weight first; of equal ones that which agrees on more."""
        agree = self.compared.table.sum(axis=1)
        down = np.lexsort((np.arange(len(self.pairs)), -agree, -self.weights))
        return [int(s) for s in down if self.decisions[s] != NON_LINK]

    def rehearsal(self, alone: Floats) -> "ListedPairs":
        """The same linkage with a second file simulated from the estimates; blocks are equal."""
        sure = [np.array([0.0, 1.0])] * (self.files.variables - self.compared.variables)
        chances = [*self.rates.m, *sure]
        files, people = simulate(self.files, chances, _expected(self), self.compared.level, alone)
        return ListedPairs(replace(self.compared, files=files), self.bounds, people, self.rates)

    def texts(self) -> list[str]:
        return self.compared.texts()

    def _pattern_limits(self) -> tuple[int, int]:
        """Number of patterns that can be assigned and that can be listed, from the largest weight down."""
        sums = np.cumsum(self.pairs[self.order])
        small = self.files.larger <= MAX_ASSIGNED_RECORDS
        listed = int(np.searchsorted(sums, max(MAX_LISTED_PAIRS, int(sums[0]) if len(sums) else 0), side="right"))
        return int(np.searchsorted(sums, MAX_ASSIGNED_PAIRS, side="right")) if small else 0, listed

    def link(self, right: PairTally) -> str:
        """Make the pairs, and say how."""
        files, (assigned, listed) = self.files, self._pattern_limits()
        rank = np.full(len(self.pairs), -1)
        rank[self.order[:listed]] = np.arange(listed)
        a, b, pattern = self.compared.edges(rank)
        place = rank[pattern]
        if assigned:
            head = place < assigned
            weight = self.weights[pattern[head]] - (self.weights[self.order[:assigned]].min() - 1.0)
            leftovers = _assignments(files, a[head], b[head], pattern[head], weight, right)
        else:
            leftovers = iter([(files.first_counts.astype(np.float64), files.second_counts.astype(np.float64))])
        for first_left, second_left in leftovers:
            for turn in range(assigned, listed):
                now = np.flatnonzero(place == turn)
                right.pairs(a[now], b[now], pattern[now], spread(a[now], b[now], first_left, second_left))
        return self._description(assigned, listed)

    def _description(self, assigned: int, listed: int) -> str:
        ways = [f"those of the {assigned:,} heaviest patterns by linear sum assignment"] if assigned else []
        ways += ["lighter ones cells to cells" if assigned else "cells to cells"] if listed > assigned else []
        skipped = len(self.order) - listed
        more = f"; {skipped:,} light patterns had too many pairs and were left alone" if skipped else ""
        return f"Pairs were made: {', '.join(ways) or 'none'}{more}."

    def ratios(self, values: Floats, of_first: bool) -> Floats:
        """Sum of m / u times the values a cell is compared with, for each cell of the first file if `of_first`."""
        m, u = self.rates.of_patterns()
        sums = np.zeros(len(values))
        for a, b, packed in self.compared.chunks():
            one, two = (a, b) if of_first else (b, a)
            sums += np.bincount(one, (m / u)[self.compared.place(packed)] * values[two], len(values))
        return sums
