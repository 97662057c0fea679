"""Baseline: the same attacks on the original file, to compare with the release."""

from math import isfinite

from equipoise.data.records import Records
from equipoise.ground.errors import EquipoiseError
from equipoise.intrusion.attack import Attack
from equipoise.methods.score import Score
from equipoise.recipe.catalogue import parse

MAX_RECORDS = 250_000
"""More records than this are not attacked a second time."""


def on_original(attack: Attack, original: Records) -> tuple[Score | None, ...]:
    """For each scenario of an attack, how its strongest attack fares where the original itself is released.

    None where that could not be tried. Cost: that of the attacks, without the combinations of columns.
    """
    if attack.records > MAX_RECORDS:
        return tuple(None for _ in attack.scenarios)
    return tuple(_strongest([score.name for score in scenario.tried], original) for scenario in attack.scenarios)


def _strongest(names: list[str], original: Records) -> Score | None:
    scores = [score for name in names for score in _scores(name, original) if isfinite(score.value)]
    return max(scores, key=lambda score: score.value, default=None)


def _scores(name: str, original: Records) -> list[Score]:
    try:
        return [parse(name, "measure").measure(original, original).brief()]
    except EquipoiseError:
        return []
