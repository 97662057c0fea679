"""Last period's pattern as a preference: what was suppressed then costs less to suppress again.

A cell that was suppressed in one period and is published in the next is estimated by it, so a pattern should stay where
it can. It is a preference: nothing is suppressed that no sensitive cell needs. The largest cells are not preferred: at
a twentieth of its cost one of them is taken for the sake of a small cell, and patterns cost up to 44 % more value.
"""

from pathlib import Path

import numpy as np
import polars as pl

from equipoise.data.cells import gross
from equipoise.data.tables.table import Table
from equipoise.files import read_table_csv
from equipoise.ground.arrays import Booleans
from equipoise.ground.errors import DataError, require_columns

LIKE_COST_SHARE = 0.05
"""Share of its cost that a cell keeps when it was suppressed in the last period."""

LIKE_QUANTILE = 0.9
"""Of the cells that were suppressed in the last period the larger ones are not preferred."""


def suppressed_before(table: Table, like: str) -> Booleans:
    """Which cells to prefer: those that the last period's table suppressed, but for the largest tenth of them.

    By a column of marks, or a released table with these labels. A cell that it does not have was not suppressed.
    """
    if like in table.more.columns:
        before: Booleans = table.numbers(like) != 0
    else:
        before = last_period(table, like)["suppressed"].fill_null(value=False).to_numpy()
    if not before.any():
        return before
    value = gross(table)
    return np.asarray(before & (value <= np.quantile(value[before], LIKE_QUANTILE, method="higher")))


def last_period(table: Table, like: str) -> pl.DataFrame:
    """What the released table of the last period says of each cell: its number `before`, and whether `suppressed`.

    Both are null for a cell that it does not have.
    """
    old = _read(Path(like))
    require_columns((*table.by, "published"), dict.fromkeys(old.columns))
    names, number = list(table.by), pl.col("published")
    numbers = {"__eq_before": number.cast(pl.Float64, strict=False), "__eq_hidden": number.is_null()}
    cells = old.select(pl.col(names).cast(pl.String), **numbers)
    if cells.select(names).is_duplicated().any():
        raise DataError("The table of the last period has cells twice: each combination of labels once.")
    labels = table.table.select(pl.col(names).cast(pl.String))
    rows = labels.join(cells, on=names, how="left", maintain_order="left", nulls_equal=True)
    return rows.select(before="__eq_before", suppressed="__eq_hidden")


def _read(path: Path) -> pl.DataFrame:
    """A table.csv or table.parquet, by its path or that of its release folder."""
    places = (path / "public" / "table.parquet", path / "table.parquet", path / "table.csv", path)
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise DataError(f"Cannot read {str(path)!r}: like is the released table of the last period, or its folder.")
    try:
        if file.suffix == ".parquet":
            return pl.read_parquet(file)
        return read_table_csv(file, typed=False)
    except (OSError, pl.exceptions.PolarsError):
        raise DataError(f"Cannot read {str(file)!r}: it is no table as CSV or Parquet.") from None
