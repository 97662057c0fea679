"""Count variables of a table: how many records of each cell have a 1 in a column, as tables of their own."""

from dataclasses import replace

import numpy as np
import polars as pl

from equipoise.data.records import Law
from equipoise.data.tables.keyed_cells import NONZERO
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Floats


def count_variables(table: Table) -> tuple[str, ...]:
    """The names of the columns that are counted beside the records."""
    names = [column.removeprefix("n_") for column in table.more.columns if column.startswith("n_")]
    return tuple(name for name in names if name != NONZERO and f"total_{name}" in table.more.columns)


def count_view(table: Table, name: str) -> Table:
    """The table of one count variable: the records that have it are its records.

    >>> people = pl.DataFrame({"sex": ["f", "f", "m"], "ill": [1, 0, 1]})
    >>> made = eq.table(eq.Records.of(people, eq.Roles()), "sex", counts="ill")
    >>> count_view(made, "ill").n.tolist(), count_variables(made)
    ([2, 1, 1], ('ill',))
    """
    n, total = (table.numbers(f"{part}_{name}") for part in ("n", "total"))
    numbers = {"value": total, "contributors": n.astype(np.int64)}
    numbers |= {"published": table.numbers(f"published_{name}")} if f"published_{name}" in table.more.columns else {}
    more = pl.DataFrame(numbers).with_columns(status=pl.lit("changed"))
    laws = tuple(replace(law, parameters=law.parameters["counts"][name], detail=None) for law in table.history)
    cube = replace(table.cube, n=n.astype(np.int64), total=total)
    return replace(table, cube=cube, more=more, measured=None, history=laws, beside=(), behind=None)


def with_count(table: Table, name: str, published: Floats, law: Law) -> Table:
    """The table with what is published of a count variable, and the law of its change."""
    column = pl.Series(f"published_{name}", published)
    last = table.history[-1]
    counts = {**last.parameters.get("counts", {}), name: dict(law.parameters)}
    history = (*table.history[:-1], replace(last, parameters={**last.parameters, "counts": counts}))
    return replace(table, more=table.more.with_columns(column), history=history)
