"""Minimal sample uniques: the smallest sets of keys on which a record stands alone.

Who is unique on some keys is unique on more of them, so only records that are unique on all keys can have any, and a
set is minimal for a record when no set with one key less singles it out. The cells of all keys are counted once and
added up key by key, from the largest sets down: a margin keeps for each of its cells whether nobody, one record or
several are in it, and which record the one is. Who is unique on a set is a row of bits, so minimality is a few bit
operations.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, factorial, prod

import numpy as np
from numpy.typing import NDArray

from equipoise.data.missing_keys import alike, missing
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import ParameterError
from equipoise.ground.packed_keys import MAX_PLACES_PER_RECORD, Cube, group, pack

Places = tuple[int, ...]
Bits = NDArray[np.uint8]
WORK = 1 << 33
"""Sets of keys times cells beyond which the search is refused."""
KEPT = 1 << 26
"""Places of the margins of one size that are kept to be added up further; the rest is counted from the cells again."""


@dataclass(frozen=True, eq=False, repr=False)
class KeyCells:
    """The cells of some keys: `state` is 0, 1 or 2 for no, one or several records, `one` says which the one is.

    Records are told by their cell of all keys. Dense margins have a place for every combination of values, in the
    order of the axes; others only for those met, where `one` is a cell that belongs there also if there are several.
    """

    places: Places
    state: NDArray[np.uint8]
    one: NDArray[np.int32]
    dense: bool

    def singles(self) -> NDArray[np.int32]:
        found: NDArray[np.int32] = self.one[self.state == 1]
        return found


def minimal_uniques(cube: Cube, most: int, wild: Sequence[int] = ()) -> Iterator[tuple[Places, Integers]]:
    """Every set of at most `most` axes, largest first, with the cells it is minimal for; sets for nobody are left out.

    On the axes `wild` a null matches anything, so that it never helps to be unique. Cost: at worst O(sets x cells), a
    sort for each set where margins are sparse; dense ones are added up from one another.

    >>> import polars as pl
    >>> from equipoise.ground.packed_keys import code, tally
    >>> table = pl.DataFrame({"sex": ["f", "f", "m", "m"], "age": [30, 40, 30, 30]})
    >>> [(places, cells.tolist()) for places, cells in minimal_uniques(tally([code(c) for c in table]), 2)]
    [((0, 1), [0]), ((1,), [1])]
    """
    size, most = len(cube.axes), min(most, len(cube.axes))
    check_work(size, most, len(cube))
    held = np.flatnonzero(cube.n)
    if len(held) < len(cube):
        cube = Cube(cube.axes, tuple(codes[held] for codes in cube.codes), cube.n[held], cube.total[held])
    rows = np.flatnonzero(_alone(cube, range(size), wild))
    if not len(rows):
        return
    search = _Wild(cube, rows, tuple(wild)) if missing(cube, wild) else _Plain(cube, rows)
    upper = search.level(most)
    for number in range(most, 0, -1):
        lower = search.level(number - 1) if number > 1 else {}
        for places, bits in upper.items():
            found = bits.copy()
            for less in combinations(places, number - 1):
                if less in lower:
                    found &= ~lower[less]
            cells = rows[np.flatnonzero(np.unpackbits(found, count=len(rows)))]
            if len(cells):
                yield places, held[cells]
        upper = lower


def check_work(keys: int, most: int, cells: int) -> None:
    """Refuse a search over too many sets of keys."""
    sets = sum(comb(keys, size) for size in range(1, most + 1))
    if sets * cells > WORK:
        raise ParameterError(
            f"Sets of up to {most} of {keys} keys are {sets:,}, each over {cells:,} cells: give a smaller max_size."
        )


def _alone(cube: Cube, places: Sequence[int], wild: Sequence[int]) -> NDArray[np.bool_]:
    """Whether nobody else matches the cell on these axes."""
    if len(places) == len(cube.axes):
        return np.asarray(alike(cube, wild)[0] == 1)
    kept = cube.keep(places)
    ids, _ = group([cube.codes[place] for place in places], [cube.sizes[place] for place in places])
    matching, _ = alike(kept, [spot for spot, place in enumerate(places) if place in wild])
    return np.asarray((matching == 1)[ids])


@dataclass(frozen=True, eq=False, repr=False)
class _Wild:
    """Where nulls match anything: each set of keys is counted by itself."""

    cube: Cube
    rows: Integers
    wild: Places

    def level(self, number: int) -> dict[Places, Bits]:
        found = {}
        for places in combinations(range(len(self.cube.axes)), number):
            alone = _alone(self.cube, places, self.wild)[self.rows]
            if alone.any():
                found[places] = np.packbits(alone)
        return found


class _Plain:
    """Margins added up from one another, from the largest sets down."""

    def __init__(self, cube: Cube, rows: Integers) -> None:
        order = np.argsort(cube.sizes, kind="stable")
        self.cube, self.rows = cube, rows
        self.rank = {int(place): spot for spot, place in enumerate(order)}
        self.number = np.zeros(len(cube), dtype=np.int32)
        self.number[rows] = np.arange(len(rows), dtype=np.int32)
        state = np.minimum(cube.n, 2).astype(np.uint8)
        self.finest = KeyCells(self._ordered(range(len(order))), state, np.arange(len(cube), dtype=np.int32), False)
        self.kept: dict[frozenset[int], KeyCells] = {}

    def _ordered(self, places: Sequence[int]) -> Places:
        """Axes with more values last: adding up over any of them then runs through memory in order."""
        return tuple(sorted(places, key=self.rank.__getitem__))

    def level(self, number: int) -> dict[Places, Bits]:
        """Who is unique on each set of this many axes, where anybody is."""
        found, kept, room = {}, {}, KEPT
        for places in combinations(range(len(self.cube.axes)), number):
            margin = self._margin(self._ordered(places))
            if len(margin.state) <= room and margin is not self.finest:
                kept[frozenset(places)] = margin
                room -= len(margin.state)
            if len(singles := margin.singles()):
                mask = np.zeros(len(self.rows), dtype=np.bool_)
                mask[self.number[singles]] = True
                found[places] = np.packbits(mask)
        self.kept = kept
        return found

    def _margin(self, places: Places) -> KeyCells:
        """From the smallest margin there is with one axis more, or from the cells of all keys."""
        if len(places) == len(self.finest.places):
            return self.finest
        rest = [place for place in self.finest.places if place not in places]
        above = [self.kept[wider] for place in rest if (wider := frozenset((*places, place))) in self.kept]
        parent = min(above, key=lambda margin: len(margin.state), default=self.finest)
        return add_up(parent, places, self.cube) if parent.dense else count_up(parent, places, self.cube)


def add_up(parent: KeyCells, places: Places, cube: Cube) -> KeyCells:
    """A dense margin summed over the one axis that is not in `places`."""
    gone = next(spot for spot, place in enumerate(parent.places) if place not in places)
    sizes = [cube.sizes[place] for place in parent.places]
    shape = (prod(sizes[:gone]), sizes[gone], prod(sizes[gone + 1 :]))
    held = parent.state.reshape(shape).sum(axis=1, dtype=np.uint32)
    one = parent.one.reshape(shape).sum(axis=1, dtype=np.int32)
    return KeyCells(places, np.minimum(held, 2).astype(np.uint8).ravel(), one.ravel(), True)


def count_up(parent: KeyCells, places: Places, cube: Cube) -> KeyCells:
    """A margin counted over the cells of a sparse one: dense where it has few places for each of them."""
    whole = len(parent.places) == len(cube.axes)
    codes = [cube.codes[place] if whole else cube.codes[place].take(parent.one) for place in places]
    sizes = [cube.sizes[place] for place in places]
    dense = prod(sizes) <= MAX_PLACES_PER_RECORD * len(parent.one)
    ids, first = (pack(codes, sizes), np.empty(0, dtype=np.intp)) if dense else group(codes, sizes)
    state = np.minimum(np.bincount(ids, minlength=prod(sizes) if dense else 0), 2).astype(np.uint8)
    state[ids[parent.state == 2]] = 2
    if not dense:
        return KeyCells(places, state, parent.one[first], False)
    one = np.zeros(len(state), dtype=np.int32)
    one[ids] = parent.one
    return KeyCells(places, state, one, True)


def elliot(keys: int, most: int) -> Floats:
    """What a minimal unique of each size 1 to `most` scores: the product over i = size, ..., most of (keys - i).

    The factor 0 of i = keys is left out, so that with most = keys it is (keys - size)!.

    >>> elliot(4, 3).tolist(), elliot(4, 4).tolist()
    ([6.0, 2.0, 1.0], [6.0, 2.0, 1.0, 1.0])
    """
    last = min(most, keys - 1)
    return np.array([float(prod(keys - i for i in range(size, last + 1))) for size in range(1, most + 1)])


def ihsn(keys: int, most: int) -> Floats:
    """The weights of the first program of the IHSN: (2^(keys - size) - 1) size! (keys - size)! / keys!.

    >>> ihsn(4, 4).tolist()
    [1.75, 0.5, 0.25, 0.0]
    """
    sizes = range(1, most + 1)
    ways = (factorial(size) * factorial(keys - size) / factorial(keys) for size in sizes)
    return np.array([(2.0 ** (keys - size) - 1) * way for size, way in zip(sizes, ways, strict=True)])


def dis(uniques: int, in_pairs: int, fraction: float) -> float:
    """P(a unique match is right) of the file, by Data Intrusion Simulation: U f / (U f + P (1 - f)).

    U records are unique, P records are in classes of two. Source: Skinner and Elliot (2002), *A measure of
    disclosure risk for microdata*.

    >>> round(dis(4, 6, 0.01), 6)
    0.006689
    """
    right = uniques * fraction
    return right / (right + in_pairs * (1 - fraction)) if uniques else 0.0


def dis_scores(scores: Floats, uniques: int, rate: float, keys: int) -> Floats:
    """The file's rate shared out among its uniques by their scores s: 1 / (1 + (U / rate - U) / (s^q sum of s^-q)).

    q = 1 + (8 - keys) / 20, at least 1/20; records that score 0 have 0. Source: Elliot and Manning (2003), as in the
    program of the IHSN and in sdcMicro. The scale of the scores has no influence, so it is taken out first.
    """
    found = np.zeros(len(scores))
    scored = scores > 0
    if not scored.any():
        return found
    powers = (scores[scored] / scores.max()) ** max(1 + (8 - keys) / 20, 1 / 20)
    found[scored] = 1 / (1 + (uniques / rate - uniques) / (powers * (1 / powers).sum()))
    return found
