"""One-to-one assignment of people to released records: every record is somebody's, and nobody has two.

Two ways to use it. The assignment with the smallest sum of distances, or of squared ones (the likeliest under normal
noise), is a linear assignment problem, solved exactly by SciPy for up to 2,000 records: O(n^3) at worst, about a
second; for up to 10,000 exactly among the nearest records of each person, where one may also stay alone. And the
probability of each pair over all assignments: exp(-D^2 / 2 s^2), D the distance and s^2 the median squared distance of
the nearest record by dimension, scaled in turn so that the records of a person and the people of a record sum to one
(Sinkhorn), among the nearest records of each person: 300 for up to 4,000 records, else 30. A person's likeliest record
is then guessed, which often links more people than the likeliest assignment as a whole. Cost: all pairs for up to 4,000
records, else a k-d tree query of 30 neighbours, 2 s of CPU for 30,000 records in 6 columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from equipoise.attacks._nearest.cell_pairs_by_cost import Costs
from equipoise.attacks._nearest.points import Cloud, cells, distinct
from equipoise.attacks._nearest.same_person import chance_of_person, owners_of_records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import EngineError

MAX_EXACT_RECORDS, MAX_DENSE_RECORDS, MAX_MATCHED_RECORDS, MAX_RECORDS = 2_000, 4_000, 10_000, 100_000
CANDIDATES, DENSE_CANDIDATES = 30, 300
"""Nearest records of a person that share the probability, in large and in small files."""
SCALINGS = 30
SCALES = (0.5, 1.0, 2.0)
"""Multiples of s^2 that are tried."""
MIN_SPREAD_SHARE = 1e-6
"""Share of the mean squared distance below which s^2 does not fall, where most people are found exactly."""


@dataclass(frozen=True, eq=False, repr=False)
class Assignment:
    """Chance that each person is assigned their own record, and how the assignment was found."""

    risk: Floats
    how: str


@dataclass(frozen=True, eq=False, repr=False)
class _AssignmentBlock:
    """Rows of the released records and of the people of a block, in the order of their values, and where they lie."""

    records: Integers
    people: Integers
    released: Floats
    original: Floats

    @cached_property
    def nearest(self) -> tuple[Floats, Integers]:
        """Squared distances and places of the nearest records of each person, the nearest first."""
        from scipy.spatial import cKDTree

        if len(self.records) > MAX_DENSE_RECORDS:
            distances, near = cKDTree(self.released).query(self.original, k=CANDIDATES)
            return np.asarray(distances**2), np.minimum(near, len(self.records) - 1)
        squares, most = _squares(self.original, self.released), min(DENSE_CANDIDATES, len(self.records))
        near = np.sort(np.argpartition(squares, most - 1, axis=1)[:, :most], axis=1)
        order = np.argsort(np.take_along_axis(squares, near, axis=1), axis=1, kind="stable")
        near = np.take_along_axis(near, order, axis=1)
        return np.take_along_axis(squares, near, axis=1), near


def _squares(one: Floats, two: Floats) -> Floats:
    """Squared distances of all pairs, by one product of matrices."""
    lengths = [np.einsum("ij,ij->i", points, points) for points in (one, two)]
    return np.maximum(lengths[0][:, None] + lengths[1] - 2 * one @ two.T, 0.0)


def assign(released: Cloud, original: Cloud, costs: Costs, own: Integers, owner: Integers | None = None) -> Assignment:
    """The assignment that links most people, within each block.

    Equal records cannot be told apart: with c of a person's m equal records assigned to the g people who look the same,
    the own one is theirs with probability c / (g m). With the `owner` of each, any record of the owner will do.

    >>> line = Cloud(np.array([[0.0], [1.0], [5.0]]), np.zeros((3, 0), dtype=int))
    >>> moved = Cloud(np.array([[0.6], [2.0], [5.0]]), np.zeros((3, 0), dtype=int))
    >>> assign(moved, line, Costs(np.zeros(0)), np.arange(3)).risk.tolist()
    [1.0, 1.0, 1.0]
    """
    blocks = list(_blocks(released, original, costs))
    largest = max((len(block.records) for block in blocks), default=0)
    categories = len(costs.penalties) > len(costs.blocks)
    if largest > (most := MAX_DENSE_RECORDS if categories else MAX_RECORDS):
        kind = "of categories " if categories else ""
        raise EngineError(f"One-to-one assignment {kind}takes at most {most:,} records at once: name blocks.")
    ways = {f"the probabilities of all assignments ({scale:g} s^2)": ("balanced", scale) for scale in SCALES}
    if largest <= MAX_MATCHED_RECORDS:
        ways |= {"the smallest sum of distances": ("exact", 1.0), "the smallest sum of squares": ("exact", 2.0)}
    points, point_of, _ = distinct(released)
    if owner is None and _unchanged(released, original, own):
        return Assignment(1 / points.counts[point_of[own]], "One-to-one, by a sum of distances of 0.")
    _, looks, _ = distinct(original)
    equal = looks, point_of, points.counts
    risks = {how: chance_of_own(*equal, _assigned(original, blocks, way), own, owner) for how, way in ways.items()}
    best = max(risks, key=lambda how: float(risks[how].mean()))
    return Assignment(risks[best], f"One-to-one, by {best}; the best of {len(ways)} ways.")


def _unchanged(released: Cloud, original: Cloud, own: Integers) -> bool:
    """Whether every record is as it was: then no assignment is better than that of everybody to an equal record."""
    return all(
        np.array_equal(getattr(released, part)[own], getattr(original, part)) for part in ("coordinates", "codes")
    )


def _blocks(released: Cloud, original: Cloud, costs: Costs) -> Iterator[_AssignmentBlock]:
    """The blocks that have both records and people; row order does not matter."""
    split = len(released)
    block, _ = cells(np.vstack([released.codes[:, costs.blocks], original.codes[:, costs.blocks]]))
    points = _embedded(released, original, costs)
    order = np.lexsort([*points.T, block]) if points.shape[1] else np.argsort(block, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(block[order])) + 1):
        records, people = rows[rows < split], rows[rows >= split]
        if len(records) and len(people):
            yield _AssignmentBlock(records, people - split, points[records], points[people])


def _embedded(released: Cloud, original: Cloud, costs: Costs) -> Floats:
    """Both files as points whose Euclidean distances are those of the clouds: a category is a corner of a simplex."""
    coordinates, codes = (
        np.vstack([getattr(released, part), getattr(original, part)]) for part in ("coordinates", "codes")
    )
    corners = [
        (column[:, None] == np.unique(column)) * np.sqrt(penalty / 2)
        for column, penalty in zip(codes.T, costs.penalties, strict=True)
        if np.isfinite(penalty)
    ]
    return np.hstack([coordinates, *corners])


def _assigned(original: Cloud, blocks: list[_AssignmentBlock], way: tuple[str, float]) -> Integers:
    """Released row of each original record; -1 for those who are left without."""
    kind, parameter = way
    assigned = np.full(len(original), -1)
    for block in blocks:
        solve = _balanced if kind == "balanced" else _exact
        people, records = solve(block, parameter)
        assigned[block.people[people]] = block.records[records]
    return assigned


def _exact(block: _AssignmentBlock, power: float) -> tuple[Integers, Integers]:
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    if len(block.records) > MAX_EXACT_RECORDS:
        return _matched(block, power)
    people, records = linear_sum_assignment(cdist(block.original, block.released) ** power)
    return people, records


def _matched(block: _AssignmentBlock, power: float) -> tuple[Integers, Integers]:
    """The cheapest matching of people with their nearest records; to stay alone costs more than any record."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    squares, near = (part[:, :CANDIDATES] for part in block.nearest)
    gaps = squares.ravel() ** (power / 2)
    dearest, n, m = float(gaps.max(initial=0.0)) + 1.0, len(block.people), len(block.records)
    ends = np.concatenate([near.ravel(), m + np.arange(n)])
    starts = np.concatenate([np.repeat(np.arange(n), near.shape[1]), np.arange(n)])
    prices = np.concatenate([gaps + 1e-9 * dearest, np.full(n, 2 * dearest)])  # a price of 0 would be no pair
    person, record = min_weight_full_bipartite_matching(csr_matrix((prices, (starts, ends)), shape=(n, m + n)))
    linked = record < m
    return person[linked], record[linked]


def _balanced(block: _AssignmentBlock, scale: float) -> tuple[Integers, Integers]:
    """Each person's likeliest record once pairs are scaled so that people and records sum to one."""
    squares, near = block.nearest
    least = MIN_SPREAD_SHARE * float(squares.mean()) or 1.0
    spread = max(scale * float(np.median(squares[:, 0])) / max(1, block.released.shape[1]), least)
    weight = np.exp(-np.minimum((squares - squares[:, :1]) / (2 * spread), 700.0))
    several = len(block.records) > len(block.people)  # then a record may be nobody's
    pairs = _pairs(weight, near, len(block.records))
    people = np.ones(len(weight))
    for _ in range(SCALINGS):
        records = 1 / np.maximum(people @ pairs, 1.0 if several else np.finfo(float).tiny)
        people = 1 / (pairs @ records)
    likeliest = (weight * records[near]).argmax(axis=1)
    return np.arange(len(weight)), near[np.arange(len(weight)), likeliest]


def _pairs(weight: Floats, near: Integers, records: int) -> Any:
    """The weights as a matrix of people by records: a sparse one where a person has some of the records only."""
    from scipy.sparse import csr_array

    if weight.shape[1] < records:
        ends = np.arange(0, weight.size + 1, weight.shape[1])
        return csr_array((weight.ravel(), near.ravel(), ends), shape=(len(weight), records))
    matrix = np.empty((len(weight), records))
    np.put_along_axis(matrix, near, weight, axis=1)
    return matrix


def chance_of_own(
    looks: Integers,
    point_of: Integers,
    counts_of: Integers,
    assigned: Integers,
    own: Integers,
    owner: Integers | None = None,
) -> Floats:
    """Chance of the own record, equal people and equal records dealt out at random among themselves.

    `looks` numbers people by how they look, `point_of` records by their point, of which there are `counts_of`. With the
    `owner` of each, any record of the same owner will do.
    """
    linked = assigned >= 0
    if owner is not None:
        pairs = (
            pl.DataFrame({"look": looks[linked], "point": point_of[assigned[linked]]}).group_by("look", "point").len()
        )
        links = pairs.select("look", "point", chance=pl.col("len") / np.bincount(looks)[pairs["look"]])
        return chance_of_person(links, looks, owner, point_of, owners_of_records(owner, own, len(point_of)))
    size = len(counts_of)
    keys, counts = np.unique(looks[linked] * size + point_of[assigned[linked]], return_counts=True)
    due = looks * size + point_of[own]
    place = np.minimum(np.searchsorted(keys, due), max(len(keys) - 1, 0))
    hits = np.where(keys[place] == due, counts[place], 0) if len(keys) else np.zeros(len(due))
    return np.asarray(hits / np.bincount(looks)[looks] / counts_of[point_of[own]])
