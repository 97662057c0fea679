"""Slices: a part of a large file that refutes many nodes early.

The records of one category of a key, at a level as coarse as a node's or coarser, hold whole classes of that node. If
too many of them are in unsafe classes already, so are too many of all.
"""

from dataclasses import dataclass, replace

import numpy as np

from equipoise.coarsening.cells_at_nodes import Levels
from equipoise.coarsening.lattice import Lattice

MIN_SLICED_CELLS = 100_000
"""Cells from which slices are worth their making."""
SLICE_SHARE = 0.1
"""The share of records that a slice should have."""
MAX_SLICES = 3
"""Slices that are made, of as many keys."""


@dataclass(frozen=True, eq=False, repr=False)
class Slice:
    """The lattice of the records in one category of a key."""

    key: int
    level: int
    lattice: Lattice

    def covers(self, levels: Levels) -> bool:
        """The classes of a node are wholly in the slice or wholly outside."""
        return bool(self.lattice.ladders[self.key].within[levels[self.key], self.level])


def slices(lattice: Lattice) -> tuple[Slice, ...]:
    """Slices near the wanted share, by keys whose coarser levels tell them: none for small files."""
    if len(lattice.folds.base) < MIN_SLICED_CELLS:
        return ()
    candidates = []
    for j, ladder in enumerate(lattice.ladders):
        for level in range(len(ladder)):
            counts = np.bincount(ladder.steps[level], weights=ladder.counts) / lattice.records
            category = int(np.argmin(np.abs(counts - SLICE_SHARE)))
            if SLICE_SHARE / 2 <= counts[category] <= 3 * SLICE_SHARE:
                candidates.append(
                    (-int(ladder.within[:, level].sum()), abs(counts[category] - SLICE_SHARE), j, level, category)
                )
    chosen: dict[int, Slice] = {}
    for _, _, j, level, category in sorted(candidates):
        if j not in chosen and len(chosen) < MAX_SLICES:
            folds = lattice.folds.part(j, lattice.ladders[j].steps[level] == category)
            chosen[j] = Slice(j, level, replace(lattice, folds=folds, people=None))
    return tuple(chosen.values())
