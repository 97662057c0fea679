"""Improve blanks block by block: classes near each other are dissolved and put together anew, each block exactly."""

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.masks._local_suppression.joining import marked, member
from equipoise.masks._local_suppression.partition_program import Choices
from equipoise.masks._local_suppression.problem import FREE
from equipoise.masks._local_suppression.released_rows import SEED, ReleasedRows, Shares

BLOCK = 70
"""Records of a block, at most."""
BLOCKS = 40
MAX_VISITED = 4_000_000
"""Records of the file, for each block: of a file of 100,000 all blocks are solved, of a million four."""
WORK = 8_000_000
"""Work of the solver for all blocks together, at most: about a second."""
NODES = 20
CLOSE = 1e-9


def regrouped(rows: ReleasedRows, shares: Shares, masks: Integers) -> Shares:
    """Blanks that cost at most as much. Cost: at most `WORK` of the solver, and one pass over the cells per block."""
    rng, work = np.random.default_rng(SEED), 0
    for _ in range(max(1, min(BLOCKS, MAX_VISITED // int(rows.n.sum())))):
        if work > WORK or not len(shares.cells):
            break
        shares, more = _improved(rows, shares, masks, _block(rows, shares, rng))
        work += more
    return shares


def _block(rows: ReleasedRows, shares: Shares, rng: np.random.Generator) -> Integers:
    """Which shares are in a block: whole classes, those with most records in a window of some order of the keys."""
    order = np.lexsort([rows.codes[key][shares.cells] for key in rng.permutation(rows.keys)])
    behind = np.cumsum(shares.many[order])
    start = rng.integers(0, max(1, int(behind[-1]) - BLOCK + 1))
    inside = np.zeros(len(order), dtype=np.bool_)
    inside[order[(behind > start) & (behind <= start + BLOCK)]] = True
    blank = shares.masks >> np.arange(rows.keys)[:, None] & 1
    released = np.where(blank, 0, rows.codes[:, shares.cells])[::-1]
    ids = np.unique(released, axis=1, return_inverse=True)[1].ravel()
    size = np.bincount(ids, shares.many)
    near = np.bincount(ids, shares.many * inside) / size
    by_nearness = np.argsort(-near, kind="stable")
    by_nearness = by_nearness[near[by_nearness] > 0]
    return np.isin(ids, by_nearness[np.cumsum(size[by_nearness]) <= BLOCK])


def _improved(rows: ReleasedRows, shares: Shares, masks: Integers, block: Integers) -> tuple[Shares, int]:
    """The shares with those of a block placed anew where that is cheaper, and the work done."""
    old, others = shares[block], shares[~block]
    if not len(old.cells):
        return shares, WORK // BLOCKS
    choices = _choices(rows, old, others, masks)
    room = np.where(rows.caps == FREE, FREE, rows.caps - rows.used(others))
    answer = choices.best(old, room, NODES)
    work = WORK // BLOCKS // 4 + (answer.work if answer else 0)
    if answer is None or rows.cost(answer.shares) > rows.cost(old) - CLOSE:
        return shares, work
    new = rows.narrowed(Shares.joined([others, answer.shares]))
    return (new, work) if rows.fits(new) and rows.smallest(new) >= rows.k else (shares, work)


def _choices(rows: ReleasedRows, old: Shares, others: Shares, masks: Integers) -> Choices:
    """What the records of a block may be released as, beside the classes elsewhere and with records lent to them."""
    free = rows.remaining(others)
    movers = np.unique(old.cells)
    most = np.zeros(len(rows.n))
    np.maximum.at(most, old.cells, rows.priced(old.masks))
    most[movers] += rows.price.min()
    home = rows.n >= rows.k
    spare = np.where(home, np.maximum(free - rows.k, 0), 0)
    spare[movers] = 0
    used = np.unique(old.masks)
    tried = np.unique(np.concatenate([masks, (used[:, None] | used).ravel()]))
    tried = tried[rows.priced(tried) <= most.max()]
    lenders = _lenders(rows, movers, spare, tried, most)
    cells = np.union1d(movers, lenders)
    most[lenders] = most.max()
    many = np.where(home, np.maximum(free - rows.k, 0), free)
    many[lenders] = np.minimum(spare[lenders], rows.k)
    return Choices.of(
        rows, cells, many[cells], np.append(0, tried), home=home[cells], most=most[cells],
        open_classes=np.unique(np.concatenate([rows.ids(others.cells, others.masks), rows.whole[home]])),
    )  # fmt: skip


def _lenders(rows: ReleasedRows, movers: Integers, spare: Integers, masks: Integers, most: Floats) -> Integers:
    """For each class that movers may be in the large cell that can spare most."""
    large = np.flatnonzero(spare > 0)
    large = large[np.argsort(-spare[large], kind="stable")]
    cells = [movers[:0]]
    for mask, price in zip(masks.tolist(), rows.priced(masks), strict=True) if len(large) else ():
        wanted, ids = np.unique(rows.ids(movers[most[movers] >= price], mask)), rows.ids(large, mask)
        near = np.flatnonzero(marked(wanted, ids))
        values, first = np.unique(ids[near], return_index=True)
        cells.append(large[near[first[member(values, wanted)]]])
    return np.unique(np.concatenate(cells))
