"""Which cells lie near which: pairs of cells of two files in the order of what their categories cost, exactly.

Each category of a pair of cells is equal (costs nothing) or differs (costs its penalty). A category of texts has more
steps: equal, two bands of similar values, and the rest, whose cost is w d^2 for the distance d of the two values. A
visit is a step for every category; visits are made from the least that they can cost upwards, found by joining on the
categories that agree, or on the similar values.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from equipoise.attacks._linkage.string_similarity import EDGES, Words
from equipoise.attacks._nearest.points import CellPoints, cells
from equipoise.ground.arrays import Floats, Integers

TIE = 1e-9
"""Distances that differ by no more than this share of themselves are equal."""
CHUNK = 1 << 18
"""Pairs and questions dealt with at a time."""
WIDE = 1 << 20
"""Cells with a similar value put in its place, at a time."""

Steps = tuple[tuple[int, int], ...]
"""The places of the categories that differ, each with its step: 1 differs, or 1, 2 similar texts and 3 the rest."""
REST = len(EDGES) + 1


@dataclass(frozen=True, eq=False, repr=False)
class Costs:
    """What a difference in each category adds to the squared distance; infinite: it must agree, a block.

    `words` has the values of the categories that are texts: they add the penalty times their squared distance.
    """

    penalties: Floats
    words: Mapping[int, Words] = field(default_factory=dict)

    @property
    def blocks(self) -> Integers:
        return np.flatnonzero(np.isinf(self.penalties))

    def steps(self, place: int) -> tuple[float, ...]:
        """The least that each step of a category costs, the first for equal."""
        penalty = float(self.penalties[place])
        if np.isinf(penalty):
            return (0.0,)
        if place not in self.words:
            return (0.0, penalty)
        return (0.0, *(penalty * low**2 for low in (min(self.words[place].floor, EDGES[0]), *EDGES)))

    def between(self, one: Integers, two: Integers) -> Floats:
        """What the categories of each pair of rows of codes cost."""
        differ = one != two
        found: Floats = np.where(differ, self.penalties, 0.0).sum(axis=1)
        for place, words in self.words.items():
            rows = np.flatnonzero(differ[:, place])
            gap = words.distance(one[rows, place], two[rows, place])
            found[rows] += self.penalties[place] * (gap**2 - 1.0)
        return found


def visits(costs: Costs) -> Iterator[tuple[float, Steps]]:
    """Every combination of steps with the least it can cost, the cheapest first, made as they are asked for.

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
    """Pairs of an asking and an asked cell with these steps that are near enough, and what their categories cost.

    `reach` is the squared distance up to which each asking cell looks. The nearest pairs come first in each part.
    """
    similar = [(place, step) for place, step in chosen if place in costs.words and step < REST]
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
    """All pairs of cells that are near enough and in one block, in parts; for more visits than there are pairs."""
    many, wide = len(points.codes), max(1, len(costs.penalties))
    step = max(1, 4 * WIDE // (many * wide))
    for start in range(0, len(queries.codes), step):
        rows = np.arange(start, min(start + step, len(queries.codes)))
        one, two = np.repeat(rows, many), np.tile(np.arange(many), len(rows))
        cost = costs.between(queries.codes[one], points.codes[two])
        kept = np.flatnonzero(np.isfinite(cost))
        yield from _near(points, queries, costs, [], (one[kept], two[kept], cost[kept]), reach)


def _near(
    points: CellPoints,
    queries: CellPoints,
    costs: Costs,
    differing: list[int],
    pairs: tuple[Integers, Integers, Floats],
    reach: Floats,
) -> Iterator[tuple[Integers, Integers, Floats]]:
    """Those of the pairs that do differ there, and whose boxes are near enough; texts are compared last."""
    one, two, cost = pairs
    for place in differing:
        differ = queries.codes[one, place] != points.codes[two, place]
        one, two, cost = one[differ], two[differ], cost[differ]
    box = _gap(points, queries, one, two)
    kept = np.flatnonzero((cost + box) * (1 - TIE) <= reach[one])
    one, two, cost, box = one[kept], two[kept], cost[kept], box[kept]
    for place in (place for place in differing if place in costs.words):
        gap = costs.words[place].distance(queries.codes[one, place], points.codes[two, place])
        more = costs.penalties[place] * (gap**2 - EDGES[-1] ** 2)
        kept = np.flatnonzero((gap > EDGES[-1]) & ((cost + box + more) * (1 - TIE) <= reach[one]))
        one, two, cost, box = one[kept], two[kept], (cost + more)[kept], box[kept]
    order = np.argsort(cost + box, kind="stable")
    yield one[order], two[order], cost[order]


def _similar(
    queries: CellPoints, costs: Costs, similar: list[tuple[int, int]], base: float, reach: Floats
) -> Iterator[tuple[Integers, Integers, Floats]]:
    """Asking cells, their codes with similar values put in their place, and what that costs."""
    asking = np.flatnonzero(reach >= base)
    if not similar:
        yield asking, queries.codes[asking], np.full(len(asking), base)
        return
    bands = [(place, costs.words[place].bands[step - 1], costs.penalties[place]) for place, step in similar]
    work = np.ones(len(asking), dtype=np.int64)
    for place, band, _ in bands:
        work *= np.diff(band.start)[queries.codes[asking, place]]
    for part in parts(work, max(WIDE, len(queries.codes))):
        one = asking[part]
        codes, cost = queries.codes[one], np.full(len(one), base)
        for place, band, penalty in bands:
            low, high = band.start[codes[:, place]], band.start[codes[:, place] + 1]
            rows, found = np.repeat(np.arange(len(one)), high - low), runs(low, high)
            one, codes, cost = one[rows], codes[rows], cost[rows] + penalty * band.distance[found] ** 2
            codes[:, place] = band.codes[found]
        kept = np.flatnonzero(cost * (1 - TIE) <= reach[one])
        yield one[kept], codes[kept], cost[kept]


def _join(points: Integers, queries: Integers) -> tuple[Integers, Integers, Integers]:
    """For each row of queries the run, in the order given, of the points with equal codes."""
    ids, _ = cells(np.concatenate([points, queries]))
    there, here = ids[: len(points)], ids[len(points) :]
    order = np.argsort(there, kind="stable")
    low, high = (np.searchsorted(there[order], here, side=side) for side in ("left", "right"))
    return low, high, order


def _gap(points: CellPoints, queries: CellPoints, one: Integers, two: Integers) -> Floats:
    """The squared distance of the boxes around the points of two cells."""
    apart = np.maximum(points.low[two] - queries.high[one], queries.low[one] - points.high[two])
    apart = np.maximum(apart, 0.0)
    found: Floats = np.einsum("ij,ij->i", apart, apart)
    return found


def parts(work: Integers, most: int = CHUNK) -> Iterator[slice]:
    """Runs of about `most` units of work each."""
    edges: Sequence[int] = np.searchsorted(np.cumsum(work), np.arange(most, int(work.sum()) + most, most)).tolist()
    start = 0
    for edge in edges:
        stop = min(edge + 1, len(work))
        if stop > start:
            yield slice(start, stop)
            start = stop


def runs(low: Integers, high: Integers) -> Integers:
    """The numbers low to high - 1 of every run, one after the other."""
    sizes = high - low
    found: Integers = np.repeat(low - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))
    return found
