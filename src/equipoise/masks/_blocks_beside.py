"""Blocks of post-randomization whose records are alike in other columns, so that these tell nobody apart.

Why the bound holds with other columns
--------------------------------------
Let f(y | c) be what other columns y say of the original cell c, and R the largest f(y_i | c) f(y_j | d) / (f(y_i | d)
f(y_j | c)) over records i, j and cells c, d of a block. An assignment of records to cells in which i has c and j has d
is at most R times as likely, by its other columns, as the one in which they change places. So the odds of two records
to be a given person's are at most R times those by the keys, and a bound xi holds where the keys alone have

    xi' = 1 / (1 + R (1 / xi - 1)).

Blocks of two unique records are redrawn with the least probability for xi'. All others are mixed fully: there the keys
say nothing, and the posterior by the other columns is measured as it is (`laws.block_posterior`).

Cells are halved again and again where their records differ most in what the columns say, until a half would break the
bound: an order that does not depend on which record of a block has which of its cells of equal count.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.moving_units import Units, cell_of
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.laws.block_posterior import assigned
from equipoise.laws.column_evidence import FOLDS, TruePairs, calibrated

MAX_BLOCK_CELLS = 128
"""Cells of a block at most."""
MIN_FOLD_CELLS = 8
"""Cells of a group in each fold at least; smaller groups are in one fold, unless they are half of the file."""
MARGIN = 1.5
"""Evidence is taken for so much stronger than it was measured: another measure of it may find a little more."""
AUDIT_MARGIN = 1.1
"""The same in the audit of blocks, which must be found again by another audit."""
MAX_AUDITS = 6
"""Times that blocks are cut and audited before the bound is given up."""
REFERENCE_CELLS = 24
"""Cells with which records are compared to see which are alike."""
Evidence = Callable[[Integers, Integers], Floats]


@dataclass(frozen=True, eq=False, repr=False)
class Blocks:
    """The block of each cell (-1: it stays), the bound that each must keep by its keys alone, and the worst block.

    `worst` is the largest posterior among blocks that could not keep the bound; 0 where all do.
    """

    block: Integers
    bounds: Floats
    worst: float


class AlikeRecords:
    """The records of a file, and what their other columns say of their cells."""

    def __init__(self, units: Units, table: pl.DataFrame, beside: tuple[str, ...], xi: float) -> None:
        self.counts, self.groups = units.counts, units.groups
        self.cells = cell_of(table, units.cells)
        self.rows = np.argsort(self.cells, kind="stable")
        self.starts = np.searchsorted(self.cells[self.rows], np.arange(len(units) + 1))
        self.keys, self.others = units.cells.keys.select(units.keys), table.select(beside)
        small = 1 / self.counts > xi
        self.folds = _folds(self.groups, _joined(self.counts, self.groups, small, xi))
        self.evidence = [self._evidence(self.folds, self.groups)]

    def _evidence(self, folds: Integers, groups: Integers) -> tuple[tuple[Evidence, ...], Floats]:
        """Naive Bayes and boosted trees, and their weights in each alone and in both together."""
        cells = self.cells
        pairs = TruePairs(self.keys, self.others, cells, folds[cells], folds)
        rows = np.random.default_rng(len(cells)).permutation(np.flatnonzero(pairs.folds < FOLDS))
        rows = rows[np.lexsort((pairs.folds[rows], groups[cells[rows]]))]
        one, two = rows[:-1], rows[1:]
        alike = (pairs.folds[one] == pairs.folds[two]) & (groups[cells[one]] == groups[cells[two]])
        mates = alike & (cells[one] != cells[two])
        one, two = one[mates], two[mates]
        kinds: tuple[Evidence, ...] = (pairs.naive_bayes, pairs.trees)
        differences = [_difference(kind, cells, one, two) for kind in kinds]
        alone = [calibrated([difference])[0] for difference in differences]
        return kinds, np.stack([*np.diag(alone), calibrated(differences)])

    def blocks(self, xi: float) -> Blocks:
        """Blocks that keep the bound in an audit of their own; where some cannot, the worst of them says what they can.

        The audit learns the evidence again, from records outside the folds of the blocks themselves. Where it finds
        more than xi, pairs are moved more; if that is not enough, its evidence is added to that which blocks must
        stand, and they are cut again.
        """
        for _ in range(MAX_AUDITS):
            blocks = self._cut(xi)
            if blocks.worst or not len(blocks.bounds):
                return blocks
            moving = blocks.block >= 0
            folds = np.where(moving, blocks.block % FOLDS, FOLDS + np.arange(len(moving)) % FOLDS)
            fresh = self._evidence(folds, blocks.block)
            blocks = self._audited(blocks, fresh, xi)
            if not blocks.worst:
                break
            self.evidence.append(fresh)
        return blocks

    def _audited(self, blocks: Blocks, evidence: tuple[tuple[Evidence, ...], Floats], xi: float) -> Blocks:
        """The blocks, pairs moved more where this evidence asks for it, and the worst that is not held even so."""
        members = [np.flatnonzero(blocks.block == b) for b in range(len(blocks.bounds))]
        rows = [self.rows_of(cells) for cells in members]
        pairs = [np.broadcast_arrays(cells[None, :], row[:, None]) for cells, row in zip(members, rows, strict=True)]
        cell, row = (np.concatenate([pair[side].ravel() for pair in pairs]) for side in (0, 1))
        kinds, weights = evidence
        scores = AUDIT_MARGIN * weights @ np.stack([kind(cell, row) for kind in kinds])
        ends = np.cumsum([pair[0].size for pair in pairs])
        posteriors, bounds = np.zeros((2, len(members)))
        for at, part in enumerate(np.split(scores, ends[:-1], axis=1)):
            counts = self.counts[members[at]]
            logs = part.reshape(len(part), len(rows[at]), len(counts))
            posteriors[at], bounds[at] = _posterior_and_bound(logs, counts, xi)
        worst = float(posteriors.max())
        return Blocks(blocks.block, np.minimum(blocks.bounds, bounds), worst if worst > xi else 0.0)

    def _cut(self, xi: float) -> Blocks:
        """Blocks that keep the bound by all evidence so far."""
        movable = _joined(self.counts, self.groups, 1 / self.counts > xi, xi) & (self.folds < FOLDS)
        block, worst = np.full(len(self.counts), -1, dtype=np.int64), 0.0
        bounds: list[float] = []
        for pool in self._pools(movable):
            for part in self._neighbours(pool):
                nodes, failure = _BlockPart(self, part, xi).solved()
                worst = max(worst, failure)
                for cells, bound in nodes:
                    block[cells] = len(bounds)
                    bounds.append(bound)
        return Blocks(block, np.array(bounds), worst)

    def least(self, worst: float) -> float:
        """The smallest xi, in hundredths, that blocks can hold; `worst` is their posterior where they could not."""
        xi = np.ceil(100 * worst) / 100
        while xi < 1 and (failure := self.blocks(xi).worst):
            xi = max(xi + 0.01, np.ceil(100 * failure) / 100)
        return min(1.0, round(float(xi), 2))

    def _pools(self, movable: Booleans) -> Iterator[Integers]:
        """Cells of one group and fold."""
        cells = np.flatnonzero(movable)
        cells = cells[np.lexsort((self.folds[cells], self.groups[cells]))]
        keys = np.stack([self.groups[cells], self.folds[cells]])
        yield from np.split(cells, np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1) if len(cells) else ()

    def _neighbours(self, pool: Integers) -> Iterator[Integers]:
        """Parts of at most `MAX_BLOCK_CELLS` cells whose records are alike."""
        if len(pool) <= MAX_BLOCK_CELLS:
            yield pool
            return
        for half in _halves(pool, self.profiles(pool)):
            yield from self._neighbours(half)

    def profiles(self, cells: Integers) -> Floats:
        """What the columns of each cell's records say of some cells, on average."""
        references = cells[np.linspace(0, len(cells) - 1, min(len(cells), REFERENCE_CELLS)).astype(np.int64)]
        scores = self.scores(references, cells).mean(axis=0)
        owner = np.repeat(np.arange(len(cells)), self.counts[cells])
        sums = np.stack([np.bincount(owner, column, minlength=len(cells)) for column in scores.T], axis=1)
        return np.asarray(sums / self.counts[cells][:, None])

    def rows_of(self, cells: Integers) -> Integers:
        return np.concatenate([self.rows[self.starts[c] : self.starts[c + 1]] for c in cells])

    def scores(self, cells: Integers, owners: Integers) -> Floats:
        """Evidence of the records of some cells on others: intruders x records x cells."""
        rows = self.rows_of(owners)
        cell, row = (axis.ravel() for axis in np.broadcast_arrays(cells[None, :], rows[:, None]))
        scores = [weights @ np.stack([kind(cell, row) for kind in kinds]) for kinds, weights in self.evidence]
        return MARGIN * np.concatenate(scores).reshape(-1, len(rows), len(cells))


class _BlockPart:
    """Some cells whose records are alike, to be cut into blocks."""

    def __init__(self, file: AlikeRecords, cells: Integers, xi: float) -> None:
        self.cells, self.xi, self.counts = cells, xi, file.counts[cells]
        self.scores, self.profiles = file.scores(cells, cells), file.profiles(cells)
        self.owner = np.repeat(np.arange(len(cells)), self.counts)

    def solved(self) -> tuple[list[tuple[Integers, float]], float]:
        """Blocks with their bounds, and 0; or the least posterior that was reached where none holds."""
        blocks, least = self._cut(np.arange(len(self.cells)))
        return ([], least) if blocks is None else ([(self.cells[places], bound) for places, bound in blocks], 0.0)

    def _cut(self, places: Integers) -> tuple[list[tuple[Integers, float]] | None, float]:
        """The halves where both hold, else the whole where it does, else nothing and the least that one of them has."""
        least = 1.0
        if len(places) >= 4:
            halves = [self._cut(half) for half in _halves(places, self.profiles[places])]
            if all(blocks is not None for blocks, _ in halves):
                return [block for blocks, _ in halves for block in blocks or ()], 0.0
            least = max(failure for _, failure in halves)
        posterior, bound = self._posterior(places)
        return ([(places, bound)], 0.0) if posterior <= self.xi else (None, min(least, posterior))

    def _posterior(self, places: Integers) -> tuple[float, float]:
        """The largest posterior of a block that is fully mixed, and the bound that its keys must keep."""
        rows = np.flatnonzero(np.isin(self.owner, places))
        scores, counts = self.scores[:, rows][:, :, places], self.counts[places]
        return _posterior_and_bound(scores, counts, self.xi)


def _posterior_and_bound(scores: Floats, counts: Integers, xi: float) -> tuple[float, float]:
    """The largest posterior of a block that is fully mixed, and the bound that its keys must keep."""
    if len(counts) == 2 == counts.sum():
        lead = scores[:, :, 0] - scores[:, :, 1]
        ratio = float(np.exp(min(700.0, float(np.ptp(lead, axis=1).max()))))
        return ratio / (ratio + 1), 1 / (1 + ratio * (1 / xi - 1))
    weights = np.exp(np.maximum(scores - scores.max(axis=2, keepdims=True), -60.0))
    return float((assigned(weights, counts) / counts).max()), 1 / float(counts.sum())


def _halves(cells: Integers, profiles: Floats) -> tuple[Integers, Integers]:
    """Two halves along the direction in which profiles differ most, cut at the widest gap near the middle."""
    centred = profiles - profiles.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    places = (centred @ directions[0]).round(9)
    order = np.argsort(places, kind="stable")
    low, high = max(2, len(cells) // 4), len(cells) - max(2, len(cells) // 4)
    gaps = np.diff(places[order])[low - 1 : high]
    middle = -np.abs(np.arange(low, high + 1) - len(cells) / 2)
    cut = low + int(np.lexsort((middle, gaps))[-1])
    return cells[order[:cut]], cells[order[cut:]]


def _joined(counts: Integers, groups: Integers, small: Booleans, xi: float) -> Booleans:
    """The small cells, and in groups with too few records in them the next larger ones."""
    movable = small.copy()
    need = 8 / xi
    for group in np.unique(groups[small]):
        cells = np.flatnonzero(groups == group)
        cells = cells[np.argsort(counts[cells], kind="stable")]
        enough = int(np.searchsorted(np.cumsum(counts[cells]), need)) + 1
        movable[cells[: max(2, enough)]] = True
    return movable


def _folds(groups: Integers, movable: Booleans) -> Integers:
    """Folds of cells, drawn in large groups; cells that stay teach in all of them."""
    folds = FOLDS + np.arange(len(groups)) % FOLDS
    sizes = np.bincount(groups[movable], minlength=int(groups.max()) + 1)
    drawn = np.random.default_rng(len(groups)).permutation(len(groups)) % FOLDS
    many = (sizes >= np.minimum(FOLDS * MIN_FOLD_CELLS, max(1, int(movable.sum()) // 2)))[groups]
    return np.where(movable, np.where(many, drawn, groups % FOLDS), folds)


def _difference(kind: Evidence, cells: Integers, one: Integers, two: Integers) -> Floats:
    """How much better two records go with their own cells than with each other's."""
    return kind(cells[one], one) + kind(cells[two], two) - kind(cells[two], one) - kind(cells[one], two)
