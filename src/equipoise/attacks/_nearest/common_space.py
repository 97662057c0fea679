"""Two files as points in one space: numbers scaled, ranks, categories and texts, with what a difference costs."""

from typing import Any, Literal

import numpy as np
import polars as pl

from equipoise.attacks._linkage.string_similarity import Similarity, Words
from equipoise.attacks._nearest.cell_pairs_by_cost import Costs
from equipoise.attacks._nearest.comparable_numbers import is_date, numbers
from equipoise.attacks._nearest.points import Cloud
from equipoise.data.aligned_files import Matched
from equipoise.data.records import Law
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError
from equipoise.ground.packed_keys import code

FLAT = 1e-12
"""A column whose standard deviation is a smaller share of its mean does not vary."""
QUIET = 1e-9
"""Directions with less than this share of the largest variance carry no distance under Mahalanobis."""

Kind = Literal["number", "ordinal", "nominal", "text"]
Clouds = tuple[Cloud, Cloud, Costs]
"""The released and the original records, and what differences in their categories cost."""


def kind_of(here: pl.DataType, there: pl.DataType) -> Kind:
    """Numbers and points in time are numbers, all else is nominal."""
    told = [kind for kind in (here, there) if kind != pl.Null]
    number = all(kind.is_numeric() for kind in told) or all(kind.is_temporal() for kind in told)
    return "number" if told and number else "nominal"


class CommonSpace:
    """Columns of both files put side by side, one after the other: coordinates, and categories with their penalties."""

    def __init__(self, files: Matched, laws: tuple[Law, ...]) -> None:
        self.files, self.laws = files, laws
        self.here, self.there = files.released, files.original
        self.numbers: list[Floats] = []
        self.ranks: list[Floats] = []
        self.categories: list[Integers] = []
        self.penalties: list[float] = []
        self.words: dict[int, Words] = {}

    def add(self, column: str, kind: Kind, weight: float, similarity: Similarity = "jaro-winkler") -> None:
        here, there = self.here[column], self.there[column]
        if kind == "text":
            self._text(here, there, weight, similarity)
        elif kind == "nominal":
            self._category(*_comparable(here, there), weight)
        elif kind == "ordinal":
            ranks, size = _ranks(here, there)
            self._coordinate(ranks / max(1, size), weight, self.ranks, scaled=False)
        else:
            self._coordinate(numbers(here, there), weight, self.numbers, scaled=True)

    def clouds(self, whiten: bool) -> Clouds:
        size, split = self.here.height + self.there.height, self.here.height
        scaled = np.stack(self.numbers, axis=1) if self.numbers else np.zeros((size, 0))
        if whiten and scaled.shape[1] > 1:
            scaled = scaled @ _whitening(scaled[split:])
        coordinates = np.hstack([scaled, *(rank[:, None] for rank in self.ranks)])
        codes = np.stack(self.categories, axis=1) if self.categories else np.zeros((size, 0), dtype=np.int64)
        sides = [Cloud(coordinates[part], codes[part]) for part in (slice(split), slice(split, None))]
        return sides[0], sides[1], Costs(np.array(self.penalties), self.words)

    def _category(self, here: pl.Series, there: pl.Series, weight: float) -> None:
        there = self._labels(here, there, guess=True)
        self.categories.append(code(pl.concat([here, there])).codes.astype(np.int64))
        self.penalties.append(weight)

    def _text(self, here: pl.Series, there: pl.Series, weight: float, similarity: Similarity) -> None:
        text = (pl.String, pl.Categorical, pl.Enum, pl.Null)
        if not isinstance(here.dtype, text) or not isinstance(there.dtype, text):
            raise DataError(f"Column {here.name!r} is listed under strings, but does not hold text in both files.")
        here, there = here.cast(pl.String), there.cast(pl.String)
        coded = code(pl.concat([here, self._labels(here, there, guess=False)]))
        split, place = len(here), len(self.penalties)
        both = [np.unique(part).astype(np.int64) for part in (coded.codes[split:], coded.codes[:split])]
        self.words[place] = Words(coded.values.alias(here.name), both[0], both[1], similarity)
        self.categories.append(coded.codes.astype(np.int64))
        self.penalties.append(weight)

    def _coordinate(self, values: Floats, weight: float, into: list[Floats], *, scaled: bool) -> None:
        """Centred and scaled by the original; without spread in the original it tells nothing and is left out."""
        gaps, old = np.isnan(values), values[self.here.height :]
        old = old[~np.isnan(old)]
        mean, sd = (float(old.mean()), float(old.std())) if len(old) else (0.0, 0.0)
        unit = sd if scaled else 1.0
        if sd > FLAT * abs(mean):
            into.append(np.where(gaps, 0.0, values - mean) * np.sqrt(weight) / unit)
        if gaps.any() and not gaps.all():
            self.categories.append(gaps.astype(np.int64))
            self.penalties.append(weight * ((sd / unit) ** 2 if sd > 0 else 1.0))

    def _labels(self, here: pl.Series, there: pl.Series, *, guess: bool) -> pl.Series:
        """The original values, as their released labels where the column was merely coarsened."""
        if self.files.second is None:
            return there
        new, old = here.gather(self.files.second), there.gather(self.files.first)
        if not _coarsened(new, old, self.laws, guess):
            return there
        labels = pl.DataFrame({"old": old, "new": new, "said": True}).unique("old")
        found = (
            there.alias("old").to_frame().join(labels, on="old", how="left", nulls_equal=True, maintain_order="left")
        )
        label = pl.when("said").then("new").otherwise("old").alias(there.name)
        return found.select(label).to_series()


def _whitening(original: Floats) -> Floats:
    """What turns Euclidean distance into z' R^-1 z, R the correlations of the original."""
    spread = original.std(axis=0)
    centred = (original - original.mean(axis=0)) / spread
    values, vectors = np.linalg.eigh(centred.T @ centred / len(original))
    loud = values > QUIET * values.max()
    found: Floats = vectors[:, loud] / np.sqrt(values[loud])
    return found


def _ranks(here: pl.Series, there: pl.Series) -> tuple[Floats, int]:
    """Places in the order of the categories that occur, missing as NaN, and how many categories there are."""
    if isinstance(there.dtype, pl.Enum) and here.dtype == there.dtype:
        both = pl.concat([here, there]).to_physical()
        return both.cast(pl.Float64).to_numpy(), len(there.dtype.categories)
    if not all(s.dtype.is_numeric() or s.dtype.is_temporal() or s.dtype == pl.Null for s in (here, there)):
        raise DataError(f"Column {here.name!r} has no order in both files: make it an Enum, numbers or dates.")
    values = numbers(here, there)
    coded = code(pl.Series(values, nan_to_null=True))
    missing = coded.values.null_count()
    return np.where(np.isnan(values), np.nan, coded.codes.astype(np.float64)), coded.size - missing


def _comparable(here: pl.Series, there: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Categories of one type: numbers as numbers, points in time as such, all others as text."""
    number = here.dtype.is_numeric() and there.dtype.is_numeric()
    kind: Any = pl.Float64() if number else pl.Datetime("us") if is_date(here, there) else pl.String()
    return here.cast(kind), there.cast(kind)


def _coarsened(here: pl.Series, there: pl.Series, laws: tuple[Law, ...], guess: bool) -> bool:
    """A column was merely coarsened, so that whoever knows the original value knows the released label.

    It was if each original value has one released label and the laws say so; without laws, where a `guess` is made, if
    there are fewer labels than values, and two records a value on average (or chance could make it look so).
    """
    if here.equals(there, null_equal=True):
        return False
    values = there.n_unique()
    if pl.DataFrame({"old": there, "new": here}).n_unique() > values:
        return False
    said = [law.coarsens for law in laws if here.name in law.columns]
    return all(said) if said else guess and here.n_unique() < values and 2 * values <= len(here)
