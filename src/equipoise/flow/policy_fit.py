"""What does not fit the data: columns that are not there, masks for numbers on a text, levels that no hierarchy has."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from equipoise.core.errors import EquipoiseError, RolesError
from equipoise.core.method import name_of
from equipoise.core.records import Records
from equipoise.core.roles import Roles
from equipoise.flow.catalogue import find, form
from equipoise.flow.policy_limits import tables
from equipoise.flow.policy_lines import Place
from equipoise.flow.policy_parts import Candidate, Intruder, Problem
from equipoise.flow.policy_scales import Wanted
from equipoise.flow.recipe import spread

NUMBERS = ("noise", "shuffle", "matrix", "top_code", "bottom_code")
"""Masks whose columns must be numbers."""
RANKS = ("rank_swap",)
"""Masks whose columns must have an order: numbers or dates."""
CHANGED = ("column", "columns")
NAMED = (*CHANGED, "keys", "attribute", "protected", "given", "strata", "similar")
"""Parameters that name columns of the data."""


def misfits(
    records: Records,
    candidates: Sequence[Candidate],
    limits: Mapping[str, Any],
    measures: Iterable[str],
    scenarios: Sequence[Intruder],
) -> Iterator[Problem]:
    """Every misfit of a policy and the columns of its data; what cannot be read is passed over."""
    schema = records.schema()
    for i, candidate in enumerate(candidates):
        for name, steps in (("masks", candidate.masks), ("then", candidate.then)):
            for j, table in enumerate(steps):
                yield from _of_mask(dict(table), schema, records.roles, ("candidates", i, name, j))
    for i, one in enumerate(scenarios):
        yield from _absent((*one.known, *(one.sensitive or ())), schema, ("scenarios", i, "known"))
    for name, given in limits.items():
        yield from _absent(_groups(name, given), schema, ("limits", name))
    for i, name in enumerate(measures):
        yield from _absent(Wanted.of(name).by, schema, ("measures", i))


def _groups(name: str, given: Any) -> tuple[str, ...]:
    """The columns by which a limit goes, where it can be read."""
    try:
        return tuple(column for table in tables(given, name) for column in (*table.by, *Wanted.of(name).by))
    except EquipoiseError:
        return ()


def _absent(columns: Iterable[str], schema: Mapping[str, Any], place: Place) -> Iterator[Problem]:
    yield from (Problem(place, str(RolesError.missing(c, list(schema)))) for c in columns if c not in schema)


def _of_mask(table: dict[str, Any], schema: Mapping[str, Any], roles: Roles, place: Place) -> Iterator[Problem]:
    try:
        method = find(str(table.pop("use", "")), "mask")
    except EquipoiseError:
        return
    kinds = {f.name: f.kind for f in form(method)}
    for key, value in table.items():
        if key not in NAMED or kinds.get(key) not in ("str", "str | None", "tuple[str, ...]", "tuple[str, ...] | None"):
            continue
        columns = dict.fromkeys(c for one in _values(value, "tuple" in kinds[key]) for c in _names(one))
        yield from _absent(columns, schema, (*place, key))
        for column in (c for c in columns if c in schema and key in CHANGED):
            if words := _unfit(name_of(method), column, schema[column]):
                yield Problem((*place, key), words)
    if name_of(method) == "recode" and {"column", "level"} <= set(table):
        yield from _of_levels(table, schema, roles, place)


def _values(given: Any, plural: bool) -> Sequence[Any]:
    """The values of a grid; none where it cannot be read."""
    try:
        return spread(given, plural)
    except EquipoiseError:
        return ()


def _names(given: Any) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())


def _unfit(name: str, column: str, kind: Any) -> str:
    """Why a mask does not fit the type of a column."""
    if name in NUMBERS and not kind.is_numeric():
        return f"{name} is for numbers, and the column {column!r} is {kind}."
    if name in RANKS and not (kind.is_numeric() or kind.is_temporal() or str(kind).startswith("Enum")):
        return f"{name} needs an order, and the column {column!r} is {kind}."
    return ""


def _of_levels(table: Mapping[str, Any], schema: Mapping[str, Any], roles: Roles, place: Place) -> Iterator[Problem]:
    """A level that the hierarchy of the column has, and allows."""
    columns = [c for c in _values(table["column"], False) if c in schema]
    for column in columns:
        if column not in roles.hierarchies:
            yield Problem((*place, "column"), f"The column {column!r} has no hierarchy under [roles.hierarchies].")
            continue
        tree = roles.hierarchies[column]
        for level in _values(table["level"], False):
            try:
                if tree.level(level) not in tree.allowed:
                    yield Problem((*place, "level"), f"The level {level!r} of {column!r} is finer than its floor.")
            except EquipoiseError as error:
                yield Problem((*place, "level"), str(error))
