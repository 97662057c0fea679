"""Count records, or take the cells of a ready table, into a Table with all its margins."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.hierarchy import Hierarchy
from equipoise.data.records import Records
from equipoise.data.roles import names
from equipoise.data.tables.a_priori import with_a_priori
from equipoise.data.tables.axes import Axis, completed, declared_order
from equipoise.data.tables.contributions import (
    REQUESTS,
    ContributionColumns,
    contributions,
    largest_contributions,
)
from equipoise.data.tables.keyed_cells import KEY_UNITS, KeyedColumns, with_keyed
from equipoise.data.tables.ready_table import Ready, ready_cells
from equipoise.data.tables.record_sets import CountedRecords
from equipoise.data.tables.signed_relations import (
    HOLDER_IS_RECORD,
    ITEM,
    SignedRelations,
    counted_once,
    mixed_cells,
    with_signs,
)
from equipoise.data.tables.structural_zeros import with_structural
from equipoise.data.tables.table import Table, labelled_cells
from equipoise.ground.errors import DataError, ParameterError, shown
from equipoise.ground.packed_keys import MAX_PACKED_ID, code

DEFAULT_TOP = 3
"""Number of largest contributions that a table keeps by default."""
MAX_TOP = 2000
"""Most that it can be asked to keep: each is a column."""


def table(
    records: Records,
    by: str | Sequence[str] = (),
    value: str | None = None,
    *,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    holding: str | None = None,
    weight: str | None = None,
    request: str | None = None,
    key: str | None = None,
    top: int = DEFAULT_TOP,
    ready: bool | Ready = False,
    structural: str | Sequence[str] = (),
    counts: str | Sequence[str] = (),
    publish: str | Sequence[str] = (),
    suppress: str | Sequence[str] = (),
    apriori: str | Path | None = None,
    relation: str | Sequence[str] = (),
) -> Table:
    """Count, add up and rank records into a table with all its margins.

    Each cell has `n` records, `total` (their weight), `value` (the weighted sum of that column; of counts it is
    `total`), `contributors` (records, or different holdings) and the `top` largest contributions. With a `holding` all
    records of one holding in a cell are one contribution, and `holder` is the number of the only one, -1 where there
    are several. With a weight w a contribution x counts as w contributions of x each, as in tau-ARGUS: top1 + ... +
    topk = sum of x times the share of its w that falls within the first k. With a `request` column `requested` is the
    largest contribution by a record (or holding) in which that column is not 0 or false, and `requested2` that by those
    with 2, who are then left out of `requested`. With a `key` column of record keys in [0,
    1), the `key` of a cell is the fractional part of their sum. `counts` names columns of 0 and 1: how many records
    of each cell have a 1 stands in `n_NAME`, their weight in `total_NAME`.

    Every value of a column, every group of its hierarchy and the total are rows of the table, crossed with those of the
    other columns; combinations without records too, up to a million cells, beyond that only the occupied. Cost: one
    pass over the records, then for each axis one join with its nodes and one grouping.

    `structural` names cells that nobody can be in, which everybody knows ("sex=m & pregnant=yes", or a column of
    marks): the column `structural` marks them. `publish` and `suppress` name cells in the same way that must be, and
    `apriori` is a file of tau-ARGUS that says so, with costs and protection levels (`data.tables.a_priori`).

    Values may be negative: `top1`, ... are then the largest without their signs, `gross` what all add up to without
    them, which rules compare with, and `signed` marks cells that may be below 0.

    `relation` says how items make up another: "balance = credit - debit". The items are columns of the records, each
    added up, and the table has a further column `item`; or they are labels of one of the columns `by` (then name the
    `holding`, whose items are one contribution).

    With `ready` the records are the cells of an existing table, one in each row; `tables.Ready` gives the roles of its
    columns. Its codes are values and groups of the hierarchies; margins in the file must add up, others are added up.
    For a file with tau-ARGUS metadata `by` and `value` are optional.

    >>> frame = pl.DataFrame({"region": ["a", "a", "b"], "turnover": [5, 7, 1]})
    >>> cells = table(eq.Records.of(frame, eq.Roles(numeric="turnover")), "region", "turnover")
    >>> cells.table.select("region", "n", "value", "top1", "top2").rows()
    [('Total', 3, 13.0, 7.0, 5.0), ('a', 2, 12.0, 7.0, 5.0), ('b', 1, 1.0, 1.0, 0.0)]
    """
    columns, tree = names(by, "by"), SignedRelations.of(relation)
    if ready:
        _refuse_with_ready(
            holding=holding, weight=weight or records.roles.weight, request=request, key=key, counts=counts
        )
        cells = _from_ready(records, columns, value, hierarchies or {}, Ready() if ready is True else ready, tree)
        cells = _described(cells, records, hierarchies or {})
        return with_a_priori(with_structural(cells, structural), publish, suppress, apriori)
    if records.source and records.source.format == "tab":
        raise ParameterError("The rows of this file are the cells of a table, not records: say that it is ready.")
    if not columns:
        raise ParameterError("by names no column: a table needs at least one.")
    if not 1 <= top <= MAX_TOP:
        raise ParameterError(f"top must be at least 1 and at most {MAX_TOP:,}, got {shown(top)}.")
    weight = weight or records.roles.weight
    needed = ContributionColumns(columns, value, holding, weight, request, key)
    if tree is not None:
        needed = needed.related(tree, records)
    needed.refuse(records)
    trees = {**records.roles.hierarchies, **(hierarchies or {})}
    pieces, negative = contributions(records, needed, top)
    axes = tuple(_axis(pieces, c, trees.get(c), needed) for c in needed.by)
    counted = _described(_built(axes, _coded(pieces, axes, needed), needed, top), records, hierarchies or {})
    if tree is None:
        keyed = KeyedColumns(value, weight, holding, key, names(counts, "counts"))
        counted = with_keyed(replace(counted, behind=CountedRecords(records, value, weight, holding)), records, keyed)
    elif counts or key:
        raise ParameterError("Cell keys change counts and amounts, not items of a relation.")
    return with_a_priori(with_structural(with_signs(counted, negative), structural), publish, suppress, apriori)


def _described(cells: Table, records: Records, hierarchies: Mapping[str, Hierarchy]) -> Table:
    """The table with the labels of its columns, and the order in which their categories were declared."""
    trees, schema = {**records.roles.hierarchies, **hierarchies}, records.schema()
    enums = {axis.name: getattr(schema.get(axis.name), "categories", ()) for axis in cells.axes}
    axes = tuple(replace(a, declared=declared_order(trees.get(a.name), tuple(enums[a.name]))) for a in cells.axes)
    labels = records.labels.only((*cells.by, *((cells.measured,) if cells.measured else ())))
    return replace(cells, axes=axes, labels=replace(labels, gaps=None))


def _refuse_with_ready(**columns: str | Sequence[str] | None) -> None:
    for name, column in columns.items():
        if column:
            raise ParameterError(f"{name} is about records: the rows of a ready table are cells already.")


def _from_ready(
    records: Records, by: tuple[str, ...], value: str | None, hierarchies: Mapping[str, Hierarchy], ready: Ready,
    tree: SignedRelations | None = None,
) -> Table:  # fmt: skip
    """The table of a ready file, whose rows are cells."""
    if not by:
        by, numeric = records.roles.keys, records.roles.numeric
        value = numeric[0] if value is None and len(numeric) == 1 else value
    if not by:
        raise ParameterError("by names no column: a table needs at least one.")
    axes, cells = ready_cells(records, by, value, {**records.roles.hierarchies, **hierarchies}, ready, tree)
    ready_table = replace(labelled_cells(cells, by), axes=axes, measured=value)
    if "gross" not in cells.columns:
        return ready_table
    return with_signs(ready_table, bool((ready_table.numbers("value")[~mixed_cells(ready_table)] < 0).any()))


def _axis(pieces: list[pl.DataFrame], column: str, hierarchy: Hierarchy | None, needed: ContributionColumns) -> Axis:
    """The axis of a column: its values with their groups, or the items of the relation."""
    values, tree = _values(pieces, column), needed.tree
    if tree is None or not ((needed.items and column == ITEM) or set(values.to_list()) & set(tree.leaves)):
        return Axis.of(values, hierarchy)
    if not set(values.to_list()) <= set(tree.leaves):
        raise DataError(f"Column {column!r} has labels beside the items that the relation adds up.")
    return tree.axis(column)


def _values(pieces: list[pl.DataFrame], column: str) -> pl.Series:
    return code(pl.concat([piece[column].unique() for piece in pieces])).values.alias(column)


def _coded(pieces: list[pl.DataFrame], axes: tuple[Axis, ...], needed: ContributionColumns) -> pl.DataFrame:
    """All contributions, their leaves numbered."""
    rows = pl.concat(pieces)
    if needed.held:
        rows = rows.with_columns(pl.Series("__eq_holder", code(rows["__eq_holder"]).codes.astype(np.int64)))
    return rows.with_columns(_leaf_numbers(rows[a.name], a, needed) for a in axes)


def _leaf_numbers(values: pl.Series, axis: Axis, needed: ContributionColumns) -> pl.Series:
    """The leaf of each row: by the order of the values, or of the items of a relation."""
    if not axis.sign or needed.tree is None:
        return pl.Series(axis.name, code(values).codes.astype(np.int64))
    numbers = {item: place for place, item in enumerate(needed.tree.leaves)}
    return values.replace_strict(numbers, return_dtype=pl.Int64).alias(axis.name)


def _built(axes: tuple[Axis, ...], rows: pl.DataFrame, needed: ContributionColumns, top: int) -> Table:
    """Roll up axis by axis: each row counts in every node above its leaf."""
    keys = [axis.name for axis in axes]
    if prod(len(axis) for axis in axes) > MAX_PACKED_ID:
        raise ParameterError("The table would have more places than can be numbered: use fewer or coarser columns.")
    added = (pl.col("__eq_n", "__eq_w", "__eq_wx", "__eq_g", "__eq_k").sum(), REQUESTS.max())
    sums = rows.select(*keys, "__eq_n", "__eq_w", "__eq_wx", "__eq_g", "__eq_k", REQUESTS, *_holder(needed))
    parts = rows.filter(pl.col("__eq_v") > 0).select(*keys, "__eq_x", "__eq_v", *_holder(needed))
    for axis in axes:
        sums = axis.lifted(sums).group_by([*keys, *_holder(needed)], maintain_order=True).agg(*added)
        parts = axis.lifted(parts)
        if needed.held:
            parts = parts.group_by([*keys, "__eq_holder"], maintain_order=True).agg(
                pl.col("__eq_x").sum(), pl.lit(1.0).alias("__eq_v")
            )
        else:
            parts = largest_contributions(parts, keys, top)
    if needed.held:
        size, parts = pl.col("__eq_wx").abs(), parts.with_columns(pl.col("__eq_x").abs())
        requests = (pl.when(pl.col(name) > 0).then(size).otherwise(0.0).alias(name) for name in ("__eq_r", "__eq_r2"))
        sums = sums.with_columns(*requests, size.alias("__eq_g"))
    contributors = pl.len() if needed.held else pl.col("__eq_n").sum()
    alone = [pl.when(pl.len() == 1).then(pl.col("__eq_holder").min()).otherwise(-1)] if needed.held else []
    cells = sums.group_by(keys, maintain_order=True).agg(
        *added, *alone, contributors.cast(pl.Int64).alias("contributors")
    )
    if needed.items:
        cells = counted_once(cells, next(axis for axis in axes if axis.name == ITEM))
    ranked = (
        cells.join(_tops(largest_contributions(parts, keys, top), keys, top), on=keys, how="left")
        if parts.height
        else cells
    )
    return _labelled_table(axes, ranked, needed, top)


def _holder(needed: ContributionColumns) -> list[str]:
    return ["__eq_holder"] if needed.held else []


def _tops(largest: pl.DataFrame, keys: list[str], top: int) -> pl.DataFrame:
    """top1, top2, ...: the contribution at each rank, where a weight w fills w ranks."""
    after = pl.col("__eq_v").cum_sum().over(keys)
    placed = largest.with_columns(__eq_after=after).with_columns(__eq_before=pl.col("__eq_after") - pl.col("__eq_v"))
    shares = [
        (pl.min_horizontal("__eq_after", pl.lit(k)) - pl.max_horizontal("__eq_before", pl.lit(k - 1))).clip(0)
        for k in range(1, top + 1)
    ]
    return placed.group_by(keys, maintain_order=True).agg(
        (pl.col("__eq_x") * share).sum().alias(f"top{k}") for k, share in enumerate(shares, start=1)
    )


def _labelled_table(axes: tuple[Axis, ...], cells: pl.DataFrame, needed: ContributionColumns, top: int) -> Table:
    """The table with labels instead of node numbers; cells without records are 0."""
    cells = completed(cells, axes)
    labels = [axis.nodes.gather(cells[axis.name]).alias(axis.name) for axis in axes]
    tops = [f"top{k}" for k in range(1, top + 1) if needed.value or needed.held]
    numbers = {
        "n": cells["__eq_n"].cast(pl.Int64),
        "total": cells["__eq_w"],
        "value": cells["__eq_wx"],
        "contributors": cells["contributors"],
        "gross": cells["__eq_g"],
    }
    rest: dict[str, Any] = {name: cells[name].fill_null(0.0) for name in tops if name in cells.columns}
    rest |= {"requested": cells["__eq_r"]} if needed.request else {}
    rest |= {"requested2": cells["__eq_r2"]} if needed.request and (cells["__eq_r2"] > 0).any() else {}
    rest |= {"holder": cells["__eq_holder"]} if needed.held else {}
    rest |= {HOLDER_IS_RECORD: cells["__eq_n"] >= 0} if needed.items and not needed.holding else {}
    rest |= {"key": (cells["__eq_k"] % KEY_UNITS) / KEY_UNITS} if needed.key else {}
    for axis in axes:
        if axis.name in numbers or axis.name in rest:
            raise ParameterError(f"A table says something else under {axis.name!r}: rename that column.")
    table = labelled_cells(pl.DataFrame({**{s.name: s for s in labels}, **numbers, **rest}), needed.by)
    return replace(table, axes=axes, measured=needed.value)
