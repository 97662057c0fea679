"""Small cells put into classes of similar ones: for more keys than all sets of them can be tried."""

import numpy as np
import polars as pl

from equipoise.ground.arrays import Integers
from equipoise.ground.packed_keys import group
from equipoise.masks._local_recoding.clusters import Items, local_classes
from equipoise.masks._local_recoding.merge_cost import Span
from equipoise.masks._local_suppression.released_rows import ReleasedRows, Shares

ROUNDS = 12


def clustered(rows: ReleasedRows, cells: Integers) -> Shares:
    """Blanks of the cells by local classes, as `LocalRecode` makes them where the only step up is a blank.

    Keys that may not be blanked keep cells apart; those that are too few among their like are left out. Cost: that of
    `LocalRecode`, O(keys^2 x records x log records).
    """
    fixed = [key for key in range(rows.keys) if not rows.allowed >> key & 1]
    codes = rows.codes[:, cells]
    apart = (
        group([codes[key] for key in fixed], [rows.sizes[key] for key in fixed])[0] if fixed else np.zeros_like(cells)
    )
    cells = cells[np.bincount(apart, rows.n[cells])[apart] >= rows.k]
    if not len(cells):
        return Shares.joined([])
    items = Items.of(rows.n[cells], rows.k)
    places_on_line = [np.unique(rows.codes[key][cells], return_inverse=True)[1] for key in range(rows.keys)]
    spans = tuple(_span(key, int(line.max()) + 1, rows) for key, line in enumerate(places_on_line))
    labels, (low, high) = local_classes(spans, np.array(places_on_line), items, rows.k, ROUNDS)
    differ = ((low != high).astype(np.int64) << np.arange(rows.keys)[:, None]).sum(axis=0)
    return Shares(cells[items.cell], differ[labels], items.weights)


def _span(key: int, size: int, rows: ReleasedRows) -> Span:
    """A line of values of which any two have only the blank in common."""
    line, text = np.arange(size), pl.Series([], dtype=pl.String)
    if not rows.allowed >> key & 1:
        return Span(str(key), (line,), (text,), (np.zeros(size),), ("",))
    cost = np.full(size, rows.price[key])
    return Span(str(key), (line, np.zeros_like(line)), (text, text), (np.zeros(size), cost), ("", "*"))
