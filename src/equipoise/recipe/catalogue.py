"""What methods exist; methods from names and plain data, and back."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, is_dataclass
from dataclasses import fields as fields_of
from functools import cache, reduce
from operator import and_, or_
from pathlib import PurePath
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from equipoise import attacks, masks, risk, rules, tables, utility
from equipoise.ground.errors import EquipoiseError, ParameterError, hint, warn_renamed
from equipoise.ground.lazy_exports import snake
from equipoise.ground.type_adapters import type_adapter
from equipoise.methods.method import Mask, Measure, Rule, label, name_of
from equipoise.recipe.own_methods import VERB_FAMILIES, OwnMethods, own_methods

FAMILIES: dict[str, ModuleType] = {
    "rules": rules,
    "masks": masks,
    "risk": risk,
    "attacks": attacks,
    "utility": utility,
    "tables": tables,
}
Verb = Literal["rule", "mask", "measure"]
COMMA = r",(?![^(\[]*[)\]])"
"""Between fields, not inside brackets: 'expected-loss:gamma-uniques(10,2),y'."""
OLD_NAMES = {"withheld": "suppressed"}
"""Methods by their names in version 0.1, still read."""
VERBS: dict[Verb, str] = {"rule": "flag", "mask": "apply", "measure": "measure"}
NUMBERS = {"int_": "must be a whole number", "float_": "must be a number"}
"""What a value must be that is none, by how the kind of refusal begins."""


KIND_WORDS = {"int": "whole number", "float": "number", "str": "text", "bool": "true or false", "Records": "file"}
LIST_WORDS = {(str, ...): "names", (float, ...): "numbers", (float, float): "two numbers", (str, str): "two names"}


@dataclass(frozen=True)
class Field:
    """A parameter of a method, as doors show it."""

    name: str
    type: Any
    required: bool
    default: Any

    @property
    def kind(self) -> str:
        """The type in words: int, float or none, 'mean' | 'median'."""
        text = self.type.__name__ if isinstance(self.type, type) else str(self.type)
        text = re.sub(r"typing\.Literal\[(.*?)\]", lambda m: m[1].replace(", ", " | "), text)
        return text.replace("NoneType", "None")

    @property
    def words(self) -> str:
        """What it takes, in plain words.

        >>> [field.words for field in form(find("noise", "mask"))][:3]
        ['names', 'number', "'independent' | 'correlated' | 'multiplicative'"]
        """
        words = dict.fromkeys(_in_words(self.type))
        spellings = ("several values", "text") if any("=" in one for one in words) else ()
        return " or ".join(one for one in words if one not in spellings)


def _in_words(kind: Any) -> Iterator[str]:
    """Each kind of value that an annotation allows, but none."""
    inside, origin = get_args(kind), get_origin(kind)
    if origin is Literal:
        yield " | ".join(map(repr, inside))
    elif origin in (Union, UnionType):
        for one in inside:
            yield from _in_words(one)
    elif origin is Mapping:
        yield f"name={next(_in_words(inside[1]))}, more of them after a +"
    elif origin is tuple:
        yield LIST_WORDS.get(inside, "several values")
    elif kind is Any:
        yield "any value"
    elif kind is not NoneType:
        yield KIND_WORDS.get(kind.__name__, "file" if issubclass(kind, PurePath) else kind.__name__.lower())


def methods(verb: Verb, of: str | None = None) -> dict[str, type]:
    """Every method that has the verb, or those of one family: the listed ones, then those of other packages.

    >>> methods("mask")["top_code"].__name__, list(methods("measure", "attacks"))[-1]
    ('TopCode', 'singling_out')
    """
    families = [of] if of else VERB_FAMILIES[VERBS[verb]]
    every = [getattr(FAMILIES[family], name) for family in families for name in FAMILIES[family].__all__]
    every += [one.method for one in own().methods.values() if one.family in families]
    return {name_of(method): method for method in every if _has(method, verb)}


def _has(method: Any, verb: Verb) -> bool:
    return isinstance(method, type) and is_dataclass(method) and hasattr(method, VERBS[verb])


def own() -> OwnMethods:
    """The methods of other packages."""
    return own_methods(_built_in())


@cache
def _built_in() -> frozenset[str]:
    return frozenset(snake(name) for module in FAMILIES.values() for name in module.__all__ if name[0].isupper())


def family(method: type) -> str:
    """The family a method is listed in; of one that is not listed, as its verb says."""
    return listed_family(method) or next(fits[0] for verb, fits in VERB_FAMILIES.items() if hasattr(method, verb))


def listed_family(method: type) -> str | None:
    """The family that lists a method, ours or through another package."""
    name = method.__name__
    listed = (one for one, module in FAMILIES.items() if name in module.__all__ and getattr(module, name) is method)
    return next(listed, None) or next((one.family for one in own().methods.values() if one.method is method), None)


def form(method: type) -> tuple[Field, ...]:
    """The parameters of a method, from its fields."""
    hints = get_type_hints(method)
    return tuple(
        Field(f.name, hints[f.name], f.default is MISSING and f.default_factory is MISSING, f.default)
        for f in fields_of(method)
        if f.init
    )


def summary(method: type) -> str:
    """The first sentence of a method's docstring."""
    text = " ".join((method.__doc__ or "").split())
    return text.partition(". ")[0].rstrip(".") + "."


def find(name: str, verb: Verb) -> type:
    """A method by snake-case, kebab-case or class name, with or without its family.

    >>> find("masks.TopCode", "mask") is find("top-code", "mask")
    True
    """
    word = snake(name.rpartition(".")[2]).replace("-", "_")
    if (method := _method_called(word, verb)) is not None:
        return method
    if word in OLD_NAMES:
        warn_renamed(name, OLD_NAMES[word])
        return find(OLD_NAMES[word], verb)
    if problems := own().problems:
        raise type(problems[0])(f"No {verb} {name!r}. {problems[0]}")
    raise ParameterError(f"No {verb} {name!r}.{hint(word, list(methods(verb)))}")


def _method_called(word: str, verb: Verb) -> type | None:
    """A method by its snake-case name; only modules of that name are imported."""
    if word in own().clashes:
        raise own().clashes[word]
    families = [FAMILIES[family] for family in VERB_FAMILIES[VERBS[verb]]]
    every = [getattr(module, name) for module in families for name in module.__all__ if snake(name) == word]
    every += [one.method for name, one in own().methods.items() if name == word]
    return next((method for method in every if _has(method, verb)), None)


def build(name: str, verb: Verb, parameters: Mapping[str, Any]) -> Any:
    """A method from its name and plain parameters, each checked against its type."""
    method = find(name, verb)
    fields = {f.name: f for f in form(method)}
    values = {key.replace("-", "_"): value for key, value in parameters.items()}
    for key in values:
        if key not in fields:
            raise ParameterError(f"{name} has no parameter {key!r}.{hint(key, list(fields))}")
    lacking = [f.name for f in fields.values() if f.required and f.name not in values]
    if lacking:
        raise ParameterError(f"{name} needs {', '.join(lacking)}.")
    return method(**{key: typed(value, fields[key].type, f"{name}: {key}") for key, value in values.items()})


def typed(value: Any, kind: Any, what: str) -> Any:
    """A plain value as the type of a field; '10%' is 0.1."""
    from pydantic import ValidationError

    if isinstance(value, str) and re.fullmatch(r"[+-]?[\d.]+%", value) and kind is not str:
        value = float(value[:-1]) / 100
    if isinstance(value, str) and _takes_rule(kind) and (kind is Rule or _names_rule(value)):
        return parse(value, "rule")
    if isinstance(value, str) and kind == tuple[str, ...]:
        value = (value,)
    try:
        return type_adapter(kind, arbitrary=True).validate_python(value)
    except ValidationError as error:
        fault = error.errors(include_input=False)[0]
        words = next((text for start, text in NUMBERS.items() if fault["type"].startswith(start)), "")
        raise ParameterError(f"{what} {words}." if words else f"{what}: {fault['msg']}.") from None


def _names_rule(text: str) -> bool:
    """Whether text that may be a column as well is a rule: it begins with the name of one, or sets fields."""
    word = re.split(r"[(:|& ]", text)[0].replace("-", "_")
    return _method_called(word, "rule") is not None or re.fullmatch(r"[\w.-]+\(\s*\w+\s*=.*\)", text) is not None


def _takes_rule(kind: Any) -> bool:
    return kind is Rule or Rule in get_args(kind)


def parse(text: str, verb: Verb) -> Any:
    """A method from one line: 'uniques', 'uniques(k=3)', 'uniques:3' or 'top-code:salary,at=100000'.

    Rules may be joined: `|` flags what either flags, `&` what both do, `&` first.

    >>> parse("uniques(k=3)", "measure"), parse("top-code:salary,1e5,median", "mask")
    (Uniques(k=3), TopCode(column='salary', at=100000.0, replace_by='median'))
    >>> parse("p-percent:10% | min-count:3", "rule")
    Either(rules=(PPercent(p=0.1, coalition=1), MinCount(n=3, margin=0.2, holdings=None)))
    """
    text = text.strip()
    if verb == "rule" and (mark := next((sign for sign in "|&" if sign in text), "")):
        join = or_ if mark == "|" else and_
        return reduce(join, (parse(part, verb) for part in text.split(mark)))
    if text.endswith(")") and ":" not in text.partition("(")[0]:
        return build(*_call(text, verb))
    name, _, rest = text.partition(":")
    method = find(name, verb)
    order = [f.name for f in form(method)]
    if rest and [f.type for f in form(method)] == [Rule]:
        return build(name, verb, {order[0]: rest.removeprefix(f"{order[0]}=")})
    values: dict[str, Any] = {}
    for place, part in enumerate(p.strip() for p in re.split(COMMA, rest) if p.strip()):
        key, mark, value = part.partition("=")
        if not mark and place >= len(order):
            raise ParameterError(f"{name} takes at most {len(order)} parameters: {', '.join(order)}.")
        values[key if mark else order[place]] = value if mark else part
    return build(name, verb, {key: listed(value, method, key) for key, value in values.items()})


def known_method(text: str, verb: Verb) -> Any:
    """The method that a text names; None where there is none such."""
    try:
        return parse(text, verb)
    except EquipoiseError:
        return None


def listed(text: str, method: type, key: str, mark: str = "+") -> Any:
    """Text as a list where the field holds several values."""
    kinds = {f.name: f for f in form(method)}
    name = key.replace("-", "_")
    return text.split(mark) if name in kinds and "tuple" in kinds[name].kind and isinstance(text, str) else text


def _call(text: str, verb: Verb) -> tuple[str, Verb, dict[str, Any]]:
    """The name and the parameters in 'top-code(column="age", at=90)'; a misspelt name is told by the one meant."""
    name, mark, inside = text.partition("(")
    name = name.strip().replace("-", "_")
    fields = [f.name for f in form(find(name, verb))]
    try:
        node = ast.parse(f"_{mark}{inside}", mode="eval").body
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise ValueError
        values = {fields[i]: ast.literal_eval(value) for i, value in enumerate(node.args)}
        values |= {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
    except (SyntaxError, ValueError, IndexError):
        raise ParameterError(f"Cannot read {text!r}: write it like uniques(k=3).") from None
    return name, verb, values


def to_plain(method: Rule | Mask | Measure) -> dict[str, Any]:
    """A method as plain data: its name under `use`, and its parameters."""
    values = {f.name: getattr(method, f.name) for f in form(type(method))}
    values = {name: label(value) if isinstance(value, Rule) else value for name, value in values.items()}
    return {"use": name_of(type(method))} | {name: value for name, value in values.items() if value is not None}
