"""Transitions of one column: with what probability each category becomes another, stratum by stratum."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats, Integers

NOWHERE = -1
"""The place of a missing value, or of one that the law does not know."""


@dataclass(frozen=True, eq=False, repr=False)
class Transition:
    """`tables[s, i, j]` is the probability that category i of a record in stratum s is released as category j.

    `values` are the categories in order, `strata` has a row for each stratum (no columns where there is one).

    >>> one = Transition("k", pl.Series(["a", "b"]), pl.DataFrame(), np.array([[[0.9, 0.1], [0.2, 0.8]]]))
    >>> one.places(pl.Series(["b", None, "a"])).tolist()
    [1, -1, 0]
    """

    column: str
    values: pl.Series
    strata: pl.DataFrame
    tables: Floats

    def places(self, column: pl.Series) -> Integers:
        """The category of every value."""
        index = pl.DataFrame({"value": self.values.cast(column.dtype)}).with_row_index("place")
        found = pl.DataFrame({"value": column}).join(index, on="value", how="left", maintain_order="left")["place"]
        return found.cast(pl.Int64).fill_null(NOWHERE).to_numpy()

    def stratum(self, table: pl.DataFrame) -> Integers:
        """The stratum of every record, 0 where there is one only."""
        names = self.strata.columns
        if not names:
            return np.zeros(table.height, dtype=np.int64)
        index = self.strata.with_row_index("\x00place").cast({c: table.schema[c] for c in names})
        rows = table.select(names).with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None))
        found = rows.join(index, on=names, how="left", nulls_equal=True, maintain_order="left")["\x00place"]
        return found.cast(pl.Int64).fill_null(NOWHERE).to_numpy()
