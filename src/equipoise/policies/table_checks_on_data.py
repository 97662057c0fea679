"""Checks of [table] against the data: columns that are missing or not numeric, invalid groups and levels."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from equipoise.data.records import Records
from equipoise.data.tables.ready_table import Ready
from equipoise.data.tables.statistic import statistic_of
from equipoise.ground.errors import EquipoiseError
from equipoise.policies.checks_on_data import absent, level_fault
from equipoise.policies.sections import PolicyProblem
from equipoise.policies.table_section import Tabulation, refuse_names, tree

NUMERIC_FIELDS = ("value", "weight", "request", "key")
"""Columns that must be numeric; a request may be true or false as well."""
READY_COLUMN_FIELDS = ("n", "contributors", "top", "sensitive", "lower", "upper", "cost", "status")
"""Fields of a ready table that name columns."""


def table_misfits(records: Records, table: Tabulation, folder: Path) -> Iterator[PolicyProblem]:
    """Every problem of [table] with the columns of its data. Cost: a pass over the records where groups are columns."""
    schema = records.schema()
    yield from absent(table.by, schema, ("table", "by"))
    try:
        refuse_names(records, table.by)
    except EquipoiseError as error:
        yield PolicyProblem(("table", "by"), str(error))
    for name in (*NUMERIC_FIELDS, "holding"):
        column = getattr(table, name)
        if column is not None and column not in schema:
            yield from absent((column,), schema, ("table", name))
        elif column is not None and name in NUMERIC_FIELDS and not _fits(name, schema[column]):
            yield PolicyProblem(("table", name), f"must be a number, and the column {column!r} is {schema[column]}.")
    yield from absent(table.counts, schema, ("table", "counts"))
    statistic = statistic_of(table.statistic)
    if statistic is not None and statistic.denominator is not None:
        yield from absent((statistic.denominator,), schema, ("table", "statistic"))
    yield from _of_ready(table.ready_columns, schema)
    yield from _of_levels(records, table)
    for column, groups in table.hierarchies.items():
        yield from _of_groups(records, table, column, groups, folder)


def _fits(name: str, kind: Any) -> bool:
    return bool(kind.is_numeric() or (name == "request" and str(kind) == "Boolean"))


def _of_ready(ready: bool | Ready, schema: Mapping[str, Any]) -> Iterator[PolicyProblem]:
    for name in READY_COLUMN_FIELDS if isinstance(ready, Ready) else ():
        value = getattr(ready, name)
        columns = (value,) if isinstance(value, str) else tuple(value or ())
        yield from absent(columns, schema, ("table", "ready", name))


def _of_levels(records: Records, table: Tabulation) -> Iterator[PolicyProblem]:
    """Problems of levels that the hierarchy of a column does not have or does not allow."""
    for column, level in table.coarsen.items():
        place, trees = ("table", "coarsen", column), records.roles.hierarchies
        if column not in trees:
            yield PolicyProblem(place, f"The column {column!r} has no hierarchy under [roles.hierarchies].")
        elif words := level_fault(trees[column], column, level):
            yield PolicyProblem(place, words)


def _of_groups(records: Records, table: Tabulation, column: str, groups: Any, folder: Path) -> Iterator[PolicyProblem]:
    """Problems of a hierarchy that cannot be read; that of a coarsened column is read when the table is made."""
    place, schema = ("table", "hierarchies", column), records.schema()
    lists = isinstance(groups, list | tuple) and all(isinstance(name, str) for name in groups)
    problems = list(absent(groups, schema, place)) if lists else []
    yield from problems
    if problems or column not in schema or (lists and column in table.coarsen):
        return
    try:
        tree(records, column, groups, folder)
    except EquipoiseError as error:
        yield PolicyProblem(place, str(error))
