"""Forms made from the fields of methods, and plain parameters from what was filled in.

A form is names with texts, and what was ticked. Numbers: "0.1", "0.1, 0.2" (each is tried), "0.1 to 0.5 in 8" (a
range). Texts: several are parted by ";", as rules have commas of their own. Anything may be written as JSON.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING
from typing import Any, Literal, get_args, get_origin

from equipoise.ground.errors import ParameterError
from equipoise.methods.method import Rule, name_of
from equipoise.policies.checks_on_data import COLUMN_FIELDS
from equipoise.recipe.catalogue import Field, family, form, methods, summary

COLUMNS = (
    *COLUMN_FIELDS, "known", "variables", "sensitive", "household", "ordinal", "nominal", "blocks", "strings", "near",
    "order",
)  # fmt: skip
"""Parameters that name columns."""
RANGE = re.compile(r"\s*(\S+)\s+to\s+(\S+)\s+in\s+(\d+)\s*(?:steps?)?\s*")
TICKED = ("flag", "choice", "column", "columns")
"""Parameters that are filled in by ticking."""
FLAGS = {"yes": True, "no": False}
FAMILIES = {"risk": "Risk: counted", "attacks": "Risk: tried by attacks", "utility": "Use"}
"""The measures of records as a list groups them."""
Plain = dict[str, Any]
Kind = Literal["flag", "choice", "column", "columns", "number", "several", "text"]


def kind_of(field: Field) -> Kind:
    """What a parameter is filled in by."""
    words, types = field.kind, _types(field.type)
    if field.type is bool:
        return "flag"
    if types and all(get_origin(one) is Literal for one in types):
        return "choice"
    if field.name in COLUMNS and words in ("str", "str | None"):
        return "column"
    if field.name in COLUMNS and words in ("tuple[str, ...]", "tuple[str, ...] | None"):
        return "columns"
    if "tuple" in words:
        return "several"
    return "number" if types and all(one in (int, float) for one in types) else "text"


def _kind(field: Field, value: Any) -> Kind:
    """The same for a parameter that has a value: several lists of columns, or columns that are tried each, are text."""
    kind = kind_of(field)
    if kind == "columns" and isinstance(value, list) and any(isinstance(one, list) for one in value):
        return "several"
    return "text" if kind == "column" and isinstance(value, list) else kind


def _types(kind: Any) -> list[Any]:
    """The types of a union, without None."""
    found = get_args(kind) if get_origin(kind) not in (Literal, tuple) and get_args(kind) else (kind,)
    return [one for one in found if one is not type(None)]


def listed(verb: Literal["mask", "measure"]) -> dict[str, list[Plain]]:
    """The methods for records by the heading they stand under, each with what it does."""
    found: dict[str, list[Plain]] = {}
    for name, method in methods(verb).items():
        if family(method) == "tables":
            continue
        heading = FAMILIES[family(method)] if verb == "measure" else "Methods"
        found.setdefault(heading, []).append({"name": name, "words": name.replace("_", " "), "about": summary(method)})
    return found


def filled(method: type, given: Mapping[str, Any]) -> Plain:
    """A form of a method, with the parameters that were given before."""
    return {
        "use": name_of(method),
        "words": name_of(method).replace("_", " "),
        "about": summary(method),
        "fields": [_field(field, given.get(field.name)) for field in form(method)],
    }


def _field(field: Field, value: Any) -> Plain:
    kind = _kind(field, value)
    told = [one for literal in _types(field.type) for one in get_args(literal)] if kind == "choice" else []
    options = ["yes", "no"] if kind == "flag" else told
    ticked = _ticked(value) if kind in TICKED else []
    return {
        "name": field.name,
        "words": field.name.replace("_", " "),
        "kind": kind,
        "required": field.required,
        "options": options,
        "picked": ticked,
        "value": "" if kind in TICKED else shown(value, kind),
        "default": "" if field.required or field.default is MISSING else shown(field.default, kind),
        "rule": field.type is Rule or Rule in get_args(field.type),
        "first": field.required or (kind == "number" and field.name != "seed"),
        "filled": value is not None,
    }


def _ticked(value: Any) -> list[str]:
    if value is None:
        return []
    found = value if isinstance(value, list | tuple) else [value]
    return [("yes" if one else "no") if isinstance(one, bool) else str(one) for one in found]


def shown(value: Any, kind: Kind) -> str:
    """A plain value as it would be typed.

    >>> shown([0.1, 0.2], "number"), shown({"from": 0.1, "to": 0.5, "steps": 8}, "number"), shown(("a", "b"), "several")
    ('0.1, 0.2', '0.1 to 0.5 in 8', 'a, b')
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


def given(
    method: type,
    texts: Mapping[str, str],
    picked: Iterable[tuple[str, str]],
    before: Mapping[str, Any] | None = None,
) -> Plain:
    """The parameters that were filled in, as a policy writes them; what was left as it stood before stays as it was."""
    ticked: dict[str, list[str]] = {}
    for name, one in picked:
        ticked.setdefault(name, []).append(one)
    found: Plain = {}
    value: Any
    for field in form(method):
        old = (before or {}).get(field.name)
        kind = _kind(field, old)
        if kind in TICKED and field.name not in texts:
            chosen = [text for text in ticked.get(field.name, []) if text]
            value = old if chosen == _ticked(old) else _chosen(chosen, kind)
        else:
            text = texts.get(field.name, "").strip()
            value = old if text == shown(old, kind) else read(text, field)
        if value is not None and (field.required or value != _plain(field.default)):
            found[field.name] = value
    return found


def _chosen(values: Sequence[str], kind: Kind) -> Any:
    """One choice, or several that are tried each; columns belong together."""
    if not values:
        return None
    told = [FLAGS.get(value, value) for value in values] if kind == "flag" else list(values)
    return told if kind == "columns" or len(told) > 1 else told[0]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def read(text: str, field: Field) -> Any:
    """A text as plain data; None where nothing was written."""
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
        return _several(text, field)
    if int in types and not set(types) & {str}:
        return _number(text) if _number(text) is not None else text
    parts = [part.strip() for part in text.split("," if str in types and int in types else ";") if part.strip()]
    return parts if len(parts) > 1 else parts[0] if parts else None


def _numbers(text: str, field: Field) -> Any:
    """A number, several that are tried each, or a range."""
    if found := RANGE.fullmatch(text):
        ends = [_needed(part, field) for part in found.groups()[:2]]
        return {"from": ends[0], "to": ends[1], "steps": int(found[3])}
    several = [_needed(part, field) for part in re.split(r"[,;]", text) if part.strip()]
    return several if len(several) > 1 else several[0] if several else None


def _several(text: str, field: Field) -> Any:
    """Values that belong together; one alone where the parameter takes one as well."""
    parts: list[Any] = [part.strip() for part in text.split(",") if part.strip()]
    words = field.kind.replace("typing.", "")
    if "float" in words or "int" in words:
        parts = [part if (found := _number(part)) is None else found for part in parts]
    plural = words.startswith(("tuple[str, ...]", "tuple[float, ...]")) and "| str" not in words
    return parts if plural or len(parts) != 1 else parts[0]


def _needed(text: str, field: Field) -> float | int:
    found = _number(text)
    if found is None:
        raise ParameterError(f"{field.name}: write a number, several with commas, or a range like 0.1 to 0.5 in 8.")
    return found


def _number(text: str) -> float | int | None:
    """A number as it is written; 10% is 0.1."""
    bare = text.strip()
    try:
        if bare.endswith("%"):
            return float(bare[:-1]) / 100
        return int(bare) if re.fullmatch(r"[+-]?\d{1,18}", bare) else float(bare)
    except ValueError:
        return None
