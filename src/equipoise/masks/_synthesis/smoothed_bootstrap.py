"""The smoothed bootstrap: whole records drawn again, their numbers moved a little."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats, Integers
from equipoise.masks._synthesis.variables import Bounds, SynthesisVariable, within


@dataclass(frozen=True, eq=False, repr=False)
class Smoothed:
    """y = m + (x - m + h s e) / sqrt(1 + h^2), x a record drawn with replacement, m and s of the column.

    e is normal with the correlations of the columns and h = (4 / ((d + 2) n))^(1 / (d + 4)) for d number columns
    (Silverman 1986, eq. 4.14); the shrinking keeps means and variances (Silverman and Young 1987). Gaps, and zeros
    where they are many, stay; categories are those of the record drawn. Cost: O(records columns^2).
    """

    variables: Mapping[str, SynthesisVariable]
    bounds: Bounds

    def draw(self, numbers: Sequence[str], rows: Integers, rng: np.random.Generator) -> dict[str, pl.Series]:
        """New values of the number columns of the records in `rows`."""
        if not numbers:
            return {}
        columns = [self.variables[name] for name in numbers]
        scaled = np.column_stack([_scaled(v) for v in columns])
        width = (4 / ((len(numbers) + 2) * len(scaled))) ** (1 / (len(numbers) + 4))
        root, centres = width * _root(scaled), scaled[rows]

        def draw(places: Integers) -> Floats:
            shift = rng.normal(size=(len(places), len(numbers))) @ root
            return (centres[places] + shift) / np.sqrt(1 + width**2)

        limits = [_limits(self.variables[name], self.bounds.get(name)) for name in numbers]
        points = within(draw, len(rows), (np.array(limits)[:, 0], np.array(limits)[:, 1]) if self.bounds else None)
        return {v.values.name: v.typed(_unscaled(v, points[:, i], rows)) for i, v in enumerate(columns)}


def _moments(variable: SynthesisVariable) -> tuple[float, float]:
    assert variable.numbers is not None
    free = variable.numbers[~variable.fixed]
    return (float(free.mean()), float(free.std())) if len(free) else (0.0, 0.0)


def _scaled(variable: SynthesisVariable) -> Floats:
    """In units of the standard deviation of what can move; 0 where nothing can."""
    mean, spread = _moments(variable)
    assert variable.numbers is not None
    return np.where(variable.fixed, 0.0, (variable.numbers - mean) / (spread or 1.0))


def _unscaled(variable: SynthesisVariable, scores: Floats, rows: Integers) -> Floats:
    mean, spread = _moments(variable)
    assert variable.numbers is not None
    return np.where(variable.fixed[rows], variable.numbers[rows], mean + spread * scores)


def _limits(variable: SynthesisVariable, bounds: tuple[float, float] | None) -> tuple[float, float]:
    mean, spread = _moments(variable)
    return ((bounds[0] - mean) / spread, (bounds[1] - mean) / spread) if bounds and spread else (-np.inf, np.inf)


def _root(scaled: Floats) -> Floats:
    """The symmetric square root of the correlations."""
    covariance = scaled.T @ scaled / len(scaled)
    spread = np.sqrt(np.diag(covariance))
    spread[spread == 0] = 1.0
    values, vectors = np.linalg.eigh(covariance / np.outer(spread, spread))
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
