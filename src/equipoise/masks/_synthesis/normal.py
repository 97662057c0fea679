"""The hierarchical normal model: parameters drawn from their posterior, then records given the parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError
from equipoise.masks._synthesis.variables import Bounds, SynthesisVariable, within

LEVELS = 30
"""Categories of a column that a regression tells apart, the most frequent ones."""

Design = tuple[Floats, Floats]
"""The part of a regression that one column makes, in the original records and in the synthetic ones."""


@dataclass(frozen=True, eq=False, repr=False)
class Normal:
    """Numbers by Bayesian regression, anything else from the records they are drawn for.

    One column of n numbers, prior 1/s2: s2_i = (n-1) s2 / chi2(n-1), mu_i ~ N(mean, s2_i / n), y ~ N(mu_i, s2_i), the
    model of Duncan and Keller-McNulty (2000, 6.1) with a2 = s2_i / n. Several: each is regressed on those before it and
    on the categories, b_i ~ N(b, s2_i (Z'Z)^-1), y = Z b_i + s_i e, with n - rank(Z) degrees of freedom. Gaps, and
    zeros where they are many, stay where the record has them. Cost: O(records columns^3).
    """

    variables: Mapping[str, SynthesisVariable]
    bounds: Bounds

    def draw(
        self, numbers: Sequence[str], others: Sequence[str], rows: Integers, rng: np.random.Generator
    ) -> dict[str, pl.Series]:
        """New values of the number columns, in this order, given the others of the records in `rows`."""
        designs = [(np.ones((self._records, 1)), np.ones((len(rows), 1)))]
        designs += [self._design(name, self._values(name, rows), rows) for name in others]
        columns = {}
        for name in numbers:
            new = self._draw_column(name, designs, rows, rng)
            columns[name] = self.variables[name].typed(new)
            designs.append(self._design(name, new, rows))
        return columns

    @property
    def _records(self) -> int:
        return len(next(iter(self.variables.values())))

    def _values(self, name: str, rows: Integers) -> Floats | None:
        numbers = self.variables[name].numbers
        return None if numbers is None else numbers[rows]

    def _draw_column(self, name: str, designs: Sequence[Design], rows: Integers, rng: np.random.Generator) -> Floats:
        """One column: its regression on what is known, the parameters drawn, then the values."""
        variable = self.variables[name]
        assert variable.numbers is not None
        old, new = (np.hstack(side) for side in zip(*designs, strict=True))
        free = ~variable.fixed
        if not free.any():
            return variable.numbers[rows]
        weights, spread = posterior(old[free], variable.numbers[free], name, rng)
        middle = new @ weights
        draws = within(
            lambda places: middle[places] + spread * rng.normal(size=len(places)), len(rows), self.bounds.get(name)
        )
        return np.where(free[rows], draws, variable.numbers[rows])

    def _design(self, name: str, new: Floats | None, rows: Integers) -> Design:
        variable = self.variables[name]
        if variable.numbers is None or new is None:
            return _dummies(variable.codes, rows)
        return _standardised(variable.numbers, new)


def posterior(design: Floats, target: Floats, name: str, rng: np.random.Generator) -> tuple[Floats, float]:
    """Coefficients and standard deviation of a normal regression, drawn from their posterior under the prior 1/s2.

    Directions in which the predictors do not vary have the coefficient 0.
    """
    values, vectors = np.linalg.eigh(design.T @ design)
    used = values > 1e-10 * values[-1]
    values, vectors = values[used], vectors[:, used]
    freedom = len(target) - len(values)
    if freedom < 1:
        raise DataError(f"Column {name!r} has too few known values for a normal model with {len(values)} predictors.")
    best = (design @ vectors).T @ target / values
    residual = target - design @ (vectors @ best)
    spread = float(np.sqrt(residual @ residual / rng.chisquare(freedom)))
    return vectors @ (best + spread * rng.normal(size=len(values)) / np.sqrt(values)), spread


def _standardised(old: Floats, new: Floats) -> Design:
    """Numbers in units of their standard deviation, gaps at the mean and marked as such, many zeros marked too."""
    mean, spread = (float(np.nanmean(old)), float(np.nanstd(old))) if not np.isnan(old).all() else (0.0, 0.0)
    marks = [np.isnan(old), old == 0] if np.isnan(old).any() else [old == 0]
    sides = []
    for side in (old, new):
        scaled = np.nan_to_num((side - mean) / (spread or 1.0), nan=0.0)
        flags = [np.isnan(side), side == 0] if len(marks) == 2 else [side == 0]
        sides.append(np.column_stack([scaled, *flags]).astype(np.float64))
    return sides[0], sides[1]


def _dummies(codes: Integers, rows: Integers) -> Design:
    """A column for each frequent category but the first."""
    frequent = np.argsort(-np.bincount(codes), kind="stable")[1:LEVELS]
    old = (codes[:, None] == frequent).astype(np.float64)
    return old, old[rows]
