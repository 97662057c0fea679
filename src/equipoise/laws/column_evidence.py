"""Evidence of the other released columns on a record's original cell: naive Bayes and boosted trees, cross-fitted.

The evidence s(c, i) = log f(y_i | c) - log f(y_i) says how much better the other columns y_i of record i go with the
keys of cell c than with any. It is learnt from true pairs of keys and other columns, which no intruder has in full, and
never from records of the fold in which it is asked: so it is at least what can be learnt from the release, and nothing
is learnt by heart. Folds are of whole blocks, in large blocks of whole cells; records that cannot move
teach in every one of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.column_parts import with_parts
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import import_extra
from equipoise.ground.packed_keys import code

FOLDS = 4
"""Folds of the records that may move; those that stay are in as many more, whose records teach all others."""
PRIOR_RECORDS = 0.5
"""Records that each pair of categories has beforehand as often as chance would have it."""
BINS = 20
"""Quantile bins of a number with more values than that, tried beside its single values."""
DISTANCES = 24
"""Distances in ranks that are told apart, by powers of two."""
MAX_LEARNERS = 15_000
"""Records that trees learn from at most."""
FALSE_PAIRS = 2
"""Pairs of records with other cells for each true pair that trees learn from."""
MAX_TREE_TABLES = 40
"""Tables of a key and a column that trees see at most, the most telling."""


@dataclass(frozen=True, eq=False, repr=False)
class TruePairs:
    """Keys of cells, other columns of records, and the cell and the fold of each record.

    A pair is asked in the fold of its cell where `cell_folds` are given, else in that of its record.
    """

    keys: pl.DataFrame
    others: pl.DataFrame
    cells: Integers
    folds: Integers
    cell_folds: Integers | None = None

    def asked(self, cells: Integers, rows: Integers) -> Integers:
        """The fold whose records must not teach what is said of each pair."""
        return self.folds[rows] if self.cell_folds is None else self.cell_folds[cells]

    @cached_property
    def parts(self) -> pl.DataFrame:
        """The other columns, and what their dates and codes tell beside themselves."""
        return with_parts(self.others, self.others.columns)

    @cached_property
    def tables(self) -> tuple["_Table", ...]:
        """The table of each key and column that tells anything of records left out, the most telling first."""
        gains = [self._best_table(k, y) for k in self.keys.iter_columns() for y in self.parts.iter_columns()]
        return tuple(table for gain, table in sorted(gains, key=lambda one: -one[0]) if gain > 0)

    def _best_table(self, key: pl.Series, column: pl.Series) -> tuple[float, "_Table"]:
        """The coding of a key and a column that tells most of records left out, and how much."""
        codings = [(k, y) for k in _codings(key) for y in _codings(column)]
        tables = [_Table(k, y, self.cells, self.folds) for k, y in codings]
        if _ordered(key) and _ordered(column):
            tables.append(_Distance(key, column, self.cells, self.folds))
        return max(((self._gain(table), table) for table in tables), key=lambda one: one[0])

    def _gain(self, table: "_Table") -> float:
        """How much likelier a table makes it that records have their own cells and not each other's, in logs."""
        one, two = self._strangers
        folds, cells = self.folds, self.cells
        own = table.scores(cells[one], one, folds[one]) + table.scores(cells[two], two, folds[two])
        difference = own - table.scores(cells[two], one, folds[one]) - table.scores(cells[one], two, folds[two])
        weight = calibrated([difference])[0]
        return float((np.log(2) - np.logaddexp(0.0, -weight * difference)).sum())

    @cached_property
    def _strangers(self) -> tuple[Integers, Integers]:
        """Pairs of records, those that may move first."""
        rows = np.random.default_rng(0).permutation(len(self.cells))
        rows = rows[np.argsort(self.folds[rows] >= FOLDS, kind="stable")][:MAX_LEARNERS]
        return rows[: len(rows) // 2], rows[len(rows) // 2 : len(rows) // 2 * 2]

    def naive_bayes(self, cells: Integers, rows: Integers) -> Floats:
        """Sum over keys and columns of the log of how much more often two categories meet than by chance."""
        folds = self.asked(cells, rows)
        return np.asarray(sum((table.scores(cells, rows, folds) for table in self.tables), np.zeros(len(rows))))

    def trees(self, cells: Integers, rows: Integers) -> Floats:
        """Log odds, by boosted trees, that keys and other columns are of one record and not of two."""
        evidence, folds = np.zeros(len(rows)), self.asked(cells, rows)
        with import_extra("threadpoolctl").threadpool_limits(1):
            for fold, model in enumerate(self._models):
                its = np.flatnonzero(folds == fold)
                if len(its) and model is not None:
                    evidence[its] = model.decision_function(self._features(cells[its], rows[its], folds[its]))
        return evidence

    @cached_property
    def _models(self) -> list[Any]:
        with import_extra("threadpoolctl").threadpool_limits(1):
            return [self._fit(fold) if (self.folds == fold).any() else None for fold in range(FOLDS)]

    def _fit(self, fold: int) -> Any:
        """Trees that tell true pairs from false ones, on records of other folds, movable ones first."""
        rng = np.random.default_rng(fold)
        rows = rng.permutation(np.flatnonzero(self.folds != fold))
        rows = rows[np.argsort(self.folds[rows] >= FOLDS, kind="stable")][:MAX_LEARNERS]
        cells = self.cells[rows]
        if not self.tables or len(np.unique(cells)) < 2:
            return None
        false = [rng.permutation(cells) for _ in range(FALSE_PAIRS)]
        twice = np.tile(rows, 1 + FALSE_PAIRS)
        pairs = self._features(np.concatenate([cells, *false]), twice, self.folds[twice])
        truth = np.repeat([1, 0], [len(rows), FALSE_PAIRS * len(rows)])
        model = import_extra("sklearn.ensemble").HistGradientBoostingClassifier(
            max_iter=100, learning_rate=0.1, max_leaf_nodes=15, early_stopping=False, random_state=0
        )
        return model.fit(pairs, truth)

    def _features(self, cells: Integers, rows: Integers, folds: Integers) -> Floats:
        """What trees see of a pair: how often its categories meet, key by column, and the values themselves.

        Without the first they would not begin: no key and no column alone tells a true pair from a false one.
        """
        tables = [table.scores(cells, rows, folds) for table in self.tables[:MAX_TREE_TABLES]]
        keys, others = self._values
        return np.column_stack([sum(tables), *tables, keys[cells], others[rows]])

    @cached_property
    def _values(self) -> tuple[Floats, Floats]:
        return _values(self.keys), _values(self.parts)


class _Table:
    """How often categories of a key and of a column meet, in all and in each fold."""

    def __init__(self, key: Integers, column: Integers, cells: Integers, folds: Integers) -> None:
        self.key, self.column = key, column
        self.width = int(column.max(initial=0)) + 1
        pairs = key[cells] * self.width + column
        self.codes, places = np.unique(pairs, return_inverse=True)
        self.meetings = _by_fold(places, folds, len(self.codes))
        self.of_key = _by_fold(key[cells], folds, int(key.max(initial=0)) + 1)
        self.of_column = _by_fold(column, folds, self.width)
        self.records = _by_fold(np.zeros(len(cells), dtype=np.int64), folds, 1)[0]

    def scores(self, cells: Integers, rows: Integers, folds: Integers) -> Floats:
        """log (n + 1/2) / (e + 1/2): n records of other folds have both categories, e would by chance."""
        key, column = self.key[cells], self.column[rows]
        wanted = key * self.width + column
        places = np.minimum(np.searchsorted(self.codes, wanted), len(self.codes) - 1)
        meetings = np.where(self.codes[places] == wanted, self.meetings[places, folds], 0.0)
        chance = self.of_key[key, folds] * self.of_column[column, folds] / np.maximum(self.records[folds], 1)
        return np.asarray(np.log((meetings + PRIOR_RECORDS) / (chance + PRIOR_RECORDS)))


class _Distance(_Table):
    """How often a key and a column lie so far apart in ranks, of one record and of two: whether one follows the other.

    The distance is coded by its power of two; a column that falls as the key rises is turned round.
    """

    def __init__(self, key: pl.Series, column: pl.Series, cells: Integers, folds: Integers) -> None:
        ranks, self.column = _ranks(key.gather(pl.Series(cells))), _ranks(column)
        if float(np.corrcoef(ranks, self.column)[0, 1]) < 0:
            self.column = 1 - self.column
        self.key = np.zeros(len(key))
        self.key[cells] = ranks
        strangers = np.random.default_rng(len(cells)).permutation(np.repeat(np.arange(len(cells)), FALSE_PAIRS))
        rows = np.repeat(np.arange(len(cells)), FALSE_PAIRS)
        self.apart = _by_fold(self._codes(cells[strangers], rows), folds[rows], DISTANCES) / FALSE_PAIRS
        self.meetings = _by_fold(self._codes(cells, np.arange(len(cells))), folds, DISTANCES)

    def _codes(self, cells: Integers, rows: Integers) -> Integers:
        away = np.abs(self.key[cells] - self.column[rows])
        return np.clip(DISTANCES + np.ceil(np.log2(np.maximum(away, 1e-9))), 0, DISTANCES - 1).astype(np.int64)

    def scores(self, cells: Integers, rows: Integers, folds: Integers) -> Floats:
        codes = self._codes(cells, rows)
        meetings, apart = self.meetings[codes, folds], self.apart[codes, folds]
        return np.asarray(np.log((meetings + PRIOR_RECORDS) / (apart + PRIOR_RECORDS)))


def _ranks(column: pl.Series) -> Floats:
    """Ranks as shares, the middle one for what is missing."""
    ranks = column.to_physical().rank("average") / len(column)
    return np.asarray(ranks.fill_null(0.5).fill_nan(0.5).to_numpy(), dtype=np.float64)


def _by_fold(codes: Integers, folds: Integers, size: int) -> Floats:
    """Records of each code outside each fold."""
    counts = np.bincount(codes * 2 * FOLDS + folds, minlength=size * 2 * FOLDS).reshape(size, 2 * FOLDS)
    return np.asarray(counts.sum(axis=1, keepdims=True) - counts, dtype=np.float64)


def _ordered(column: pl.Series) -> bool:
    return column.dtype.is_numeric() or column.dtype.is_temporal()


def _codings(column: pl.Series) -> list[Integers]:
    """Single values, and quantile bins of a number that has many."""
    coded = code(column)
    codes = coded.codes.astype(np.int64)
    if not _ordered(column) or coded.size <= BINS:
        return [codes]
    cuts = np.unique(np.quantile(codes, np.linspace(0, 1, BINS + 1)[1:-1]))
    return [codes, np.searchsorted(cuts, codes, side="right")]


def _values(table: pl.DataFrame) -> Floats:
    """Numbers as they are, categories by their rank in frequency."""
    return np.column_stack([_value(column) for column in table.iter_columns()])


def _value(column: pl.Series) -> Floats:
    if _ordered(column):
        numbers = column.to_physical().cast(pl.Float64).to_numpy()
        return np.where(np.isfinite(numbers), numbers, np.nan)
    coded = code(column)
    ranks = np.argsort(np.argsort(-np.bincount(coded.codes, minlength=coded.size), kind="stable"))
    return ranks[coded.codes].astype(np.float64)


def calibrated(differences: Sequence[Floats]) -> Floats:
    """Weights of several kinds of evidence, from pairs of records of one block and different cells.

    A difference is s(c, i) + s(d, j) - s(d, i) - s(c, j) for records i of cell c and j of cell d: the weights are those
    of the likeliest logistic law that it was so and not the other way round, none below 0, drawn to 1 together by a
    prior worth a few pairs. They undo the certainty that naive Bayes gains by counting related columns twice.
    """
    x = np.column_stack(differences)
    start = np.full(x.shape[1], 1 / x.shape[1])
    weights = start.copy()
    for _ in range(50):
        shares = 1 / (1 + np.exp(np.clip(x @ weights, -500, 500)))
        gradient = x.T @ shares - (weights - start)
        curvature = (x * (shares * (1 - shares))[:, None]).T @ x + np.eye(len(start))
        step = np.linalg.solve(curvature, gradient)
        weights = np.maximum(weights + step * min(1.0, 1 / max(1e-12, float(np.abs(step).max()))), 0.0)
        if np.abs(step).max() < 1e-9:
            break
    return weights
