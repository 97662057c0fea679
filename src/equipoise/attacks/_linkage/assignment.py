"""One-to-one pairs of records with the largest sum of weights, among candidates that are pairs of cells.

A cell holds records that nothing tells apart; a candidate (a, b) says that any record of cell a may be paired with any
of cell b. Candidates are in the order of a, then b. Parts of the graph that have nothing to do with each other are
solved apart: a full matrix where it is small, else the sparse shortest augmenting paths of SciPy.
"""

from collections.abc import Sequence

import numpy as np

from equipoise.ground.arrays import Floats, Integers

DENSE = 1_000_000
"""Places of a component of candidates up to which its assignment is solved as a full matrix."""
NOISE = 1e-9
"""Ties are broken by random numbers up to this, small against any difference of weights."""
ROUNDS = 5
"""Times that cells offer what they have left to their partners."""


def assign(
    a: Integers,
    b: Integers,
    weight: Floats,
    here: Integers,
    there: Integers,
    random: np.random.Generator,
    parts: Sequence[Integers] | None = None,
) -> Floats:
    """How many records of each candidate are paired; `here` and `there` are the records of every cell.

    Weights are above 0, what staying alone weighs. `parts` are the components, if they are known already.

    >>> a, b, weight = np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([3.0, 2.0, 1.5])
    >>> assign(a, b, weight, np.array([1, 1]), np.array([1, 1]), np.random.default_rng(0)).tolist()
    [1.0, 0.0, 1.0]
    """
    made = np.minimum(here[a], there[b]).astype(np.float64)
    for edges in components(a, b, len(here)) if parts is None else parts:
        made[edges] = _best(a[edges], b[edges], weight[edges], here, there, random)
    return made


def components(a: Integers, b: Integers, size: int) -> list[Integers]:
    """The candidates of each part of the graph that has nothing to do with the others; parts of one pair left out."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(a)), (a, b + size)), shape=(2 * size, 2 * size))
    _, part = connected_components(graph, directed=False)
    ordered = np.flatnonzero(np.bincount(part[a])[part[a]] > 1)
    ordered = ordered[np.argsort(part[a[ordered]], kind="stable")]
    return np.split(ordered, np.flatnonzero(np.diff(part[a[ordered]])) + 1) if len(ordered) else []


def _best(
    a: Integers, b: Integers, weight: Floats, here: Integers, there: Integers, random: np.random.Generator
) -> Floats:
    """How many records of each pair of cells the best assignment of a component pairs."""
    rows, row = np.unique(a, return_inverse=True)
    columns, column = np.unique(b, return_inverse=True)
    down, across = here[rows], there[columns]
    solve = _full if int(down.sum()) * int(across.sum()) <= DENSE else _sparse
    i, j = solve(row, column, weight, down, across, random)
    key = row * len(columns) + column  # in order, as a and b are
    return np.bincount(np.searchsorted(key, i * len(columns) + j), minlength=len(key)).astype(np.float64)


def _full(
    row: Integers, column: Integers, weight: Floats, down: Integers, across: Integers, random: np.random.Generator
) -> tuple[Integers, Integers]:
    """The cells of the pairs that are made, from the matrix of all records of a component; 0 is no candidate."""
    from scipy.optimize import linear_sum_assignment

    cells = np.zeros((len(down), len(across)))
    cells[row, column] = weight
    i, j = np.repeat(np.arange(len(down)), down), np.repeat(np.arange(len(across)), across)
    matrix = cells[i[:, None], j]
    chosen = linear_sum_assignment(matrix + NOISE * random.random(matrix.shape), maximize=True)
    real = matrix[chosen] > 0
    return i[chosen[0][real]], j[chosen[1][real]]


def _sparse(
    row: Integers, column: Integers, weight: Floats, down: Integers, across: Integers, random: np.random.Generator
) -> tuple[Integers, Integers]:
    """The same from the candidates alone; every record may also stay alone, in a column of its own."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    times = down[row] * across[column]
    within = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
    width = np.repeat(across[column], times)
    i = np.repeat((np.cumsum(down) - down)[row], times) + within // width
    j = np.repeat((np.cumsum(across) - across)[column], times) + within % width
    here, there = int(down.sum()), int(across.sum())
    worth = np.concatenate([np.repeat(weight, times) + NOISE * random.random(len(i)), np.full(here, NOISE)])
    places = np.concatenate([i, np.arange(here)]), np.concatenate([j, there + np.arange(here)])
    graph = csr_array((worth, places), shape=(here, there + here))
    i, j = min_weight_full_bipartite_matching(graph, maximize=True)
    real = j < there
    ours, theirs = np.repeat(np.arange(len(down)), down), np.repeat(np.arange(len(across)), across)
    return ours[i[real]], theirs[j[real]]


def mutual(a: Integers, b: Integers, weight: Floats, here: Integers, there: Integers) -> Floats:
    """How many records of each candidate are paired when the heaviest pair left is always made next.

    That is found in rounds: candidates that are the heaviest of both their cells are paired at once, as many records as
    the smaller cell has left. Candidates are in the order of a; no two weights of a cell are equal. At least half the
    sum of weights of the best assignment, a share that is larger in practice; O(candidates) a round, few rounds.

    >>> a, b, weight = np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([3.0, 2.0, 1.5])
    >>> mutual(a, b, weight, np.array([1, 1]), np.array([1, 1])).tolist()
    [1.0, 0.0, 1.0]
    """
    made, edges = np.zeros(len(a)), np.arange(len(a))
    ours, theirs = here.copy(), there.copy()
    while len(edges):
        first, second, heavy = a[edges], b[edges], weight[edges]
        starts = np.flatnonzero(np.append(True, first[1:] != first[:-1]))
        best = np.full(len(theirs), -np.inf)
        np.maximum.at(best, second, heavy)
        top = np.repeat(np.maximum.reduceat(heavy, starts), np.diff(np.append(starts, len(edges))))
        chosen = edges[(heavy >= top) & (heavy >= best[second])]
        made[chosen] = np.minimum(ours[a[chosen]], theirs[b[chosen]])
        ours[a[chosen]] -= made[chosen].astype(ours.dtype)
        theirs[b[chosen]] -= made[chosen].astype(theirs.dtype)
        edges = edges[(ours[first] > 0) & (theirs[second] > 0)]
    return made


def spread(a: Integers, b: Integers, here: Floats, there: Floats) -> Floats:
    """Expected pairs of each candidate if all are alike: cells share their partners, a few rounds of equal offers.

    `here` and `there` are the records that are still alone, and change. A cell offers what it has left to its partners
    in proportion to what they have left; the smaller of two offers is paired. Where all of a group are partners this is
    pairing at random.

    >>> spread(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([2.0, 1.0]), np.array([1.0, 2.0])).round(3).tolist()
    [0.667, 1.333, 0.667]
    """
    made = np.zeros(len(a))
    for _ in range(ROUNDS):
        ours, theirs = here[a], there[b]
        down, across = np.bincount(a, theirs, len(here))[a], np.bincount(b, ours, len(there))[b]
        more = ours * theirs / np.maximum(np.maximum(down, across), 1e-300)
        if float(more.sum()) <= 1e-9:
            break
        made += more
        here -= np.minimum(np.bincount(a, more, len(here)), here)
        there -= np.minimum(np.bincount(b, more, len(there)), there)
    return made
