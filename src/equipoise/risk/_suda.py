"""Minimal sample uniques (SUDA2): the smallest sets of keys on which a record is unique.

A record unique on some keys is unique on every larger set, so only records unique on all keys can have any, and a set
is minimal for a record if the record is unique on no set with one key less. The cells of all keys are counted once and
added up key by key, from the largest sets down: a margin has for each of its cells whether no, one or several records
are in it, and which record the one is. The records unique on a set are a row of bits: minimality is a bit operation.
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
MAX_WORK = 1 << 33
"""Sets of keys times cells beyond which the search is refused."""
MAX_MARGIN_CELLS = 1 << 26
"""Cells of the margins of one size kept in memory to be added up; other margins are counted from the cells again."""


@dataclass(frozen=True, eq=False, repr=False)
class KeyCells:
    """Margin over some keys: `state` is 0, 1 or 2 for no, one or several records, `one` says which the one is.

    Records are numbered by their cell of all keys. Dense margins have an entry for every combination of values, in the
    order of the axes; others only for those that occur, where `one` is one of the cells if there are several.
    """

    places: Places
    state: NDArray[np.uint8]
    one: NDArray[np.int32]
    dense: bool

    def singles(self) -> NDArray[np.int32]:
        return np.asarray(self.one[self.state == 1])


def minimal_uniques(cube: Cube, max_size: int, wild: Sequence[int] = ()) -> Iterator[tuple[Places, Integers]]:
    """Every set of at most `max_size` axes, largest first, with the cells it is minimal for; empty ones are left out.

    On the axes `wild` a null matches anything, so that it never helps to be unique. Cost: at worst O(sets x cells), a
    sort for each set if margins are sparse; dense ones are added up from one another.

    >>> from equipoise.ground.packed_keys import code, tally
    >>> table = pl.DataFrame({"sex": ["f", "f", "m", "m"], "age": [30, 40, 30, 30]})
    >>> [(places, cells.tolist()) for places, cells in minimal_uniques(tally([code(c) for c in table]), 2)]
    [((0, 1), [0]), ((1,), [1])]
    """
    size, max_size = len(cube.axes), min(max_size, len(cube.axes))
    check_work(size, max_size, len(cube))
    occupied = np.flatnonzero(cube.n)
    if len(occupied) < len(cube):
        cube = Cube(cube.axes, tuple(codes[occupied] for codes in cube.codes), cube.n[occupied], cube.total[occupied])
    rows = np.flatnonzero(_is_unique(cube, range(size), wild))
    if not len(rows):
        return
    search = _Wild(cube, rows, tuple(wild)) if missing(cube, wild) else _Plain(cube, rows)
    upper = search.level(max_size)
    for number in range(max_size, 0, -1):
        lower = search.level(number - 1) if number > 1 else {}
        for places, bits in upper.items():
            minimal = bits.copy()
            for less in combinations(places, number - 1):
                if less in lower:
                    minimal &= ~lower[less]
            cells = rows[np.flatnonzero(np.unpackbits(minimal, count=len(rows)))]
            if len(cells):
                yield places, occupied[cells]
        upper = lower


def check_work(keys: int, most: int, cells: int) -> None:
    """Refuse a search over too many sets of keys."""
    sets = sum(comb(keys, size) for size in range(1, most + 1))
    if sets * cells > MAX_WORK:
        raise ParameterError(
            f"Sets of up to {most} of {keys} keys are {sets:,}, each over {cells:,} cells: give a smaller max_size."
        )


def _is_unique(cube: Cube, places: Sequence[int], wild: Sequence[int]) -> NDArray[np.bool_]:
    """Whether each cell is unique on these axes: nobody else matches it."""
    if len(places) == len(cube.axes):
        return np.asarray(alike(cube, wild)[0] == 1)
    margin = cube.keep(places)
    ids, _ = group([cube.codes[place] for place in places], [cube.sizes[place] for place in places])
    matching, _ = alike(margin, [spot for spot, place in enumerate(places) if place in wild])
    return np.asarray((matching == 1)[ids])


@dataclass(frozen=True, eq=False, repr=False)
class _Wild:
    """Search if nulls match anything: each set of keys is counted separately."""

    cube: Cube
    rows: Integers
    wild: Places

    def level(self, number: int) -> dict[Places, Bits]:
        uniques = {}
        for places in combinations(range(len(self.cube.axes)), number):
            alone = _is_unique(self.cube, places, self.wild)[self.rows]
            if alone.any():
                uniques[places] = np.packbits(alone)
        return uniques


class _Plain:
    """Search by margins added up from one another, from the largest sets down."""

    def __init__(self, cube: Cube, rows: Integers) -> None:
        order = np.argsort(cube.sizes, kind="stable")
        self.cube, self.rows = cube, rows
        self.rank = {int(place): spot for spot, place in enumerate(order)}
        self.number = np.zeros(len(cube), dtype=np.int32)
        self.number[rows] = np.arange(len(rows), dtype=np.int32)
        state = np.minimum(cube.n, 2).astype(np.uint8)
        self.finest = KeyCells(self._in_order(range(len(order))), state, np.arange(len(cube), dtype=np.int32), False)
        self.margins: dict[frozenset[int], KeyCells] = {}

    def _in_order(self, places: Sequence[int]) -> Places:
        """Axes with more values last, so that adding up over any of them runs through memory in order."""
        return tuple(sorted(places, key=self.rank.__getitem__))

    def level(self, number: int) -> dict[Places, Bits]:
        """Records unique on each set of this many axes, as bits, for sets that have any."""
        uniques, margins, room = {}, {}, MAX_MARGIN_CELLS
        for places in combinations(range(len(self.cube.axes)), number):
            margin = self._margin(self._in_order(places))
            if len(margin.state) <= room and margin is not self.finest:
                margins[frozenset(places)] = margin
                room -= len(margin.state)
            if len(singles := margin.singles()):
                mask = np.zeros(len(self.rows), dtype=np.bool_)
                mask[self.number[singles]] = True
                uniques[places] = np.packbits(mask)
        self.margins = margins
        return uniques

    def _margin(self, places: Places) -> KeyCells:
        """Margin from the smallest available one with one axis more, or from the cells of all keys."""
        if len(places) == len(self.finest.places):
            return self.finest
        rest = [place for place in self.finest.places if place not in places]
        above = [self.margins[wider] for place in rest if (wider := frozenset((*places, place))) in self.margins]
        parent = min(above, key=lambda margin: len(margin.state), default=self.finest)
        return add_up(parent, places, self.cube) if parent.dense else count_up(parent, places, self.cube)


def add_up(parent: KeyCells, places: Places, cube: Cube) -> KeyCells:
    """Margin summed from a dense one over the one axis that is not in `places`."""
    summed = next(spot for spot, place in enumerate(parent.places) if place not in places)
    sizes = [cube.sizes[place] for place in parent.places]
    shape = (prod(sizes[:summed]), sizes[summed], prod(sizes[summed + 1 :]))
    counts = parent.state.reshape(shape).sum(axis=1, dtype=np.uint32)
    one = parent.one.reshape(shape).sum(axis=1, dtype=np.int32)
    return KeyCells(places, np.minimum(counts, 2).astype(np.uint8).ravel(), one.ravel(), True)


def count_up(parent: KeyCells, places: Places, cube: Cube) -> KeyCells:
    """Margin counted over the cells of a sparse one: dense if it has few entries for each of them."""
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
    """Elliot's score of a minimal unique of each size 1 to `most`: the product over i = size, ..., most of (keys - i).

    The factor 0 of i = keys is left out, so that with most = keys it is (keys - size)!.

    >>> elliot(4, 3).tolist(), elliot(4, 4).tolist()
    ([6.0, 2.0, 1.0], [6.0, 2.0, 1.0, 1.0])
    """
    last = min(most, keys - 1)
    return np.array([float(prod(keys - i for i in range(size, last + 1))) for size in range(1, most + 1)])


def ihsn(keys: int, most: int) -> Floats:
    """Scores of the first program of the IHSN: (2^(keys - size) - 1) size! (keys - size)! / keys!.

    >>> ihsn(4, 4).tolist()
    [1.75, 0.5, 0.25, 0.0]
    """
    sizes = range(1, most + 1)
    ways = (factorial(size) * factorial(keys - size) / factorial(keys) for size in sizes)
    return np.array([(2.0 ** (keys - size) - 1) * way for size, way in zip(sizes, ways, strict=True)])


def dis(uniques: int, in_pairs: int, fraction: float) -> float:
    """P(a unique match is right) in the file, by Data Intrusion Simulation: U f / (U f + P (1 - f)).

    U records are unique, P records are in classes of two. Source: Skinner and Elliot (2002), *A measure of
    disclosure risk for microdata*.

    >>> round(dis(4, 6, 0.01), 6)
    0.006689
    """
    right = uniques * fraction
    return right / (right + in_pairs * (1 - fraction)) if uniques else 0.0


def dis_scores(scores: Floats, uniques: int, rate: float, keys: int) -> Floats:
    """DIS-SUDA scores, the file's rate distributed by the scores s: 1 / (1 + (U / rate - U) / (s^q sum of s^-q)).

    q = 1 + (8 - keys) / 20, at least 1/20; records that score 0 have 0. Source: Elliot and Manning (2003), as in the
    program of the IHSN and in sdcMicro. The scale of the scores has no influence, so it is taken out first.
    """
    probabilities = np.zeros(len(scores))
    scored = scores > 0
    if not scored.any():
        return probabilities
    powers = (scores[scored] / scores.max()) ** max(1 + (8 - keys) / 20, 1 / 20)
    probabilities[scored] = 1 / (1 + (uniques / rate - uniques) / (powers * (1 / powers).sum()))
    return probabilities
