"""Guesses of amounts by the logarithms of what is released: where amounts are products, lines in them are curves."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats, Integers
from equipoise.risk._value_snoopers.best_rules import relative
from equipoise.risk._value_snoopers.guesses_by_others import equal_values
from equipoise.risk._value_snoopers.released_terms import Terms, coefficients, matrix

Scales = Mapping[str, float]


class LogGuesses:
    """Guesses of the logarithms of the originals from the released columns, numbers taken as logarithms."""

    def __init__(self, released: pl.DataFrame, columns: Sequence[str], originals: Floats, units: Integers) -> None:
        self.scales = [log_scale(column) for column in originals.T]
        self.logs = np.column_stack([signed_log(x, s) for x, s in zip(originals.T, self.scales, strict=True)])
        self.coded = in_logarithms(released, log_scales(released, columns))
        self.terms = Terms.of(self.coded, columns)
        self.curved = matrix(self.terms.curved, self.coded)
        centre = np.nanmean(self.logs, axis=0)
        others = equal_values(self.terms.linear, self.coded, columns, self.logs - centre, units)
        self.equal = [guess + centre for guess in others]

    def bent(self, place: int, rows: Integers) -> Floats:
        """By the best sum of bent lines, fitted to these rows; 0 for all others."""
        guess = np.zeros(len(self.logs))
        guess[rows] = self.curved[rows] @ coefficients(self.curved[rows], self.logs[rows, place])
        return guess


def logarithm_errors(released: pl.DataFrame, columns: Sequence[str], originals: Floats, units: Integers) -> list[float]:
    """Relative mean squared errors of the best guess by logarithms, times its best factor, for each column."""
    guesses, errors = LogGuesses(released, columns, originals, units), []
    for place, x in enumerate(originals.T):
        rows = np.flatnonzero(np.isfinite(x))
        truth, logs = x[rows], [guesses.bent(place, rows), *(guess[:, place] for guess in guesses.equal)]
        every = signed_exp(np.column_stack(logs)[rows], guesses.scales[place]).clip(truth.min(), truth.max())
        factors = (every.T @ truth) / np.maximum((every**2).sum(axis=0), 1e-300)
        errors.append(min(relative(guess, truth) for guess in (every * factors).T))
    return errors


def log_scales(table: pl.DataFrame, columns: Sequence[str]) -> Scales:
    """The scale of each column of numbers."""
    numbers = [c for c in columns if table.schema[c].is_numeric()]
    return {c: log_scale(table[c].cast(pl.Float64).to_numpy(), blurred=True) for c in numbers}


def in_logarithms(table: pl.DataFrame, scales: Scales) -> pl.DataFrame:
    return table.with_columns(
        pl.Series(c, signed_log(table[c].cast(pl.Float64).to_numpy(), scale)) for c, scale in scales.items()
    )


def log_scale(x: Floats, *, blurred: bool = False) -> float:
    """The size from which values of a column are told apart by their logarithms, whatever its unit is.

    Far below all values; with zeros a tenth of the small ones, lest these be far from them. Where the signs of
    `blurred` values differ, the size of a tenth of them: those about zero are small against what they may have been.
    """
    values = x[np.isfinite(x)]
    size = np.abs(values[values != 0])
    if not len(size):
        return 1.0
    if blurred and values.min() < 0 < values.max():
        return float(np.quantile(size, 0.1))
    return float(np.quantile(size, 0.01) / 10 if len(size) < len(values) else max(size.min() / 1e3, size.max() / 1e12))


def signed_log(x: Floats, scale: float) -> Floats:
    """sign(x) log(1 + |x| / scale): amounts of any size and sign on one scale."""
    return np.sign(x) * np.log1p(np.abs(x) / scale)


def signed_exp(x: Floats, scale: float) -> Floats:
    """The inverse of `signed_log`; what is beyond all numbers is the largest."""
    return np.sign(x) * np.expm1(np.minimum(np.abs(x), 700.0)) * scale
