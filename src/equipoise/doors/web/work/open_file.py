"""Columns of the opened file: their types, labels, and actual and suggested roles."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.doors.web.memory import Memory, Policy, frozen
from equipoise.files import becomes, format_of
from equipoise.ground.errors import ParameterError, hint
from equipoise.inspection.suggest_roles import PLURAL_ROLES, ROLE_FIELDS, ROLE_WORDS, Suggestion, suggest_roles

PREVIEW_RECORDS = 10
"""Records shown in the preview."""
SUGGESTED = "suggested"
"""Instead of a role: what each column's name and values suggest."""


def look(memory: Memory, folder: Path, policy: Policy) -> dict[str, Any]:
    """The columns of the open file, each with its type, label, role and suggested role."""
    records = memory.raw(folder, policy["data"])
    suggestion = _suggestion(memory, records, policy)
    roles = Roles.from_plain(policy.get("roles", {}), folder)
    schema = records.schema()
    rows = [
        {
            "name": proposal.column,
            "type": column_kind(schema[proposal.column]),
            "label": records.labels.of(proposal.column).label or "",
            "role": role_of(roles, proposal.column),
            "suggested": proposal.role,
            "reason": proposal.reason,
            "confidence": proposal.confidence,
            "coarsens": proposal.column in roles.hierarchies,
        }
        for proposal in suggestion.proposals
    ]
    format = format_of(policy["data"]["path"])
    return {"records": suggestion.records, "columns": rows, "format": format, "released_as": becomes(format)}


def suggested_roles(memory: Memory, folder: Path, policy: Policy) -> dict[str, Any]:
    """The suggested roles with their hierarchies, as in a policy."""
    records = memory.raw(folder, policy["data"])
    return _suggestion(memory, records, policy).roles.to_plain()


def with_role(memory: Memory, folder: Path, policy: Policy, columns: Sequence[str], role: str) -> dict[str, Any]:
    """The roles with that of some columns changed, or as suggested; a key gets its suggested hierarchy."""
    records = memory.raw(folder, policy["data"])
    schema = records.schema()
    if strangers := [column for column in columns if column not in schema]:
        raise ParameterError(f"No column {strangers[0]!r} in the data.{hint(strangers[0], list(schema))}")
    if role not in (*ROLE_WORDS, SUGGESTED):
        raise ParameterError(f"No role {role!r}.{hint(role, list(ROLE_WORDS))}")
    proposals = {proposal.column: proposal for proposal in _suggestion(memory, records, policy).proposals}
    plain = dict(Roles.from_plain(policy.get("roles", {}), folder).to_plain())
    for column in columns:
        plain = without_column(plain, column)
    for column in columns:
        own: Any = proposals[column].role if role == SUGGESTED else role
        if own in PLURAL_ROLES:
            plain.setdefault(ROLE_FIELDS.get(own, own), []).append(column)
        elif own != "none":
            if own in plain:
                raise ParameterError(f"Only one column can be the {own}: {plain[own]!r} is.")
            plain[own] = column
        if own in ("key", "sensitive") and (tree := proposals[column].hierarchy):
            plain["hierarchies"] = {**plain.get("hierarchies", {}), column: tree.to_plain()}
    place = list(schema).index
    plain = {name: sorted(v, key=place) if isinstance(v, list) else v for name, v in plain.items()}
    roles = Roles.from_plain(plain, folder)
    replace(records, roles=roles).check()
    return roles.to_plain()


def first_records(memory: Memory, folder: Path, policy: Policy) -> dict[str, Any]:
    """The first records with their values; only shown on request."""
    table = memory.raw(folder, policy["data"]).collect().head(PREVIEW_RECORDS)
    rows = [["" if value is None else str(value)[:80] for value in row] for row in table.rows()]
    return {"columns": table.columns, "rows": rows}


def without_column(plain: dict[str, Any], column: str) -> dict[str, Any]:
    """The roles without a column."""
    remaining: dict[str, Any] = {}
    for role, value in plain.items():
        if role == "hierarchies":
            value = {name: tree for name, tree in value.items() if name != column}
        elif isinstance(value, list):
            value = [name for name in value if name != column]
        elif value == column and role != "missing":
            continue
        remaining[role] = value
    return {role: value for role, value in remaining.items() if value not in ([], {})}


def role_of(roles: Roles, column: str) -> str:
    """The first role of a column, in the words of the suggestions."""
    for role in ROLE_WORDS:
        names = getattr(roles, ROLE_FIELDS.get(role, role), None)
        if names == column or (isinstance(names, tuple) and column in names):
            return role
    return "none"


def _suggestion(memory: Memory, records: Records, policy: Policy) -> Suggestion:
    return memory.once(("suggested", frozen(policy["data"])), lambda: suggest_roles(records))


def column_kind(dtype: Any) -> str:
    """The name of a data type for users."""
    if dtype.is_numeric():
        return "number" if dtype.is_float() or dtype.is_decimal() else "whole number"
    if dtype.is_temporal():
        return "date or time"
    return {"Boolean": "yes or no", "String": "text", "Categorical": "text", "Enum": "text"}.get(
        str(dtype).partition("(")[0], str(dtype).partition("(")[0].lower()
    )
