"""Parts that all report pages share: the facts at their foot, charts, and limits in words."""

from datetime import UTC, datetime
from importlib.metadata import version
from math import isfinite
from typing import Any

from equipoise.methods.score import Score
from equipoise.policies.limits import SIGN_WORDS, Limit
from equipoise.presentation.numbers import value_text
from equipoise.presentation.svg import static_chart

Facts = dict[str, Any]
PACKAGES = ("polars", "numpy", "narwhals")


def page_facts(title: str) -> Facts:
    """The title of a page made today, and the versions it was made with."""
    today = datetime.now(UTC).date()
    made = {"title": title, "made": f"{today.day} {today:%B %Y}", "version": version("equipoise")}
    return made | {"versions": package_versions()}


def package_versions() -> list[tuple[str, str]]:
    return [(name, version(name)) for name in PACKAGES]


def charted(**specs: Facts | None) -> Facts:
    """The charts of a page, each also as a static picture for browsers without scripts."""
    return {"charts": specs, "pictures": {name: static_chart(spec) for name, spec in specs.items() if spec}}


def for_page(spec: Facts) -> Facts:
    """A chart specification as wide as the page, with transparent background and no title."""
    config = {**spec["config"], "background": "transparent"}
    return {**spec, "width": "container", "title": None, "config": config}


def bar(share: float) -> str:
    """The width of a bar in a table."""
    return f"{100 * min(1.0, share):.1f}%"


def bound_words(limit: Limit, score: Score) -> str:
    """What a limit asks for, in the unit of its score."""
    return f"{SIGN_WORDS[limit.sign]} {value_text(limit.bound, score.unit)}"


def with_error(score: Score) -> str:
    """The value of a score in words, with ± half the width of its interval where draws differ."""
    value = value_text(score.value, score.unit)
    return f"{value} ± {value_text(score.error, score.unit)}" if score.error and isfinite(score.error) else value
