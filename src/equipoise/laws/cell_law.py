"""Transition laws of post-randomization on cells: the probabilities of moves, and the bound on correct matches.

A law is kept as a number or two per cell, never as a matrix of cells by cells. Two kinds:

mixing
    Within a block of cells, a record is redrawn with probability `strength` (lambda), to a cell of the block with
    probability `share` (rho, summing to 1 in the block): P = (1 - lambda) I + lambda rho 1'. With rho_j = T_j / N it is
    invariant for counts (P T = T); with rho_j = W_j / W it is invariant for weighted totals (P W = W).
leaving
    Within a group of k cells, a record of a cell with T records leaves with probability `strength` / T, to each of the
    k - 1 other cells with equal probability (Nayak 2015, Result 1).

Why the bound holds for mixing, given ALL released counts
---------------------------------------------------------
The intruder knows the target's cell 1 and T, P and every released count; a guess names one released record. Write N for
the records of the block, t for those of cell 1, rho for its share.

1. Given that S_1 = a records are in cell 1 afterwards, the target is one of them with probability a * IR(a), where
   IR(a) = beta_1 e_{a-1}(without the target) / (a e_a), e the elementary symmetric polynomials of the records' odds
   of being in the cell. Own records have odds b = (1 - lambda (1 - rho)) / (lambda (1 - rho)), others
   c = lambda rho / (1 - lambda rho), and b >= c because
   (1 - lambda (1 - rho)) (1 - lambda rho) - lambda^2 rho (1 - rho) = 1 - lambda >= 0.
2. When the target's odds are the largest, IR(a) does not increase in a: with a e_a = sum_i beta_i e_{a-1}(without i),
   IR(a) - IR(a+1) has the sign of a sum of (beta_1 - beta_i)(f_{a-1}^2 - f_a f_{a-2}) >= 0 (Newton's inequality, f
   without the target and i). So a = 1 is the worst case, with 1 / IR(1) = t + (N - t) c / b.
3. c / b = lambda^2 rho (1 - rho) / (1 - lambda + lambda^2 rho (1 - rho)) rises from 0 to 1 with lambda, and is the same
   for rho and 1 - rho. In a block of two cells the counts of one determine the other's, so conditioning on S_1 is
   conditioning on all of S; a guess in the other cell is the same statement with the cells exchanged (the target's odds
   of being there are the smallest, so it is below 1 / S_2 times its share, at most the bound of the other order). The
   bound asks c / b >= h = max((1/xi - t_1) / t_2, (1/xi - t_2) / t_1), solved by `strength_for`.
4. With lambda = 1 every record of the block has the same law, so every guess is right with probability 1 / N.
Hence: two-cell blocks with the lambda of step 3, or fully mixed blocks with N >= 1 / xi.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import InfeasibleError, ParameterError

Kind = Literal["mixing", "leaving"]
ROUNDING_TOLERANCE = 1e-12
BOUND_MARGIN = 1e-13
"""Share by which the bound is tightened, so that rounding never lifts an audited probability above xi."""


@dataclass(frozen=True, eq=False, repr=False)
class CellLaw:
    """A transition law over the cells of a table; `block` is -1 where no record moves."""

    kind: Kind
    counts: Integers
    block: Integers
    share: Floats
    strength: Floats

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def moving(self) -> Integers:
        """The cells whose records may move."""
        return np.flatnonzero(self.block >= 0)

    def per_block(self, values: Any) -> Floats:
        """Sum of a quantity over each block."""
        cells = self.moving
        sums = np.bincount(self.block[cells], weights=values[cells], minlength=len(self.strength))
        return sums.astype(np.float64)

    def spread(self, values: Floats) -> Floats:
        """A quantity of each block, repeated for its cells; 0 where no record moves."""
        full = np.zeros(len(self))
        full[self.moving] = values[self.block[self.moving]]
        return full

    @property
    def sizes(self) -> Floats:
        """Records of the block of each cell."""
        return self.spread(self.per_block(self.counts))

    @property
    def cells_in_block(self) -> Floats:
        return self.spread(self.per_block(np.ones(len(self))))

    def leave(self) -> Floats:
        """Probability that a record of each cell is in another cell afterwards."""
        strength = self.spread(self.strength)
        if self.kind == "mixing":
            return strength * (1 - self.share) * (self.block >= 0)
        return strength / self.counts

    def chance(self, cell: Integers, goal: Integers) -> Floats:
        """P(goal | cell) for pairs of cells of one block: that a record of the first is in the second afterwards."""
        strength = self.spread(self.strength)[cell]
        if self.kind == "mixing":
            return np.asarray((1 - strength) * (cell == goal) + strength * self.share[goal])
        leave = strength / self.counts[cell]
        return np.where(cell == goal, 1 - leave, leave / np.maximum(self.cells_in_block[cell] - 1, 1))

    def movers(self) -> float:
        """Expected number of records that change their cell."""
        return float((self.counts * self.leave()).sum())

    def arrivals(self) -> Floats:
        """Expected number of records that move into each cell from others."""
        if self.kind == "mixing":
            return self.spread(self.strength) * self.share * (self.sizes - self.counts) * (self.block >= 0)
        others = self.cells_in_block - 1
        leavers = self.counts * self.leave()
        total = self.spread(self.per_block(leavers))
        return np.divide(total - leavers, others, out=np.zeros(len(self)), where=others > 0)

    def expected(self) -> Floats:
        """Expected counts afterwards; equal to the counts when the law is invariant for them."""
        return self.counts * (1 - self.leave()) + self.arrivals()

    def variance(self) -> Floats:
        """Var(S_j | T) = sum over i of T_i p_ji (1 - p_ji): variance that the law adds to each cell."""
        stay = 1 - self.leave()
        own = self.counts * stay * (1 - stay)
        if self.kind == "mixing":
            arrive = self.spread(self.strength) * self.share * (self.block >= 0)
            return np.asarray(own + (self.sizes - self.counts) * arrive * (1 - arrive))
        others = self.cells_in_block - 1
        chance = np.divide(self.spread(self.strength) / self.counts, others, out=np.zeros(len(self)), where=others > 0)
        each = self.counts * chance * (1 - chance)
        return np.asarray(own + self.spread(self.per_block(each)) - each)

    def match(self) -> Floats:
        """P(correct match | S_j = 1, T) in every cell, eq. (9) of Nayak: the worst released count."""
        still = 1.0 / self.counts
        cells = self.moving
        t, leave = self.counts[cells].astype(np.float64), self.leave()[cells]
        if self.kind == "mixing":
            lam, rho = self.spread(self.strength)[cells], self.share[cells]
            rivals = (self.sizes[cells] - t) * odds_ratio(lam, rho)
        else:
            arrive = self.spread(self.strength)[cells] / ((self.cells_in_block[cells] - 1) * t)
            odds = t * arrive / (1 - arrive)
            full = np.zeros(len(self))
            full[cells] = odds
            around = self.spread(self.per_block(full))[cells] - odds
            rivals = around * leave / np.maximum(1 - leave, ROUNDING_TOLERANCE)
        still[cells] = 1.0 / (t + rivals)
        return still


def odds_ratio(strength: Any, share: Any) -> Any:
    """c / b of the proof: odds that a record of another cell is in the cell, relative to those of an own record."""
    crossed = strength**2 * share * (1 - share)
    return np.divide(crossed, 1 - strength + crossed, out=np.ones_like(crossed), where=(strength < 1))


def strength_for(xi: Any, t1: Any, t2: Any, share: Any) -> Any:
    """The smallest lambda for which no guess in a block of two cells is right with probability above xi.

    h = max((1/xi - t1) / t2, (1/xi - t2) / t1); lambda = 2 h / (h + sqrt(h^2 + 4 share (1 - share) (1 - h) h)).

    >>> round(float(strength_for(0.8, 1, 1, 0.5)) / 2, 12)  # expected movers each way of two uniques: 1/3
    0.333333333333
    """
    need = 1 / (xi * (1 - BOUND_MARGIN))
    h = np.clip(np.maximum((need - t1) / t2, (need - t2) / t1), 0.0, 1.0)
    h = np.where(1 / np.minimum(t1, t2) <= xi, 0.0, h)
    root = np.sqrt(h**2 + 4 * share * (1 - share) * (1 - h) * h)
    return np.divide(2 * h, h + root, out=np.zeros_like(h, dtype=np.float64), where=h > 0)


def theta_for(xi: float) -> float:
    """Nayak's theta: the root of (1 - theta) / (1 - theta + theta^2) = xi, for xi from 3/7 up.

    >>> round(theta_for(0.6 / 0.76), 12)  # g(0.40) = 0.789...
    0.4
    """
    if xi < 3 / 7 - ROUNDING_TOLERANCE:
        raise ParameterError(f"Nayak's matrix guarantees xi of 3/7 and above, not {xi:g}: use method='blocks'.")
    return (-(1 - xi) + sqrt((1 - xi) ** 2 + 4 * xi * (1 - xi))) / (2 * xi)


def leaving_law(counts: Integers, groups: Integers, xi: float) -> CellLaw:
    """Nayak's law in every group of cells; a group of one cell protects nobody and is refused."""
    theta = theta_for(xi * (1 - BOUND_MARGIN))
    sizes = np.bincount(groups)
    least = 3 if xi < 0.5 else 2
    lonely = np.flatnonzero((sizes > 0) & (sizes < least))
    if len(lonely):
        message = (
            f"{len(lonely):,} of {int((sizes > 0).sum()):,} groups have fewer than {least} occupied cells, where "
            f"xi = {xi:g} cannot hold: name fewer columns in within, or use within='auto'."
        )
        raise _infeasible(message, groups, int(lonely[0]))
    share = 1.0 / sizes[groups]
    return CellLaw("leaving", counts, groups, share, np.full(len(sizes), theta))


def mixing_law(
    counts: Integers, groups: Integers, order: Integers, xi: float, weights: Floats | None = None
) -> CellLaw:
    """Blocks of small cells, neighbours in `order` together, each moved as little as the bound allows.

    Cells with T >= 1/xi stay as they are. The others are paired with a cell of the same count where two of them reach
    1/xi, or fully mixed with as many as needed; leftover cells of a group join where it costs fewest movers. Only
    counts, groups and order are used, so the blocks reveal nothing about single records. O(cells log cells).
    """
    small = 1 / counts > xi
    block, fresh, leftover = _runs(counts, groups, order, small, xi)
    if len(leftover):
        fresh = _place_leftover(block, fresh, leftover, counts, groups, order, xi)
    return law_of_blocks(counts, block, np.full(fresh, xi), weights)


def _runs(counts: Integers, groups: Integers, order: Integers, small: Any, xi: float) -> tuple[Integers, int, Integers]:
    """Chunks of equal counts within each group; the cells of incomplete chunks are left over."""
    block = np.full(len(counts), -1, dtype=np.int64)
    cells = np.flatnonzero(small)
    cells = cells[np.lexsort((order[cells], counts[cells], groups[cells]))]
    if not len(cells):
        return block, 0, cells
    t, g = counts[cells], groups[cells]
    starts = np.flatnonzero(np.r_[True, (t[1:] != t[:-1]) | (g[1:] != g[:-1])])
    run = np.cumsum(np.r_[True, (t[1:] != t[:-1]) | (g[1:] != g[:-1])]) - 1
    length = np.diff(np.r_[starts, len(cells)])
    chunk = np.maximum(2, np.ceil(1 / xi / t[starts] - ROUNDING_TOLERANCE).astype(np.int64))
    chunk += 1 / (chunk * t[starts]) > xi
    place = np.arange(len(cells)) - starts[run]
    whole = length // chunk
    full = place < (whole * chunk)[run]
    first = np.cumsum(np.r_[0, whole[:-1]])
    block[cells[full]] = (first[run] + place // chunk[run])[full]
    return block, int(whole.sum()), cells[~full]


def _place_leftover(
    block: Integers,
    fresh: int,
    leftover: Integers,
    counts: Integers,
    groups: Integers,
    order: Integers,
    xi: float,
) -> int:
    """Find a block for the leftover cells, group by group; changes `block`, returns the number of blocks."""
    lacking = []
    by_group = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[by_group], np.arange(groups.max() + 2))
    leftover = leftover[np.argsort(groups[leftover], kind="stable")]
    for rest in np.split(leftover, np.flatnonzero(np.diff(groups[leftover])) + 1):
        group = groups[rest[0]]
        cells = by_group[bounds[group] : bounds[group + 1]]
        for bundle in _bundle(rest.tolist(), counts, xi):
            if len(bundle) > 1 and 1 / counts[bundle].sum() <= xi:
                block[bundle] = fresh
                fresh += 1
            else:
                host = _host(bundle, cells, block, order)
                if host is None or 1 / counts[cells].sum() > xi:
                    lacking.append(int(group))
                    break
                fresh = _join(bundle, host, block, fresh)
    if lacking:
        total = len(np.unique(groups))
        message = (
            f"{len(lacking):,} of {total:,} groups cannot reach {1 / xi:.4g} records in two or more cells, as the "
            "bound asks: name fewer columns in within, or merge those groups with their neighbours."
        )
        raise _infeasible(message, groups, lacking[0])
    return fresh


def _infeasible(message: str, groups: Integers, group: int) -> InfeasibleError:
    """The error of groups too small for the bound; `cell` is the first cell of one of them."""
    error = InfeasibleError(message)
    error.cell = int(np.flatnonzero(groups == group)[0])
    return error


def _bundle(rest: Sequence[int], counts: Integers, xi: float) -> list[list[int]]:
    """Bundles of leftover cells, largest first, each filled until it reaches 1/xi; the last may fall short."""
    bundles: list[list[int]] = []
    current: list[int] = []
    for cell in sorted(rest, key=lambda c: -int(counts[c])):
        current.append(cell)
        if len(current) > 1 and 1 / counts[current].sum() <= xi:
            bundles.append(current)
            current = []
    return [*bundles, current] if current else bundles


def _host(bundle: Sequence[int], cells: Integers, block: Integers, order: Integers) -> int | None:
    """The cell to join: an untouched large one if there is one (the nearest in order), else one of any block."""
    others = np.setdiff1d(cells, bundle)
    free = others[block[others] < 0]
    pick = free if len(free) else others
    if not len(pick):
        return None
    return int(pick[np.argmin(np.abs(order[pick] - order[bundle[0]]))])


def _join(bundle: Sequence[int], host: int, block: Integers, fresh: int) -> int:
    if block[host] >= 0:
        block[list(bundle)] = block[host]
        return fresh
    block[[*bundle, host]] = fresh
    return fresh + 1


def law_of_blocks(counts: Integers, block: Integers, xi: Floats, weights: Floats | None) -> CellLaw:
    """Shares and strengths of the blocks: the least lambda for the bound of each pair, 1 for larger blocks."""
    blocks = len(xi)
    cells = np.flatnonzero(block >= 0)
    mass = (counts if weights is None else weights).astype(np.float64)
    sums = np.bincount(block[cells], weights=mass[cells], minlength=blocks)
    if weights is not None and (sums == 0).any():  # nobody in the block has weight: nothing weighted to keep
        mass[cells] = np.where(sums[block[cells]] == 0, counts[cells], mass[cells])
        sums = np.bincount(block[cells], weights=mass[cells], minlength=blocks)
    share = np.ones(len(counts))
    share[cells] = mass[cells] / sums[block[cells]]
    strength = np.ones(blocks)
    ordered = cells[np.argsort(block[cells], kind="stable")]
    size = np.bincount(block[cells], minlength=blocks)
    start = np.cumsum(np.r_[0, size[:-1]])
    pairs = np.flatnonzero(size == 2)
    one, two = ordered[start[pairs]], ordered[start[pairs] + 1]
    strength[pairs] = strength_for(xi[pairs], counts[one].astype(float), counts[two].astype(float), share[one])
    return CellLaw("mixing", counts, block, share, strength)
