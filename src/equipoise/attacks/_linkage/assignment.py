"""Linear sum assignment of records, one to one, among candidates that are pairs of cells.

A cell holds records with equal values; a candidate (a, b) says that any record of cell a may be paired with any of
cell b. Candidates are in the order of a, then b. Connected components of the graph are solved separately: as a full
matrix where it is small, else by the sparse shortest augmenting paths of SciPy.
"""

from collections.abc import Sequence

import numpy as np

from equipoise.ground.arrays import Floats, Integers, runs

MAX_DENSE_ENTRIES = 1_000_000
"""Entries of a component's matrix up to which its assignment is solved as a full matrix."""
TIE_NOISE = 1e-9
"""Largest random number that breaks a tie, small against any difference of weights."""
SHARING_ROUNDS = 5
"""Rounds in which cells offer their remaining records to their partners."""


def assign(
    a: Integers,
    b: Integers,
    weight: Floats,
    first_counts: Integers,
    second_counts: Integers,
    random: np.random.Generator,
    parts: Sequence[Integers] | None = None,
) -> Floats:
    """Number of records paired by the best assignment, for each candidate; the counts are the records of every cell.

    Weights are above 0, the weight of staying alone. `parts` are the components, if computed already.

    >>> a, b, weight = np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([3.0, 2.0, 1.5])
    >>> assign(a, b, weight, np.array([1, 1]), np.array([1, 1]), np.random.default_rng(0)).tolist()
    [1.0, 0.0, 1.0]
    """
    pairs = np.minimum(first_counts[a], second_counts[b]).astype(np.float64)
    for edges in components(a, b, len(first_counts)) if parts is None else parts:
        pairs[edges] = _best(a[edges], b[edges], weight[edges], first_counts, second_counts, random)
    return pairs


def components(a: Integers, b: Integers, size: int) -> list[Integers]:
    """Candidates of each connected component of the graph, without components of a single pair."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(a)), (a, b + size)), shape=(2 * size, 2 * size))
    _, part = connected_components(graph, directed=False)
    ordered = np.flatnonzero(np.bincount(part[a])[part[a]] > 1)
    ordered = ordered[np.argsort(part[a[ordered]], kind="stable")]
    return np.split(ordered, np.flatnonzero(np.diff(part[a[ordered]])) + 1) if len(ordered) else []


def _best(
    a: Integers, b: Integers, weight: Floats, first: Integers, second: Integers, random: np.random.Generator
) -> Floats:
    """Number of records paired for each candidate of one component."""
    rows, row = np.unique(a, return_inverse=True)
    columns, column = np.unique(b, return_inverse=True)
    down, across = first[rows], second[columns]
    solve = _full if int(down.sum()) * int(across.sum()) <= MAX_DENSE_ENTRIES else _sparse
    i, j = solve(row, column, weight, down, across, random)
    key = row * len(columns) + column  # in order, as a and b are
    return np.bincount(np.searchsorted(key, i * len(columns) + j), minlength=len(key)).astype(np.float64)


def _full(
    row: Integers, column: Integers, weight: Floats, down: Integers, across: Integers, random: np.random.Generator
) -> tuple[Integers, Integers]:
    """Cells of the assigned pairs, from the matrix of all records of a component; 0 is no candidate."""
    from scipy.optimize import linear_sum_assignment

    cells = np.zeros((len(down), len(across)))
    cells[row, column] = weight
    i, j = np.repeat(np.arange(len(down)), down), np.repeat(np.arange(len(across)), across)
    matrix = cells[i[:, None], j]
    chosen = linear_sum_assignment(matrix + TIE_NOISE * random.random(matrix.shape), maximize=True)
    real = matrix[chosen] > 0
    return i[chosen[0][real]], j[chosen[1][real]]


def _sparse(
    row: Integers, column: Integers, weight: Floats, down: Integers, across: Integers, random: np.random.Generator
) -> tuple[Integers, Integers]:
    """Cells of the assigned pairs, from the candidates alone; every record may also stay alone, in an own column."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    times = down[row] * across[column]
    within = runs(np.zeros_like(times), times)
    width = np.repeat(across[column], times)
    i = np.repeat((np.cumsum(down) - down)[row], times) + within // width
    j = np.repeat((np.cumsum(across) - across)[column], times) + within % width
    first_records, second_records = int(down.sum()), int(across.sum())
    worth = np.repeat(weight, times) + TIE_NOISE * random.random(len(i))
    worth, alone = np.append(worth, np.full(first_records, TIE_NOISE)), np.arange(first_records)
    places = np.append(i, alone), np.append(j, second_records + alone)
    graph = csr_array((worth, places), shape=(first_records, second_records + first_records))
    i, j = min_weight_full_bipartite_matching(graph, maximize=True)
    real = j < second_records
    ours, theirs = np.repeat(np.arange(len(down)), down), np.repeat(np.arange(len(across)), across)
    return ours[i[real]], theirs[j[real]]


def mutual(a: Integers, b: Integers, weight: Floats, first_counts: Integers, second_counts: Integers) -> Floats:
    """Greedy assignment: number of records paired for each candidate if the heaviest remaining pair always comes next.

    In rounds: candidates that are the heaviest of both their cells are paired at once, as many records as the smaller
    cell has left. Candidates are in the order of a; no two weights of a cell are equal. The sum of weights is at least
    half that of the best assignment, in practice more; O(candidates) a round, few rounds.

    >>> a, b, weight = np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([3.0, 2.0, 1.5])
    >>> mutual(a, b, weight, np.array([1, 1]), np.array([1, 1])).tolist()
    [1.0, 0.0, 1.0]
    """
    pairs, edges = np.zeros(len(a)), np.arange(len(a))
    first_left, second_left = first_counts.copy(), second_counts.copy()
    while len(edges):
        first, second, heavy = a[edges], b[edges], weight[edges]
        starts = np.flatnonzero(np.append(True, first[1:] != first[:-1]))
        best = np.full(len(second_left), -np.inf)
        np.maximum.at(best, second, heavy)
        top = np.repeat(np.maximum.reduceat(heavy, starts), np.diff(np.append(starts, len(edges))))
        chosen = edges[(heavy >= top) & (heavy >= best[second])]
        pairs[chosen] = np.minimum(first_left[a[chosen]], second_left[b[chosen]])
        first_left[a[chosen]] -= pairs[chosen].astype(first_left.dtype)
        second_left[b[chosen]] -= pairs[chosen].astype(second_left.dtype)
        edges = edges[(first_left[first] > 0) & (second_left[second] > 0)]
    return pairs


def spread(a: Integers, b: Integers, first_left: Floats, second_left: Floats) -> Floats:
    """Expected pairs of each candidate if all weigh the same: cells share their partners in a few rounds of offers.

    `first_left` and `second_left` are the unpaired records, changed in place. A cell offers its records to its partners
    in proportion to theirs; the smaller of two offers is paired. In a group of mutual partners this is random pairing.

    >>> spread(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([2.0, 1.0]), np.array([1.0, 2.0])).round(3).tolist()
    [0.667, 1.333, 0.667]
    """
    pairs = np.zeros(len(a))
    for _ in range(SHARING_ROUNDS):
        offered, requested = first_left[a], second_left[b]
        down, across = np.bincount(a, requested, len(first_left))[a], np.bincount(b, offered, len(second_left))[b]
        added = offered * requested / np.maximum(np.maximum(down, across), 1e-300)
        if float(added.sum()) <= 1e-9:
            break
        pairs += added
        first_left -= np.minimum(np.bincount(a, added, len(first_left)), first_left)
        second_left -= np.minimum(np.bincount(b, added, len(second_left)), second_left)
    return pairs
