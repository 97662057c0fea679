"""Opening a file: what its columns are and probably mean."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.doors.web.memory import Memory, frozen
from equipoise.files import becomes, format_of
from equipoise.ground.errors import ParameterError, hint
from equipoise.inspection.suggest_roles import PLURAL_ROLES, ROLE_FIELDS, ROLE_WORDS, Suggestion, suggest_roles

FIRST = 10
"""Records that a preview shows."""


def look(held: Memory, folder: Path, policy: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of the open file, each with its type, its label, its role and the role it seems to have."""
    records = held.raw(folder, policy["data"])
    found = _suggested(held, records, policy)
    given = Roles.from_plain(policy.get("roles", {}), folder)
    schema = records.schema()
    rows = [
        {
            "name": proposal.column,
            "type": _kind(schema[proposal.column]),
            "label": records.labels.of(proposal.column).label or "",
            "role": role_of(given, proposal.column),
            "suggested": proposal.role,
            "reason": proposal.reason,
            "confidence": proposal.confidence,
            "coarsens": proposal.column in given.hierarchies,
        }
        for proposal in found.proposals
    ]
    format = format_of(policy["data"]["path"])
    return {"records": found.records, "columns": rows, "format": format, "released_as": becomes(format)}


def suggested(held: Memory, folder: Path, policy: Mapping[str, Any]) -> dict[str, Any]:
    """The suggested roles with their hierarchies, as a policy has them."""
    records = held.raw(folder, policy["data"])
    return _suggested(held, records, policy).roles.to_plain()


def with_role(held: Memory, folder: Path, policy: Mapping[str, Any], column: str, role: str) -> dict[str, Any]:
    """The roles when one column gets another role; a key comes with the hierarchy that suits it."""
    records = held.raw(folder, policy["data"])
    schema = records.schema()
    if column not in schema:
        raise ParameterError(f"No column {column!r} in the data.{hint(column, list(schema))}")
    if role not in ROLE_WORDS:
        raise ParameterError(f"No role {role!r}.{hint(role, list(ROLE_WORDS))}")
    plain = without(dict(Roles.from_plain(policy.get("roles", {}), folder).to_plain()), column)
    if role in PLURAL_ROLES:
        name = ROLE_FIELDS.get(role, role)
        plain[name] = [c for c in schema if c in (*plain.get(name, ()), column)]
    elif role != "none":
        plain[role] = column
    trees = {p.column: p.hierarchy for p in _suggested(held, records, policy).proposals if p.hierarchy}
    if role in ("key", "sensitive") and column in trees:
        plain["hierarchies"] = {**plain.get("hierarchies", {}), column: trees[column].to_plain()}
    made = Roles.from_plain(plain, folder)
    replace(records, roles=made).check()
    return made.to_plain()


def first(held: Memory, folder: Path, policy: Mapping[str, Any]) -> dict[str, Any]:
    """The first records with their values; asked for by name."""
    table = held.raw(folder, policy["data"]).collect().head(FIRST)
    rows = [["" if value is None else str(value)[:80] for value in row] for row in table.rows()]
    return {"columns": table.columns, "rows": rows}


def without(plain: dict[str, Any], column: str) -> dict[str, Any]:
    """Roles in which a column has none."""
    left: dict[str, Any] = {}
    for role, value in plain.items():
        if role == "hierarchies":
            value = {name: tree for name, tree in value.items() if name != column}
        elif isinstance(value, list):
            value = [name for name in value if name != column]
        elif value == column and role != "missing":
            continue
        left[role] = value
    return {role: value for role, value in left.items() if value not in ([], {})}


def role_of(roles: Roles, column: str) -> str:
    """The first role that a column has, as suggestions name it."""
    for role in ROLE_WORDS:
        given = getattr(roles, ROLE_FIELDS.get(role, role), None)
        if given == column or (isinstance(given, tuple) and column in given):
            return role
    return "none"


def _suggested(held: Memory, records: Records, policy: Mapping[str, Any]) -> Suggestion:
    return held.once(("suggested", frozen(policy["data"])), lambda: suggest_roles(records))


def _kind(dtype: Any) -> str:
    """A type in a word."""
    if dtype.is_numeric():
        return "number" if dtype.is_float() or dtype.is_decimal() else "whole number"
    if dtype.is_temporal():
        return "date or time"
    return {"Boolean": "yes or no", "String": "text", "Categorical": "text", "Enum": "text"}.get(
        str(dtype).partition("(")[0], str(dtype).partition("(")[0].lower()
    )
