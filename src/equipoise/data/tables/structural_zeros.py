"""Structural zeros: cells that nobody can be in, which everybody knows: named by labels, or marked in a column."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from equipoise.data.roles import names
from equipoise.data.tables.cell_status import STRUCTURAL, marked_or_counted
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import holds
from equipoise.ground.arrays import Booleans
from equipoise.ground.errors import DataError, ParameterError, require_columns


def with_structural(table: Table, zeros: str | Sequence[str]) -> Table:
    """The table with its structural zeros marked.

    Each of the `zeros` is a combination of labels, "sex=m & pregnant=yes", that no record can have (a label of a
    hierarchy stands for all below it), or the name of a column of marks. A cell that has records is refused.

    >>> people = eq.Records.of(pl.DataFrame({"sex": ["f", "m"], "pregnant": ["yes", "no"]}), eq.Roles())
    >>> table = with_structural(eq.table(people, ["sex", "pregnant"]), "sex=m & pregnant=yes")
    >>> table.table.filter("structural").select("sex", "pregnant").rows()
    [('m', 'yes')]
    """
    marks = np.zeros(len(table), dtype=np.bool_)
    for text in names(zeros, STRUCTURAL):
        marks |= _with_labels(table, text) if "=" in text else _in_column(table, text)
    if not names(zeros, STRUCTURAL):
        return table
    if STRUCTURAL in table.by:
        raise ParameterError(f"A table says something else under {STRUCTURAL!r}: rename that column.")
    if occupied := int((marks & (table.n > 0)).sum()):
        raise DataError(f"{occupied:,} cells that are said to be structural zeros have records.")
    return replace(table, more=table.more.with_columns(pl.Series(STRUCTURAL, marks)))


def _in_column(table: Table, column: str) -> Booleans:
    """The inner cells that a column marks, and the margins that consist of such cells: numbers were added up there."""
    require_columns((column,), table.more.columns)
    inner = marked_or_counted(table.more[column].filter(table.inner)).to_numpy()
    return np.asarray(abs(holds(table)) @ (~inner).astype(np.float64) == 0)


def _with_labels(table: Table, text: str) -> Booleans:
    """The cells with these labels, or with labels below them."""
    cells = np.ones(len(table), dtype=np.bool_)
    for part in text.split("&"):
        column, _, label = (piece.strip() for piece in part.partition("="))
        place = table.place(column)
        axis, nodes = table.axes[place], table.nodes[place]
        if label not in axis.nodes.to_list():
            raise ParameterError(
                f"Column {column!r} of the table has no label {label!r}, said to be a structural zero."
            )
        members = axis.members
        group = members.filter(pl.col("node") == axis.nodes.to_list().index(label))["leaf"].to_list()
        outside = members.filter(~pl.col("leaf").is_in(group))["node"].unique().to_list()
        cells &= ~np.isin(nodes, outside)
    return cells
