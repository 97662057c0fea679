"""Tables as arrays: additivity relations, the inner cells of each cell, and keys for random draws."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import Cells
from equipoise.data.records import Law
from equipoise.data.tables.additivity import Additive
from equipoise.data.tables.cell_status import APRIORI_STATUS
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError

CHANGE_TOLERANCE = 1e-9
"""Share of its value by which a published number may differ and still count as unchanged."""


def as_table(data: Any, method: str) -> Table:
    """The data as a table with margins; refused where it is none."""
    if not isinstance(data, Table) or not data.axes:
        what = "cells without margins" if isinstance(data, Cells) else type(data).__name__
        raise DataError(f"{method} works on tables with margins, not on {what}: make one with eq.table(records, by).")
    return data


def both(released: Any, original: Any, method: str) -> tuple[Table, Table]:
    """A protected table and its original; refused where their cells differ."""
    new, old = as_table(released, method), as_table(original, method)
    if new.by != old.by or len(new) != len(old) or not labels(new).equals(labels(old)):
        raise DataError(f"{method} compares two versions of one table: these have different cells.")
    return new, old


def whole(data: Any, method: str, heeds: tuple[str, ...] = ()) -> tuple[Table, Floats]:
    """A table and its published values.

    Refused where cells are suppressed, may be negative, or must become what the method does not heed.
    """
    table = as_table(data, method)
    if "gross" in table.more.columns:
        raise DataError(f"{method} is for counts and amounts that are never negative: suppress cells of this table.")
    said = set(table.more[APRIORI_STATUS].drop_nulls()) if APRIORI_STATUS in table.more.columns else set()
    if other := said - set(heeds):
        raise DataError(
            f"Some cells are said to be {min(other)}, which {method} does not heed: suppress cells instead."
        )
    published = table.published_values
    suppressed = int(np.isnan(published).sum())
    if suppressed:
        raise DataError(f"{method} needs every cell, but {suppressed:,} are suppressed: use it before suppression.")
    return table, published


def changed(table: Table, published: Floats, law: Law) -> Table:
    """The table with new published values, each marked as changed or not."""
    same = np.abs(published - table.published_values) <= CHANGE_TOLERANCE * np.maximum(1.0, np.abs(published))
    status = pl.Series("status", np.where(same, "published", "changed"))
    return table.protected(published, status, law)


def labels(table: Table) -> pl.Series:
    """Key of the random draws of each cell: its own labels, so that row order does not matter."""
    parts = [pl.col(c).cast(pl.String).fill_null("\x00") for c in table.by]
    return table.table.select(pl.concat_str(parts, separator="\x1f").alias("cell"))["cell"]


def additive(table: Table) -> Additive:
    """Additivity relations of a table: for each group of an axis and combination of the others, parts and total.

    A part that is no cell of the table is 0. Needed are the relations whose total is a leaf in all axes before: the
    others are sums of these. Cost: O(cells x axes x depth), with a Python loop over the groups of the axes alone.
    """
    import scipy.sparse as sparse

    keys, strides = table.packed
    order = np.argsort(keys, kind="stable")
    parts = [_along(table, axis, keys, order, strides) for axis in range(len(table.axes))]
    totals = np.concatenate([totals for totals, _, _, _ in parts])
    starts = np.cumsum([0, *(len(totals) for totals, _, _, _ in parts)])
    rows = np.concatenate([rows + start for (_, rows, _, _), start in zip(parts, starts, strict=False)])
    columns = np.concatenate([columns for _, _, columns, _ in parts])
    signs = np.concatenate([*(sign for _, _, _, sign in parts), -np.ones(len(totals))])
    places = (np.concatenate([rows, np.arange(len(totals))]), np.concatenate([columns, totals]))
    matrix = sparse.csr_array(sparse.coo_array((signs, places), shape=(len(totals), len(table))))
    return Additive(matrix, totals, _needed(table, [totals for totals, _, _, _ in parts]))


def _along(
    table: Table, place: int, keys: Integers, order: Integers, strides: list[int]
) -> tuple[Integers, Integers, Integers, Floats]:
    """The relations along one axis: the total of each, which cell is a part of which, and with what sign."""
    nodes, sorted_keys = table.nodes[place], keys[order]
    by_node = np.argsort(nodes, kind="stable")
    totals, rows, columns, signs = [], [], [], []
    count = 0
    for parent, children in table.axes[place].relations():
        ends = np.searchsorted(nodes[by_node], [parent, parent + 1])
        heads = by_node[ends[0] : ends[1]]
        targets = (keys[heads][:, None] + (children - parent)[None, :] * strides[place]).ravel()
        spot = np.minimum(np.searchsorted(sorted_keys, targets), len(keys) - 1)
        present = sorted_keys[spot] == targets
        totals.append(heads)
        rows.append((count + np.repeat(np.arange(len(heads)), len(children)))[present])
        columns.append(order[spot[present]])
        signs.append(np.tile(table.axes[place].signs[children], len(heads))[present])
        count += len(heads)
    nothing = np.zeros(0, dtype=np.int64)
    return tuple(np.concatenate([nothing, *parts]) for parts in (totals, rows, columns, signs))  # type: ignore[return-value]


def _needed(table: Table, totals: list[Integers]) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    flags, leaf = [], np.ones(len(table), dtype=np.bool_)
    for axis, nodes, heads in zip(table.axes, table.nodes, totals, strict=True):
        flags.append(leaf[heads])
        leaf = leaf & np.isin(nodes, leaves(axis.chains))
    return np.concatenate(flags)


def leaves(chains: tuple[tuple[Integers, ...], ...]) -> Integers:
    """The nodes of an axis that are single leaves."""
    return np.unique(np.concatenate([chain[0] for chain in chains]))


def holds(table: Table) -> Any:
    """A sparse matrix, cells by inner cells: 1 where the inner cell is part of the cell, so that x = holds @ inner.

    It is -1 where a signed relation takes the inner cell off. The columns are the inner cells in the order of the
    table. Cost: O(inner cells x product of the depths).
    """
    import scipy.sparse as sparse

    keys, strides = table.packed
    inner = np.flatnonzero(table.inner)
    start = {"key": np.zeros(len(inner), dtype=np.int64), "by": np.ones(len(inner))}
    rows = pl.DataFrame({"inner": np.arange(len(inner)), **start})
    for axis, nodes, stride in zip(table.axes, table.nodes, strides, strict=True):
        leaf_of = np.full(len(axis), -1, dtype=np.int64)
        leaf_of[axis.chains[0][0]] = np.arange(axis.leaves)
        above = axis.members.select("leaf", "sign", up=pl.col("node") * stride)
        leaf_rows = pl.DataFrame({"inner": np.arange(len(inner)), "leaf": leaf_of[nodes[inner]]})
        joined = rows.join(leaf_rows, on="inner").join(above, on="leaf")
        rows = joined.select("inner", key=pl.col("key") + pl.col("up"), by=pl.col("by") * pl.col("sign"))
    cells = pl.DataFrame({"cell": np.arange(len(table)), "key": keys})
    pairs = rows.join(cells, on="key")
    places = (pairs["cell"].to_numpy(), pairs["inner"].to_numpy())
    return sparse.csr_array(sparse.coo_array((pairs["by"].to_numpy(), places), shape=(len(table), len(inner))))


def without(table: Table, column: str) -> Table:
    """The table without one column of `more`."""
    return replace(table, more=table.more.drop(column, strict=False))
