"""The command `equipoise` with its verbs. A verb is imported when it is called, or when its own help is asked for."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from equipoise import __version__
from equipoise.ground.system import packaged

PACKAGE = "equipoise.doors.cli"
TYPER_SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "rich",
    "no_args_is_help": False,
    "context_settings": {"help_option_names": ["--help", "-h"], "max_content_width": 120},
}


class LazyVerb(NamedTuple):
    """A verb before its import: the place of its function, the first line of its help, the class of its command."""

    place: str
    words: str
    command: str = "command:VerbCommand"


VERBS = {name: LazyVerb(**verb) for name, verb in packaged("doors/cli/verbs.toml").items()}
"""All verbs in the order of the help."""


class VerbCommand(TyperCommand):
    """A verb whose usage line shows arguments as they are typed: FILE, not {FILE}."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]


class _Verbs(Mapping[str, Any]):
    """The commands by name, each built when it is needed."""

    def __getitem__(self, name: str) -> Any:
        verb = VERBS[name]
        app = typer.Typer(**TYPER_SETTINGS)
        app.command(name, cls=_at(verb.command))(_at(verb.place))
        return typer.main.get_command(app)

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)


def _at(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"{PACKAGE}.{module}"), name)


class VerbGroup(TyperGroup):
    """All verbs; their names and first lines are listed without importing the verbs or Rich."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "rich_markup_mode": None, "subcommand_metavar": "VERB ..."})
        self.commands: Any = _Verbs()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, verb.words) for name, verb in VERBS.items()])


def command() -> Any:
    """The command line as one command."""
    app = typer.Typer(cls=VerbGroup, **TYPER_SETTINGS)
    app.callback(invoke_without_command=True)(equipoise)
    return typer.main.get_command(app)


def equipoise(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version.", metavar=" ", show_default=False)
    ] = False,
) -> None:
    """Measure disclosure risk, protect the data, keep what users need, and prove the balance.

    Ends with 0 when done, 1 when the policy refuses, 2 on bad input, 3 on an internal error, 130 when stopped.
    """
    if show_version:
        print(f"equipoise {__version__}")
