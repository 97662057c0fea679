"""Checks of a policy against its data: missing columns, masks for numbers on texts, levels that no hierarchy has."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any

import narwhals as nw

from equipoise.data.hierarchy import Hierarchy
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.ground.errors import EquipoiseError, RolesError
from equipoise.methods.method import name_of
from equipoise.policies.changed_columns import CHANGED_COLUMN_FIELDS
from equipoise.policies.limits import tables
from equipoise.policies.scoped_measures import Wanted
from equipoise.policies.sections import Candidate, EstimateTable, Intruder, PolicyProblem
from equipoise.policies.toml_lines import Place
from equipoise.recipe.catalogue import find, form
from equipoise.recipe.recipe import spread
from equipoise.utility import Overlap

COLUMN_ROLES = tuple(f.name for f in fields(Roles) if f.name not in ("hierarchies", "missing"))
"""Roles that name columns."""
NUMERIC_MASKS = ("noise", "shuffle", "matrix", "top_code", "bottom_code")
"""Masks whose columns must be numbers."""
ORDERED_MASKS = ("rank_swap",)
"""Masks whose columns must have an order: numbers or dates."""
COLUMN_FIELDS = (*CHANGED_COLUMN_FIELDS, "keys", "attribute", "protected", "given", "strata", "similar")
"""Parameters that name columns of the data."""

COLUMN_TYPES, COLUMNS_TYPES = ("str", "str | None"), ("tuple[str, ...]", "tuple[str, ...] | None")
"""Types of such parameters: one column, or several."""


def misfits(
    records: Records,
    candidates: Sequence[Candidate],
    limits: Mapping[str, Any],
    measures: Iterable[str],
    scenarios: Sequence[Intruder],
) -> Iterator[PolicyProblem]:
    """Every problem of a policy with the columns of its data; sections that cannot be read are skipped."""
    schema = records.schema()
    for i, candidate in enumerate(candidates):
        for name, steps in (("masks", candidate.masks), ("then", candidate.then)):
            for j, table in enumerate(steps):
                yield from _of_mask(dict(table), schema, records.roles, ("candidates", i, name, j))
    for i, one in enumerate(scenarios):
        yield from absent((*one.known, *(one.sensitive or ())), schema, ("scenarios", i, "known"))
    for name, entry in limits.items():
        for place, columns in _groups(name, entry):
            yield from absent(columns, schema, place)
    for i, name in enumerate(measures):
        yield from absent(Wanted.of(name).by, schema, ("measures", i))


def estimate_misfits(records: Records, estimates: Sequence[EstimateTable]) -> Iterator[PolicyProblem]:
    """Columns of [[estimates]] that are missing in the data, or not numeric where they must be."""
    schema = records.schema()
    for i, one in enumerate(estimates):
        place: Place = ("estimates", i, "query")
        with suppress(EquipoiseError):
            columns, numbers = Overlap((one.query,)).columns()
            yield from absent(columns, schema, place)
            for column in (
                c for c in numbers if c in schema and not (schema[c].is_numeric() or schema[c] == nw.Boolean)
            ):
                yield PolicyProblem(
                    place, f"Column {column!r} is {schema[column]}, not numeric: it has no mean or quantile."
                )


def role_misfits(records: Records, roles: Mapping[str, Any]) -> Iterator[PolicyProblem]:
    """Columns under [roles] that are missing in the data, or not numeric where they must be."""
    schema = records.schema()
    for role, entry in roles.items():
        place: Place = ("roles", role)
        if role == "hierarchies":
            for column, tree in entry.items() if isinstance(entry, Mapping) else ():
                yield from absent((column,), schema, (*place, column))
                yield from _uncut(column, tree, schema, (*place, column))
        elif role in COLUMN_ROLES:
            for i, column in enumerate(c for c in _names(entry) if isinstance(c, str)):
                where = place if isinstance(entry, str) else (*place, i)
                yield from absent((column,), schema, where)
                if role in ("weight", "numeric") and column in schema and not schema[column].is_numeric():
                    words = f"Column {column!r} has the role {role} but is {schema[column]}, not numeric."
                    yield PolicyProblem(where, words)


def _uncut(column: str, tree: Any, schema: Mapping[str, Any], place: Place) -> Iterator[PolicyProblem]:
    """A hierarchy of intervals on a column that has no numbers."""
    kinds = [one.get("kind") for one in (tree if isinstance(tree, list) else [tree]) if isinstance(one, Mapping)]
    kind = schema.get(column)
    if (
        kind is not None
        and {"intervals", "breaks"} & {kind for kind in kinds if isinstance(kind, str)}
        and not (kind.is_numeric() or kind == nw.Unknown)
    ):
        yield PolicyProblem(place, f"Column {column!r} is {kind}, not numeric: intervals cannot be made of it.")


def _groups(name: str, entry: Any) -> Iterator[tuple[Place, tuple[str, ...]]]:
    """The grouping columns of each limit on a measure, with their place; invalid limits are skipped."""
    several = isinstance(entry, list | tuple)
    for i, one in enumerate(entry if several else [entry]):
        place: Place = ("limits", name, i) if several else ("limits", name)
        with suppress(EquipoiseError):
            yield place, tuple(c for table in tables(one, name) for c in (*table.by, *Wanted.of(name).by))


def absent(columns: Iterable[str], schema: Mapping[str, Any], place: Place) -> Iterator[PolicyProblem]:
    """Columns that the data does not have."""
    yield from (PolicyProblem(place, str(RolesError.missing(c, list(schema)))) for c in columns if c not in schema)


def _of_mask(table: dict[str, Any], schema: Mapping[str, Any], roles: Roles, place: Place) -> Iterator[PolicyProblem]:
    try:
        method = find(str(table.pop("use", "")), "mask")
    except EquipoiseError:
        return
    kinds = {f.name: f.kind for f in form(method)}
    for key, value in table.items():
        if key not in COLUMN_FIELDS or kinds.get(key) not in (*COLUMN_TYPES, *COLUMNS_TYPES):
            continue
        columns = dict.fromkeys(
            c for one in _values(value, "tuple" in kinds[key]) for c in _names(one) if isinstance(c, str)
        )
        yield from absent(columns, schema, (*place, key))
        for column in (c for c in columns if c in schema and key in CHANGED_COLUMN_FIELDS):
            if words := _unfit(name_of(method), column, schema[column]):
                yield PolicyProblem((*place, key), words)
    if name_of(method) == "recode" and {"column", "level"} <= set(table):
        yield from _of_levels(table, schema, roles, place)


def _values(grid: Any, plural: bool) -> Sequence[Any]:
    """The values of a grid; none where it cannot be read."""
    try:
        return spread(grid, plural)
    except EquipoiseError:
        return ()


def _names(value: Any) -> tuple[str, ...]:
    """One name or several; anything else is none."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list | tuple) else ()


def _unfit(name: str, column: str, kind: Any) -> str:
    """Why a mask does not fit the type of a column."""
    if name in NUMERIC_MASKS and not kind.is_numeric():
        return f"{name} is for numbers, and the column {column!r} is {kind}."
    if name in ORDERED_MASKS and not (kind.is_numeric() or kind.is_temporal() or str(kind).startswith("Enum")):
        return f"{name} needs an order, and the column {column!r} is {kind}."
    return ""


def _of_levels(
    table: Mapping[str, Any], schema: Mapping[str, Any], roles: Roles, place: Place
) -> Iterator[PolicyProblem]:
    """Problems of levels that the hierarchy of the column does not have or does not allow."""
    for column in (c for c in _values(table["column"], False) if isinstance(c, str) and c in schema):
        tree = roles.hierarchies.get(column)
        if tree is None:
            words = f"The column {column!r} has no hierarchy under [roles.hierarchies]."
            yield PolicyProblem((*place, "column"), words)
            continue
        faults = (level_fault(tree, column, level) for level in _values(table["level"], False))
        yield from (PolicyProblem((*place, "level"), fault) for fault in faults if fault)


def level_fault(tree: Hierarchy, column: str, level: int | str) -> str:
    """Why a column cannot be released at a level; nothing where it can."""
    try:
        allowed = tree.level(level) in tree.allowed
    except EquipoiseError as error:
        return str(error)
    return "" if allowed else f"The level {level!r} of {column!r} is finer than its floor."
