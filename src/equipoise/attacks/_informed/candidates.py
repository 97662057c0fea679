"""The records an intruder holds possible for each person, and the nearest of them under the known laws."""

import numpy as np
import polars as pl

from equipoise.attacks._informed.knowledge import RecordGuess, joint_both
from equipoise.attacks._nearest.box_search import Points, Questions, first, inside
from equipoise.attacks._nearest.neighbours import count
from equipoise.attacks._nearest.points import Cloud
from equipoise.ground.arrays import Floats, Integers

Coordinate = tuple[Floats, Floats, Floats, Floats, Floats]
"""Released values, expected values, weights, and the lower and upper ends of intervals."""


class CandidateSpace:
    """What must agree, intervals that a released coordinate cannot leave, and squared distances that make it unlikely.

    Every coordinate has the released value of each record and, for each person, the interval, the expected value and a
    weight; codes have a penalty where they differ. Minus half of the sum of both is the log likelihood of a link.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.blocks: list[tuple[Integers, Integers]] = []
        self.coordinates: list[Coordinate] = []
        self.codes: list[tuple[Integers, Integers]] = []
        self.penalties: list[float] = []
        self.flat = False

    def agree(self, here: Integers, there: Integers) -> None:
        self.blocks.append((here, there))

    def differ(self, here: Integers, there: Integers, penalty: float) -> None:
        self.codes.append((here, there))
        self.penalties.append(penalty)

    def coordinate(
        self, here: Floats, there: Floats, weight: Floats | float, low: Floats | float, high: Floats | float
    ) -> None:
        """Missing numbers must meet missing ones, and are left out of boxes and distances."""
        gaps, lost = np.isnan(here), np.isnan(there)
        if gaps.any() or lost.any():
            self.agree(gaps.astype(np.int64), lost.astype(np.int64))
        load = np.broadcast_to(np.asarray(weight, dtype=np.float64), there.shape)
        ends = np.where(lost, -np.inf, low), np.where(lost, np.inf, high)
        self.coordinates.append((np.where(gaps, 0.0, here), np.where(lost, 0.0, there), load, *ends))

    @property
    def boxed(self) -> bool:
        return any(np.isfinite(low).any() or np.isfinite(high).any() for *_, low, high in self.coordinates)

    @property
    def even(self) -> bool:
        """All people have the same weights."""
        return all((weight[:1] == weight).all() for _, _, weight, *_ in self.coordinates)

    def guesses(self, name: str, boxes: str) -> list[RecordGuess]:
        """The nearest possible record and, where intervals are all there is, any of the possible ones."""
        block, sought = joint_both(self.blocks, self.size)
        if not self.boxed and self.even:
            return [self._nearest(name, block, sought)]
        points, asked, who = self._asked(self.coordinates, block, sought)
        many = inside(points, asked)[who]
        tied = first(points, asked)[who]
        guesses = [RecordGuess(name, _chance(tied), many)]
        if self.flat:
            guesses.append(RecordGuess(boxes, np.where(self._own(block, sought), _chance(many), 0.0), many))
        return guesses

    def possible(self) -> Integers:
        """How many records are possible for each person."""
        points, asked, who = self._asked(self.coordinates, *joint_both(self.blocks, self.size))
        return inside(points, asked)[who]

    def least(self, name: str, values: Integers) -> RecordGuess:
        """Of the possible records the one with the smallest of these values, one for each released record."""
        still, free = np.zeros(self.size), np.full(self.size, np.inf)
        held = [(here, there, still, low, high) for here, there, _, low, high in self.coordinates]
        held.append((values.astype(np.float64), still, still + 1, -free, free))
        points, asked, who = self._asked(held, *joint_both(self.blocks, self.size))
        tied = first(points, asked)[who]
        return RecordGuess(name, _chance(tied), tied)

    def _nearest(self, name: str, block: Integers, sought: Integers) -> RecordGuess:
        """Without intervals: by trees that look for neighbours."""
        shape = (self.size, len(self.coordinates))
        here, there = (np.empty(shape), np.empty(shape))
        for i, (released, original, weight, *_) in enumerate(self.coordinates):
            here[:, i], there[:, i] = released * np.sqrt(weight[0]), original * np.sqrt(weight[0])
        codes = [np.stack([*(pair[side] for pair in self.codes), (block, sought)[side]], axis=1) for side in (0, 1)]
        penalties = np.array([*self.penalties, np.inf])
        found = count(Cloud(here, codes[0]), Cloud(there, codes[1]), penalties, np.arange(self.size))
        hit = np.isfinite(found.distance) & (found.closer == 0)
        sizes = np.bincount(block, minlength=int(sought.max(initial=0)) + 1)[sought]
        return RecordGuess(name, np.where(hit, 1.0 / np.maximum(found.tied, 1), 0.0), sizes)

    def _asked(
        self, coordinates: list[Coordinate], block: Integers, sought: Integers
    ) -> tuple[Points, Questions, Integers]:
        """Equal records as one point, equal people as one question."""
        none = np.zeros((0, self.size))
        parts = [np.stack([c[i] for c in coordinates]) if coordinates else none for i in range(5)]
        codes = [np.stack([c[side] for c in self.codes]) if self.codes else np.zeros((0, self.size), dtype=np.int64)
                 for side in (0, 1)]  # fmt: skip
        kind, rows, counts = distinct([*parts[0], *codes[0], block])
        points = Points(parts[0][:, rows], codes[0][:, rows], block[rows], counts)
        who, people, _ = distinct([*(row for part in parts[1:] for row in part), *codes[1], sought, kind])
        low, high, centre, weight = (parts[i][:, people] for i in (3, 4, 1, 2))
        place = np.where(sought[people] <= block.max(initial=-1), sought[people], -1)
        penalties = np.array(self.penalties)
        asked = Questions(low, high, centre, weight, codes[1][:, people], penalties, place, kind[people])
        return points, asked, who

    def _own(self, block: Integers, sought: Integers) -> Integers:
        """Whether a person's own record is one of those held possible."""
        found: Integers = block == sought
        for here, _, _, low, high in self.coordinates:
            found &= (here >= low) & (here <= high)
        return found


def _chance(many: Integers) -> Floats:
    found: Floats = np.where(many > 0, 1.0 / np.maximum(many, 1), 0.0)
    return found


def distinct(columns: list[Floats | Integers]) -> tuple[Integers, Integers, Integers]:
    """The kind of every row, and the first row and the number of rows of each kind. One pass of hashing.

    >>> distinct([np.array([3, 5, 3])])[0].tolist()
    [0, 1, 0]
    """
    table = pl.DataFrame({str(i): np.ascontiguousarray(column) for i, column in enumerate(columns)})
    numbered = table.with_row_index("row")
    grouped = numbered.group_by(table.columns).agg("row").sort(pl.col("row").list.first())
    counts = grouped["row"].list.len().cast(pl.Int64).to_numpy()
    kinds = np.empty(table.height, dtype=np.int64)
    kinds[grouped["row"].explode().to_numpy()] = np.repeat(np.arange(len(counts)), counts)
    return kinds, grouped["row"].list.first().cast(pl.Int64).to_numpy(), counts
