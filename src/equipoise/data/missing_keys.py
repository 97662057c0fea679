"""Missing keys that match anything: who is alike when a null stands for every value.

Two records match when they agree on every key that both have. Cells are taken by their pattern, the set of keys they
have; cells of two patterns match when they agree on what the patterns share. So for each pattern the others are added
up once for each set of keys they share with it: no pair of records or cells is ever formed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import MAX_PACKED_ID, Cube, group


@dataclass(frozen=True, eq=False, repr=False)
class Meeting:
    """Cells `here` and the cells `there` that share the same keys with them: they match where their ids are equal."""

    here: Integers
    there: Integers
    ids_here: Integers
    ids_there: Integers

    @property
    def size(self) -> int:
        return 1 + max(int(self.ids_here.max()), int(self.ids_there.max()))

    def added(self, numbers: Floats) -> Floats:
        """For each cell `here`, the sum of the numbers of all cells `there` that match it."""
        return np.asarray(np.bincount(self.ids_there, numbers[self.there], self.size)[self.ids_here], dtype=np.float64)


def missing(cube: Cube, places: Sequence[int]) -> tuple[int, ...]:
    """Those of the axes in which some cell has no value."""
    return tuple(place for place in places if cube.axes[place].null_count())


def meetings(cube: Cube, places: Sequence[int]) -> Iterator[Meeting]:
    """All cells that match, when a null matches anything on these axes: every two cells meet exactly once each way.

    Cost: O(patterns x cells), a sort for each two patterns that share the same keys; at most 2^k patterns of k keys.
    """
    gaps = missing(cube, places)
    known = np.zeros(len(cube), dtype=np.int64)
    for bit, place in enumerate(gaps):
        known |= (cube.codes[place] != 0).astype(np.int64) << bit
    patterns = np.unique(known)
    always = [place for place in range(len(cube.axes)) if place not in gaps]
    for pattern in patterns:
        here = np.flatnonzero(known == pattern)
        shared = known & pattern
        order = np.argsort(shared, kind="stable")
        starts = np.flatnonzero(np.diff(shared[order], prepend=-1))
        for there in np.split(order, starts[1:]):
            both = int(shared[there[0]])
            compared = [*always, *(place for bit, place in enumerate(gaps) if both >> bit & 1)]
            yield _met(cube, here, there, compared)


def _met(cube: Cube, here: Integers, there: Integers, compared: Sequence[int]) -> Meeting:
    """Ids of the values that both sides have; what only the larger side has is one id more."""
    sizes = [cube.sizes[place] for place in compared]
    if prod(sizes) > MAX_PACKED_ID:
        rows = np.concatenate([here, there])
        ids, _ = group([cube.codes[place][rows] for place in compared], sizes)
        return Meeting(here, there, ids[: len(here)], ids[len(here) :])
    keys = [_packed(cube, rows, compared) for rows in (here, there)]
    small, large = (0, 1) if len(here) <= len(there) else (1, 0)
    values, ids = np.unique(keys[small], return_inverse=True)
    spot = np.minimum(np.searchsorted(values, keys[large]), len(values) - 1)
    found = np.where(values[spot] == keys[large], spot, len(values))
    return Meeting(here, there, ids, found) if small == 0 else Meeting(here, there, found, ids)


def _packed(cube: Cube, rows: Integers, compared: Sequence[int]) -> Integers:
    packed = np.zeros(len(rows), dtype=np.int64)
    for place in compared:
        packed = packed * cube.sizes[place] + cube.codes[place][rows]
    return packed


def alike(cube: Cube, places: Sequence[int]) -> tuple[Integers, Floats]:
    """For each cell the records that match it, and their weight: its own where no key is missing anywhere.

    >>> import polars as pl
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
        n[met.here] += met.added(records)
        total[met.here] += met.added(cube.total)
    return np.rint(n).astype(np.int64), total
