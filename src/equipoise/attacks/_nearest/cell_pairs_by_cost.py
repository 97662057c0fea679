"""Pairs of cells of two files in the order of the cost of their categories, for exact nearest-neighbour search.

Each category of a pair of cells is equal (costs nothing) or differs (costs its penalty). A category of texts has more
steps: equal, two bands of similar values, and the rest, whose cost is w d^2 for the distance d of the two values. A
visit is a step for every category; visits are in the order of their lowest possible cost, and their pairs come from
joining on the categories that agree, or on the similar values.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from equipoise.attacks._linkage.string_similarity import BAND_EDGES, Words
from equipoise.attacks._nearest.points import CellPoints, cells
from equipoise.ground.arrays import Floats, Integers, runs

TIE_TOLERANCE = 1e-9
"""Relative difference up to which distances are equal."""
PAIRS_PER_CHUNK = 1 << 18
"""Pairs and queries handled at a time."""
MAX_SUBSTITUTED_CELLS = 1 << 20
"""Cells with similar values substituted, handled at a time."""

Steps = tuple[tuple[int, int], ...]
"""Positions of the categories that differ, each with its step: 1 differs, or 1, 2 similar texts and 3 the rest."""
DISSIMILAR_STEP = len(BAND_EDGES) + 1


@dataclass(frozen=True, eq=False, repr=False)
class Costs:
    """Penalty that a difference in each category adds to the squared distance; infinite for a block, which must agree.

    `words` has the values of the categories that are texts: they add the penalty times their squared distance.
    """

    penalties: Floats
    words: Mapping[int, Words] = field(default_factory=dict)

    @property
    def blocks(self) -> Integers:
        return np.flatnonzero(np.isinf(self.penalties))

    def steps(self, place: int) -> tuple[float, ...]:
        """Lowest cost of each step of a category, the first for equal."""
        penalty = float(self.penalties[place])
        if np.isinf(penalty):
            return (0.0,)
        if place not in self.words:
            return (0.0, penalty)
        return (0.0, *(penalty * low**2 for low in (min(self.words[place].floor, BAND_EDGES[0]), *BAND_EDGES)))

    def between(self, one: Integers, two: Integers) -> Floats:
        """Cost of the categories of each pair of rows of codes."""
        differ = one != two
        cost: Floats = np.where(differ, self.penalties, 0.0).sum(axis=1)
        for place, words in self.words.items():
            rows = np.flatnonzero(differ[:, place])
            gap = words.distance(one[rows, place], two[rows, place])
            cost[rows] += self.penalties[place] * (gap**2 - 1.0)
        return cost


def visits(costs: Costs) -> Iterator[tuple[float, Steps]]:
    """Every combination of steps with its lowest possible cost, the cheapest first, generated one by one.

    >>> [cost for cost, _ in visits(Costs(np.array([2.0, 1.0, np.inf])))]
    [0.0, 1.0, 2.0, 3.0]
    """
    steps = [costs.steps(place) for place in range(len(costs.penalties))]
    waiting: list[tuple[float, Steps]] = [(0.0, ())]
    while waiting:
        cost, chosen = heapq.heappop(waiting)
        yield cost, chosen
        last, step = chosen[-1] if chosen else (-1, 0)
        more = [(*chosen, (place, 1)) for place in range(last + 1, len(steps)) if len(steps[place]) > 1]
        if chosen and step + 1 < len(steps[last]):
            more.append((*chosen[:-1], (last, step + 1)))
        for new in more:
            heapq.heappush(waiting, (sum(steps[place][at] for place, at in new), new))


def meet(
    points: CellPoints, queries: CellPoints, costs: Costs, chosen: Steps, reach: Floats
) -> Iterator[tuple[Integers, Integers, Floats]]:
    """Pairs of a query cell and a point cell with these steps that are near enough, and the cost of their categories.

    `reach` is the squared distance up to which each query cell looks. The nearest pairs come first in each part.
    """
    similar = [(place, step) for place, step in chosen if place in costs.words and step < DISSIMILAR_STEP]
    differing = [place for place, step in chosen if (place, step) not in similar]
    agreed = [place for place in range(len(costs.penalties)) if place not in differing]
    base = sum(costs.steps(place)[step] for place, step in chosen if place in differing)
    for asking, codes, cost in _similar(queries, costs, similar, base, reach):
        low, high, order = _join(points.codes[:, agreed], codes[:, agreed])
        for part in parts(high - low):
            sizes = (high - low)[part]
            one, two = np.repeat(asking[part], sizes), order[runs(low[part], high[part])]
            yield from _near(points, queries, costs, differing, (one, two, np.repeat(cost[part], sizes)), reach)


def every_pair(
    points: CellPoints, queries: CellPoints, costs: Costs, reach: Floats
) -> Iterator[tuple[Integers, Integers, Floats]]:
    """All pairs of cells that are near enough and in one block, in parts; for use if visits outnumber pairs."""
    many, wide = len(points.codes), max(1, len(costs.penalties))
    step = max(1, 4 * MAX_SUBSTITUTED_CELLS // (many * wide))
    for start in range(0, len(queries.codes), step):
        rows = np.arange(start, min(start + step, len(queries.codes)))
        one, two = np.repeat(rows, many), np.tile(np.arange(many), len(rows))
        cost = costs.between(queries.codes[one], points.codes[two])
        same_block = np.flatnonzero(np.isfinite(cost))
        yield from _near(points, queries, costs, [], (one[same_block], two[same_block], cost[same_block]), reach)


def _near(
    points: CellPoints,
    queries: CellPoints,
    costs: Costs,
    differing: list[int],
    pairs: tuple[Integers, Integers, Floats],
    reach: Floats,
) -> Iterator[tuple[Integers, Integers, Floats]]:
    """Pairs that differ in the categories given and whose boxes are near enough; texts are compared last."""
    one, two, cost = pairs
    for place in differing:
        differ = queries.codes[one, place] != points.codes[two, place]
        one, two, cost = one[differ], two[differ], cost[differ]
    box = _gap(points, queries, one, two)
    near = np.flatnonzero((cost + box) * (1 - TIE_TOLERANCE) <= reach[one])
    one, two, cost, box = one[near], two[near], cost[near], box[near]
    for place in (place for place in differing if place in costs.words):
        gap = costs.words[place].distance(queries.codes[one, place], points.codes[two, place])
        more = costs.penalties[place] * (gap**2 - BAND_EDGES[-1] ** 2)
        near = np.flatnonzero((gap > BAND_EDGES[-1]) & ((cost + box + more) * (1 - TIE_TOLERANCE) <= reach[one]))
        one, two, cost, box = one[near], two[near], (cost + more)[near], box[near]
    order = np.argsort(cost + box, kind="stable")
    yield one[order], two[order], cost[order]


def _similar(
    queries: CellPoints, costs: Costs, similar: list[tuple[int, int]], base: float, reach: Floats
) -> Iterator[tuple[Integers, Integers, Floats]]:
    """Query cells, their codes with similar values substituted, and the cost of the substitution."""
    asking = np.flatnonzero(reach >= base)
    if not similar:
        yield asking, queries.codes[asking], np.full(len(asking), base)
        return
    bands = [(place, costs.words[place].bands[step - 1], costs.penalties[place]) for place, step in similar]
    work = np.ones(len(asking), dtype=np.int64)
    for place, band, _ in bands:
        work *= np.diff(band.start)[queries.codes[asking, place]]
    for part in parts(work, max(MAX_SUBSTITUTED_CELLS, len(queries.codes))):
        one = asking[part]
        codes, cost = queries.codes[one], np.full(len(one), base)
        for place, band, penalty in bands:
            low, high = band.start[codes[:, place]], band.start[codes[:, place] + 1]
            rows, similar_rows = np.repeat(np.arange(len(one)), high - low), runs(low, high)
            one, codes, cost = one[rows], codes[rows], cost[rows] + penalty * band.distance[similar_rows] ** 2
            codes[:, place] = band.codes[similar_rows]
        near = np.flatnonzero(cost * (1 - TIE_TOLERANCE) <= reach[one])
        yield one[near], codes[near], cost[near]


def _join(points: Integers, queries: Integers) -> tuple[Integers, Integers, Integers]:
    """Run of points with equal codes for each row of queries, in the order returned."""
    ids, _ = cells(np.concatenate([points, queries]))
    point_ids, query_ids = ids[: len(points)], ids[len(points) :]
    order = np.argsort(point_ids, kind="stable")
    low, high = (np.searchsorted(point_ids[order], query_ids, side=side) for side in ("left", "right"))
    return low, high, order


def _gap(points: CellPoints, queries: CellPoints, one: Integers, two: Integers) -> Floats:
    """Squared distance of the boxes around the points of two cells."""
    apart = np.maximum(points.low[two] - queries.high[one], queries.low[one] - points.high[two])
    apart = np.maximum(apart, 0.0)
    return np.asarray(np.einsum("ij,ij->i", apart, apart))


def parts(work: Integers, most: int = PAIRS_PER_CHUNK) -> Iterator[slice]:
    """Runs of about `most` units of work each."""
    edges: Sequence[int] = np.searchsorted(np.cumsum(work), np.arange(most, int(work.sum()) + most, most)).tolist()
    start = 0
    for edge in edges:
        stop = min(edge + 1, len(work))
        if stop > start:
            yield slice(start, stop)
            start = stop
