"""Improve blanks by a tabu search over a few records at a time.

The cost of the blanks plus a price for every record that a class lacks is lowered one record at a time, by whichever
change of its blanks is best; what was undone may not come back for a while; the price of lacking records rises while
some do and falls while none does. All changes of all records are judged in one array operation.

Source: Glover (1989), *Tabu search, part I*, with strategic oscillation.
"""

from dataclasses import dataclass, replace
from itertools import chain, combinations

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.masks._local_suppression.problem import FREE, Demand, SuppressionProblem, bits

STEPS = 600
"""Changes made to one block of records, at most."""
WORK = 60_000_000
"""Array elements visited for one block, at most."""
BLOCK = 60
"""Records changed together, at most."""
BLOCKS = 4
TURNS = 3
"""Searches of one block, each from the best so far with other ties; one where all steps would be too much work."""
PATTERNS = 160
"""Sets of keys that a record may lose; where there are more, the smallest, the largest and those in use."""
FEW = 20
"""With fewer steps than this nothing would be found."""
LOWER, HIGHER = 0.93, 1.07
CLOSE = 1e-9


def improve(problem: SuppressionProblem, masks: Integers, rows: Integers) -> Integers:
    """Blanks that cost at most as much as those given, where these leave no class too small.

    `rows` are those that may be changed, of one record each. They are taken in blocks: the blanked ones with others
    that are spread over the file. Cost: at most `WORK` for each of `BLOCKS` blocks, and one pass over the file.
    """
    best = masks
    for block in _blocks(masks, rows):
        for turn in range(TURNS):
            search = _block(problem, best, block)
            improved = search.searched(turn) if turn == 0 or search.steps == STEPS else None
            if improved is not None:
                best = best.copy()
                best[block] = improved
    return best


def _blocks(masks: Integers, rows: Integers) -> list[Integers]:
    if len(rows) <= BLOCK:
        return [rows]
    half = BLOCK // 2
    used, rest = rows[masks[rows] != 0], rows[masks[rows] == 0]
    blocks = []
    for turn in range(min(BLOCKS, -(-len(used) // half))):
        own = used[turn * half : (turn + 1) * half]
        many = min(BLOCK - len(own), len(rest))
        blocks.append(np.sort(np.concatenate([own, rest[(np.arange(many) * len(rest)) // max(many, 1)]])))
    return blocks


@dataclass(frozen=True, eq=False, repr=False)
class _View:
    """One demand, seen from the block.

    `inside`: the keys on which two of its rows differ; `outside`: for each of them and each pattern the records
    elsewhere that match; `lack`: what rows elsewhere lack without the block, and `differ`: the keys on which these
    differ from the rows of the block.
    """

    k: int
    inside: Integers
    outside: Integers
    lack: Integers
    differ: Integers


@dataclass(frozen=True, eq=False, repr=False)
class _Block:
    """The rows that may change, each with one of the patterns, and all that is needed to judge a change."""

    start: Integers
    patterns: Integers
    cost: Floats
    views: tuple[_View, ...]
    price: Floats
    room: Integers
    held: Integers

    @property
    def steps(self) -> int:
        width = sum(len(view.inside) + len(view.lack) for view in self.views)
        return min(STEPS, WORK // max(1, len(self.start) * len(self.patterns) * width))

    def searched(self, turn: int = 0) -> Integers | None:
        """The masks of the cheapest state met in which no class is too small; None where none was met."""
        random = np.random.default_rng(turn)
        at, rows = self.start.copy(), np.arange(len(self.start))
        until = np.zeros(self.cost.shape, dtype=np.int64)
        penalty, best, best_state = float(self.price.mean()), np.inf, None
        for step in range(self.steps if self.steps >= FEW else 0):
            lacking, cost = self._lacking(at), self._costs(at)
            if lacking[0, at[0]] == 0 and cost[0, at[0]] < best - CLOSE:
                best, best_state = cost[0, at[0]], at.copy()
                until[:] = 0
            worth = cost + penalty * lacking + 1e-6 * random.random(cost.shape)
            barred = ((until > step) & ~((lacking == 0) & (cost < best - CLOSE))) | self._over(at)
            barred[rows, at] = True
            if barred.all():
                break
            row, pattern = np.unravel_index(int(np.argmin(np.where(barred, np.inf, worth))), worth.shape)
            until[row] = np.maximum(until[row], step + 1 + random.integers(1, 3))
            until[row, at[row]] = step + 3 + random.integers(0, len(rows))
            at[row] = pattern
            penalty *= HIGHER if lacking[row, pattern] else LOWER
            penalty = min(max(penalty, 0.05 * self.price.min()), 4 * self.price.sum())
        return None if best_state is None else self.patterns[best_state].astype(np.int64) & self.held

    def _costs(self, at: Integers) -> Floats:
        """The cost of all blanks, for each row and each pattern it might get."""
        own = self.cost[np.arange(len(at)), at]
        return np.asarray(own.sum() - own[:, None] + self.cost, dtype=np.float64)

    def _over(self, at: Integers) -> Integers:
        """Which changes would blank more values of a key than its cap allows."""
        over = np.zeros(self.cost.shape, dtype=np.bool_)
        for key in np.flatnonzero(self.room < FREE):
            has = self.held >> key & 1
            own, new = self.patterns[at] >> key & has, (self.patterns[None, :] >> key) & has[:, None]
            over |= (own.sum() - own)[:, None] + new > self.room[key]
        return over

    def _lacking(self, at: Integers) -> Integers:
        """How many records all classes would lack, for each row and each pattern it might get."""
        total = np.zeros(self.cost.shape, dtype=np.int64)
        own, other, rows = self.patterns[at], ~self.patterns, np.arange(len(at))
        for view in self.views:
            differing = view.inside & ~own[None, :]
            met = (differing & ~own[:, None]) == 0
            size = met.sum(1) + view.outside[rows, at]
            new = (differing[:, None, :] & other[None, :, None]) == 0
            lack = np.maximum((view.k - size[None, :] + met)[:, None, :] - new, 0)
            lack[rows, :, rows] = 0
            total += lack.sum(2) + np.maximum(view.k - new.sum(2) - view.outside, 0)
            if len(view.lack):
                near = (view.differ & ~own[:, None]) == 0
                gain = (view.differ[:, None, :] & other[None, :, None]) == 0
                total += np.maximum((view.lack - near.sum(0) + near)[:, None, :] - gain, 0).sum(2)
        return total


def _block(problem: SuppressionProblem, masks: Integers, rows: Integers) -> _Block:
    sets = _patterns(problem, masks[rows])
    rest = masks.copy()
    rest[rows] = 0
    elsewhere = problem.n.copy()
    elsewhere[rows] = 0
    after = replace(problem.blanked(rest), n=elsewhere)
    differ = _differing(after, rows)
    room = np.where(problem.caps == FREE, FREE, problem.caps - problem.used(rest))
    return _Block(
        np.searchsorted(sets, masks[rows]),
        sets,
        problem.priced(sets[None, :].astype(np.int64) & problem.present[rows][:, None]),
        tuple(_view(after, rows, sets, differ, demand) for demand in problem.demands),
        problem.price,
        room,
        problem.present[rows],
    )


def _differing(after: SuppressionProblem, rows: Integers) -> Integers:
    """The keys on which each of the rows differs from every row, as bits."""
    sets = np.zeros((len(rows), len(after.n)), dtype=np.int64)
    for key, codes in enumerate(after.codes):
        own = codes[rows][:, None]
        sets |= ((own != codes[None, :]) & (own != 0) & (codes != 0)[None, :]).astype(np.int64) << key
    return sets


def _view(after: SuppressionProblem, rows: Integers, sets: Integers, differ: Integers, demand: Demand) -> _View:
    within = differ & demand.bits
    alone = np.flatnonzero(after.n == 1)
    lack = demand.k - after.matched(alone, demand.keys)
    short, narrow = alone[lack > 0], sets.dtype
    outside = np.stack([_fitting(each, after.n, sets) for each in within])
    inside = within[:, rows].astype(narrow)
    return _View(demand.k, inside, outside, lack[lack > 0], within[:, short].astype(narrow))


def _fitting(differ: Integers, n: Integers, sets: Integers) -> Integers:
    """For each set the records that differ in no other key."""
    values, ids = np.unique(differ, return_inverse=True)
    many = np.bincount(ids, n, len(values)).astype(np.int64)
    return ((values[:, None] & ~sets[None, :].astype(np.int64)) == 0).T @ many


def _patterns(problem: SuppressionProblem, used: Integers) -> Integers:
    """Sets of keys that a row may lose, sorted, in as few bytes as hold them."""
    keys, kind = problem.keys, np.int16 if problem.keys < 15 else np.int64
    if 1 << keys <= PATTERNS:
        return np.arange(1 << keys, dtype=kind)
    sizes = (0, 1, 2, keys - 1, keys) if keys * (keys + 3) // 2 < PATTERNS else (0, 1, keys)
    sets = [bits(chosen) for chosen in chain.from_iterable(combinations(range(keys), size) for size in sizes)]
    return np.unique(np.concatenate([np.array(sets, dtype=np.int64), used])).astype(kind)
