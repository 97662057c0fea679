"""Fields of a method as options after it: `--mask top-code --column salary --at 100000`.

Options directly after `--mask NAME` that are fields of NAME belong to it, also when the command has an option of the
same name. Further on, until the next `--mask`, only those that the command does not have itself.
"""

import csv
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin

from equipoise.ground.errors import ParameterError
from equipoise.methods.method import name_of
from equipoise.recipe.catalogue import Field, Verb, find, form


@dataclass
class Draft:
    """A method on the command line with the fields read so far."""

    method: type
    values: dict[str, Any] = field(default_factory=dict)
    adjacent: bool = True

    def option(self, token: str, options: Collection[str]) -> Field | None:
        """The field of this method that an option sets, if any; `options` are those of the command."""
        name = token.partition("=")[0]
        if not name.startswith("--") or (name in options and not self.adjacent):
            return None
        return next((f for f in form(self.method) if name in (option_of(f), "--no-" + option_of(f)[2:])), None)

    def take(self, parameter: Field, token: str, rest: list[str]) -> None:
        """Read the value of one field, from the token itself or the next one."""
        name, mark, value = token.partition("=")
        if not mark and parameter.type is bool:
            self._set(parameter, not name.startswith("--no-"))
        elif mark or rest:
            self._set(parameter, value if mark else rest.pop(0))
        else:
            raise ParameterError(f"{name} of {kebab(self.method)} needs a value.")

    def _set(self, parameter: Field, value: Any) -> None:
        if plural(parameter):
            parts = [*_several(self.values.get(parameter.name, [])), *split(value)]
            value = parts[0] if len(parts) == 1 and _or_word(parameter) else parts
        elif parameter.name in self.values:
            raise ParameterError(f"{option_of(parameter)} of {kebab(self.method)} was given twice.")
        self.values[parameter.name] = value

    def text(self) -> str:
        """The method as the catalogue reads it: top_code(column='salary', at='100000')."""
        inside = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        return f"{name_of(self.method)}({inside})"


def fold(args: list[str], flag: str, verb: Verb, options: Collection[str]) -> list[str]:
    """The arguments, with each method and its fields as one text after the flag."""
    rest, tokens = list(args), list[str | Draft]()
    draft: Draft | None = None
    while rest:
        token = rest.pop(0)
        if token == flag and rest:
            tokens.append(token)
            draft = _draft(rest[0], verb)
            tokens.append(draft or rest[0])
            rest.pop(0)
        elif draft and (parameter := draft.option(token, options)):
            draft.take(parameter, token, rest)
        else:
            tokens.append(token)
            draft = _apart(draft)
    return [part.text() if isinstance(part, Draft) else part for part in tokens]


def _draft(text: str, verb: Verb) -> Draft | None:
    """A draft of the method, unless the text already holds its fields: 'top-code:salary,5' or 'top_code(at=5)'."""
    return None if ":" in text or "(" in text else Draft(find(text, verb))


def _apart(draft: Draft | None) -> Draft | None:
    if draft:
        draft.adjacent = False
    return draft


def asked_about(args: list[str], flag: str, verb: Verb) -> type | None:
    """The method that `--mask NAME --help` asks about."""
    asks = [i for i, token in enumerate(args) if token in ("--help", "-h")]
    before = args[: asks[0]] if asks else []
    places = [i for i, token in enumerate(before[:-1]) if token == flag]
    return find(before[places[-1] + 1].partition(":")[0].partition("(")[0], verb) if places else None


def split(text: str) -> list[str]:
    """Names separated by commas; a name with a comma stands in double quotes.

    >>> split('age, "income, net"')
    ['age', 'income, net']
    """
    try:
        parts = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error:  # a line break outside quotes, or a very long name
        parts = text.split(",")
    return [part.strip() for part in parts if part.strip()]


def _several(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def plural(parameter: Field) -> bool:
    """Whether the field holds several values."""
    return "tuple" in parameter.kind


def _or_word(parameter: Field) -> bool:
    """Whether the field also takes a single word: `--within auto`."""
    return get_origin(parameter.type) is not tuple and str in get_args(parameter.type)


def option_of(parameter: Field) -> str:
    return "--" + parameter.name.replace("_", "-")


def kebab(method: type) -> str:
    """The name of a method as the command line writes it."""
    return name_of(method).replace("_", "-")
