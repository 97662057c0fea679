"""What cell keys need of each cell: flagged records with their keys, count variables, and the largest contributions."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from equipoise.data.records import Law, Records
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError, ParameterError, require_columns
from equipoise.ground.packed_keys import code

KEY_UNITS = 10**10
"""Record keys are added up in whole units of 1 / KEY_UNITS, so that no order of addition changes a cell's key."""
MAX_CONTRIBUTIONS = 6
"""Number of largest contributions that can carry noise."""
NONZERO = "nonzero"
"""Flag of the records whose value is not 0."""


@dataclass(frozen=True)
class KeyedColumns:
    """The columns of the records that cell keys are made from; `counts` are columns of 0 and 1, each to be counted."""

    value: str | None = None
    weight: str | None = None
    holding: str | None = None
    key: str | None = None
    counts: tuple[str, ...] = ()

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of what is counted beside the records."""
        return (*self.counts, *([NONZERO] if self.value and self.key else []))

    @property
    def ranked(self) -> bool:
        """Whether contributions must be ranked here: those of `Table`, top1, ..., let a weight fill several places."""
        return bool(self.value and self.key and self.weight and not self.holding)


def with_keyed(table: Table, records: Records, columns: KeyedColumns) -> Table:
    """The table with the statistics of its cells that cell keys are made of.

    For each of the `counts`: `n_NAME` records that have it, `total_NAME` their weight and, with a record key,
    `key_NAME`, the fractional part of the sum of their keys. Of amounts with a key: the same for the records whose
    value is not 0 (`nonzero`); `range`, the largest value less the smallest; and with weights `contribution1`, ..., the
    weighted contributions of the records with the largest values. Cost: one pass, in memory.
    """
    if not columns.flags:
        return table
    rows, by = _rows(table, records, columns), [axis.name for axis in table.axes]
    sums, largest = _summed(rows, by), _largest(rows, by)
    for axis in table.axes:
        sums = _summed(axis.lifted(sums), by)
        if columns.ranked:
            largest = _largest(axis.lifted(largest), by)
    cells = _in_order(sums, table).with_columns(pl.col(f"k_{flag}") % KEY_UNITS / KEY_UNITS for flag in columns.flags)
    names = {"n": "n", "w": "total"} | ({"k": "key"} if columns.key else {})
    more = [cells[f"{part}_{flag}"].alias(f"{name}_{flag}") for flag in columns.flags for part, name in names.items()]
    if columns.value and columns.key:
        more.append((cells["most"] - cells["least"]).alias("range"))
    if columns.ranked:
        ranks = (
            (pl.col("x") * pl.col("w")).get(k - 1, null_on_oob=True).alias(f"contribution{k}")
            for k in range(1, MAX_CONTRIBUTIONS + 1)
        )
        contributions = _in_order(largest.group_by(by, maintain_order=True).agg(*ranks), table)
        more += contributions.select(pl.selectors.starts_with("contribution")).get_columns()
    if taken := {column.name for column in more} & {*table.by, *table.more.columns}:
        raise ParameterError(f"A table says something else under {min(taken)!r}: rename that column.")
    return replace(table, more=table.more.with_columns(more))


def _rows(table: Table, records: Records, columns: KeyedColumns) -> pl.DataFrame:
    """The leaves of each record, its value `x` and weight `w`, and for each flag what it adds to count, weight, key."""
    require_columns(columns.counts, records.schema())
    others = (columns.value, columns.weight, columns.key, *columns.counts)
    frame = records.collect(*dict.fromkeys((*table.by, *(c for c in others if c))))
    x, w = (frame[c].cast(pl.Float64) if c else pl.repeat(1.0, frame.height, eager=True)
            for c in (columns.value, columns.weight))  # fmt: skip
    units = (frame[columns.key].cast(pl.Float64) * KEY_UNITS).round() if columns.key else 0.0 * x
    rows = {name: pl.Series(code(frame[name]).codes.astype(np.int64)) for name in table.by}
    rows |= {"x": x, "w": w, "least": x, "most": x}
    for flag in columns.flags:
        mark = _mark(frame[flag]) if flag in columns.counts else (x != 0).cast(pl.Int64)
        rows |= {f"n_{flag}": mark, f"w_{flag}": mark * w, f"k_{flag}": mark * units.cast(pl.Int64)}
    return pl.DataFrame(rows)


def _mark(values: pl.Series) -> pl.Series:
    numbers = values.cast(pl.Float64, strict=False)
    if values.dtype == pl.String or not numbers.is_in([0.0, 1.0]).fill_null(value=False).all():
        raise DataError(
            f"Column {values.name!r} is to be counted: it must be 0 or 1, or false or true, in every record."
        )
    return numbers.cast(pl.Int64)


def _summed(rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    return rows.group_by(by).agg(
        pl.exclude(*by, "x", "w", "least", "most").sum(), pl.col("least").min(), pl.col("most").max()
    )


def _largest(rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """The records of each cell with the largest absolute values, the heavier first among equals."""
    ordered = rows.select(*by, "x", "w").sort(pl.col("x").abs(), "w", descending=True)
    return ordered.filter(pl.int_range(pl.len()).over(by) < MAX_CONTRIBUTIONS)


def _in_order(cells: pl.DataFrame, table: Table) -> pl.DataFrame:
    """A row for each cell of the table in its order, 0 where no record is."""
    numbers, strides = table.packed
    key = pl.sum_horizontal(pl.col(axis.name) * stride for axis, stride in zip(table.axes, strides, strict=True))
    joined = pl.DataFrame({"__eq_cell": numbers}).join(
        cells.with_columns(__eq_cell=key), on="__eq_cell", how="left", maintain_order="left"
    )
    return joined.fill_null(0)


def count_variables(table: Table) -> tuple[str, ...]:
    """The names of the columns that are counted beside the records."""
    names = [column.removeprefix("n_") for column in table.more.columns if column.startswith("n_")]
    return tuple(name for name in names if name != NONZERO and f"total_{name}" in table.more.columns)


def count_view(table: Table, name: str) -> Table:
    """The table of one count variable: the records that have it are its records.

    >>> people = pl.DataFrame({"sex": ["f", "f", "m"], "ill": [1, 0, 1]})
    >>> made = eq.table(eq.Records.of(people, eq.Roles()), "sex", counts="ill")
    >>> count_view(made, "ill").n.tolist(), count_variables(made)
    ([2, 1, 1], ('ill',))
    """
    n, total = (table.numbers(f"{part}_{name}") for part in ("n", "total"))
    numbers = {"value": total, "contributors": n.astype(np.int64)}
    numbers |= {"published": table.numbers(f"published_{name}")} if f"published_{name}" in table.more.columns else {}
    more = pl.DataFrame(numbers).with_columns(status=pl.lit("changed"))
    laws = tuple(replace(law, parameters=law.parameters["counts"][name], detail=None) for law in table.history)
    cube = replace(table.cube, n=n.astype(np.int64), total=total)
    return replace(table, cube=cube, more=more, measured=None, history=laws, beside=(), behind=None)


def with_count(table: Table, name: str, published: Floats, law: Law) -> Table:
    """The table with what is published of a count variable, and the law of its change."""
    column = pl.Series(f"published_{name}", published)
    last = table.history[-1]
    counts = {**last.parameters.get("counts", {}), name: dict(law.parameters)}
    history = (*table.history[:-1], replace(last, parameters={**last.parameters, "counts": counts}))
    return replace(table, more=table.more.with_columns(column), history=history)
