"""Candidate records of each person under the known laws, and the likeliest of them."""

from functools import cached_property

import numpy as np
import polars as pl

from equipoise.attacks._informed.knowledge import RecordGuess, joint_both
from equipoise.attacks._nearest.box_search import Points, Questions, count_inside, count_ties
from equipoise.attacks._nearest.cell_pairs_by_cost import Costs
from equipoise.attacks._nearest.neighbours import count
from equipoise.attacks._nearest.points import Cloud, distinct_rows
from equipoise.attacks._nearest.same_person import chance_of_nearest
from equipoise.ground.arrays import Floats, Integers

Coordinate = tuple[Floats, Floats, Floats, Floats, Floats]
"""Released values, expected values, weights, and the lower and upper ends of intervals."""
MAX_OWN_PAIRS = 5_000_000
"""Pairs of records of one person that are asked about, one by one."""


class CandidateSpace:
    """Constraints and distances that decide which records are candidates, and how likely each is.

    Blocks must agree. Every coordinate has the released value of each record and, for each person, the interval it must
    lie in, the expected value and a weight of the squared distance; codes have a penalty where they differ. Minus half
    of the sum of distances and penalties is the log likelihood of a link. Where people have several records, `owner`
    says whose each is: links are right by any of them (with intervals up to 5,000,000 pairs of a person's records, else
    by the own one).
    """

    def __init__(self, size: int, owner: Integers | None = None) -> None:
        self.size, self.owner = size, owner
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
        candidates = self._of_people(many)
        guesses = [RecordGuess(name, self._chance(count_ties(points, questions)[who]), candidates)]
        if self.flat:
            guesses.append(RecordGuess(boxes, self._chance(np.where(self._own(block, sought), many, 0)), candidates))
        return guesses

    def possible(self) -> Integers:
        """Number of candidate records of each person."""
        points, questions, who = self._search_questions(self.coordinates, *joint_both(self.blocks, self.size))
        return self._of_people(count_inside(points, questions)[who])

    def least(self, name: str, values: Integers) -> RecordGuess:
        """Guess of the candidate with the smallest value; there is a value for each released record."""
        still, free = np.zeros(self.size), np.full(self.size, np.inf)
        coordinates = [(released, original, still, low, high) for released, original, _, low, high in self.coordinates]
        coordinates.append((values.astype(np.float64), still, still + 1, -free, free))
        points, questions, who = self._search_questions(coordinates, *joint_both(self.blocks, self.size))
        tied = count_ties(points, questions)[who]
        return RecordGuess(name, self._chance(tied), self._of_people(tied))

    def _nearest(self, name: str, block: Integers, sought: Integers) -> RecordGuess:
        """Guess of the nearest candidate if there are no intervals, by nearest-neighbour search."""
        shape = (self.size, len(self.coordinates))
        points, queries = (np.empty(shape), np.empty(shape))
        for i, (released, original, weight, *_) in enumerate(self.coordinates):
            points[:, i], queries[:, i] = released * np.sqrt(weight[0]), original * np.sqrt(weight[0])
        codes = [np.stack([*(pair[side] for pair in self.codes), (block, sought)[side]], axis=1) for side in (0, 1)]
        penalties = np.array([*self.penalties, np.inf])
        sizes = np.bincount(block, minlength=int(sought.max(initial=0)) + 1)[sought]
        clouds = Cloud(points, codes[0]), Cloud(queries, codes[1]), Costs(penalties)
        if self.owner is not None:
            return RecordGuess(name, chance_of_nearest(*clouds, np.arange(self.size), self.owner), sizes)
        neighbours = count(*clouds, np.arange(self.size))
        hit = np.isfinite(neighbours.distance) & (neighbours.closer == 0)
        return RecordGuess(name, np.where(hit, 1.0 / np.maximum(neighbours.tied, 1), 0.0), sizes)

    def _search_questions(
        self, coordinates: list[Coordinate], block: Integers, sought: Integers
    ) -> tuple[Points, Questions, Integers]:
        """Points and questions of the box search, equal records as one point; the question of each of the pairs."""
        first, second = self.pairs
        none = np.zeros((0, self.size))
        parts = [np.stack([c[i] for c in coordinates]) if coordinates else none for i in range(5)]
        codes = [np.stack([c[side] for c in self.codes]) if self.codes else np.zeros((0, self.size), dtype=np.int64)
                 for side in (0, 1)]  # fmt: skip
        kind, rows, counts = distinct_rows([*parts[0], *codes[0], block])
        points = Points(parts[0][:, rows], codes[0][:, rows], block[rows], counts)
        sides = [*(row for part in parts[1:] for row in part), *codes[1], sought]
        who, some, _ = distinct_rows([*(row[first] for row in sides), kind[second]])
        people = first[some]
        low, high, centre, weight = (parts[i][:, people] for i in (3, 4, 1, 2))
        place = np.where(sought[people] <= block.max(initial=-1), sought[people], -1)
        penalties = np.array(self.penalties)
        questions = Questions(low, high, centre, weight, codes[1][:, people], penalties, place, kind[second[some]])
        return points, questions, who

    @cached_property
    def pairs(self) -> tuple[Integers, Integers]:
        """Each person with each record that is right, as rows: the own one, or all of the owner."""
        own = np.arange(self.size)
        if self.owner is None or int((np.bincount(self.owner) ** 2).sum()) > MAX_OWN_PAIRS:
            return own, own
        rows = pl.DataFrame({"owner": self.owner, "row": own})
        both = rows.join(rows, on="owner")
        return both["row"].to_numpy(), both["row_right"].to_numpy()

    def _chance(self, many: Integers) -> Floats:
        """Chance that a guess among so many records, for each of the pairs, is right; 0 is none."""
        chance = np.where(many > 0, 1.0 / np.maximum(many, 1), 0.0)
        return np.bincount(self.pairs[0], weights=chance, minlength=self.size).astype(np.float64)

    def _of_people(self, many: Integers) -> Integers:
        """The largest number of a person's pairs."""
        largest = np.zeros(self.size, dtype=np.int64)
        np.maximum.at(largest, self.pairs[0], many)
        return largest

    def _own(self, block: Integers, sought: Integers) -> Integers:
        """Whether the record of each pair is a candidate."""
        first, second = self.pairs
        is_possible: Integers = block[second] == sought[first]
        for released, _, _, low, high in self.coordinates:
            is_possible &= (released[second] >= low[first]) & (released[second] <= high[first])
        return is_possible
