"""Every released row identical to at least k - 1 others, a blank being a value: as few blanks as can be found.

An intruder who knows the method and the true keys of his target cannot tell identical rows apart. The cheapest way is
NP-hard to find (Meyerson and Williams 2004): a small file is solved exactly, as a program in whole numbers; of a larger
one the best of several greedy choices is improved block by block.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.masks._local_suppression.clustering import clustered
from equipoise.masks._local_suppression.joining import absorbed, joined, member
from equipoise.masks._local_suppression.partition_program import Choices
from equipoise.masks._local_suppression.problem import FREE, Demand, SuppressionProblem, bits, cheapest_first, places
from equipoise.masks._local_suppression.regrouping import regrouped
from equipoise.masks._local_suppression.released_rows import SEED, ReleasedRows, Shares

ALL_SETS, MAX_SETS = 10, 12
"""Up to this many keys all sets of them are tried, where there are too many small cells to compare them up to the
second number; of more keys, as many of the cheapest sets as ten keys have, and all keys.
"""
EXACT = 2_500
"""Columns of the program, for each set of keys on which classes are counted, up to which a file is solved exactly."""
COLUMNS = 40_000
"""Cells times sets of keys up to which the columns are counted at all."""
NODES = 1_000
TRIES = 16
"""Greedy choices at prices that vary a little."""
CELLS = 20_000
"""Small cells up to which all of them are made; of more cells fewer."""
WORK = 64_000
"""Small cells visited by all choices in a file of a million records and more; in smaller files more, up to five times:
the search may not take much longer than reading the file.
"""
CLUSTERED = 20_000
"""Small cells that are put into classes by similarity, at most, where there are many keys."""
MOVED, LARGE = 4_000, 100_000
"""Blanked records up to which blocks are solved anew; in larger files than this as many fewer."""
SPREAD = 0.03
RISES = 24
"""How often the prices of keys above their cap are raised, at most."""
DEARER = 1.4


@dataclass(frozen=True, eq=False, repr=False)
class IdenticalBlanks:
    """Blanks: how many records of which cells lose which keys.

    `small` records were in classes too small; `cost` is the sum of importance x blanks, `used` the blanks of each key,
    and `bound` a cost that no way to blank can be below.
    """

    problem: SuppressionProblem
    shares: Shares
    small: int
    used: Integers
    cost: float
    proven: float

    @cached_property
    def bound(self) -> float:
        """The least cost that is proven. Cost: one count of the cells for each set of keys, when it is asked for."""
        bounds = [charged(_rows(self.problem, demand)) for demand in self.problem.demands]
        return min(max(self.proven, *bounds), self.cost)


def blank_identical(problem: SuppressionProblem) -> IdenticalBlanks | None:
    """Blanks that leave every row identical to k - 1 others on each demanded set of keys; None where none were found.

    Raises
    ------
    AssertionError
        Where a class would be too small: nothing may be released then.
    """
    rows = _rows(problem)
    small = _small(problem)
    shares, proven = _solved(problem, rows) if small else (Shares.joined([]), 0.0)
    if shares is None:
        return None
    if any(rows.smallest(shares, demand.keys) < demand.k for demand in problem.demands):
        raise AssertionError("A class is too small after local suppression.")
    used = rows.used(shares)
    return IdenticalBlanks(problem, shares, small, used, float(used @ rows.price), proven)


def _rows(problem: SuppressionProblem, demand: Demand | None = None) -> ReleasedRows:
    """The rows of a problem, or those of its records on the keys of one demand."""
    if demand is None or len(demand.keys) == problem.keys:
        return ReleasedRows(problem.codes, problem.n, problem.largest, problem.price, problem.caps)
    cells, n, _ = _projected(problem.codes, problem.n, demand)
    chosen = list(demand.keys)
    return ReleasedRows(problem.codes[chosen][:, cells], n, demand.k, problem.price[chosen], problem.caps[chosen])


def _projected(codes: Integers, n: Integers, demand: Demand) -> tuple[Integers, Integers, Integers]:
    """Cells that differ on the demanded keys (the first of each), their records, and which of them each cell is."""
    _, first, ids = np.unique(codes[list(demand.keys)], axis=1, return_index=True, return_inverse=True)
    return first, np.bincount(ids.ravel(), n).astype(np.int64), ids.ravel()


def _small(problem: SuppressionProblem) -> int:
    """The records with a class that is too small on some demanded keys."""
    small = np.zeros(len(problem.n), dtype=np.bool_)
    for demand in problem.demands:
        if len(demand.keys) == problem.keys:
            small |= problem.n < demand.k
        else:
            _, n, ids = _projected(problem.codes, problem.n, demand)
            small |= (n < demand.k)[ids]
    return int(problem.n[small].sum())


def _solved(problem: SuppressionProblem, rows: ReleasedRows) -> tuple[Shares | None, float]:
    """The cheapest blanks that were found, and the cost that is proven to be the least."""
    masks = _masks(rows)
    single = all(len(demand.keys) == problem.keys for demand in problem.demands)
    start = _searched(rows, masks) if single else _one_by_one(problem, rows)
    answer = _exact(problem, rows, masks, start)
    if answer is not None:
        return answer
    if single and start is not None and int(start.many.sum()) <= MOVED * min(1.0, LARGE / int(rows.n.sum())):
        start = regrouped(rows, start, masks)
    return start, 0.0


def _masks(rows: ReleasedRows) -> Integers:
    """Sets of keys that may be blanked, the cheapest first; all of these keys last."""
    keys = [key for key in range(rows.keys) if rows.allowed >> key & 1]
    many = ALL_SETS if _wide(rows) else len(keys)
    sets = islice(cheapest_first(rows.price[keys]), (1 << many) - 1) if keys else ()
    masks = [bits([keys[place] for place in places(chosen)]) for chosen in sets]
    return np.array([*(mask for mask in masks if mask != rows.allowed), rows.allowed], dtype=np.int64)


def _exact(
    problem: SuppressionProblem, rows: ReleasedRows, masks: Integers, start: Shares | None
) -> tuple[Shares | None, float] | None:
    """The optimum of a file that is small enough; None where it is not."""
    if len(rows.n) * len(masks) > COLUMNS or len(masks) < (1 << rows.allowed.bit_count()) - 1:
        return None
    demands = tuple((demand.bits, demand.k) for demand in problem.demands)
    choices = Choices.of(rows, np.arange(len(rows.n)), rows.n, np.append(0, masks), demands=demands)
    if len(choices) * len(demands) > EXACT:
        return None
    answer = choices.best(start, rows.caps, NODES)
    if answer is None:
        return start, 0.0
    better = rows.fits(answer.shares) and (start is None or rows.cost(answer.shares) <= rows.cost(start))
    better = better and all(rows.smallest(answer.shares, demand.keys) >= demand.k for demand in problem.demands)
    return (answer.shares if better else start), answer.bound


def _searched(rows: ReleasedRows, masks: Integers) -> Shares | None:
    """The cheapest of several greedy ways within the caps; None where none was found.

    Each try varies the prices of the best one a little; keys that were blanked too often get dearer.
    """
    rng, weights, factors = np.random.default_rng(SEED), np.ones(rows.keys), np.ones(len(masks))
    best, least = None, np.inf
    for turn in range(max(RISES, TRIES)):
        if best is not None and turn >= _tries(rows):
            break
        trial = factors * np.exp(SPREAD * rng.standard_normal(len(masks)) * (turn > 0))
        dearer = rows if (weights == 1).all() else replace(rows, price=rows.price * weights)
        shares = _way(dearer, masks, dearer.priced(masks) * trial)
        if shares is None:
            continue
        used = rows.used(shares)
        if (used > rows.caps).any():
            weights *= np.where(used > rows.caps, DEARER, 1.0)
        elif used @ rows.price <= least:
            best, least, factors = shares, float(used @ rows.price), trial
    return best


def _tries(rows: ReleasedRows) -> int:
    """As many as a file of this size is worth: work grows with the small cells, and is spent within limits."""
    small, records = max(1, len(rows.small)), max(1, int(rows.n.sum()))
    work = WORK * np.clip(1_000_000 / records, 1, 5)
    return 1 if _wide(rows) else int(np.clip(min(TRIES * (CELLS / small) ** 3, work / small), 1, TRIES))


def _wide(rows: ReleasedRows) -> bool:
    """Whether there are more keys than all sets of them can be tried."""
    return rows.allowed.bit_count() > (MAX_SETS if len(rows.small) > CLUSTERED else ALL_SETS)


def _way(rows: ReleasedRows, masks: Integers, prices: Floats) -> Shares | None:
    """One greedy way at these prices; with many keys what it leaves over is put into classes by similarity."""
    wide = _wide(rows)
    shares, rest = joined(rows, masks[:-1] if wide else masks, prices[:-1] if wide else prices)
    if wide and len(rest):
        ways = [Shares.joined([shares, clustered(rows, rest)])]
        ways += [clustered(rows, rows.small)] if len(rows.small) <= CLUSTERED else []
        shares = min(ways, key=lambda way: (len(np.setdiff1d(rows.small, way.cells)), rows.cost(way)))
        rest = np.setdiff1d(rows.small, shares.cells)
    whole = absorbed(rows, shares, rest)
    if whole is None or (len(whole.cells) > CELLS and not wide and _subsets_first(masks, prices)):
        return whole
    return rows.narrowed(whole)


def _subsets_first(masks: Integers, prices: Floats) -> bool:
    """Whether each set of keys comes after all its subsets: then no class agrees on a key that it was joined without.

    Those who are in it would have found each other, and who lends to them, without the others.
    """
    subsets = np.full(int(masks.max()) + 1, np.inf)
    subsets[masks], subsets[0] = prices, 0.0
    one_less = [
        (mask, mask & ~(1 << key))
        for key in range(int(masks.max()).bit_length())
        for mask in [masks[masks >> key & 1 == 1]]
    ]
    return all((subsets[less] < subsets[mask]).all() for mask, less in one_less)


def _one_by_one(problem: SuppressionProblem, rows: ReleasedRows) -> Shares | None:
    """Blanks that meet one demand after the other, again until all are met; blanks are never taken back."""
    shares = rows.everyone(Shares.joined([]))
    while True:
        before = shares
        for demand in problem.demands:
            found = _met(rows, shares, demand)
            if found is None:
                return None
            shares = found
        if shares is before:
            return shares[shares.masks & rows.present[shares.cells] != 0]


def _met(rows: ReleasedRows, shares: Shares, demand: Demand) -> Shares | None:
    """The shares of all records with more blanks where classes on the demanded keys are too small."""
    keys = list(demand.keys)
    codes = np.where(shares.masks >> np.arange(rows.keys)[:, None] & 1, 0, rows.codes[:, shares.cells])
    first, n, ids = _projected(codes, shares.many, demand)
    if (n >= demand.k).all():
        return shares
    room = np.where(rows.caps == FREE, FREE, rows.caps - rows.used(shares))
    part = ReleasedRows(codes[keys][:, first], n, demand.k, rows.price[keys], room[keys])
    blanks = _searched(part, _masks(part))
    if blanks is None:
        return None
    order = np.lexsort((-rows.priced(shares.masks), ids))
    new = part.everyone(blanks)
    new = new[np.lexsort((-part.priced(new.masks), new.cells))]
    masks = ((new.masks >> np.arange(len(keys))[:, None] & 1) << np.array(keys)[:, None]).sum(axis=0)
    return _split(shares[order], replace(new, masks=masks))


def _split(shares: Shares, new: Shares) -> Shares:
    """Shares of all records, and the new masks of the same records in the same order, as shares with both."""
    ends, new_ends = np.cumsum(shares.many), np.cumsum(new.many)
    cuts = np.union1d(ends, new_ends)
    starts = np.append(0, cuts[:-1])
    own, more = np.searchsorted(ends, starts, side="right"), np.searchsorted(new_ends, starts, side="right")
    return Shares(shares.cells[own], shares.masks[own] | new.masks[more], cuts - starts)


def charged(rows: ReleasedRows) -> float:
    """A cost that no way to blank can be below: of each record of a small cell the least it can cost.

    In a class with u records of small cells and fewer than k in all, others pay too, which is charged to the u: at
    least price + (k - u) / u x what the cheapest of the others pays. The least over all classes that a record may be in
    is no more than its part of any way to blank. Of many keys only the cheapest sets are looked at: who is safe in none
    of them costs at least as much as the dearest.
    """
    small, large = rows.small, np.flatnonzero(rows.n >= rows.k)
    best = np.full(len(small), np.inf)
    masks = _masks(rows)[:-1] if _wide(rows) else _masks(rows)
    for mask in masks.tolist() if len(small) else ():
        price = rows.priced(mask & rows.present[small])
        near = price < best
        best[near] = np.minimum(best[near], price[near] + _lent(rows, small, near, large, mask))
    if _wide(rows):
        best = np.minimum(best, float(rows.priced(masks[-1:])[0]))
    return float(np.where(np.isfinite(best), best, 0.0) @ rows.n[small])


def _lent(rows: ReleasedRows, small: Integers, near: Integers, large: Integers, mask: int) -> Floats:
    """What the others in its class pay at least for each of the small cells near, which share it; inf without k."""
    values, ids = np.unique(rows.ids(small, mask), return_inverse=True)
    own = np.bincount(ids, rows.n[small])
    lenders = rows.ids(large, mask)
    met = member(lenders, values)
    place = np.searchsorted(values, lenders[met])
    price = np.full(len(values), np.inf)
    np.minimum.at(price, place, rows.priced(mask & rows.present[large[met]]))
    enough = own + np.bincount(place, rows.n[large[met]], len(values)) >= rows.k
    need = np.maximum(rows.k - own, 0)
    lent = np.where(need > 0, need / own * np.where(np.isfinite(price), price, 0.0), 0.0)
    return np.where(enough, lent, np.inf)[ids[near]]
