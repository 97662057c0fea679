"""Baseline: the same attacks on the original file, to compare with the release."""

from collections.abc import Iterable, Sequence
from functools import cache
from math import isfinite

from equipoise.data.records import Records
from equipoise.ground.errors import EquipoiseError
from equipoise.intrusion.scenario import Scenario
from equipoise.methods.score import Score
from equipoise.recipe.catalogue import parse

MAX_RECORDS = 250_000
"""More records than this are not attacked a second time."""


def on_original(scenarios: Sequence[Scenario], original: Records) -> tuple[Score | None, ...]:
    """For each scenario of an attack, how its strongest attack fares where the original itself is released.

    None where that could not be tried. Cost: that of the attacks, without the combinations of columns.
    """
    if original.height() > MAX_RECORDS:
        return tuple(None for _ in scenarios)
    measured = cache(lambda name: _score(name, original))
    return tuple(_strongest(map(measured, (score.name for score in scenario.tried))) for scenario in scenarios)


def _strongest(scores: Iterable[Score | None]) -> Score | None:
    """The first of the largest; no more are tried once everybody is found."""
    best: Score | None = None
    for score in scores:
        if score is not None and isfinite(score.value) and (best is None or score.value > best.value):
            best = score
        if best is not None and best.value >= 1.0:
            break
    return best


def _score(name: str, original: Records) -> Score | None:
    try:
        return parse(name, "measure").measure(original, original).brief()
    except EquipoiseError:
        return None
