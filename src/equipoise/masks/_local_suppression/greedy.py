"""Blanks that serve many records at once: a greedy choice of groups.

Rows that agree on all keys but some form a group. A record in which those keys are blanked matches its whole group, and
every other member gains a record: with t of them blanked, all members that lack at most t are satisfied too. Groups are
taken by what they satisfy for what they cost. Blanking every key of k - 1 records satisfies everybody, so without caps
there always is a way.
"""

from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.masks._local_suppression.problem import FREE, Demand, SuppressionProblem, bits, places

ALL = 10
"""Up to this many keys all sets of them are tried; of more, the smallest and the largest."""
NEAR = 1e-9


def shared(problem: SuppressionProblem, rows: Integers) -> Integers:
    """The keys to blank in each row, as bits; `rows` are of one record each, in small classes. Caps may leave some so.

    Cost: a count of the rows for each set of keys that may be worth it, a few times over.
    """
    masks = np.zeros(len(problem.n), dtype=np.int64)
    for demand in _hardest_first(problem, rows):
        while True:
            after = problem.blanked(masks)
            size = after.matched(rows, demand.keys)
            lacking = size < demand.k
            room = np.where(problem.caps == FREE, FREE, problem.caps - problem.used(masks))
            chosen = _round(after, demand, rows[lacking], demand.k - size[lacking], room)
            if not len(chosen.rows):
                break
            masks[chosen.rows] |= chosen.blanks
    return masks


def wholly(problem: SuppressionProblem, rows: Integers) -> Integers:
    """As many records as are needed with every key blanked: those that have the fewest keys."""
    masks = np.zeros(len(problem.n), dtype=np.int64)
    cost = problem.priced(problem.present[rows])
    masks[rows[np.argsort(cost, kind="stable")[: problem.largest - 1]]] = (1 << problem.keys) - 1
    return masks & problem.present


@dataclass(frozen=True, eq=False, repr=False)
class _Chosen:
    rows: Integers
    blanks: Integers


@dataclass(frozen=True, eq=False, repr=False)
class _Best:
    """For each row the best group it is in: its set of keys, its number, and the records satisfied for each cost."""

    worth: Floats
    blank: Integers
    number: Integers


def _hardest_first(problem: SuppressionProblem, rows: Integers) -> list[Demand]:
    if len(problem.demands) == 1:
        return list(problem.demands)
    short = [int((problem.matched(rows, d.keys) < d.k).sum()) for d in problem.demands]
    return [problem.demands[i] for i in np.argsort(-np.array(short), kind="stable")]


def _sets(demand: Demand, room: Integers) -> list[tuple[int, ...]]:
    """Sets of keys to blank, the largest first: that one prunes the others."""
    keys = [key for key in demand.keys if room[key] > 0]
    many = len(keys)
    sizes = range(many, 0, -1) if many <= ALL else (many, many - 1, 2, 1)
    return list(chain.from_iterable(combinations(keys, size) for size in sizes))


def _round(
    problem: SuppressionProblem, demand: Demand, small_rows: Integers, lack: Integers, room: Integers
) -> _Chosen:
    """The groups worth most, as many as do not stand in each other's way."""
    best = _Best(
        np.zeros(len(small_rows)), np.zeros(len(small_rows), dtype=np.int64), np.zeros(len(small_rows), dtype=np.int64)
    )
    for blank in _sets(demand, room) if len(small_rows) else ():
        _try(problem, demand, small_rows, lack, blank, int(room[list(blank)].min()), best)
    some = np.flatnonzero(best.worth > 0)
    if not len(some):
        return _Chosen(small_rows[:0], small_rows[:0])
    _, ids = np.unique(best.blank[some] * (len(small_rows) + 1) + best.number[some], return_inverse=True)
    rank, members = _ranked(ids, lack[some])
    blanked = lack[some] > rank
    cost = np.bincount(ids, blanked) * problem.priced(best.blank[some][np.unique(ids, return_index=True)[1]])
    claimed = np.zeros(len(members))
    claimed[ids] = best.worth[some]
    good = (members / cost >= claimed - NEAR) | (claimed >= claimed.max() - NEAR)
    chosen = good[ids] & blanked
    rows, blanks = some[chosen], best.blank[some[chosen]]
    fits = _within(problem, blanks, -best.worth[rows], ids[chosen], room)
    return _Chosen(small_rows[rows[fits]], blanks[fits])


def _try(
    problem: SuppressionProblem,
    demand: Demand,
    small_rows: Integers,
    lack: Integers,
    blank: tuple[int, ...],
    most: int,
    best: _Best,
) -> None:
    """Whether the groups of one set of keys are better than what is known, noted in `best`."""
    remaining = [key for key in demand.keys if key not in blank]
    rows = np.flatnonzero((problem.present[small_rows] & bits(blank)) == bits(blank))
    if not len(rows):
        return
    _, ids = np.unique(problem.ids(small_rows[rows], small_rows[:0], remaining)[0], return_inverse=True)
    rank, members = _ranked(ids, lack[rows])
    blanked = np.bincount(ids, lack[rows] > rank)
    worth = members / (blanked * problem.price[list(blank)].sum())
    better = (worth[ids] > best.worth[rows] + NEAR) & (blanked <= most)[ids]
    rows, ids = rows[better], ids[better]
    enough = problem.matched(small_rows[rows], remaining) >= demand.k
    rows, ids = rows[enough], ids[enough]
    best.worth[rows], best.blank[rows], best.number[rows] = worth[ids], bits(blank), ids


def _ranked(ids: Integers, lack: Integers) -> tuple[Integers, Integers]:
    """The place of each row in its group, those that lack most first, and the rows of each group."""
    order = np.lexsort((-lack, ids))
    members = np.bincount(ids)
    rank = np.empty(len(ids), dtype=np.int64)
    rank[order] = np.arange(len(ids)) - (np.cumsum(members) - members)[ids[order]]
    return rank, members


def _within(problem: SuppressionProblem, blanks: Integers, order: Floats, ids: Integers, room: Integers) -> Integers:
    """The rows whose groups, the best first, stay within the caps together."""
    if (room == FREE).all():
        return np.arange(len(blanks))
    sorted_ = np.lexsort((ids, order))
    over = np.zeros(len(blanks), dtype=np.bool_)
    for key in places(int(np.bitwise_or.reduce(blanks, initial=0))):
        over |= np.cumsum(blanks[sorted_] >> key & 1) > room[key]
    refused = np.unique(ids[sorted_][over])
    return sorted_[~np.isin(ids[sorted_], refused)]
