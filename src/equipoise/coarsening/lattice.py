"""Generalization lattice: all combinations of the levels of some keys; a node has classes and suppressed records."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Protocol

import numpy as np

from equipoise.coarsening.cells_at_nodes import Folds, Levels
from equipoise.coarsening.coded_levels import CodedLevels
from equipoise.data.equivalence_classes import Classes
from equipoise.data.people import People
from equipoise.ground.arrays import Floats, Integers


@dataclass(frozen=True, eq=False, repr=False)
class Lattice:
    """The coded levels of the keys (`ladders`), the number of records, and the cached folds.

    In the columns `open` some values are missing, and match anything. `people` are those of the counted cells, where
    records repeat people.
    """

    ladders: tuple[CodedLevels, ...]
    records: int
    folds: Folds
    open: tuple[str, ...] = ()
    people: People | None = None

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(ladder) for ladder in self.ladders)

    @property
    def nodes(self) -> int:
        return prod(self.shape)

    @cached_property
    def covered(self) -> tuple[Floats, ...]:
        """For each key and level the sum over all records of the share of the domain that their value covers."""
        return tuple(np.array([share @ ladder.counts for share in ladder.shares]) for ladder in self.ladders)

    @cached_property
    def shares(self) -> tuple[Floats, list[Integers]]:
        """The shares of all keys and levels in one array, and the start of those of each key and level."""
        line = np.concatenate([share for ladder in self.ladders for share in ladder.shares])
        sizes = [ladder.size for ladder in self.ladders for _ in ladder.names]
        starts = np.cumsum([0, *sizes[:-1]])
        return line, np.split(starts, np.cumsum(self.shape)[:-1])

    @cached_property
    def chains(self) -> bool:
        """Whether all levels of each key are nested, so that finer and coarser nodes are blocks."""
        return all(ladder.chain for ladder in self.ladders)

    def finer(self, levels: Levels) -> tuple[Any, ...]:
        """Index of this node and all finer nodes."""
        if self.chains:
            return tuple(slice(level + 1) for level in levels)
        return np.ix_(*(ladder.within[:, level] for ladder, level in zip(self.ladders, levels, strict=True)))

    def coarser(self, levels: Levels) -> tuple[Any, ...]:
        """Index of this node and all coarser nodes."""
        if self.chains:
            return tuple(slice(level, None) for level in levels)
        return np.ix_(*(ladder.within[level] for ladder, level in zip(self.ladders, levels, strict=True)))

    def sums(self, parts: tuple[Floats, ...]) -> Floats:
        """Sum over keys, at every node, of one number for each level of each key."""
        whole = np.zeros(self.shape)
        for j, part in enumerate(parts):
            whole += part.reshape([-1 if i == j else 1 for i in range(len(parts))])
        return whole


@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """One coarsening of the file: its classes, and flags of the unsafe ones, whose records are suppressed."""

    lattice: Lattice
    levels: Levels
    classes: Classes
    unsafe: Integers
    stand: Integers

    @property
    def n(self) -> Integers:
        return self.classes.n

    @cached_property
    def suppressed(self) -> int:
        """Number of suppressed records."""
        return int(self.n[self.unsafe].sum())

    def _codes_and_counts(self, which: Integers) -> tuple[Integers, Floats]:
        """Counted value of every key, and records, of the classes in `which`."""
        at = np.flatnonzero(which)
        return self.lattice.folds.codes.take(self.stand[at], axis=1), self.n[at].astype(np.float64)

    @cached_property
    def _hidden(self) -> tuple[Integers, Floats]:
        return self._codes_and_counts(self.unsafe)

    def suppressed_by_category(self, key: int) -> Floats:
        """Suppressed records by category of a key."""
        codes, n = self._hidden
        categories = self.lattice.ladders[key].steps[self.levels[key]][codes[key]]
        return np.bincount(categories, weights=n).astype(np.float64, copy=False)

    def covered(self) -> Floats:
        """For each key the sum over kept records of the share of the domain that their value covers."""
        line, starts = self.lattice.shares
        first = np.array([start[level] for start, level in zip(starts, self.levels, strict=True)])
        few = int(np.count_nonzero(self.unsafe)) * 2 > len(self.unsafe)
        codes, n = self._codes_and_counts(~self.unsafe) if few else self._hidden
        covered: Floats = line.take(codes + first[:, None]) @ n
        whole = np.array([sums[level] for sums, level in zip(self.lattice.covered, self.levels, strict=True)])
        return covered if few else whole - covered


class CoarseningLoss(Protocol):
    """Information loss of a coarsening. It never decreases with coarser keys while suppressed records are the same."""

    def of(self, node: Node) -> float:
        """The loss at a node."""

    def least(self, node: Node) -> float:
        """Lower bound of the loss there and at every coarser node, whatever is suppressed."""

    def parts(self, lattice: Lattice, suppressed: int = 0) -> tuple[Floats, ...] | None:
        """For each key a number for each level, whose sum bounds the loss from below once it is a `total`.

        At least so many records are suppressed. None where levels alone give no bound.
        """

    def total(self, sums: Any) -> Any:
        """The bound from the sum of the parts; it rises with the sum."""
