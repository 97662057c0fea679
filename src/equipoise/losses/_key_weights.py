"""Weights of keys in a loss that is made key by key: a key of weight 2 costs twice as much as one of weight 1."""

from collections.abc import Mapping
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from equipoise.coarsening.lattice import Lattice
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import ParameterError, RolesError

KeyWeights = Mapping[str, float] | tuple[tuple[str, float], ...]
"""Keys and their weights; a key that is not listed has weight 1."""


def key_weights(weights: Any) -> tuple[tuple[str, float], ...]:
    """Weights as pairs, in the order of the keys' names."""
    try:
        pairs = dict(weights).items()
    except (TypeError, ValueError):
        raise ParameterError("weights must be a dict of numbers: the weight of each key.") from None
    for key, weight in pairs:
        if isinstance(weight, bool) or not isinstance(weight, Real) or not isfinite(weight) or weight < 0:
            raise ParameterError(f"The weight of key {key!r} must be a number of at least 0.")
    return tuple(sorted((key, float(weight)) for key, weight in pairs))


def relative(weights: KeyWeights, lattice: Lattice) -> Floats:
    """The weight of each key of a lattice, scaled so that their mean is 1: equal weights change nothing."""
    keys, chosen = [ladder.key for ladder in lattice.ladders], dict(weights)
    for key in chosen:
        if key not in keys:
            raise RolesError(f"The loss weighs {key!r}, which is no key: weigh {', '.join(keys)}.")
    each = np.array([chosen.get(key, 1.0) for key in keys])
    if not each.any():
        raise ParameterError("All keys have weight 0, so that no coarsening costs anything: give one of them more.")
    return each / each.mean()
