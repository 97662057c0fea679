"""Recoding a column value by value, on records (on their engine) or on cells; used by every recode."""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from equipoise.data import engines
from equipoise.data.cells import Cells, Relabel, count
from equipoise.data.labels import Tail
from equipoise.data.records import Law, Records
from equipoise.ground.errors import require_columns

Data = TypeVar("Data", Records, Cells)


def recoded(
    data: Data, column: str, change: Relabel, law: Law, *, keep_hierarchy: bool = False, tail: Tail | None = None
) -> Data:
    """Replace each value of a column by a function of it.

    On records: the distinct values are counted, the function is applied to them, and the replacement runs on the
    engine that holds the data. On cells: a roll-up, or no change where the cells were not counted by that column.
    Labels follow: a new category is labelled by its members, the value of a tail by `tail`.
    """
    if isinstance(data, Cells):
        return data.relabel(column, change, keep_hierarchy) if column in data.by else data
    require_columns((column,), data.schema())
    cells = count(data, (column,))
    old = cells.values(column)
    new = change(old, cells.counts(column))
    result = data.with_frame(engines.replaced(data.frame, column, old, new), law)
    once = lambda values: change(values, np.ones(len(values), dtype=np.int64))
    result = replace(result, labels=result.labels.recoded(column, old, new, once, tail))
    return result if keep_hierarchy else replace(result, roles=result.roles.without_hierarchy(column))
