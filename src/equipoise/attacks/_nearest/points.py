"""Records of a file as points (coordinates and categories): equal records are one point, points grouped by cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats, Integers, inverse
from equipoise.ground.packed_keys import group


@dataclass(frozen=True, eq=False, repr=False)
class Cloud:
    """Records of a file: a matrix of coordinates and one of category codes, coded alike in both files."""

    coordinates: Floats
    codes: Integers

    def __len__(self) -> int:
        return len(self.coordinates)


@dataclass(frozen=True, eq=False, repr=False)
class CellPoints:
    """Distinct points in the order of their cells; `start` has the first of each cell and the end."""

    coordinates: Floats
    counts: Integers
    start: Integers
    codes: Integers

    @cached_property
    def sizes(self) -> Integers:
        return np.diff(self.start)

    @cached_property
    def low(self) -> Floats:
        return np.minimum.reduceat(self.coordinates, self.start[:-1], axis=0)

    @cached_property
    def high(self) -> Floats:
        return np.maximum.reduceat(self.coordinates, self.start[:-1], axis=0)

    @cached_property
    def cell(self) -> Integers:
        """Cell of every point."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def distinct(cloud: Cloud, mark: Integers | None = None) -> tuple[CellPoints, Integers, Integers]:
    """Distinct points (by `mark` as well), the point of every record, and a record of every point."""
    columns = [*cloud.coordinates.T, *cloud.codes.T, *(() if mark is None else (mark,))]
    kinds, rows, counts = distinct_rows(columns or [np.zeros(len(cloud))])
    numbers, _ = cells(cloud.codes[rows])
    order = np.argsort(numbers, kind="stable")
    rows, ordered = rows[order], numbers[order]
    start = np.append(np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])), len(rows))
    side = CellPoints(
        np.ascontiguousarray(cloud.coordinates[rows]), counts[order], start, cloud.codes[rows[start[:-1]]]
    )
    return side, inverse(order)[kinds], rows


def distinct_rows(columns: Sequence[Floats | Integers]) -> tuple[Integers, Integers, Integers]:
    """Group number of every row by equal values, the first row and the size of each group. One pass of hashing.

    >>> distinct_rows([np.array([3, 5, 3])])[0].tolist()
    [0, 1, 0]
    """
    table = pl.DataFrame({str(i): np.ascontiguousarray(column) for i, column in enumerate(columns)})
    rows = pl.int_range(pl.len(), dtype=pl.Int64)
    grouped = table.with_columns(rows.alias("row")).group_by(table.columns).agg("row").sort(pl.col("row").list.first())
    counts = grouped["row"].list.len().cast(pl.Int64).to_numpy()
    kinds = np.empty(table.height, dtype=np.int64)
    kinds[grouped["row"].explode().to_numpy()] = np.repeat(np.arange(len(counts)), counts)
    return kinds, grouped["row"].list.first().to_numpy(), counts


def cells(codes: Integers) -> tuple[Integers, Integers]:
    """Cell number of each row by its codes, and the first row of each cell."""
    if not codes.shape[1]:
        return np.zeros(len(codes), dtype=np.int64), np.zeros(1, dtype=np.int64)
    return group(list(codes.T), [int(column.max(initial=0)) + 1 for column in codes.T])
