"""Percentiles of the cells of a table that are nobody's own value, and which of them too few people stand behind."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.records import Records
from equipoise.data.tables.record_sets import CountedRecords, cells_of_rows
from equipoise.data.tables.statistic import Percentile
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import holds
from equipoise.ground.arrays import Booleans, Floats
from equipoise.ground.errors import DataError
from equipoise.ground.packed_keys import code

MAX_WINDOW = 4
"""The values about a percentile are widened up to so many times `central` where their mean is somebody's own value."""
SAME_SHARE = 1e-9
"""Share of a value within which a mean counts as equal to it."""


@dataclass(frozen=True, eq=False, repr=False)
class PercentileCells:
    """The percentile of each cell, not a number where it cannot be made; cells with too `few` people; and those that
    are to be suppressed because another published cell has all but a few of the same people (`close`)."""

    values: Floats
    few: Booleans
    close: Booleans


def percentiles(table: Table, statistic: Percentile) -> PercentileCells:
    """The percentile of each cell, as the mean of values about it, and the cells that may not be published.

    With c = q n - 1/2 the rank of the percentile from 0 (Hazen 1914; type 5 of Hyndman and Fan 1996; with weights the
    middles of cumulated weights), the number is the mean of the values whose ranks lie within `central` / 2 of c, as
    sdcLog does for extremes. Where that is the value of fewer people than `central` the window is widened. Too few:
    under `contributors` in the cell, or under `sides` at or below, or at or above, the percentile. Close: of two cells
    that differ by fewer than `contributors` people the smaller one.

    Misleads when three and more cells are combined: that is not looked at. Cost: O(records x cells of each), sorted,
    and the overlaps of all pairs of cells.
    """
    x, w, starts, inner = _by_inner_cell(table)
    matrix = holds(table)
    answers = np.full(len(table), np.nan)
    few = table.n > 0
    for cell in np.flatnonzero(table.n >= statistic.contributors).tolist():
        parts = matrix.indices[matrix.indptr[cell] : matrix.indptr[cell + 1]]
        rows = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in parts])
        number = _nobodys_own(x[rows], w[rows], statistic)
        if number is not None:
            answers[cell], few[cell] = number, False
    return PercentileCells(answers, few, _nearly_the_same(table, matrix, inner, few, statistic.contributors))


def _by_inner_cell(table: Table) -> tuple[Floats, Floats, "np.ndarray[tuple[int], np.dtype[np.int64]]", Floats]:
    """Values and weights in the order of inner cells, where those of each begin, and how many each has."""
    source = table.behind
    if not isinstance(source, CountedRecords) or source.value is None:
        raise DataError("Percentiles are taken of records: a ready table does not have them.")
    records: Records = source.records
    frame = records.collect(*dict.fromkeys((*table.by, *source.columns)))
    places = cells_of_rows(table, [code(frame[column]) for column in table.by])
    if places is None:
        raise DataError("The records are not those that the table was counted from any more.")
    number = np.full(len(table), -1, dtype=np.int64)
    number[table.inner] = np.arange(int(table.inner.sum()))
    order = np.argsort(number[places], kind="stable")
    x = frame[source.value].cast(pl.Float64).to_numpy()[order]
    w = frame[source.weight].cast(pl.Float64).to_numpy()[order] if source.weight else np.ones(len(x))
    sizes = np.bincount(number[places], minlength=int(table.inner.sum()))
    return x, w, np.concatenate([[0], np.cumsum(sizes)]), sizes.astype(np.float64)


def _nobodys_own(x: Floats, w: Floats, statistic: Percentile) -> float | None:
    """The mean of the values about a percentile; None where too few stand behind it, or it stays somebody's own.

    >>> _nobodys_own(np.arange(12.0) ** 2, np.ones(12), Percentile())
    33.166666666666664
    >>> _nobodys_own(np.arange(12.0) ** 2, np.ones(12), Percentile(100)) is None
    True
    """
    order = np.argsort(x, kind="stable")
    x, w = x[order], w[order]
    middles = (np.cumsum(w) - w / 2) / w.sum() if w.sum() > 0 else np.full(len(x), 0.5)
    rank = float(np.interp(statistic.percent / 100, middles, np.arange(len(x))))
    below, above = x[int(np.floor(rank))], x[int(np.ceil(rank))]
    if min((x <= below).sum(), (x >= above).sum()) < statistic.sides:
        return None
    for size in range(statistic.central, min(len(x), MAX_WINDOW * statistic.central) + 1):
        inside = x[np.abs(np.arange(len(x)) - rank) <= size / 2 + 1e-9]
        number = float(inside.mean())
        own = int((np.abs(x - number) <= SAME_SHARE * max(abs(number), 1e-300)).sum())
        if own == 0 or own >= statistic.central:
            return number
    return None


def _nearly_the_same(table: Table, matrix: object, inner: Floats, few: Booleans, least: int) -> Booleans:
    """Published cells that differ from a larger published one by fewer than so many people, though by somebody."""
    import scipy.sparse as sparse

    rows = abs(sparse.csr_array(matrix))
    common = sparse.coo_array(rows @ sparse.diags_array(inner) @ rows.T)
    n = table.n.astype(np.float64)
    one, two = common.row, common.col
    apart = n[one] + n[two] - 2 * common.data
    smaller = (n[one] < n[two]) | ((n[one] == n[two]) & (one > two))
    pairs = (apart > 0) & (apart < least) & smaller & ~few[one] & ~few[two]
    close = np.zeros(len(table), dtype=np.bool_)
    close[one[pairs]] = True
    return close
