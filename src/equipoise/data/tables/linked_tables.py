"""Tables as one system of cells: those that several tables share are one cell."""

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

SAME = 1e-6
"""Share by which the value of a cell may differ between two tables that hold it."""


@dataclass(frozen=True, eq=False, repr=False)
class Union:
    """Tables of the same records, and the number of each of their cells among all.

    Two cells are one when they name the same values: the total of a column says nothing, so the margin of a table by
    region and size over size is the cell of a table by region alone.
    """

    tables: tuple[Table, ...]
    places: tuple[Integers, ...]

    @classmethod
    def of(cls, tables: Sequence[Table]) -> "Union":
        """Refuses tables whose shared cells differ in value, naming the columns."""
        names = [_names(table) for table in tables]
        known = pl.concat(names).unique(maintain_order=True)
        number = pl.DataFrame({"name": known, "place": np.arange(len(known))})
        places = [name.to_frame().join(number, on="name", how="left", maintain_order="left")["place"] for name in names]
        made = cls(tuple(tables), tuple(place.to_numpy() for place in places))
        made._refuse_different()
        return made

    @property
    def cells(self) -> int:
        return 1 + max(int(place.max()) for place in self.places)

    @cached_property
    def additive(self) -> Additive:
        parts = [additive(table) for table in self.tables]
        return parts[0] if len(parts) == 1 else Additive.linked(parts, self.places)

    @cached_property
    def values(self) -> Floats:
        found: Floats = self.gathered([amount(table) for table in self.tables])
        return found

    def gathered(self, parts: Sequence[Any], how: Any = np.maximum) -> Any:
        """One number for each cell, of those that the tables give it: the largest unless told."""
        first = np.asarray(parts[0])
        found = np.full(self.cells, np.nan if first.dtype.kind == "f" else False)
        for place, part in zip(self.places, parts, strict=True):
            seen = found[place]
            unknown = np.isnan(seen) if first.dtype.kind == "f" else ~seen.astype(np.bool_)
            found[place] = np.where(unknown, part, how(seen, part))
        return found if first.dtype.kind == "f" else found.astype(np.bool_)

    def _refuse_different(self) -> None:
        for place, table in zip(self.places, self.tables, strict=True):
            own, known = amount(table), self.values[place]
            wrong = int((np.abs(own - known) > SAME * np.maximum(1.0, known)).sum())
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

        By the code of the holding where the table was made with one; else a record that is alone in a cell is the one
        that is alone in its margins.
        """
        alone = self.gathered([table.known("contributors") for table in self.tables]) == 1
        if all("holder" in table.more.columns for table in self.tables):
            codes = self.gathered([table.known("holder") for table in self.tables])
            return np.where(alone, codes, -1).astype(np.int64)
        return _same_person(self.additive, alone)


def _names(table: Table) -> pl.Series:
    """What each cell is, whatever the other columns of its table: its columns and labels, totals left out."""
    parts = []
    for axis in sorted(table.axes, key=lambda axis: axis.name):
        total = axis.nodes[axis.total]
        told = pl.concat_str(pl.lit(f"{axis.name}\x1f"), pl.col(axis.name), pl.lit("\x1e"))
        parts.append(pl.when(pl.col(axis.name) == total).then(pl.lit("")).otherwise(told))
    return table.table.select(pl.concat_str(parts).alias("name"))["name"]


def _same_person(relations: Additive, alone: Any) -> Integers:
    """Cells of one contributor, numbered alike where one is the margin of the other."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    held = relations.matrix.tocoo()
    heads = relations.totals[held.row]
    joined = alone[held.col] & (heads >= 0) & alone[np.maximum(heads, 0)]
    graph = coo_array((np.ones(int(joined.sum())), (held.col[joined], heads[joined])), shape=(len(alone), len(alone)))
    _, part = connected_components(graph, directed=False)
    return np.where(alone, part, -1).astype(np.int64)
