"""Settings of the page Publish as the arguments of `eq.publish`."""

from collections.abc import Mapping
from typing import Any

from equipoise.losses.expectation import LOSS_KINDS


def loss_of(settings: Mapping[str, Any]) -> Any:
    """The loss of disclosure."""
    step = dict(settings["loss"])
    kind: Any = LOSS_KINDS[step.pop("use")]
    return kind(**{name: int(value) if float(value).is_integer() else value for name, value in step.items()})


def publication_arguments(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as `publication` takes them."""
    return {
        "domain": tuple(settings["domain"]) or None,
        "target": tuple(settings["target"]) or None,
        "disclosure": loss_of(settings),
        "nonpublication": settings["nonpublication"],
        "population": settings["population"] or None,
    }
