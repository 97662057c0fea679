"""Links of all people at once by the laws of the masks: every record is somebody's, and nobody has two.

Within a block of what must agree, the likelihood of every pair of a person and a record gives the likeliest assignment
as a whole (SciPy, up to 2,000 records) and, scaled in turn so that the records of a person and the people of a record
sum to one (Sinkhorn), the likeliest record of each person. Cost: O(records^2) of the largest block for each column and
scaling, some tenths of a second for 1,000 records, five seconds for 5,000; O(records^3) at worst for the assignment.
"""

from collections.abc import Iterator

import numpy as np

from equipoise.attacks._informed.candidates import CandidateSpace
from equipoise.attacks._informed.knowledge import RecordGuess, joint_both
from equipoise.attacks._nearest.one_to_one import MAX_EXACT_RECORDS, SCALINGS, chance_of_own
from equipoise.attacks._nearest.points import distinct_rows
from equipoise.ground.arrays import Floats, Integers

MAX_BLOCK_RECORDS = 5_000
"""Records of a block up to which all pairs are weighed."""
IMPOSSIBLE = 1e4
"""What each interval that a record lies outside of costs, in twice the log of a likelihood."""


def assigned_guesses(space: CandidateSpace, name: str) -> list[RecordGuess]:
    """Guesses of an intruder who links everybody at once; none where a block is too large or has one person only."""
    block, sought = joint_both(space.blocks, space.size)
    largest = int(np.bincount(block).max(initial=0))
    if not 1 < largest <= MAX_BLOCK_RECORDS or not (space.coordinates or space.codes):
        return []
    links: dict[str, Integers] = {}
    for people, records in _blocks(space, block, sought):
        for how, record in _ways(space, people, records, exact=largest <= MAX_EXACT_RECORDS):
            links.setdefault(how, np.full(space.size, -1))[people] = np.where(record < 0, -1, records[record])
    looks, _, _ = distinct_rows(
        [*(part for c in space.coordinates for part in c[1:]), *(c[1] for c in space.codes), sought]
    )
    points, _, counts = distinct_rows([*(c[0] for c in space.coordinates), *(c[0] for c in space.codes), block])
    own, sizes = np.arange(space.size), np.bincount(block, minlength=int(sought.max()) + 1)[sought]
    return [
        RecordGuess(f"{name}, {how}", chance_of_own(looks, points, counts, record, own, space.owner), sizes)
        for how, record in links.items()
    ]


def _blocks(space: CandidateSpace, block: Integers, sought: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Rows of the people and of the records of each block that has both, in the order of their values: never of rows,
    which are the same in both files and would settle ties.
    """
    values = [[*(c[side] for c in space.coordinates), *(c[side] for c in space.codes)] for side in (0, 1)]
    order, who = np.lexsort([*values[0], block]), np.lexsort([*values[1], sought])
    for number in np.intersect1d(block, sought):
        ends = [np.searchsorted(codes[rows], [number, number + 1]) for codes, rows in ((block, order), (sought, who))]
        yield who[slice(*ends[1])], order[slice(*ends[0])]


def _ways(space: CandidateSpace, people: Integers, records: Integers, *, exact: bool) -> Iterator[tuple[str, Integers]]:
    """For each way to link all people of a block the place of everybody's record, -1 for none."""
    from scipy.optimize import linear_sum_assignment

    costs = _costs(space, people, records)
    if exact:
        link = np.full(len(people), -1)
        rows, columns = linear_sum_assignment(costs)
        link[rows] = columns
        yield "all people at once", link
    yield "each likeliest among all links", _likeliest(costs)
    if space.flat:
        yield "each likeliest among all possible links", _likeliest(np.floor(costs / IMPOSSIBLE) * IMPOSSIBLE)


def _costs(space: CandidateSpace, people: Integers, records: Integers) -> Floats:
    """Minus twice the log likelihood of every pair, up to a number for each person."""
    costs = np.zeros((len(people), len(records)))
    for released, original, weight, low, high in space.coordinates:
        values = released[records]
        gap = values - original[people, None]
        costs += np.minimum(weight[people, None] * gap * gap, IMPOSSIBLE / 10)
        costs += IMPOSSIBLE * ((values < low[people, None]) | (values > high[people, None]))
    for (released, original), penalty in zip(space.codes, space.penalties, strict=True):
        costs += penalty * (released[records] != original[people, None])
    return costs


def _likeliest(costs: Floats) -> Integers:
    """Each person's likeliest record once likelihoods are scaled so that people and records sum to one."""
    gaps = (costs - costs.min(axis=1, keepdims=True)).astype(np.float32)  # single precision: twice as fast
    weight = np.exp(-np.minimum(gaps / 2, 40.0))
    people = np.ones(len(weight), dtype=np.float32)
    for _ in range(SCALINGS):
        records = 1 / np.maximum(people @ weight, 1e-30)
        people = 1 / np.maximum(weight @ records, 1e-30)
    return np.asarray((weight * records).argmax(axis=1))
