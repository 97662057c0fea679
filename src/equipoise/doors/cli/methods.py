"""The verb `methods`: every rule, mask and measure there is."""

from typing import Annotated

from equipoise.doors.cli import screens
from equipoise.doors.cli.declared_options import argument


def methods(
    name: Annotated[str | None, argument("NAME", "One of them.")] = None,
) -> None:
    """List every rule, mask and measure, or describe one in full."""
    if name is None:
        screens.catalogue()
    else:
        screens.card(*screens.method_named(name))
