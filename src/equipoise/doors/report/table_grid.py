"""A table as people read it: rows by columns, further dimensions as blocks, in reading order, bounded in size."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import floor, log10, prod

import numpy as np

from equipoise.data.tables.table import Table
from equipoise.doors.report.page_parts import Facts
from equipoise.ground.arrays import Floats, Integers
from equipoise.presentation.numbers import listed, number
from equipoise.presentation.reading_order import nodes_in_order, titles
from equipoise.releases.tabulated import Tabulated

MAX_ROWS, MAX_COLUMNS, MAX_CELLS = 200, 40, 6_000
"""Rows and columns of a block, and cells of all blocks, shown at most."""
GOOD_COLUMNS = 12
"""Columns up to which the second column of the table goes across, as it was asked for."""
STATUS_MARKS = {"sensitive": "s", "secondary": "x"}
EMPTY_CELL = {"text": "–", "mark": "", "kind": "", "place": None}
Nodes = list[tuple[int, int]]
"""Nodes of an axis with their depths, as they are read."""


@dataclass(frozen=True)
class CrossLayout:
    """Which axes of a table go down, across and over blocks, and the nodes of each that are shown."""

    down: int
    across: int | None
    over: tuple[int, ...]
    rows: Nodes
    columns: Nodes
    blocks: list[tuple[int, ...]]
    cuts: tuple[str, ...]

    @classmethod
    def of(cls, table: Table) -> "CrossLayout":
        """Rows are the first column of the table, columns the second where it is short; the fewest blocks."""
        sizes = [len(axis) for axis in table.axes]
        across = _across(sizes)
        others = [i for i in range(len(sizes)) if i != across]
        down = max(others, key=lambda i: (sizes[i], -i)) if len(others) > 1 else others[0]
        over = tuple(i for i in others if i != down)
        rows, row_cut = _fitting(nodes_in_order(table.axes[down]), MAX_ROWS, "rows")
        columns, column_cut = [(0, 0)], ""
        if across is not None:
            columns, column_cut = _fitting(nodes_in_order(table.axes[across]), MAX_COLUMNS, "columns")
        blocks, block_cut = _blocks(table, over, len(rows) * len(columns))
        cuts = tuple(cut for cut in (row_cut, column_cut, block_cut) if cut)
        return cls(down, across, over, rows, columns, blocks, cuts)

    def places(self, table: Table) -> Integers:
        """The cell at each block, row and column; -1 where the table has none."""
        keys, strides = table.packed
        order = np.argsort(keys, kind="stable")
        wanted = np.zeros((len(self.blocks), len(self.rows), len(self.columns)), dtype=np.int64)
        wanted += np.array([node for node, _ in self.rows])[None, :, None] * strides[self.down]
        if self.across is not None:
            wanted += np.array([node for node, _ in self.columns])[None, None, :] * strides[self.across]
        for place, axis in enumerate(self.over):
            wanted += np.array([nodes[place] for nodes in self.blocks])[:, None, None] * strides[axis]
        spot = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
        return np.where(keys[order][spot] == wanted, order[spot], -1)


def _across(sizes: Sequence[int]) -> int | None:
    """The axis of the columns: the first after the rows that is short, else the shortest, the last of several."""
    if len(sizes) == 1:
        return None
    short = next((i for i in range(1, len(sizes)) if sizes[i] <= GOOD_COLUMNS), None)
    return min(reversed(range(len(sizes))), key=lambda i: sizes[i]) if short is None else short


def _fitting(nodes: Nodes, most: int, what: str) -> tuple[Nodes, str]:
    """All nodes, or the coarse levels that fit, or the first ones and the total; and a note on what is left out."""
    if len(nodes) <= most:
        return nodes, ""
    for deepest in sorted({depth for _, depth in nodes[:-1]}, reverse=True):
        coarse = [(node, depth) for node, depth in nodes if depth <= deepest]
        if len(coarse) <= most:
            return coarse, f"the {len(coarse):,} coarsest of {len(nodes):,} {what}"
    return [*nodes[: most - 1], nodes[-1]], f"the first {most - 1:,} of {len(nodes):,} {what} and the total"


def _blocks(table: Table, over: tuple[int, ...], cells: int) -> tuple[list[tuple[int, ...]], str]:
    """The blocks, that of all totals last; where not all fit the first ones and that."""
    orders = [[node for node, _ in nodes_in_order(table.axes[i])] for i in over]
    every, most = prod(map(len, orders)), max(1, MAX_CELLS // max(1, cells))
    if every <= most:
        return list(product(*orders)), ""
    total = tuple(order[-1] for order in orders)
    names = " and ".join(table.axes[i].name for i in over)
    if most == 1:
        return [total], f"the total over {names}, 1 of {every:,} blocks"
    first = [nodes for nodes, _ in zip(product(*orders), range(most), strict=False) if nodes != total]
    return [*first[: most - 1], total], f"{most:,} of {every:,} blocks, the total over {names} among them"


def grid(tabulated: Tabulated, public: bool) -> Facts:
    """The blocks of a table with their rows and cells; on the public page nothing but what is published."""
    table = tabulated.table
    numbers = tabulated.published_numbers if public else tabulated.true_numbers
    layout, text = CrossLayout.of(table), formatter(numbers)
    names = [titles(axis, table.labels.of(axis.name)) for axis in table.axes]
    cells, places = _Cells(tabulated, public, text), layout.places(table)
    columns = [{"label": unit_of(tabulated), "depth": 0, "total": False, "group": False}]
    if layout.across is not None:
        columns = _heads(names[layout.across], layout.columns, table.axes[layout.across].total)
    rows = _heads(names[layout.down], layout.rows, table.axes[layout.down].total)
    return {
        "corner": axis_name(table, layout.down),
        "across": axis_name(table, layout.across) if layout.across is not None else None,
        "over": listed(axis_name(table, i) for i in layout.over) if layout.over else None,
        "unit": unit_of(tabulated),
        "columns": columns,
        "blocks": [
            {
                "name": ", ".join(names[axis][node] for axis, node in zip(layout.over, nodes, strict=True)),
                "rows": [{**row, "cells": [*map(cells.facts, line)]} for row, line in zip(rows, block, strict=True)],
            }
            for nodes, block in zip(layout.blocks, places.tolist(), strict=True)
        ],
        "cuts": [*layout.cuts, *(() if _whole(numbers) else ("numbers rounded",))],
    }  # fmt: skip


def shown_cells(grid: Facts) -> list[int]:
    """The cells of a grid that have something to tell, in reading order, each once."""
    cells = (cell for block in grid["blocks"] for row in block["rows"] for cell in row["cells"])
    return list(dict.fromkeys(cell["place"] for cell in cells if cell["place"] is not None))


def _heads(names: Sequence[str], nodes: Nodes, total: int) -> list[Facts]:
    deeper = [depth < below for (_, depth), (_, below) in pairwise(nodes)] + [False]
    return [
        {"label": names[node], "depth": depth, "total": node == total, "group": group}
        for (node, depth), group in zip(nodes, deeper, strict=True)
    ]


def axis_name(table: Table, place: int) -> str:
    """The name of a column, with its label in the file."""
    name = table.axes[place].name
    label = table.labels.of(name).label
    return f"{name} ({label})" if label and label != name else name


def unit_of(tabulated: Tabulated) -> str:
    """What the numbers of a table are."""
    if tabulated.statistic is not None:
        return tabulated.what
    table = tabulated.table
    if table.measured is None:
        return "records" if np.array_equal(table.total, table.n) else "records, weighted"
    label = table.labels.of(table.measured).label
    return f"{table.measured} ({label})" if label and label != table.measured else table.measured


class _Cells:
    """The text, mark and kind of any cell of a table."""

    def __init__(self, tabulated: Tabulated, public: bool, text: Callable[[float], str]) -> None:
        table = tabulated.table
        self.public, self.text = public, text
        self.published, self.hidden = tabulated.published_numbers, tabulated.hidden
        nothing = np.isnan(self.published) & ~self.hidden
        self.value, self.empty = tabulated.true_numbers, ((table.n == 0) & (not public)) | nothing
        self.status = tabulated.statuses.to_list()
        self.guarded = np.zeros(len(table), dtype=np.bool_)
        if not public and not tabulated.suppresses:
            self.guarded = tabulated.known_cells.guarded

    def facts(self, place: int) -> Facts:
        if place < 0:
            return EMPTY_CELL
        published, hidden = float(self.published[place]), bool(self.hidden[place])
        if self.empty[place] and not hidden and not abs(published) > 0:
            return EMPTY_CELL
        if self.public:
            return {"text": "x" if hidden else self.text(published), "mark": "",
                    "kind": "suppressed" if hidden else "", "place": None}  # fmt: skip
        kind = self.status[place] if hidden else "guarded" if self.guarded[place] else ""
        return {
            "text": self.text(float(self.value[place]) if hidden else published),
            "mark": "s" if kind == "guarded" else STATUS_MARKS.get(kind, ""),
            "kind": kind,
            "place": place if kind else None,
        }


def _whole(numbers: Floats) -> bool:
    """Whether all numbers are whole."""
    values = numbers[np.isfinite(numbers)]
    return np.array_equal(values, np.round(values))


def formatter(numbers: Floats) -> Callable[[float], str]:
    """How the numbers of a table are written: one number of decimals for all, thousands apart."""
    values: Floats = np.abs(numbers[np.isfinite(numbers) & (numbers != 0)])
    digits = 0 if _whole(numbers) or not len(values) else min(6, max(0, 2 - floor(log10(float(np.median(values))))))

    def text(value: float) -> str:
        if not np.isfinite(value):
            return "any"
        if value and abs(value) < 0.5 * 10.0**-digits:
            return number(value)
        return f"{value:,.{digits}f}".replace("-", "−")

    return text
