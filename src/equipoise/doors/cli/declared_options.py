"""Command-line options made from the frozen options of a verb, and the groups that verbs share."""

from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import typer

Command = TypeVar("Command", bound=Callable[..., None])
KINDS: dict[str, Any] = {
    "names": list[str] | None, "text": str | None, "path": Path | None, "number": float | None, "whole": int | None,
    "switch": bool,
}  # fmt: skip
"""What a field is on the command line, by the word it says of itself."""


def option(text: str, metavar: str | None, panel: str | None = None, *names: str) -> Any:
    """An option with its words, in a panel of the help."""
    return typer.Option(*names, help=text, metavar=metavar, rich_help_panel=panel, show_default=False)


def switch(name: str, text: str, panel: str | None = None) -> Any:
    """An option without a value."""
    return typer.Option(name, help=text, metavar=" ", rich_help_panel=panel)


def argument(metavar: str, text: str) -> Any:
    return typer.Argument(metavar=metavar, help=text, show_default=False)


def declared(options: type | None, *groups: Mapping[str, Any]) -> Callable[[Command], Command]:
    """Give a command an option for each field that says what it is on the command line, and those of the groups.

    They come to the command by their names on the command line, with all others in `**options`. A field says: `cli`,
    what it is (names, text, path, number, whole, switch); `flag`, its name if that is another; `metavar` and `panel`.
    """

    def decorate(command: Command) -> Command:
        own = [one for one in signature(command).parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
        first = [one for one in own if one.kind is not Parameter.KEYWORD_ONLY]
        parts = [_parameter(part) for part in _parts(options)] if options else []
        shared = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for group in groups
            for name, annotation in group.items()
        ]
        cast(Any, command).__signature__ = Signature([*first, *parts, *own[len(first) :], *shared])
        return command

    return decorate


def _parts(options: type) -> "list[Field[Any]]":
    """The fields that the command line has."""
    return [part for part in fields(options) if "cli" in part.metadata]


def flag(part: "Field[Any]") -> str:
    """The name of a field on the command line, as the command gets it."""
    return str(part.metadata.get("flag", part.name))


def _parameter(part: "Field[Any]") -> Parameter:
    kind, more = part.metadata["cli"], part.metadata
    text = isinstance(part.default, str) or (isinstance(part.default, int) and kind == "whole")
    switch = [f"--{flag(part).replace('_', '-')}"] if kind == "switch" else []
    option = typer.Option(
        *switch, help=more["help"], metavar=" " if kind == "switch" else more.get("metavar"),
        rich_help_panel=more.get("panel"), show_default=text or kind == "switch", min=more.get("least"),
    )  # fmt: skip
    default: Any = part.default if text or kind == "switch" else None
    hint: Any = (str if kind == "text" else int) if text else KINDS[kind]
    return Parameter(flag(part), Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hint, option])


def field_values(options: type, values: Mapping[str, Any], **parse: Callable[[Any], Any]) -> dict[str, Any]:
    """The fields of the options from the values of the command line, those that need it parsed."""
    parts = {part.name: values[flag(part)] for part in _parts(options)}
    return {name: parse[name](value) if name in parse else value for name, value in parts.items()}
