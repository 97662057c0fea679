"""Candidate records of each person under the known laws, and the likeliest of them."""

import numpy as np

from equipoise.attacks._informed.knowledge import RecordGuess, joint_both
from equipoise.attacks._nearest.box_search import Points, Questions, count_inside, count_ties
from equipoise.attacks._nearest.neighbours import count
from equipoise.attacks._nearest.points import Cloud, distinct_rows
from equipoise.ground.arrays import Floats, Integers

Coordinate = tuple[Floats, Floats, Floats, Floats, Floats]
"""Released values, expected values, weights, and the lower and upper ends of intervals."""


class CandidateSpace:
    """Constraints and distances that decide which records are candidates, and how likely each is.

    Blocks must agree. Every coordinate has the released value of each record and, for each person, the interval it must
    lie in, the expected value and a weight of the squared distance; codes have a penalty where they differ. Minus half
    of the sum of distances and penalties is the log likelihood of a link.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.blocks: list[tuple[Integers, Integers]] = []
        self.coordinates: list[Coordinate] = []
        self.codes: list[tuple[Integers, Integers]] = []
        self.penalties: list[float] = []
        self.flat = False

    def agree(self, released: Integers, original: Integers) -> None:
        self.blocks.append((released, original))

    def differ(self, released: Integers, original: Integers, penalty: float) -> None:
        self.codes.append((released, original))
        self.penalties.append(penalty)

    def coordinate(
        self, released: Floats, original: Floats, weight: Floats | float, low: Floats | float, high: Floats | float
    ) -> None:
        """Add a coordinate; missing numbers must agree, and count in no interval or distance."""
        released_gaps, original_gaps = np.isnan(released), np.isnan(original)
        if released_gaps.any() or original_gaps.any():
            self.agree(released_gaps.astype(np.int64), original_gaps.astype(np.int64))
        load = np.broadcast_to(np.asarray(weight, dtype=np.float64), original.shape)
        ends = np.where(original_gaps, -np.inf, low), np.where(original_gaps, np.inf, high)
        released, original = np.where(released_gaps, 0.0, released), np.where(original_gaps, 0.0, original)
        self.coordinates.append((released, original, load, *ends))

    @property
    def boxed(self) -> bool:
        return any(np.isfinite(low).any() or np.isfinite(high).any() for *_, low, high in self.coordinates)

    @property
    def even(self) -> bool:
        """Whether all people have the same weights."""
        return all((weight[:1] == weight).all() for _, _, weight, *_ in self.coordinates)

    def guesses(self, name: str, boxes: str) -> list[RecordGuess]:
        """Guess of the nearest candidate and, if there are only intervals, of any candidate at random."""
        block, sought = joint_both(self.blocks, self.size)
        if not self.boxed and self.even:
            return [self._nearest(name, block, sought)]
        points, questions, who = self._search_questions(self.coordinates, block, sought)
        many = count_inside(points, questions)[who]
        tied = count_ties(points, questions)[who]
        guesses = [RecordGuess(name, _chance(tied), many)]
        if self.flat:
            guesses.append(RecordGuess(boxes, np.where(self._own(block, sought), _chance(many), 0.0), many))
        return guesses

    def possible(self) -> Integers:
        """Number of candidate records of each person."""
        points, questions, who = self._search_questions(self.coordinates, *joint_both(self.blocks, self.size))
        return count_inside(points, questions)[who]

    def least(self, name: str, values: Integers) -> RecordGuess:
        """Guess of the candidate with the smallest value; there is a value for each released record."""
        still, free = np.zeros(self.size), np.full(self.size, np.inf)
        coordinates = [(released, original, still, low, high) for released, original, _, low, high in self.coordinates]
        coordinates.append((values.astype(np.float64), still, still + 1, -free, free))
        points, questions, who = self._search_questions(coordinates, *joint_both(self.blocks, self.size))
        tied = count_ties(points, questions)[who]
        return RecordGuess(name, _chance(tied), tied)

    def _nearest(self, name: str, block: Integers, sought: Integers) -> RecordGuess:
        """Guess of the nearest candidate if there are no intervals, by nearest-neighbour search."""
        shape = (self.size, len(self.coordinates))
        points, queries = (np.empty(shape), np.empty(shape))
        for i, (released, original, weight, *_) in enumerate(self.coordinates):
            points[:, i], queries[:, i] = released * np.sqrt(weight[0]), original * np.sqrt(weight[0])
        codes = [np.stack([*(pair[side] for pair in self.codes), (block, sought)[side]], axis=1) for side in (0, 1)]
        penalties = np.array([*self.penalties, np.inf])
        neighbours = count(Cloud(points, codes[0]), Cloud(queries, codes[1]), penalties, np.arange(self.size))
        hit = np.isfinite(neighbours.distance) & (neighbours.closer == 0)
        sizes = np.bincount(block, minlength=int(sought.max(initial=0)) + 1)[sought]
        return RecordGuess(name, np.where(hit, 1.0 / np.maximum(neighbours.tied, 1), 0.0), sizes)

    def _search_questions(
        self, coordinates: list[Coordinate], block: Integers, sought: Integers
    ) -> tuple[Points, Questions, Integers]:
        """Points and questions of the box search, equal records as one point and equal people as one question."""
        none = np.zeros((0, self.size))
        parts = [np.stack([c[i] for c in coordinates]) if coordinates else none for i in range(5)]
        codes = [np.stack([c[side] for c in self.codes]) if self.codes else np.zeros((0, self.size), dtype=np.int64)
                 for side in (0, 1)]  # fmt: skip
        kind, rows, counts = distinct_rows([*parts[0], *codes[0], block])
        points = Points(parts[0][:, rows], codes[0][:, rows], block[rows], counts)
        who, people, _ = distinct_rows([*(row for part in parts[1:] for row in part), *codes[1], sought, kind])
        low, high, centre, weight = (parts[i][:, people] for i in (3, 4, 1, 2))
        place = np.where(sought[people] <= block.max(initial=-1), sought[people], -1)
        penalties = np.array(self.penalties)
        questions = Questions(low, high, centre, weight, codes[1][:, people], penalties, place, kind[people])
        return points, questions, who

    def _own(self, block: Integers, sought: Integers) -> Integers:
        """Whether each person's own record is a candidate."""
        is_possible: Integers = block == sought
        for released, _, _, low, high in self.coordinates:
            is_possible &= (released >= low) & (released <= high)
        return is_possible


def _chance(many: Integers) -> Floats:
    return np.asarray(np.where(many > 0, 1.0 / np.maximum(many, 1), 0.0))
