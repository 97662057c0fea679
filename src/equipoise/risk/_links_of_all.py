"""Links of all people at once: every released record is somebody's, and nobody has two.

Where numbers were changed, whoever links everybody to the nearest record gives some records to many people and others
to nobody. Scaled in turn so that records and people sum to one (Sinkhorn), the likelihoods of all pairs become about
the probability of each pair over all assignments; the likeliest record is then guessed.
"""

from collections.abc import Iterator

import numpy as np

from equipoise.ground.arrays import Floats, Integers

MIN_CANDIDATES, MAX_CANDIDATES, MAX_PAIRS = 20, 60, 200_000
"""Nearest released points of a person that share the probability: as many as there may be pairs for."""
VARIANCES = (0.1, 0.3, 1.0)
"""Variances of the change in each column that are tried, in units of the one measured."""
SCALINGS = 12
MAX_REACH = 2.5
"""The largest change in units of its standard deviation that is an end of the law: sqrt(3) where it is uniform."""
MAX_EXPONENT, TINY, ROUNDING = 200.0, 1e-200, 1e-9
MAX_SIZE = 1e100
"""Numbers beyond it count as it: squares of their distances are numbers too."""


def distinct(points: Floats) -> tuple[Floats, Integers]:
    """Distinct rows in order, and the number of each row among them: `np.unique` by columns."""
    order = np.lexsort(points.T[::-1])
    ordered = points[order]
    number = np.cumsum(np.append(False, (ordered[1:] != ordered[:-1]).any(axis=1)))
    place = np.empty_like(number)
    place[order] = number
    return ordered[np.flatnonzero(np.diff(number, prepend=-1))], place


def linked_points(sought: Floats, released: Floats) -> Iterator[tuple[Integers, Integers]]:
    """The point of each record, and the one that each person is linked to, in several ways.

    Both files are points in units of the changes, one row per person: the 20 to 60 nearest by a
    k-d tree, and 12 scalings of these pairs for each way; 0.5 s of CPU for 10,000 people in two columns. Where no
    change is far beyond the others, as in a rank swap, records within the largest change are equally likely too.

    >>> line, moved = np.array([[0.0], [1.0], [5.0]]), np.array([[0.6], [2.0], [5.0]])
    >>> [bool(at[1] == place[1]) for place, at in linked_points(line, moved)]
    [True, True, True, True, True]
    """
    from scipy.spatial import cKDTree

    sought, released = (np.clip(side, -MAX_SIZE, MAX_SIZE) for side in (sought, released))
    points, place = distinct(released)
    looks, look = distinct(sought)
    candidates = int(np.clip(MAX_PAIRS // len(looks), MIN_CANDIDATES, MAX_CANDIDATES))
    number = range(1, min(candidates, len(points)) + 1)
    distances, near = cKDTree(points).query(looks, k=number)
    squares = distances**2 - distances[:, :1] ** 2
    counts = np.bincount(look), np.bincount(place)
    yield place, _in_order(sought, released, place)
    for variance in VARIANCES:
        yield place, _likeliest(squares / (2 * variance), near, *counts)[look]
    reach = np.abs(released - sought).max(axis=0)
    if reach.max() <= MAX_REACH:
        reach = np.where(reach > ROUNDING, reach, 1.0)
        distances, near = cKDTree(points / reach).query(looks / reach, k=number, p=np.inf)
        beyond = np.where(distances > 1 + ROUNDING, MAX_EXPONENT, 0.0)
        yield place, _likeliest(beyond, near, *counts)[look]


def _in_order(sought: Floats, released: Floats, place: Integers) -> Integers:
    """The point of the record that has each person's rank: the cheapest assignment by one number in equal categories.

    Columns are sorted by how few values they have: categories first.
    """
    columns = sorted(range(released.shape[1]), key=lambda column: -len(np.unique(released[:, column])))
    people, records = (np.lexsort(side[:, columns].T) for side in (sought, released))
    at = np.empty_like(place)
    at[people] = place[records]
    return at


def _likeliest(exponents: Floats, near: Integers, people: Integers, records: Integers) -> Integers:
    """The point whose records are likeliest for each of the looks that so many `people` have."""
    from scipy.sparse import csr_array

    weight = np.exp(-np.minimum(exponents, MAX_EXPONENT))
    ends = np.arange(0, weight.size + 1, weight.shape[1])
    pairs = csr_array((weight.ravel(), near.ravel(), ends), shape=(len(people), len(records)))
    share = np.ones(len(people))
    for _ in range(SCALINGS):
        of_record = records / np.maximum(share @ pairs, TINY)
        share = people / np.maximum(pairs @ of_record, TINY)
    best = (weight * (of_record / records)[near]).argmax(axis=1)
    return np.asarray(near[np.arange(len(near)), best])
