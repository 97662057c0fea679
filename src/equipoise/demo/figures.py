"""Figures of the demo files, from TOML, and draws of codes by their shares."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise.ground.arrays import Integers
from equipoise.ground.system import packaged


def figures(place: str) -> Any:
    """The figures of a file by name, lists of numbers as arrays."""
    table = packaged(place)
    arrays = {n: np.array(v) for n, v in table.items() if isinstance(v, list) and not isinstance(v[0], str)}
    return SimpleNamespace(**{**table, **arrays})


def draw_codes(rng: np.random.Generator, shares: ArrayLike, size: int) -> Integers:
    """Codes 0, 1, ... drawn with the given shares."""
    steps = np.cumsum(shares)
    return np.searchsorted(steps / steps[-1], rng.random(size), side="right").astype(np.int64)
