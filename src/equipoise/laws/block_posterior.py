"""Posterior of who is who in a block of post-randomization, given released keys and evidence of other columns.

A block has N records and cells with T_1, ..., T_C of them (public counts). With w[i, c] = P(z_i | c) f(y_i | c), z_i
the released cell of record i and y_i its other columns, an assignment of records to original cells that respects the
counts has the probability prod over i of w[i, c_i], up to a factor. The marginal of record i is

    P(c_i = c | z, y) = w[i, c] Z(without i, one fewer in c) / Z,

Z the sum over all such assignments; a person of cell c is record i with probability P(c_i = c | z, y) / T_c. The sums
are exact: records are added one by one, forwards and backwards, the state being the numbers in all cells but the
largest.
"""

import numpy as np

from equipoise.ground.arrays import Floats, Integers

MAX_EXACT_TERMS = 2_000_000
"""Records x states x cells of a block up to which its posterior is exact."""
ROUNDS = 200
"""Rounds of messages in larger blocks."""


def assigned(weights: Floats, counts: Integers) -> Floats:
    """P(c_i = c | z, y) for blocks of one shape: `weights` are blocks x records x cells, `counts` those of the cells.

    Exact up to `MAX_EXACT_TERMS`; beyond, by messages (Bethe's approximation), a little above the exact ones.
    Cost: O(blocks x records x states x cells), the states being the product of T + 1 over all cells but the largest.

    >>> assigned(np.array([[[3.0, 1.0], [1.0, 1.0]]]), np.array([1, 1]))[0].round(2).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    counts = np.asarray(counts, dtype=np.int64)
    order = np.argsort(-counts, kind="stable")
    weights = weights[:, :, order] / weights.max(axis=2, keepdims=True)
    counts = counts[order]
    terms = weights.shape[1] * len(counts) * float(np.prod(counts[1:] + 1.0))
    marginals = (_exact if terms <= MAX_EXACT_TERMS else _propagated)(weights, counts)
    return np.asarray(marginals[:, :, np.argsort(order)])


def _exact(weights: Floats, counts: Integers) -> Floats:
    """Blocks a few at a time, so that the table of states stays small."""
    blocks, records, cells = weights.shape
    states = int(np.prod(counts[1:] + 1))
    step = max(1, 4 * MAX_EXACT_TERMS // (records * states * cells))
    parts = [_summed(weights[at : at + step], counts, states) for at in range(0, blocks, step)]
    return np.concatenate(parts) if parts else np.zeros_like(weights)


def _summed(weights: Floats, counts: Integers, states: int) -> Floats:
    """Sums over assignments of the records before and after each one; a state numbers the others' counts."""
    strides = np.cumprod(np.r_[1, counts[1:-1] + 1]) if len(counts) > 1 else np.zeros(0, dtype=np.int64)
    state = np.arange(states)
    sources = [state, *(state[state // s % (t + 1) < t] for s, t in zip(strides, counts[1:], strict=True))]
    steps = [(source, source + shift) for source, shift in zip(sources, np.r_[0, strides], strict=True)]
    blocks, records, _ = weights.shape
    start, end = np.zeros((2, blocks, states))
    start[:, 0] = end[:, -1] = 1.0
    before, after = [start], [end]
    for record in range(records):
        before.append(_added(before[-1], weights[:, record], steps))
        after.append(_added(after[-1], weights[:, records - 1 - record], [(goal, source) for source, goal in steps]))
    after.reverse()
    marginals = np.stack([
        np.stack([
            weights[:, i, c] * (before[i][:, source] * after[i + 1][:, goal]).sum(axis=1)
            for c, (source, goal) in enumerate(steps)
        ], axis=1)
        for i in range(records)
    ], axis=1)  # fmt: skip
    return np.asarray(marginals / marginals.sum(axis=2, keepdims=True))


def _added(sums: Floats, weights: Floats, steps: list[tuple[Integers, Integers]]) -> Floats:
    """The sums with one more record, scaled so that they neither vanish nor grow."""
    more = np.zeros_like(sums)
    for cell, (source, goal) in enumerate(steps):
        more[:, goal] += weights[:, cell, None] * sums[:, source]
    return np.asarray(more / more.max(axis=1, keepdims=True))


def _propagated(weights: Floats, counts: Integers) -> Floats:
    """Sum-product messages between records and places, a cell of T records having T places alike.

    From record to place w / (sum over its other places of w m), from place to record m = 1 / (sum over its other
    records of r): the marginals of Bethe's approximation, a little sharper than the exact ones.
    """
    to_records = np.ones_like(weights)
    to_places = to_records
    for _ in range(ROUNDS):
        shares = weights * to_records
        to_places = _within(weights, (counts * shares).sum(axis=2, keepdims=True) - shares)
        others = _within(np.ones(1), to_places.sum(axis=1, keepdims=True) - to_places)
        if np.abs(np.log(others / to_records)).max() < 1e-6:
            break
        to_records = np.sqrt(others * to_records)
    odds = to_places * to_records
    marginals = counts * (odds / (1 + odds))
    return np.asarray(marginals / marginals.sum(axis=2, keepdims=True))


def _within(top: Floats, bottom: Floats) -> Floats:
    """A ratio between 1e-12 and 1e12."""
    return np.asarray(np.clip(top / np.maximum(bottom, 1e-12), 1e-12, 1e12))
