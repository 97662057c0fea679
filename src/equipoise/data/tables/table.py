"""Tables: cells with all margins, values and largest contributions."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, amount
from equipoise.data.labels import Labels
from equipoise.data.records import Law
from equipoise.data.tables.axes import Axis
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import warn_renamed


@dataclass(frozen=True, repr=False, eq=False)
class Table(Cells):
    """Cells with their margins: every combination of nodes of the `axes`, inner cells and totals alike.

    Beside `n` and `total`, cells have a `value`, `contributors` and `top1`, `top2`, ..., the largest contributions.
    Once protected they also have the `published` value (null where suppressed) and a `status`: published, sensitive
    (suppressed by a rule), secondary (suppressed to protect others), changed; `history` has the laws. `behind` tells
    which records its cells hold (`record_sets`), `beside` what was published of them before (`KnownTable`); both stay
    in memory. `labels` are those of the file for its columns.
    """

    axes: tuple[Axis, ...] = ()
    measured: str | None = None
    history: tuple[Law, ...] = ()
    behind: Any = None
    beside: tuple[Any, ...] = ()
    labels: Labels = Labels()

    @property
    def records(self) -> int:
        return int(self.n.max())

    @cached_property
    def nodes(self) -> tuple[Integers, ...]:
        """For each axis the node of every cell."""
        nodes = []
        for axis, values, codes in zip(self.axes, self.cube.axes, self.cube.codes, strict=True):
            number = dict(zip(axis.nodes.to_list(), range(len(axis)), strict=True))
            nodes.append(np.array([number[label] for label in values.to_list()], dtype=np.int64)[codes])
        return tuple(nodes)

    @property
    def packed(self) -> tuple[Integers, list[int]]:
        """Mixed-radix number of each cell, and the stride of each axis."""
        strides, step = [], 1
        for axis in self.axes:
            strides.append(step)
            step *= len(axis)
        return np.sum([n * s for n, s in zip(self.nodes, strides, strict=True)], axis=0), strides

    @cached_property
    def inner(self) -> Integers:
        """Inner cells: those that are no margin in any direction."""
        leaf = np.ones(len(self), dtype=np.bool_)
        for axis, nodes in zip(self.axes, self.nodes, strict=True):
            leaf &= np.isin(nodes, np.unique(np.concatenate([chain[0] for chain in axis.chains])))
        return leaf

    @property
    def published_values(self) -> Floats:
        """Published value of each cell, NaN where suppressed; its value where nothing is protected yet."""
        if "published" not in self.more.columns:
            return amount(self)
        return self.more["published"].cast(pl.Float64).fill_null(np.nan).to_numpy()

    @property
    def told(self) -> Floats:
        """The old name of `published_values`, for one version more."""
        warn_renamed("Table.told", "Table.published_values")
        return self.published_values

    def protected(self, published: Floats, status: pl.Series, law: Law) -> "Table":
        """The table with published values (NaN: suppressed), the status of each cell, and the law."""
        columns = {"published": pl.Series(published).fill_nan(None), "status": status}
        return replace(self, more=self.more.with_columns(**columns), history=(*self.history, law))

    def margin(self, by: tuple[str, ...]) -> Cells:
        """The margin over the columns that are not in `by`: the cells that are total there."""
        if by == self.by:
            return self
        places = [self.place(column) for column in by]
        totals = np.ones(len(self), dtype=np.bool_)
        for i, (axis, nodes) in enumerate(zip(self.axes, self.nodes, strict=True)):
            totals &= (nodes == axis.total) if i not in places else True
        cells = self.table.filter(pl.Series(totals)).select(*by, pl.exclude(self.by))
        return replace(labelled_cells(cells, by), axes=tuple(self.axes[i] for i in places), measured=self.measured)


def labelled_cells(rows: pl.DataFrame, by: tuple[str, ...]) -> Table:
    cells = Table.of(rows, by)
    assert isinstance(cells, Table)
    return cells
