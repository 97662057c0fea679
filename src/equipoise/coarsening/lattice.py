"""Lattice: all combinations of the levels of some keys; a node is one of them, with its classes and who is withheld."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Protocol

import numpy as np

from equipoise.coarsening.cells_at_nodes import Folds, Levels
from equipoise.coarsening.coded_levels import CodedLevels
from equipoise.data.equivalence_classes import Classes
from equipoise.ground.arrays import Floats, Integers


@dataclass(frozen=True, eq=False, repr=False)
class Lattice:
    """The ladders of the keys, the records in all, and the folds at hand.

    In the columns `open` some values are missing, and match anything.
    """

    ladders: tuple[CodedLevels, ...]
    records: int
    folds: Folds
    open: tuple[str, ...] = ()

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
        """The shares of all keys and levels in one line, and where those of each key and level begin."""
        line = np.concatenate([share for ladder in self.ladders for share in ladder.shares])
        sizes = [ladder.size for ladder in self.ladders for _ in ladder.names]
        starts = np.cumsum([0, *sizes[:-1]])
        return line, np.split(starts, np.cumsum(self.shape)[:-1])

    @cached_property
    def chains(self) -> bool:
        """All levels of each key are nested, so that finer and coarser nodes are blocks."""
        return all(ladder.chain for ladder in self.ladders)

    def finer(self, levels: Levels) -> tuple[Any, ...]:
        """An index of this node and all nodes that are finer."""
        if self.chains:
            return tuple(slice(level + 1) for level in levels)
        return np.ix_(*(ladder.within[:, level] for ladder, level in zip(self.ladders, levels, strict=True)))

    def coarser(self, levels: Levels) -> tuple[Any, ...]:
        """An index of this node and all nodes that are coarser."""
        if self.chains:
            return tuple(slice(level, None) for level in levels)
        return np.ix_(*(ladder.within[level] for ladder, level in zip(self.ladders, levels, strict=True)))

    def sums(self, parts: tuple[Floats, ...]) -> Floats:
        """One number for each level of each key, added up for every node."""
        whole = np.zeros(self.shape)
        for j, part in enumerate(parts):
            whole += part.reshape([-1 if i == j else 1 for i in range(len(parts))])
        return whole


@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """One coarsening of the file: its classes, and which of them are unsafe, so that their records are withheld."""

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
        """Records that are withheld."""
        return int(self.n[self.unsafe].sum())

    def _told(self, which: Integers) -> tuple[Integers, Floats]:
        """For each of some classes the counted value of every key, and its records."""
        at = np.flatnonzero(which)
        return self.lattice.folds.codes.take(self.stand[at], axis=1), self.n[at].astype(np.float64)

    @cached_property
    def _hidden(self) -> tuple[Integers, Floats]:
        return self._told(self.unsafe)

    def withheld(self, key: int) -> Floats:
        """Records withheld, by their category of a key."""
        codes, n = self._hidden
        categories = self.lattice.ladders[key].steps[self.levels[key]][codes[key]]
        return np.bincount(categories, weights=n).astype(np.float64, copy=False)

    def covered(self) -> Floats:
        """For each key the sum over kept records of the share of the domain that their value covers."""
        line, starts = self.lattice.shares
        first = np.array([start[level] for start, level in zip(starts, self.levels, strict=True)])
        few = int(np.count_nonzero(self.unsafe)) * 2 > len(self.unsafe)
        codes, n = self._told(~self.unsafe) if few else self._hidden
        found: Floats = line.take(codes + first[:, None]) @ n
        whole = np.array([sums[level] for sums, level in zip(self.lattice.covered, self.levels, strict=True)])
        return found if few else whole - found


class CoarseningLoss(Protocol):
    """What a coarsening costs. It never falls as keys get coarser while the same records are withheld."""

    def of(self, node: Node) -> float:
        """The loss at a node."""

    def least(self, node: Node) -> float:
        """A lower bound of the loss there and at every coarser node, whatever is withheld."""

    def parts(self, lattice: Lattice, suppressed: int = 0) -> tuple[Floats, ...] | None:
        """For each key a number for each level, whose sum bounds the loss from below once it is a `total`.

        At least so many records are withheld. None where levels alone say nothing.
        """

    def total(self, sums: Any) -> Any:
        """The bound from the sum of the parts; it rises with the sum."""
