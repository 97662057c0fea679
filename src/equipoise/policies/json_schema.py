"""The policy format as a JSON schema, for editors: made from the dataclasses and from the methods that are listed."""

import json
import re
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

from equipoise.data.branches import BRANCHES
from equipoise.data.roles import Roles
from equipoise.methods.method import Rule
from equipoise.policies.limits import WRITTEN
from equipoise.policies.policy_file import OWN, Job
from equipoise.policies.presets import presets
from equipoise.policies.sections import Candidate, LimitTable
from equipoise.recipe.catalogue import Field, form, methods, summary

Schema = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> Schema:
    """The schema of policy files.

    >>> found = schema()
    >>> found["required"], found["properties"]["format"]["const"]
    (['data'], 1)
    """
    made = _section(Job, skip=OWN)
    made["properties"] |= {
        "roles": _roles(),
        "limits": _limits(),
        "candidates": {"type": "array", "minItems": 1, "items": _candidate()},
        "extends": {"anyOf": [{"enum": list(presets())}, {"type": "string", "pattern": r"\.toml$"}]},
        "waive": {"type": "object", "properties": {"attack": {"type": "string"}}, "additionalProperties": False},
        "slots": {"type": "object", "additionalProperties": {"anyOf": [_text(), _texts()]}},
    }
    return {"$schema": DRAFT, "title": "Equipoise policy", **made, "required": ["data"], "$defs": {"mask": _masks()}}


def schema_text() -> str:
    """The schema as a file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _section(kind: type, skip: tuple[str, ...] = ()) -> Schema:
    """A table of the file: a key for each field."""
    hints = get_type_hints(kind)
    own = [f for f in fields(kind) if f.name not in skip]
    needed = [f.name for f in own if f.default is MISSING and f.default_factory is MISSING]
    return {
        "type": "object",
        "description": " ".join((kind.__doc__ or "").partition("\n\n")[0].split()),
        "properties": {f.name: _typed(hints[f.name]) for f in own},
        "additionalProperties": False,
        **({"required": needed} if needed else {}),
    }


def _typed(kind: Any) -> Schema:
    """A type as JSON schema has it; a section by its own fields, what is not plain data as text."""
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.errors import PydanticUserError

    if hasattr(kind, "__dataclass_fields__"):
        return _section(kind)
    inner = getattr(kind, "__args__", ())
    if kind is Rule or Rule in inner:
        return _text()
    if inner and hasattr(inner[0], "__dataclass_fields__") and "tuple" in str(kind):
        return {"type": "array", "items": _section(inner[0])}
    section = next((one for one in inner if hasattr(one, "__dataclass_fields__")), None)
    if section is not None and "|" in str(kind):
        return _section(section)
    try:
        made = TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True)).json_schema()
    except PydanticUserError:
        return {"type": ["string", "number", "boolean", "array", "object"]}
    return _without_null(made)


def _without_null(made: Schema) -> Schema:
    """TOML has no null: a key is left out."""
    choices = [one for one in made.get("anyOf", []) if one.get("type") != "null"]
    if not choices:
        return made
    return choices[0] if len(choices) == 1 else {**made, "anyOf": choices}


def _text() -> Schema:
    return {"type": "string"}


def _texts() -> Schema:
    return {"type": "array", "items": _text(), "uniqueItems": True}


def _roles() -> Schema:
    """Roles: columns by name, and hierarchies of a kind each."""
    made = _section(Roles)
    many = ("keys", "sensitive", "numeric", "domain", "direct")
    made["properties"] |= {name: {"anyOf": [_text(), _texts()]} for name in many}
    tree = {"type": "object", "required": ["kind"], "properties": {"kind": {"enum": [*BRANCHES, "csv"]}}}
    trees = {"anyOf": [tree, {"type": "array", "items": tree}]}
    made["properties"]["hierarchies"] = {"type": "object", "additionalProperties": trees}
    return made


def _limits() -> Schema:
    """Any measure by its name; a text, a table or a list of them."""
    one = WRITTEN.pattern
    bound = {"type": "string", "pattern": f"^{one}(?: and {one})*$"}
    table = _section(LimitTable)
    table["properties"] |= {"limit": bound, "by": {"anyOf": [_text(), _texts()]}}
    single = {"anyOf": [bound, table]}
    names = "|".join(re.escape(name) for name in sorted(methods("measure"), key=len, reverse=True))
    known = rf"^(?:risk\.|attacks\.|utility\.|tables\.)?(?:{names.replace('_', '[_-]')}|[A-Z]\w+)(?:[:(\[ ].*)?$"
    return {
        "type": "object",
        "description": '[limits]: what must hold, by measure: "< 0.02", or a table with the reason.',
        "propertyNames": {"pattern": known},
        "additionalProperties": {"anyOf": [*single["anyOf"], {"type": "array", "minItems": 1, "items": single}]},
        "examples": sorted(methods("measure")),
    }


def _candidate() -> Schema:
    made = _section(Candidate)
    made["properties"] |= {name: {"type": "array", "items": {"$ref": "#/$defs/mask"}} for name in ("masks", "then")}
    return made


def _masks() -> Schema:
    """One mask or method of tables, with its own parameters."""
    return {"type": "object", "required": ["use"], "anyOf": [_mask(n, kind) for n, kind in methods("mask").items()]}


def _mask(name: str, kind: type) -> Schema:
    own = form(kind)
    spelt = list(dict.fromkeys([name, name.replace("_", "-"), kind.__name__]))
    return {
        "title": name,
        "description": summary(kind),
        "properties": {"use": {"enum": spelt}, **{f.name: _grid(f) for f in own}},
        "required": ["use", *(f.name for f in own if f.required)],
        "additionalProperties": False,
    }


def _grid(field: Field) -> Schema:
    """A value of a parameter, a list of values, or a range of numbers; '10%' is a number."""
    one = _typed(field.type)
    told = json.dumps(one)
    one = {"anyOf": [_text(), one]} if one.get("items") == _text() else one
    choices = [one, {"type": "array", "minItems": 1, "items": one}]
    if '"number"' in told or '"integer"' in told:
        ends = {"from": {"type": "number"}, "to": {"type": "number"}, "steps": {"type": "integer", "minimum": 1}}
        choices.append({"type": "object", "properties": ends, "required": [*ends], "additionalProperties": False})
        choices.append({"type": "string", "pattern": "^[+-]?[0-9.]+%$"})
    return {"anyOf": choices}
