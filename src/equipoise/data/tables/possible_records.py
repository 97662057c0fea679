"""Records that could stand in empty cells of linked tables, where suppression hides that these are empty.

A cell is the set of records it holds, and a full cell holds those of its margin. Whoever does not see that the cells
beside it are empty cannot take the two for one. So each combination of the columns of all tables that would fall into
such a cell counts as a record that is not there: it tells the sets apart, and its class is an unknown of value zero.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Booleans, Integers

if TYPE_CHECKING:
    from equipoise.data.tables.record_sets import Members

MAX_COMBINATIONS = 2_000_000
"""Combinations of the columns of all tables up to which records that are not there are looked for."""


def with_possible_records(
    tables: Sequence[Table], members: Sequence["Members | None"], unknown: Sequence[Booleans], most: int
) -> list["Members | None"]:
    """The members, with one of value zero for each combination of columns that is in a cell not known to be empty.

    `unknown` marks these cells. A column whose values determine those of another table's column in all records is taken
    for its detail, so that nothing is possible which everybody can rule out. Nothing is added where tables hold
    different records, or for more than `most` combinations: an attacker is then said to know which cells are empty.
    """
    known = [i for i, one in enumerate(members) if one is not None]
    if not any(unknown[i].any() for i in known):
        return list(members)
    units = np.unique(np.concatenate([one.units for one in members if one is not None]))
    if int(units[-1]) >= len(units) or any(len(one.units) != len(units) for one in members if one is not None):
        return list(members)
    columns = _columns(tables, members, len(units))
    sizes, details = _details(columns)
    if prod(sizes) > MAX_COMBINATIONS:
        return list(members)
    codes = np.unravel_index(np.arange(prod(sizes)), sizes)
    rows = {
        i: _rows(tables[i], [codes[at] if of is None else of[codes[at]] for (table, *_), (at, of) in
                             zip(columns, details, strict=True) if table == i])
        for i in known
    }  # fmt: skip
    hidden = np.any([(unknown[i][row]) & (row >= 0) for i, row in rows.items()], axis=0)
    fit = np.all([(row >= 0) & (unknown[i][row] | (tables[i].n[row] > 0)) for i, row in rows.items()], axis=0)
    possible = np.flatnonzero(hidden & fit)
    if len(possible) > most:
        return list(members)
    return [None if one is None else _joined(one, rows[i][possible], len(units)) for i, one in enumerate(members)]


def _joined(one: "Members", cells: Integers, start: int) -> "Members":
    """The members, and one of value zero in each of these cells."""
    zeros = np.zeros(len(cells))
    return replace(
        one,
        units=np.concatenate([one.units, start + np.arange(len(cells))]),
        cells=np.concatenate([one.cells, cells]),
        amounts=np.concatenate([one.amounts, zeros.view(np.uint64)]),
        values=None if one.values is None else np.concatenate([one.values, zeros]),
        own=None if one.own is None else np.concatenate([one.own, zeros]),
        owners=None if one.owners is None else np.concatenate([one.owners, np.full(len(cells), -1)]),
    )


def _columns(
    tables: Sequence[Table], members: Sequence["Members | None"], units: int
) -> list[tuple[int, Integers, list[str]]]:
    """For each column of each table its number, the value of every unit, and the labels of its values."""
    columns = []
    for i, (table, one) in enumerate(zip(tables, members, strict=True)):
        if one is None:
            continue
        cell = np.empty(units, dtype=np.int64)
        cell[one.units] = one.cells
        for axis, nodes in zip(table.axes, table.nodes, strict=True):
            leaf_of = np.full(len(axis), -1, dtype=np.int64)
            leaf_of[axis.places] = np.arange(axis.leaves)
            columns.append((i, leaf_of[nodes[cell]], axis.nodes.gather(axis.places).to_list()))
    return columns


def _details(
    columns: Sequence[tuple[int, Integers, list[str]]],
) -> tuple[list[int], list[tuple[int, Integers | None]]]:
    """How many values the independent columns have; and for each column which of them it is, or is a grouping of."""
    order = sorted(range(len(columns)), key=lambda place: -len(columns[place][2]))
    chosen: list[int] = []
    details: list[tuple[int, Integers | None]] = [(0, None)] * len(columns)
    for place in order:
        table, codes, labels = columns[place]
        groupings = ((at, _grouping(columns[fine], codes, labels)) for at, fine in enumerate(chosen)
                     if columns[fine][0] != table)  # fmt: skip
        grouping = next(((at, of) for at, of in groupings if of is not None), None)
        if grouping is None:
            details[place] = (len(chosen), None)
            chosen.append(place)
        else:
            details[place] = grouping
    return [len(columns[place][2]) for place in chosen], details


def _grouping(fine: tuple[int, Integers, list[str]], codes: Integers, labels: list[str]) -> Integers | None:
    """For each value of one column that of another which all its records have; None where they have several.

    A value without records has the one of the same label, -1 where there is none.
    """
    _, detail, names = fine
    place = {label: code for code, label in enumerate(labels)}
    group = np.array([place.get(name, -1) for name in names], dtype=np.int64)
    group[detail] = codes
    return group if (group[detail] == codes).all() else None


def _rows(table: Table, leaves: Sequence[Integers]) -> Integers:
    """The inner cell of each combination of values; -1 where one of them is not in the table."""
    keys, strides = table.packed
    wanted = sum(
        (axis.places * stride)[np.maximum(leaf, 0)]
        for axis, stride, leaf in zip(table.axes, strides, leaves, strict=True)
    )
    order = np.argsort(keys, kind="stable")
    row = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)]
    lost = (keys[row] != wanted) | np.any([leaf < 0 for leaf in leaves], axis=0)
    return np.where(lost, -1, row)
