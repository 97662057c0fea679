"""Verbs with an option `--mask NAME`, `--measure NAME` or `--attack NAME` that the fields of NAME may follow."""

from typing import Any

import typer

from equipoise.doors.cli import screens
from equipoise.doors.cli.command import VerbCommand
from equipoise.doors.cli.method_options import asked_about, fold
from equipoise.doors.cli.screen_parts import screen
from equipoise.recipe.catalogue import Verb


class _WithMethods(VerbCommand):
    """A verb with a method option: its help lists the methods."""

    verb: Verb
    flag: str
    family: str | None = None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if method := asked_about(args, self.flag, self.verb):
            screens.card(method, self.verb, self.flag)
            raise typer.Exit
        options = {name for parameter in self.params for name in parameter.opts}
        return super().parse_args(ctx, fold(args, self.flag, self.verb, options))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, followed by the list of methods."""
        super().format_help(ctx, formatter)
        screen().print(screens.method_table(self.verb, self.family))


class WithMeasures(_WithMethods):
    verb, flag = "measure", "--measure"


class WithMasks(_WithMethods):
    verb, flag = "mask", "--mask"


class WithAttacks(_WithMethods):
    verb, flag, family = "measure", "--attack", "attacks"
