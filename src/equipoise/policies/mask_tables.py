"""Masks of a policy file as pydantic models: a union discriminated on `use`, made from the fields of the methods."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, make_dataclass
from functools import cache, partial, reduce
from operator import or_
from typing import Annotated, Any, Literal

from equipoise.ground.errors import hint
from equipoise.ground.type_adapters import type_adapter
from equipoise.methods.method import Rule, name_of
from equipoise.policies.sections import PolicyProblem
from equipoise.policies.toml_lines import Place
from equipoise.recipe.catalogue import Field, form, methods, summary, typed
from equipoise.recipe.recipe import spread

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
PERCENT: Schema = {"type": "string", "pattern": "^[+-]?[0-9.]+%$"}
RANGE: Schema = {
    "type": "object",
    "properties": {"from": {"type": "number"}, "to": {"type": "number"}, "steps": {"type": "integer", "minimum": 1}},
    "required": ["from", "to", "steps"],
    "additionalProperties": False,
}


def mask_union() -> Any:
    """The type of one mask or method of tables in a file: `use`, and its own parameters."""
    return _union(tuple(methods("mask").items()))


@cache
def _union(masks: tuple[tuple[str, type], ...]) -> Any:
    from pydantic import Field

    models = [_mask_model(name, method) for name, method in masks]
    return Annotated[reduce(or_, models), Field(discriminator="use")]


def table_model(title: str, about: str, types: Mapping[str, Any], needed: Collection[str]) -> type:
    """A table of a policy file as pydantic reads it: a key for each type, and no other."""
    keys = [(name, kind, field() if name in needed else field(default=None)) for name, kind in types.items()]
    more = {"__pydantic_config__": {"extra": "forbid", "title": title}, "__doc__": about}
    return make_dataclass(title, keys, kw_only=True, namespace=more)


def _mask_model(name: str, method: type) -> type:
    from pydantic import AfterValidator, WithJsonSchema

    def kind(field: Field) -> Any:
        check = AfterValidator(partial(_check_value, field, f"{name}: {field.name}"))
        return Annotated[Any, check, WithJsonSchema(_grid(field))]

    names = tuple(dict.fromkeys([name, name.replace("_", "-"), method.__name__]))
    types = {"use": Literal[names], **{field.name: kind(field) for field in form(method)}}
    needed = ["use", *(field.name for field in form(method) if field.required)]
    return table_model(name, summary(method), types, needed)


def _check_value(field: Field, what: str, value: Any) -> Any:
    """A value of a parameter, or every value of its grid, of the type of the field."""
    for one in spread(value, "tuple" in field.kind):
        typed(one, field.type, what)
    return value


def mask_problems(table: Mapping[str, Any], name: str, method: type, place: Place) -> Iterator[PolicyProblem]:
    """What is wrong with the parameters of a mask, each by itself."""
    from pydantic import ValidationError

    try:
        type_adapter(mask_union()).validate_python(
            {"use": name_of(method)} | {k.replace("-", "_"): v for k, v in table.items()}
        )
    except ValidationError as refusal:
        errors = refusal.errors(include_input=False)
        if lacking := [str(error["loc"][-1]) for error in errors if error["type"] == "missing"]:
            yield PolicyProblem(place, f"{name} needs {', '.join(lacking)}.")
        for error in errors:
            key = next((k for k in table if k.replace("-", "_") == error["loc"][-1]), "")
            if error["type"] == "unexpected_keyword_argument":
                names = [field.name for field in form(method)]
                yield PolicyProblem((*place, key), f"{name} has no parameter {key!r}.{hint(key, names)}")
            elif error["type"] != "missing":
                yield PolicyProblem((*place, key), str(error["msg"]).removeprefix("Value error, "))


def _grid(field: Field) -> Schema:
    """A value of a parameter, a list of values, or a range of numbers; '10%' is a number."""
    value = _value(field.type)
    numeric = any(kind in str(value) for kind in ("'number'", "'integer'"))
    value = {"anyOf": [TEXT, value]} if value.get("items") == TEXT else value
    return {"anyOf": [value, {"type": "array", "minItems": 1, "items": value}, *((RANGE, PERCENT) if numeric else ())]}


def _value(kind: Any) -> Schema:
    """The type of a field as JSON schema has it; a rule as text."""
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.errors import PydanticUserError

    if kind is Rule or Rule in getattr(kind, "__args__", ()):
        return TEXT
    try:
        return TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True)).json_schema()
    except PydanticUserError:
        return {"type": ["string", "number", "boolean", "array", "object"]}
