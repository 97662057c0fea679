"""Forms made from the fields of methods, and parameters read from filled-in forms.

A form has texts by field name, and ticked values. Numbers: "0.1", "0.1, 0.2" (each is tried), "0.1 to 0.5 in 8" (a
range). Texts: several are separated by ";", as rules contain commas. JSON is always allowed.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING
from typing import Any, Literal, get_args, get_origin

from equipoise.ground.errors import ParameterError
from equipoise.methods.method import Rule, name_of
from equipoise.policies.checks_on_data import COLUMN_FIELDS, COLUMN_TYPES, COLUMNS_TYPES
from equipoise.recipe.catalogue import Field, family, form, methods, summary

COLUMN_PARAMETERS = (
    *COLUMN_FIELDS, "known", "variables", "sensitive", "household", "ordinal", "nominal", "blocks", "strings", "near",
    "order",
)  # fmt: skip
"""Parameters whose values are names of columns."""
RANGE_PATTERN = re.compile(r"\s*(\S+)\s+to\s+(\S+)\s+in\s+(\d+)\s*(?:steps?)?\s*")
TICKED_KINDS = ("flag", "choice", "column", "columns")
"""Kinds of parameters that are chosen by ticking."""
FLAG_VALUES = {"yes": True, "no": False}
FAMILY_HEADINGS = {"risk": "Risk: counted", "attacks": "Risk: tried by attacks", "utility": "Use"}
"""Headings of the measures of records, by family."""
Plain = dict[str, Any]
Kind = Literal["flag", "choice", "column", "columns", "number", "several", "text"]


def kind_of(field: Field) -> Kind:
    """The kind of input that a parameter needs."""
    words, types = field.kind, _types(field.type)
    if field.type is bool:
        return "flag"
    if types and all(get_origin(one) is Literal for one in types):
        return "choice"
    if field.name in COLUMN_PARAMETERS and words in COLUMN_TYPES:
        return "column"
    if field.name in COLUMN_PARAMETERS and words in COLUMNS_TYPES:
        return "columns"
    if "tuple" in words:
        return "several"
    return "number" if types and all(one in (int, float) for one in types) else "text"


def _kind(field: Field, value: Any) -> Kind:
    """The kind of input for a parameter with a value: several lists of columns, or alternative columns, are text."""
    kind = kind_of(field)
    if kind == "columns" and isinstance(value, list) and any(isinstance(one, list) for one in value):
        return "several"
    return "text" if kind == "column" and isinstance(value, list) else kind


def _types(kind: Any) -> list[Any]:
    """The types of a union, without None."""
    members = get_args(kind) if get_origin(kind) not in (Literal, tuple) and get_args(kind) else (kind,)
    return [one for one in members if one is not type(None)]


def methods_by_heading(verb: Literal["mask", "measure"]) -> dict[str, list[Plain]]:
    """The methods for records under their headings, each with its summary."""
    by_heading: dict[str, list[Plain]] = {}
    for name, method in methods(verb).items():
        if family(method) == "tables":
            continue
        heading = FAMILY_HEADINGS[family(method)] if verb == "measure" else "Methods"
        row = {"name": name, "words": name.replace("_", " "), "about": summary(method)}
        by_heading.setdefault(heading, []).append(row)
    return by_heading


def form_of(method: type, parameters: Mapping[str, Any]) -> Plain:
    """The form of a method, filled in with its current parameters."""
    return {
        "use": name_of(method),
        "words": name_of(method).replace("_", " "),
        "about": summary(method),
        "fields": [_field(field, parameters.get(field.name)) for field in form(method)],
    }


def _field(field: Field, value: Any) -> Plain:
    kind = _kind(field, value)
    literals = [one for literal in _types(field.type) for one in get_args(literal)] if kind == "choice" else []
    options = ["yes", "no"] if kind == "flag" else literals
    ticked = _ticked_values(value) if kind in TICKED_KINDS else []
    return {
        "name": field.name,
        "words": field.name.replace("_", " "),
        "kind": kind,
        "required": field.required,
        "options": options,
        "picked": ticked,
        "value": "" if kind in TICKED_KINDS else typed_text(value, kind),
        "default": "" if field.required or field.default is MISSING else typed_text(field.default, kind),
        "rule": field.type is Rule or Rule in get_args(field.type),
        "first": field.required or (kind == "number" and field.name != "seed"),
        "filled": value is not None,
    }


def _ticked_values(value: Any) -> list[str]:
    if value is None:
        return []
    values = value if isinstance(value, list | tuple) else [value]
    return [("yes" if one else "no") if isinstance(one, bool) else str(one) for one in values]


def typed_text(value: Any, kind: Kind) -> str:
    """A plain value as a user would type it.

    >>> typed_text([0.1, 0.2], "number"), typed_text({"from": 0.1, "to": 0.5, "steps": 8}, "number")
    ('0.1, 0.2', '0.1 to 0.5 in 8')
    """
    if value is None:
        return ""
    if isinstance(value, Mapping) and set(value) == {"from", "to", "steps"}:
        return f"{_word(value['from'])} to {_word(value['to'])} in {value['steps']}"
    if isinstance(value, list | tuple) and not value:
        return ""
    if isinstance(value, list | tuple):
        mark = "; " if kind == "text" else ", "
        words = [_word(one) for one in value]
        plain = all(isinstance(one, str | int | float) and not isinstance(one, bool) for one in value)
        return mark.join(words) if plain and not any(mark[0] in word for word in words) else json.dumps(value)
    return json.dumps(value) if isinstance(value, Mapping) else _word(value)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def read_form(
    method: type,
    texts: Mapping[str, str],
    picked: Iterable[tuple[str, str]],
    before: Mapping[str, Any] | None = None,
) -> Plain:
    """The parameters of a filled-in form, as in a policy; fields left unchanged keep their value in `before`."""
    ticked: dict[str, list[str]] = {}
    for name, one in picked:
        ticked.setdefault(name, []).append(one)
    parameters: Plain = {}
    value: Any
    for field in form(method):
        old = (before or {}).get(field.name)
        kind = _kind(field, old)
        if kind in TICKED_KINDS and field.name not in texts:
            chosen = [text for text in ticked.get(field.name, []) if text]
            value = old if chosen == _ticked_values(old) else _choice(chosen, kind)
        else:
            text = texts.get(field.name, "").strip()
            value = old if text == typed_text(old, kind) else read(text, field)
        if value is not None and (field.required or value != _as_list(field.default)):
            parameters[field.name] = value
    return parameters


def _choice(values: Sequence[str], kind: Kind) -> Any:
    """One choice, or several alternatives; columns form one list."""
    if not values:
        return None
    choices = [FLAG_VALUES.get(value, value) for value in values] if kind == "flag" else list(values)
    return choices if kind == "columns" or len(choices) > 1 else choices[0]


def _as_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def read(text: str, field: Field) -> Any:
    """A typed text as plain data; None where it is empty."""
    if not text:
        return None
    if text[0] in "[{":
        try:
            return json.loads(text)
        except ValueError:
            raise ParameterError(f"{field.name}: a text that begins with {text[0]} must be JSON.") from None
    kind, types = kind_of(field), _types(field.type)
    if kind == "number":
        return _numbers(text, field)
    if kind in ("several", "columns"):
        return _values_of(text, field)
    if int in types and not set(types) & {str}:
        return _number(text) if _number(text) is not None else text
    parts = [part.strip() for part in text.split("," if str in types and int in types else ";") if part.strip()]
    return parts if len(parts) > 1 else parts[0] if parts else None


def _numbers(text: str, field: Field) -> Any:
    """A number, several alternatives, or a range."""
    if match := RANGE_PATTERN.fullmatch(text):
        ends = [_required_number(part, field) for part in match.groups()[:2]]
        return {"from": ends[0], "to": ends[1], "steps": int(match[3])}
    several = [_required_number(part, field) for part in re.split(r"[,;]", text) if part.strip()]
    return several if len(several) > 1 else several[0] if several else None


def _values_of(text: str, field: Field) -> Any:
    """A list of values; a single value where the parameter accepts one."""
    parts: list[Any] = [part.strip() for part in text.split(",") if part.strip()]
    words = field.kind.replace("typing.", "")
    if "float" in words or "int" in words:
        parts = [part if (number := _number(part)) is None else number for part in parts]
    plural = words.startswith(("tuple[str, ...]", "tuple[float, ...]")) and "| str" not in words
    return parts if plural or len(parts) != 1 else parts[0]


def _required_number(text: str, field: Field) -> float | int:
    number = _number(text)
    if number is None:
        raise ParameterError(f"{field.name}: write a number, several with commas, or a range like 0.1 to 0.5 in 8.")
    return number


def _number(text: str) -> float | int | None:
    """The number in a text, or None; 10% is 0.1."""
    bare = text.strip()
    try:
        if bare.endswith("%"):
            return float(bare[:-1]) / 100
        return int(bare) if re.fullmatch(r"[+-]?\d{1,18}", bare) else float(bare)
    except ValueError:
        return None
