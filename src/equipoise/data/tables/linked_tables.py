"""Linked tables as one system of cells: cells that several tables share are one cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import amount
from equipoise.data.tables.additivity import Additive
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import additive
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError

VALUE_TOLERANCE = 1e-6
"""Share by which the value of a shared cell may differ between two tables."""


@dataclass(frozen=True, eq=False, repr=False)
class Union:
    """Linked tables of the same records, and the number of each of their cells among all.

    Two cells are one when they have the same labels apart from totals: so the margin of a table by region and size
    over size is the cell of a table by region alone.
    """

    tables: tuple[Table, ...]
    places: tuple[Integers, ...]

    @classmethod
    def of(cls, tables: Sequence[Table]) -> "Union":
        """Refuses tables whose shared cells differ in value, naming the columns."""
        names = [_names(table) for table in tables]
        distinct = pl.concat(names).unique(maintain_order=True)
        number = pl.DataFrame({"name": distinct, "place": np.arange(len(distinct))})
        places = [name.to_frame().join(number, on="name", how="left", maintain_order="left")["place"] for name in names]
        union = cls(tuple(tables), tuple(place.to_numpy() for place in places))
        union._refuse_different()
        return union

    @property
    def cells(self) -> int:
        return 1 + max(int(place.max()) for place in self.places)

    @cached_property
    def additive(self) -> Additive:
        parts = [additive(table) for table in self.tables]
        return parts[0] if len(parts) == 1 else Additive.linked(parts, self.places)

    @cached_property
    def values(self) -> Floats:
        return self.gathered([amount(table) for table in self.tables])

    def gathered(self, parts: Sequence[Any], how: Any = np.maximum) -> Any:
        """One number for each cell from those of the tables, combined by `how`: the largest by default."""
        first = np.asarray(parts[0])
        numbers = np.full(self.cells, np.nan if first.dtype.kind == "f" else False)
        for place, part in zip(self.places, parts, strict=True):
            earlier = numbers[place]
            unknown = np.isnan(earlier) if first.dtype.kind == "f" else ~earlier.astype(np.bool_)
            numbers[place] = np.where(unknown, part, how(earlier, part))
        return numbers if first.dtype.kind == "f" else numbers.astype(np.bool_)

    def _refuse_different(self) -> None:
        for place, table in zip(self.places, self.tables, strict=True):
            own, shared = amount(table), self.values[place]
            wrong = int((np.abs(own - shared) > VALUE_TOLERANCE * np.maximum(1.0, shared)).sum())
            if wrong:
                raise DataError(
                    f"{wrong:,} cells of the table by {', '.join(table.by)} have another value in another table: "
                    "linked tables must be made from the same records."
                )

    @cached_property
    def empty(self) -> Any:
        """Cells without records: known to be zero."""
        return self.gathered([table.n.astype(np.float64) for table in self.tables]) == 0

    @cached_property
    def knowers(self) -> Integers:
        """For each cell the number of the contributor who is alone in it, -1 where there are several or none.

        By the code of the holding; without one, a record that is alone in a cell is the one alone in its margins.
        """
        alone = self.gathered([table.numbers("contributors") for table in self.tables]) == 1
        if all("holder" in table.more.columns for table in self.tables):
            codes = self.gathered([table.numbers("holder") for table in self.tables])
            return np.where(alone, codes, -1).astype(np.int64)
        return _same_person(self.additive, alone)


def _names(table: Table) -> pl.Series:
    """Identity of each cell across tables: its columns and labels without totals."""
    parts = []
    for axis in sorted(table.axes, key=lambda axis: axis.name):
        total = axis.nodes[axis.total]
        text = pl.concat_str(pl.lit(f"{axis.name}\x1f"), pl.col(axis.name), pl.lit("\x1e"))
        parts.append(pl.when(pl.col(axis.name) == total).then(pl.lit("")).otherwise(text))
    return table.table.select(pl.concat_str(parts).alias("name"))["name"]


def _same_person(relations: Additive, alone: Any) -> Integers:
    """Cells of one contributor, numbered alike where one is the margin of the other."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    terms = relations.matrix.tocoo()
    heads = relations.totals[terms.row]
    joined = alone[terms.col] & (heads >= 0) & alone[np.maximum(heads, 0)]
    graph = coo_array((np.ones(int(joined.sum())), (terms.col[joined], heads[joined])), shape=(len(alone), len(alone)))
    _, part = connected_components(graph, directed=False)
    return np.where(alone, part, -1).astype(np.int64)
