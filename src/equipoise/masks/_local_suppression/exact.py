"""Every record hidden by its own blanks: the cheapest way, exactly.

Nobody's blanks are needed by anybody else, so each record takes the cheapest set of keys that does. Caps tie the
records together: how many of those that have the same choices take which of them is a small program in whole numbers.
"""

from dataclasses import replace
from itertools import islice

import numpy as np

from equipoise.ground.arrays import Integers
from equipoise.ground.solver import Program
from equipoise.masks._local_suppression.problem import FREE, SuppressionProblem, bits, cheapest_first, places

MOST = 1 << 12
"""Sets of keys that are tried, at most: all sets of up to twelve keys."""
CHOICES = 1 << 10
"""The same where caps make records compete for them: all sets of up to ten keys; of more keys the cheapest, and all."""
Counts = dict[int, tuple[Integers, Integers]]
"""For a set of keys: rows, and the records that match each of them."""


def own(problem: SuppressionProblem, rows: Integers) -> Integers:
    """The keys to blank in each row, as bits, so that k records fit what is left of it, as they were before.

    The optimum, with caps too; rows stay as they are where caps do not allow it. A row for which none of the `MOST`
    cheapest sets is enough loses all keys but those it can keep, the dearest first. Cost: one count of the rows for
    each set of keys tried, in the order of their price until every row has one; with caps, for each set, and the
    program.
    """
    masks = np.zeros(len(problem.n), dtype=np.int64)
    unsafe = rows
    counts: Counts = {}
    for number, blank in enumerate(cheapest_first(problem.price)):
        if not len(unsafe) or number >= MOST:
            break
        fits = _satisfied(problem, blank, counts, unsafe)
        masks[unsafe[fits]] = blank
        unsafe = unsafe[~fits]
    masks[unsafe] = _thinned(problem, unsafe)
    masks &= problem.present
    return masks if (problem.used(masks) <= problem.caps).all() else _capped(problem, rows)


def _thinned(problem: SuppressionProblem, rows: Integers) -> Integers:
    """All keys but those that can stay, the dearest first; nothing for rows that cannot be hidden."""
    masks = problem.present[rows]
    for key in np.argsort(-problem.price, kind="stable") if len(rows) else ():
        fewer = masks & ~(1 << int(key))
        masks = np.where(problem.exposed(rows, fewer), masks, fewer)
    return np.where(problem.exposed(rows, masks), 0, masks) if len(rows) else masks


def _satisfied(problem: SuppressionProblem, blank: int, counts: Counts, rows: Integers) -> Integers:
    """Which of the rows have large enough classes on every demanded set of keys without the blanked ones."""
    safe = np.ones(len(rows), dtype=np.bool_)
    for demand in problem.demands:
        remaining = tuple(key for key in demand.keys if not blank >> key & 1)
        at, sizes = counts.get(bits(remaining)) or (rows, problem.matched(rows, remaining))
        if len(problem.demands) > 1:
            counts[bits(remaining)] = at, sizes
        safe &= sizes[np.searchsorted(at, rows)] >= demand.k
    return safe


def _capped(problem: SuppressionProblem, rows: Integers) -> Integers:
    """The cheapest choice within the caps; nothing where there is none."""
    masks = np.zeros(len(problem.n), dtype=np.int64)
    sets, fits = _choices(problem, rows)
    kinds, ids = np.unique(np.packbits(fits, axis=1), axis=0, return_inverse=True)
    ids = ids.ravel()
    first = np.unique(ids, return_index=True)[1]
    many = _shares(problem, sets, fits[first], np.bincount(ids, minlength=len(kinds)))
    if many is None:
        return masks
    order = np.argsort(ids, kind="stable")
    kind, choice = np.nonzero(many)
    masks[rows[order]] = np.repeat(sets[choice], many[kind, choice])
    return masks & problem.present


def _choices(problem: SuppressionProblem, rows: Integers) -> tuple[Integers, Integers]:
    """Sets of keys, and which of them is enough for each row while none of its own parts is."""
    allowed = [key for key in range(problem.keys) if problem.caps[key] > 0]
    sets: list[int] = []
    fits: list[Integers] = []
    counts: Counts = {}
    wider = np.zeros((0, len(rows)), dtype=np.bool_)
    cheapest = islice(cheapest_first(problem.price[allowed]), CHOICES) if allowed else ()
    for chosen in (*cheapest, (1 << len(allowed)) - 1):
        blank = bits([allowed[place] for place in places(chosen)])
        fit = _satisfied(problem, blank, counts, rows) & ((problem.present[rows] & blank) == blank)
        parts = [at for at, smaller in enumerate(sets) if smaller & blank == smaller]
        fit &= ~np.any(wider[parts], axis=0) if parts else True
        if fit.any():
            sets.append(blank)
            fits.append(fit)
            wider = np.stack(fits)
    return np.array(sets, dtype=np.int64), wider.T


def _shares(problem: SuppressionProblem, sets: Integers, fits: Integers, many: Integers) -> Integers | None:
    """How many rows of each kind take each set: the cheapest whole numbers within the caps."""
    kind, choice = np.nonzero(fits)
    if len(np.unique(kind)) < len(many):
        return None
    answer = _program(problem, sets, kind, choice, many, elastic=False).solve()
    if answer is None:
        return None
    shares = np.zeros(fits.shape, dtype=np.int64)
    shares[kind, choice] = np.rint(answer.values).astype(np.int64)
    return shares


def excess(problem: SuppressionProblem) -> Integers:
    """How many more values of each key must be blanked than the caps allow, as few as can be in all."""
    rows, tight = problem.short(), np.flatnonzero(problem.caps < FREE)
    sets, fits = _choices(replace(problem, caps=np.full(problem.keys, FREE)), rows)
    kinds, ids = np.unique(np.packbits(fits, axis=1), axis=0, return_inverse=True)
    many = np.bincount(ids.ravel(), problem.n[rows], len(kinds)).astype(np.int64)
    kind, choice = np.nonzero(fits[np.unique(ids.ravel(), return_index=True)[1]])
    answer = _program(problem, sets, kind, choice, many, elastic=True).solve()
    assert answer is not None
    missing = np.zeros(problem.keys, dtype=np.int64)
    missing[tight] = np.rint(answer.values[len(kind) :])
    return missing


def _program(
    problem: SuppressionProblem, sets: Integers, kind: Integers, choice: Integers, many: Integers, elastic: bool
) -> Program:
    """Rows of each kind take one set each, within the caps; elastic caps give way, and only that costs."""
    import scipy.sparse as sparse

    tight = np.flatnonzero(problem.caps < FREE)
    holds = sparse.csc_array(((sets[choice][None, :] >> tight[:, None]) & 1).astype(np.float64))
    takes = sparse.csc_array((np.ones(len(kind)), (kind, np.arange(len(kind)))), shape=(len(many), len(kind)))
    over = len(tight) if elastic else 0
    more = sparse.vstack([sparse.csc_array((len(many), over)), -sparse.eye_array(len(tight), over)], format="csc")
    matrix = sparse.hstack([sparse.vstack([takes, holds], format="csc"), more], format="csc")
    below = np.concatenate([many, np.full(len(tight), -np.inf)])
    above = np.concatenate([many, problem.caps[tight]]).astype(np.float64)
    price = problem.priced(sets)[choice] * (not elastic)
    high = np.concatenate([many[kind], np.full(over, np.inf)])
    cost = np.concatenate([price, np.ones(over)])
    program = Program(matrix, cost, np.zeros(len(cost)), high, below, above)
    program.whole(np.arange(len(cost)))
    return program
