"""Transition matrices of one column (PRAM): the probability that each category becomes another, by stratum."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats, Integers

UNKNOWN_PLACE = -1
"""Place of a missing value, or of one that the law does not list."""


@dataclass(frozen=True, eq=False, repr=False)
class Transition:
    """Transition law: `tables[s, i, j]` is the probability that category i in stratum s is released as category j.

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
        places = pl.DataFrame({"value": column}).join(index, on="value", how="left", maintain_order="left")["place"]
        return places.cast(pl.Int64).fill_null(UNKNOWN_PLACE).to_numpy()

    def stratum(self, table: pl.DataFrame) -> Integers:
        """The stratum of every record, 0 where there is one only."""
        names = self.strata.columns
        if not names:
            return np.zeros(table.height, dtype=np.int64)
        index = self.strata.with_row_index("\x00place").cast({c: table.schema[c] for c in names})
        rows = table.select(names).with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None))
        places = rows.join(index, on=names, how="left", nulls_equal=True, maintain_order="left")["\x00place"]
        return places.cast(pl.Int64).fill_null(UNKNOWN_PLACE).to_numpy()
