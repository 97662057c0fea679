"""From patterns to pairs: what an intruder makes of two files, one to one, and how much of it is right.

`Counted` knows the pairs of each pattern by counting alone (equal or not); `Listed` has compared them one by one
(graded agreement). Both pair the heaviest candidates by linear sum assignment and the rest cells to cells, and tell
`Right` of every pair they make.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from equipoise.attacks._linkage import graded_agreement
from equipoise.attacks._linkage.agreement_patterns import (
    APART,
    Agreement,
    Crossed,
    agreements,
    decide,
    estimate,
    exactly,
    inside,
    known,
)
from equipoise.attacks._linkage.assignment import assign, components, mutual, spread
from equipoise.attacks._linkage.evaluate import Right, drawn
from equipoise.attacks._linkage.graded_agreement import Compared
from equipoise.ground.arrays import Floats, Integers

RECORDS = 100_000
"""Records of a file up to which the assignment is solved; beyond, cells are assigned to cells."""
CANDIDATES = 1_000_000
"""Candidate pairs among which it is solved."""
WIDE = 4_000_000
"""Those that are paired from the largest weight down."""
LISTED = 20_000_000
"""Candidate pairs of cells that are listed where pairs are compared one by one."""
TIES = 3
"""Assignments that are averaged, ties broken at random in each; one will do for more records than `MANY`."""
MANY = 10_000
TIE = 1e-6
KEPT = 0.9
"""The share of values that an intruder who goes by how rare they are takes to be left as they were."""
SEED = 1969
"""Public seed of the tie-breaking: the measure is the same every time."""


@dataclass(frozen=True, eq=False, repr=False)
class Bounds:
    """Probabilities of a false link and of a false non-link, and what the intruder goes by.

    That is m and u estimated by EM ("patterns"), taken from the true pairs ("truth"), or how rare each value is, with m
    taken for granted ("values").
    """

    false_match: float
    false_nonmatch: float
    knows: str


# --- pairs counted: equal or not --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Counted:
    """All pairs of two files by the set of variables on which they are equal; `matches` the patterns of true pairs."""

    files: Crossed
    bounds: Bounds
    people: tuple[Integers, Integers] | None
    given: Agreement | None = None

    @cached_property
    def at_least(self) -> Integers:
        return agreements(self.files)

    @cached_property
    def pairs(self) -> Integers:
        """All pairs by pattern."""
        return exactly(self.at_least)

    @cached_property
    def matches(self) -> Integers | None:
        """The pattern of each true pair."""
        return None if self.people is None else self.files.pattern(*self.people)

    @cached_property
    def truth(self) -> Agreement | None:
        return None if self.matches is None else known(self.at_least, self.matches)

    @cached_property
    def guess(self) -> Agreement:
        return estimate(self.pairs, len(self.files.one), len(self.files.two))

    @cached_property
    def rates(self) -> Agreement:
        """The m and u that the intruder goes by: agreement never speaks against a match."""
        if self.given is not None:
            return self.given
        if self.bounds.knows == "values":
            u = inside(self.at_least[1 << np.arange(self.files.variables)] / float(self.at_least[0]))
            return Agreement(1 / max(len(self.files.one), len(self.files.two)), inside(u + KEPT * (1 - u)), u)
        if self.truth is None or self.bounds.knows == "patterns":
            return self.guess
        return replace(self.truth, m=inside(np.maximum(self.truth.m, self.truth.u)), u=inside(self.truth.u))

    @property
    def share(self) -> float:
        return self.rates.share

    @cached_property
    def weights(self) -> Floats:
        return self.rates.weights()

    @cached_property
    def decisions(self) -> Integers:
        return decide(self.rates, self.bounds.false_match, self.bounds.false_nonmatch)

    @cached_property
    def order(self) -> list[int]:
        """The patterns of candidate pairs, the largest weight first; of equal ones that which agrees on more."""
        agree = np.bitwise_count(np.arange(len(self.pairs)))
        down = np.lexsort((np.arange(len(self.pairs)), -agree.astype(np.int64), -self.weights))
        return [int(s) for s in down if self.decisions[s] != APART]

    def rehearsal(self, alone: Floats) -> "Counted":
        """The same with a second file drawn from what was estimated, so that who is who is known."""
        chances = [np.array([1 - m, m]) for m in self.rates.m]
        files, people = drawn(self.files, chances, _expected(self), _equal, alone)
        return Counted(files, self.bounds, people, self.rates)

    def texts(self) -> list[str]:
        """Each pattern as a word: 1 equal, 0 differs."""
        return ["".join("01"[s >> i & 1] for i in range(self.files.variables)) for s in range(len(self.pairs))]

    @cached_property
    def head(self) -> tuple[int, list[int]]:
        """How many patterns, from the largest weight down, the assignment can take, and the least sets among them.

        Whatever agrees on a least set is a candidate, so the pairs that agree on them are all that is looked at.
        """
        least: list[int] = []
        rare = self.bounds.knows == "values"
        if max(len(self.files.one), len(self.files.two)) > RECORDS and not rare:
            return 0, least
        for taken, s in enumerate(self.order):
            wider = [t for t in least if t & s != s] + [s]
            if sum(int(self.at_least[t]) for t in wider) > (WIDE if rare else CANDIDATES):
                return taken, least
            least = wider
        return len(self.order), least

    def link(self, right: Right) -> str:
        """Make the pairs, and say how."""
        files, (taken, _) = self.files, self.head
        if not taken:
            self._share(files.here.astype(np.float64), files.there.astype(np.float64), self.order, right)
            return "Cells were assigned to cells, the heaviest first."
        a, b, pattern = self._candidates()
        rest = ", of lighter ones cells to cells" if taken < len(self.order) else ""
        if self.bounds.knows == "values":
            self._rarest_first(a, b, pattern, right)
            return f"Pairs of the {taken:,} heaviest patterns were made from the largest weight down{rest}."
        weight = self.weights[pattern] - (self.weights[self.order[:taken]].min() - 1.0)
        for here, there in _assigned(files, a, b, pattern, weight, right):
            self._share(here, there, self.order[taken:], right)
        return f"Pairs of the {taken:,} heaviest patterns were made by linear sum assignment{rest}."

    def _rarest_first(self, a: Integers, b: Integers, pattern: Integers, right: Right) -> None:
        """Pair from the largest weight down, ties broken at random; what is left by patterns."""
        files, ties = self.files, np.random.default_rng(SEED).random(len(a))
        made = mutual(a, b, self.weights[pattern] + self._rarity(a, pattern) + TIE * ties, files.here, files.there)
        right.pairs(a, b, pattern, made)
        here = np.asarray(files.here - np.bincount(a, made, len(files.here)), dtype=np.float64)
        there = np.asarray(files.there - np.bincount(b, made, len(files.there)), dtype=np.float64)
        self._share(here, there, self.order[self.head[0] :], right)

    def _rarity(self, cells: Integers, pattern: Integers) -> Floats:
        """What it adds that the values agreed on are rarer or commoner than most: sum of log2(u / their share).

        Agreement on a value that a share g of the second file has is a chance of g for a pair that does not match,
        where u is that chance for all values together.
        """
        found = np.zeros(len(cells))
        for i, codes in enumerate(self.files.codes):
            held = np.bincount(codes, self.files.there, self.files.sizes[i]) / len(self.files.two)
            agree = np.flatnonzero(pattern >> i & 1)
            found[agree] += np.log2(self.rates.u[i] / held[codes[cells[agree]]])
        return found

    def _share(self, here: Floats, there: Floats, patterns: list[int], right: Right) -> None:
        """Pair the records of each cell that are still alone, `here` and `there`, which change, pattern by pattern.

        Weights never fall when a pair agrees on more (m >= u). So when pattern S has its turn, no two records are left
        that agree on more than S: all that are left of a group with equal values of S agree on exactly S, and are
        paired at random, `left here x left there / larger of the group's sums`. Expected numbers stand for those left
        over. A grouping of cells for each pattern.
        """
        left = np.arange(len(here))
        for pattern in patterns:
            if not here.any() or not there.any():
                break
            left = left[(here[left] > 0) | (there[left] > 0)]
            ids, size = self.files.groups(pattern, left)
            ours, theirs = np.bincount(ids, here[left], size), np.bincount(ids, there[left], size)
            largest = np.maximum(ours, theirs)
            right.groups(pattern, left, ids, here, there, largest)
            here[left] *= 1 - (theirs / largest)[ids]
            there[left] *= 1 - (ours / largest)[ids]

    def _candidates(self) -> tuple[Integers, Integers, Integers]:
        """Pairs of cells that agree on a least set, in order, and their patterns.

        For each least set the pairs that agree on it, but for those that agree on an earlier one too.
        """
        files, (_, least), found = self.files, self.head, []
        left = np.arange(len(files.here))
        for turn, pattern in enumerate(least):
            ids, _ = files.groups(pattern, left)
            cells = pl.DataFrame({"cell": left.astype(np.uint32), "group": ids.astype(np.uint32)})
            ours, theirs = (cells.filter(pl.Series(held > 0)) for held in (files.here, files.there))
            both = ours.join(theirs, on="group").drop("group")
            a, b = both["cell"].to_numpy(), both["cell_right"].to_numpy()
            agree = _pattern(files, a, b)
            new = np.ones(len(a), dtype=np.bool_)
            for earlier in least[:turn]:
                new &= agree & earlier != earlier
            found.append((a[new], b[new], agree[new]))
        a, b, agree = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.lexsort((b, a))
        return a[order].astype(np.int64), b[order].astype(np.int64), agree[order].astype(np.int64)

    def ratios(self, values: Floats, here: bool) -> Floats:
        """For each cell the sum over all cells of m / u times their values; the same from either file.

        m / u is a product over variables of what agreement and disagreement say; multiplied out, it is a sum over sets
        S of a number times 1[the pair agrees on S], so that 2^v groupings of the cells give all sums.
        """
        yes, no = self.rates.m / self.rates.u, (1 - self.rates.m) / (1 - self.rates.u)
        cells, found = np.arange(len(values)), np.zeros(len(values))
        for pattern in range(len(self.pairs)):
            factor = np.prod([yes[i] - no[i] if pattern >> i & 1 else no[i] for i in range(self.files.variables)])
            ids, size = self.files.groups(pattern, cells)
            found += factor * np.bincount(ids, values, size)[ids]
        return found


def _equal(place: int, one: Integers, two: Integers) -> Integers:
    same: Integers = (one == two).astype(np.int64)
    return same


def _expected(study: "Counted | Listed") -> int:
    """The number of matches that are expected, at least one."""
    most = min(len(study.files.one), len(study.files.two))
    return int(np.clip(round(study.share * float(study.pairs.sum())), 1, most))


def _pattern(files: Crossed, a: Integers, b: Integers) -> Integers:
    """The pattern of pairs of cells."""
    found = np.zeros(len(a), dtype=np.uint16)
    for bit, codes in enumerate(files.codes):
        found |= (codes[a] == codes[b]).astype(np.uint16) << bit
    return found


def _assigned(
    files: Crossed, a: Integers, b: Integers, pattern: Integers, weight: Floats, right: Right
) -> Iterator[tuple[Floats, Floats]]:
    """The best assignment with ties broken in several ways, and the records of each cell that it leaves alone.

    The assignment leaves no two candidates alone, so what is left over can be shared by the lighter patterns. Each way
    counts as much as the others.
    """
    random, parts = np.random.default_rng(SEED), components(a, b, len(files.here))
    times = TIES if max(len(files.one), len(files.two)) <= MANY else 1
    for _ in range(times):
        made = assign(a, b, weight, files.here, files.there, random, parts)
        right.pairs(a, b, pattern, made / times)
        here = np.asarray(files.here - np.bincount(a, made, len(files.here)), dtype=np.float64)
        there = np.asarray(files.there - np.bincount(b, made, len(files.there)), dtype=np.float64)
        yield here / times, there / times


# --- pairs compared one by one: graded agreement ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Listed:
    """Pairs of two files compared by levels within blocks."""

    compared: Compared
    bounds: Bounds
    people: tuple[Integers, Integers] | None
    given: graded_agreement.Rates | None = None

    @property
    def files(self) -> Crossed:
        return self.compared.files

    @property
    def pairs(self) -> Integers:
        return self.compared.pairs

    @cached_property
    def matches(self) -> Integers | None:
        """The pattern of each true pair; -1 outside blocks."""
        return None if self.people is None else self.compared.pattern(*self.people)

    @cached_property
    def truth(self) -> graded_agreement.Rates | None:
        return None if self.matches is None else graded_agreement.counted(self.compared, self.matches, in_order=False)

    @cached_property
    def guess(self) -> graded_agreement.Rates:
        return graded_agreement.estimate(self.compared)

    @cached_property
    def rates(self) -> graded_agreement.Rates:
        if self.given is not None:
            return replace(self.given, table=self.compared.table)
        if self.matches is None or self.bounds.knows != "truth":
            return self.guess
        return graded_agreement.counted(self.compared, self.matches, in_order=True)

    @property
    def share(self) -> float:
        return self.rates.share

    @cached_property
    def weights(self) -> Floats:
        return self.rates.weights()

    @cached_property
    def decisions(self) -> Integers:
        return decide(self.rates, self.bounds.false_match, self.bounds.false_nonmatch)

    @cached_property
    def order(self) -> list[int]:
        """The patterns of candidate pairs, the largest weight first; of equal ones that which agrees on more."""
        agree = self.compared.table.sum(axis=1)
        down = np.lexsort((np.arange(len(self.pairs)), -agree, -self.weights))
        return [int(s) for s in down if self.decisions[s] != APART]

    def rehearsal(self, alone: Floats) -> "Listed":
        """The same with a second file drawn from what was estimated; blocks are equal."""
        sure = [np.array([0.0, 1.0])] * (self.files.variables - self.compared.variables)
        chances = [*self.rates.m, *sure]
        files, people = drawn(self.files, chances, _expected(self), self.compared.level, alone)
        return Listed(replace(self.compared, files=files), self.bounds, people, self.rates)

    def texts(self) -> list[str]:
        return self.compared.texts()

    def _taken(self) -> tuple[int, int]:
        """How many patterns the assignment can take, and how many can be listed, from the largest weight down."""
        sums = np.cumsum(self.pairs[self.order])
        small = max(len(self.files.one), len(self.files.two)) <= RECORDS
        listed = int(np.searchsorted(sums, max(LISTED, int(sums[0]) if len(sums) else 0), side="right"))
        return int(np.searchsorted(sums, CANDIDATES, side="right")) if small else 0, listed

    def link(self, right: Right) -> str:
        """Make the pairs, and say how."""
        files, (taken, listed) = self.files, self._taken()
        rank = np.full(len(self.pairs), -1)
        rank[self.order[:listed]] = np.arange(listed)
        a, b, pattern = self.compared.edges(rank)
        place = rank[pattern]
        if taken:
            head = place < taken
            weight = self.weights[pattern[head]] - (self.weights[self.order[:taken]].min() - 1.0)
            left = _assigned(files, a[head], b[head], pattern[head], weight, right)
        else:
            left = iter([(files.here.astype(np.float64), files.there.astype(np.float64))])
        for here, there in left:
            for turn in range(taken, listed):
                now = np.flatnonzero(place == turn)
                right.pairs(a[now], b[now], pattern[now], spread(a[now], b[now], here, there))
        return self._how(taken, listed)

    def _how(self, taken: int, listed: int) -> str:
        ways = [f"those of the {taken:,} heaviest patterns by linear sum assignment"] if taken else []
        ways += ["lighter ones cells to cells" if taken else "cells to cells"] if listed > taken else []
        left = len(self.order) - listed
        more = f"; {left:,} light patterns had too many pairs and were left alone" if left else ""
        return f"Pairs were made: {', '.join(ways) or 'none'}{more}."

    def ratios(self, values: Floats, here: bool) -> Floats:
        """For each cell, of the first file if `here`, the sum of m / u times the values it is compared with."""
        m, u = self.rates.of_patterns()
        found = np.zeros(len(values))
        for a, b, packed in self.compared.chunks():
            one, two = (a, b) if here else (b, a)
            found += np.bincount(one, (m / u)[self.compared.place(packed)] * values[two], len(values))
        return found
