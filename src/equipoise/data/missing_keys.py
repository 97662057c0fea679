"""Class sizes where a missing key matches any value.

Two records match when they agree on every key that both have. The pattern of a cell is the set of keys it has; cells
of two patterns match when they agree on the keys that both patterns have. So for each pattern the others are added up
once for each set of shared keys: no pair of records or cells is ever formed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import Cube, common_ids


@dataclass(frozen=True, eq=False, repr=False)
class Meeting:
    """Cells, and other cells that share the same known keys with them: two match where their ids are equal."""

    cells: Integers
    matches: Integers
    cell_ids: Integers
    match_ids: Integers

    @property
    def size(self) -> int:
        return 1 + max(int(self.cell_ids.max()), int(self.match_ids.max()))

    def added(self, numbers: Floats) -> Floats:
        """For each of the `cells`, the sum of the numbers of all cells that match it."""
        sums = np.bincount(self.match_ids, numbers[self.matches], self.size)
        return np.asarray(sums[self.cell_ids], dtype=np.float64)


def missing(cube: Cube, places: Sequence[int]) -> tuple[int, ...]:
    """The axes in which some cell has no value."""
    return tuple(place for place in places if cube.axes[place].null_count())


def meetings(cube: Cube, places: Sequence[int]) -> Iterator[Meeting]:
    """All matching cells when a null matches anything on these axes: each ordered pair of cells occurs once.

    Cost: O(patterns x cells), a sort for each two patterns that share the same keys; at most 2^k patterns of k keys.
    """
    gaps = missing(cube, places)
    present = np.zeros(len(cube), dtype=np.int64)
    for bit, place in enumerate(gaps):
        present |= (cube.codes[place] != 0).astype(np.int64) << bit
    patterns = np.unique(present)
    always = [place for place in range(len(cube.axes)) if place not in gaps]
    for pattern in patterns:
        cells = np.flatnonzero(present == pattern)
        shared = present & pattern
        order = np.argsort(shared, kind="stable")
        starts = np.flatnonzero(np.diff(shared[order], prepend=-1))
        for matches in np.split(order, starts[1:]):
            both = int(shared[matches[0]])
            compared = [*always, *(place for bit, place in enumerate(gaps) if both >> bit & 1)]
            yield _meeting(cube, cells, matches, compared)


def _meeting(cube: Cube, cells: Integers, matches: Integers, compared: Sequence[int]) -> Meeting:
    """Ids of the values that both sides have; values of the larger side alone share one extra id."""
    codes, sizes = [cube.codes[place] for place in compared], [cube.sizes[place] for place in compared]
    keys = common_ids(codes, sizes, cells, matches)
    small, large = (0, 1) if len(cells) <= len(matches) else (1, 0)
    values, ids = np.unique(keys[small], return_inverse=True)
    spot = np.minimum(np.searchsorted(values, keys[large]), len(values) - 1)
    large_ids = np.where(values[spot] == keys[large], spot, len(values))
    return Meeting(cells, matches, ids, large_ids) if small == 0 else Meeting(cells, matches, large_ids, ids)


def alike(cube: Cube, places: Sequence[int]) -> tuple[Integers, Floats]:
    """Records that match each cell, and their weight: its own where no key is missing anywhere.

    >>> from equipoise.ground.packed_keys import code, tally
    >>> table = pl.DataFrame({"sex": ["f", "f", "m", None], "age": [30, None, 40, 30]})
    >>> alike(tally([code(table[c]) for c in table.columns]), [0, 1])[0].tolist()  # (-, 30), (f, -), (f, 30), (m, 40)
    [3, 3, 3, 1]
    """
    if not missing(cube, places):
        return cube.n, cube.total
    n, total = np.zeros(len(cube)), np.zeros(len(cube))
    records = cube.n.astype(np.float64)
    for met in meetings(cube, places):
        n[met.cells] += met.added(records)
        total[met.cells] += met.added(cube.total)
    return np.rint(n).astype(np.int64), total
