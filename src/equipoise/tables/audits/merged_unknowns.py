"""Unknowns that relations of one or two terms fix, or make multiples of each other."""

from typing import Any

import numpy as np

from equipoise.ground.arrays import Floats, Integers


def reduced(matrix: Any) -> tuple[Integers, Floats]:
    """Merge unknowns: y_j = factor_j z_owner(j), factor 0 for one that a relation fixes. O(entries) for each round."""
    count = matrix.shape[1]
    owner, factor = np.arange(count), np.ones(count)
    while True:
        relations = folded(matrix, owner, factor)
        terms = np.diff(relations.indptr)
        alone = relations.indices[relations.indptr[:-1][terms == 1]]
        if len(alone):
            factor[np.isin(owner, alone)] = 0.0
            continue
        first = relations.indptr[:-1][terms == 2]
        if not len(first):
            return owner, factor
        owners, merged, ratio = _pairs(relations, first)
        into, by = np.arange(count), np.ones(count)
        into[merged], by[merged] = owners, ratio
        factor *= by[owner]
        owner = into[owner]


def _pairs(relations: Any, first: Integers) -> tuple[Integers, Integers, Floats]:
    """From relations p z_a + q z_b = 0: the larger number of each pair as a multiple of the smaller, no chains."""
    one, two = relations.indices[first], relations.indices[first + 1]
    p, q = relations.data[first], relations.data[first + 1]
    swap = one > two
    owners, merged = np.where(swap, two, one), np.where(swap, one, two)
    ratio = np.where(swap, -q / p, -p / q)
    merged, at = np.unique(merged, return_index=True)
    owners, ratio = owners[at], ratio[at]
    free = np.isin(owners, merged, invert=True)
    return owners[free], merged[free], ratio[free]


def folded(matrix: Any, owner: Integers, factor: Floats) -> Any:
    """The relations between the unknowns that are left."""
    import scipy.sparse as sparse

    count = len(owner)
    relations = sparse.csr_array(matrix @ sparse.csr_array((factor, (np.arange(count), owner)), shape=(count, count)))
    relations.data[np.abs(relations.data) < 1e-9] = 0.0
    relations.eliminate_zeros()
    relations.sort_indices()
    return relations
