"""Linked tables whose records are not known, as margins of one finer table: that by all of their columns.

Every combination of labels that falls into no cell known to be empty is an unknown that is not negative, and each inner
cell is the sum of its combinations. So a column whose cells with another are empty but for one is a group of it, as
anybody can see who has both tables.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from equipoise.data.tables.cell_sets import Atoms, sums_once
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Booleans, Integers

MAX_COMBINATIONS = 5_000
"""Combinations of labels up to which they are unknowns of the system."""


def label_atoms(tables: Sequence[Table], places: Sequence[Integers], unknown: Sequence[Booleans]) -> Atoms | None:
    """The combinations of all columns as unknowns; None where there are too many, or columns have other labels.

    `unknown` marks the empty cells of each table that are not known to be empty.
    """
    labels = _labels(tables)
    if labels is None or prod(map(len, labels.values())) > MAX_COMBINATIONS:
        return None
    codes = dict(zip(labels, np.indices([len(of) for of in labels.values()]).reshape(len(labels), -1), strict=True))
    cells = [_inner_cells(table, labels, codes) for table in tables]
    possible = [
        (cell >= 0) & ~((table.n == 0) & ~hidden)[cell]
        for table, cell, hidden in zip(tables, cells, unknown, strict=True)
    ]
    alive: Booleans = np.all(possible, axis=0)
    numbers = np.full(int(alive.sum()), -1, dtype=np.int64)
    for cell, place in zip(cells, places, strict=True):
        alone = np.bincount(cell[alive], minlength=len(place))[cell[alive]] == 1
        numbers = np.where(alone & (numbers < 0), place[cell[alive]], numbers)
    new = numbers < 0
    numbers[new] = 1 + max(int(place.max()) for place in places) + np.arange(int(new.sum()))
    heads = [place[cell[alive]] for cell, place in zip(cells, places, strict=True)]
    return Atoms(*sums_once(heads, [numbers] * len(tables)), np.full(int(new.sum()), np.nan))


def _labels(tables: Sequence[Table]) -> dict[str, list[str]] | None:
    """The labels of every column; None where tables do not agree on them, or a relation takes something off."""
    labels: dict[str, list[str]] = {}
    for axis in (axis for table in tables for axis in table.axes):
        own = sorted(axis.nodes.gather(axis.places).to_list())
        if axis.sign or labels.setdefault(axis.name, own) != own:
            return None
    return labels


def _inner_cells(table: Table, labels: dict[str, list[str]], codes: dict[str, Integers]) -> Integers:
    """The cell of a table that each combination is in, -1 where it has none."""
    keys, strides = table.packed
    places = np.zeros(len(next(iter(codes.values()))), dtype=np.int64)
    for axis, stride in zip(table.axes, strides, strict=True):
        leaf = dict(zip(axis.nodes.gather(axis.places), axis.places, strict=True))
        places += stride * np.array([leaf[label] for label in labels[axis.name]])[codes[axis.name]]
    order = np.argsort(keys, kind="stable")
    rows = order[np.minimum(np.searchsorted(keys[order], places), len(keys) - 1)]
    return np.where(keys[rows] == places, rows, -1)
