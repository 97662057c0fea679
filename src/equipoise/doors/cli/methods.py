"""The verb `methods`: every rule, mask and measure there is."""

from typing import Annotated

import typer

from equipoise.doors.cli import screens


def methods(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One of them.", show_default=False)] = None,
) -> None:
    """List every rule, mask and measure, or describe one in full."""
    if name is None:
        screens.catalogue()
    else:
        screens.card(*screens.method_named(name))
