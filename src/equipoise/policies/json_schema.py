"""JSON schema of policy files, for editors: from a pydantic model made from the sections and the listed methods."""

import json
import re
from functools import reduce
from operator import or_
from types import GenericAlias
from typing import Annotated, Any, Literal, get_type_hints

from equipoise.data.branches import BRANCHES
from equipoise.data.hierarchy import FILE_KINDS, kind_fields
from equipoise.data.roles import Roles
from equipoise.policies.limits import LIMIT_PATTERN
from equipoise.policies.mask_tables import Schema, mask_union, table_model
from equipoise.policies.policy_file import INTERNAL_FIELDS, Job
from equipoise.policies.presets import presets
from equipoise.policies.sections import Candidate, LimitTable
from equipoise.recipe.catalogue import methods

SCHEMA_DRAFT_URL = "https://json-schema.org/draft/2020-12/schema"
Texts = str | tuple[str, ...]


def schema() -> Schema:
    """The schema of policy files.

    >>> policy = schema()
    >>> policy["required"], policy["properties"]["format"]["const"]
    (['data'], 1)
    """
    from pydantic import TypeAdapter

    return {"$schema": SCHEMA_DRAFT_URL, **_without_null(TypeAdapter(_policy_model()).json_schema())}


def schema_text() -> str:
    """The schema as JSON text."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _without_null(schema: Any) -> Any:
    """The schema without null, which TOML does not have."""
    if isinstance(schema, list):
        return [_without_null(part) for part in schema if part != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    plain = {
        "anyOf" if key == "oneOf" else key: _without_null(part)
        for key, part in schema.items()
        if key != "discriminator" and (key, part) != ("default", None)
    }
    single = plain.pop("anyOf")[0] if len(plain.get("anyOf", ())) == 1 else {}
    return {**plain, **single}


def _model(kind: type, title: str, **types: Any) -> Any:
    """A table of the file: a key for each field of a dataclass, some of other types than there."""
    hints = {name: types.get(name, hint) for name, hint in get_type_hints(kind).items() if name[0] != "_"}
    about = " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
    return table_model(
        title, about, {n: hint for n, hint in hints.items() if n not in INTERNAL_FIELDS}, ("data", "limit")
    )


def _policy_model() -> Any:
    from pydantic import Field

    masks = GenericAlias(tuple, (mask_union(), ...))
    candidate = _model(Candidate, "Candidate", masks=masks, then=masks)
    return _model(
        Job, "Equipoise policy", roles=_roles(), limits=_limits(), slots=dict[str, Texts | int],
        candidates=Annotated[GenericAlias(list, candidate), Field(min_length=1)],
        extends=Literal[tuple(presets())] | Annotated[str, Field(pattern=r"\.toml$")],
        waive=dict[Literal["attack"], str],
    )  # fmt: skip


def _roles() -> Any:
    """Roles: columns by name, and hierarchies by `kind`."""
    from pydantic import Field

    kinds = [_hierarchy(kind) for kind in (*BRANCHES, *FILE_KINDS)]
    tree: Any = Annotated[reduce(or_, kinds), Field(discriminator="kind")]
    columns = {name: Texts for name, hint in get_type_hints(Roles).items() if "tuple" in str(hint)}
    return _model(Roles, "Roles", **columns, hierarchies=GenericAlias(dict, (str, tree | GenericAlias(list, tree))))


def _hierarchy(kind: str) -> Any:
    """One kind of hierarchy with its fields; a number may stand for a list of one."""
    types = kind_fields(kind) | ({"groups": dict[str, Any] | list[list[Any]]} if kind == "mapping" else {})
    alone = {name: hint | float for name, hint in types.items() if str(hint) == "tuple[float, ...]"}
    first = next(iter(types))
    return table_model(f"Hierarchy {kind}", "", {"kind": Literal[kind], **types, **alone}, ("kind", first))


def _limits() -> Any:
    """Any measure by its name; a text, a table or a list of them."""
    from pydantic import Field

    bound = Annotated[str, Field(pattern=f"^{LIMIT_PATTERN.pattern}(?: and {LIMIT_PATTERN.pattern})*$")]
    limit: Any = bound | _model(LimitTable, "Limit", limit=bound, by=Texts)
    names = "|".join(re.escape(name) for name in sorted(methods("measure"), key=len, reverse=True))
    measure = rf"^(?:risk\.|attacks\.|utility\.|tables\.)?(?:{names.replace('_', '[_-]')}|[A-Z]\w+)(?:[:(\[ ].*)?$"
    about = '[limits]: what must hold, by measure: "< 0.02", or a table with the reason.'
    more: Any = {"propertyNames": {"pattern": measure}, "examples": sorted(methods("measure"))}
    several: Any = Annotated[GenericAlias(list, limit), Field(min_length=1)]
    return Annotated[GenericAlias(dict, (str, limit | several)), Field(description=about, json_schema_extra=more)]
