"""Columns as models see them: numbers with gaps, or categories; and random numbers from the recipe's secret."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.numeric_columns import finite
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError
from equipoise.ground.packed_keys import Coded, code
from equipoise.ground.randomness import Draws

SPIKE = 0.05
"""A number column with more than this share of exact zeros keeps its zeros as a structure, as it keeps its gaps."""
TEXTS = 50
"""Up to this many different values a text column is a classification even where every record has its own."""
TRIES = 50
"""Draws made for a number that must lie within bounds before the nearest bound is taken."""

Bounds = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, eq=False, repr=False)
class SynthesisVariable:
    """A column of the original: `numbers` (NaN where missing) or `coded` categories (missing is one of them)."""

    values: pl.Series
    numbers: Floats | None = None
    coded: Coded | None = None

    @classmethod
    def of(cls, values: pl.Series) -> "SynthesisVariable":
        kind = values.dtype
        if kind.is_numeric() or kind in (pl.Date, pl.Datetime, pl.Duration):
            numbers = values.to_physical().cast(pl.Float64).fill_null(float("nan"))
            return cls(values, finite(values.name, numbers.to_numpy()))
        if kind.is_nested() or kind == pl.Object:
            raise DataError(f"Column {values.name!r} is {kind}: it must hold single values.")
        coded = code(values)
        if isinstance(kind, pl.String) and coded.size > max(TEXTS, len(values) / 2):
            raise DataError(
                f"Text column {values.name!r} has {coded.size:,} different values in {len(values):,} records: drawing "
                f"from it would release them. Recode it or leave it out."
            )
        return cls(values, coded=coded)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def codes(self) -> Integers:
        coded = self.coded or code(self.values)
        return coded.codes.astype(np.int64)

    @property
    def fixed(self) -> Any:
        """Where a number model has nothing to say: gaps, and zeros where there are many."""
        assert self.numbers is not None
        gaps, zeros = np.isnan(self.numbers), self.numbers == 0
        present = max(1, int((~gaps).sum()))
        return gaps | (zeros if SPIKE < zeros.sum() / present < 1 else False)

    def typed(self, numbers: Floats) -> pl.Series:
        """New numbers in the column's own type: rounded, and within what the type can hold."""
        kind, name = self.values.dtype, self.values.name
        if kind.is_float() or kind.is_decimal():
            return pl.Series(name, numbers).fill_nan(None).cast(kind)
        stored = self.values.head(0).to_physical()
        limits = np.iinfo(stored.to_numpy().dtype)
        clipped = np.clip(np.rint(numbers), max(limits.min, -(2.0**62)), min(limits.max, 2.0**62))
        return pl.Series(name, clipped).fill_nan(None).cast(stored.dtype).cast(kind)


def generator(draws: Draws) -> np.random.Generator:
    """A stream of random numbers seeded by 212 secret bits. Synthetic records are nobody's: no key to draw by."""
    words = draws.uniform(pl.Series([0, 1, 2, 3])) * 2.0**53
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([int(word) for word in words])))


def weighted(chances: Floats, size: int, rng: np.random.Generator) -> Integers:
    """Rows drawn with replacement, each with probability proportional to its chance. O(rows + size log rows)."""
    reached = np.cumsum(chances)
    rows: Integers = np.searchsorted(reached, rng.random(size) * reached[-1], side="right")
    return np.minimum(rows, len(chances) - 1)


def within(draw: Callable[[Integers], Floats], size: int, bounds: tuple[Any, Any] | None) -> Floats:
    """Numbers, or rows of them, drawn for `size` places; those out of bounds again, and at last put on a bound."""
    places = np.arange(size)
    numbers = draw(places)
    if bounds is None:
        return numbers
    for _ in range(TRIES):
        places = np.flatnonzero(((numbers < bounds[0]) | (numbers > bounds[1])).reshape(size, -1).any(axis=1))
        if not len(places):
            return numbers
        numbers[places] = draw(places)
    return np.clip(numbers, *bounds)
