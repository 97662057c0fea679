"""Two files as points in one space: scaled numbers, ranks, categories and texts, with the cost of a difference."""

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

MIN_RELATIVE_SD = 1e-12
"""Standard deviation, as a share of the mean, below which a column counts as constant."""
MIN_VARIANCE_SHARE = 1e-9
"""Share of the largest variance below which a direction counts for nothing in the Mahalanobis distance."""

Kind = Literal["number", "ordinal", "nominal", "text"]
Scale = Literal["values", "logarithms", "ranks"]
Clouds = tuple[Cloud, Cloud, Costs]
"""The released and the original records, and the cost of differences in their categories."""


def kind_of(released: pl.DataType, original: pl.DataType) -> Kind:
    """Kind of a column: numbers and points in time are numbers, all else is nominal."""
    kinds = [kind for kind in (released, original) if kind != pl.Null]
    number = all(kind.is_numeric() for kind in kinds) or all(kind.is_temporal() for kind in kinds)
    return "number" if kinds and number else "nominal"


class CommonSpace:
    """Builder of the common space, column by column: coordinates, and categories with their penalties."""

    def __init__(self, files: Matched, laws: tuple[Law, ...], scale: Scale = "values") -> None:
        self.files, self.laws, self.scale = files, laws, scale
        self.released, self.original = files.released, files.original
        self.numbers: list[Floats] = []
        self.ranks: list[Floats] = []
        self.categories: list[Integers] = []
        self.penalties: list[float] = []
        self.words: dict[int, Words] = {}

    def add(self, column: str, kind: Kind, weight: float, similarity: Similarity = "jaro-winkler") -> None:
        released, original = self.released[column], self.original[column]
        if kind == "text":
            self._text(released, original, weight, similarity)
        elif kind == "nominal":
            self._category(*_comparable(released, original), weight)
        elif kind == "ordinal":
            ranks, size = _ranks(released, original)
            self._coordinate(ranks / max(1, size), weight, self.ranks, scaled=False)
        else:
            values = _rescaled(numbers(released, original), len(released), self.scale)
            self._coordinate(values, weight, self.numbers, scaled=True)

    def clouds(self, whiten: bool) -> Clouds:
        size, split = self.released.height + self.original.height, self.released.height
        scaled = np.stack(self.numbers, axis=1) if self.numbers else np.zeros((size, 0))
        if whiten and scaled.shape[1] > 1:
            scaled = scaled @ _whitening(scaled[split:])
        coordinates = np.hstack([scaled, *(rank[:, None] for rank in self.ranks)])
        codes = np.stack(self.categories, axis=1) if self.categories else np.zeros((size, 0), dtype=np.int64)
        sides = [Cloud(coordinates[part], codes[part]) for part in (slice(split), slice(split, None))]
        return sides[0], sides[1], Costs(np.array(self.penalties), self.words)

    def _category(self, released: pl.Series, original: pl.Series, weight: float) -> None:
        original = self._labels(released, original, guess=True)
        self.categories.append(code(pl.concat([released, original])).codes.astype(np.int64))
        self.penalties.append(weight)

    def _text(self, released: pl.Series, original: pl.Series, weight: float, similarity: Similarity) -> None:
        text = (pl.String, pl.Categorical, pl.Enum, pl.Null)
        if not isinstance(released.dtype, text) or not isinstance(original.dtype, text):
            raise DataError(f"Column {released.name!r} is listed under strings, but does not hold text in both files.")
        released, original = released.cast(pl.String), original.cast(pl.String)
        coded = code(pl.concat([released, self._labels(released, original, guess=False)]))
        split, place = len(released), len(self.penalties)
        both = [np.unique(part).astype(np.int64) for part in (coded.codes[split:], coded.codes[:split])]
        self.words[place] = Words(coded.values.alias(released.name), both[0], both[1], similarity)
        self.categories.append(coded.codes.astype(np.int64))
        self.penalties.append(weight)

    def _coordinate(self, values: Floats, weight: float, into: list[Floats], *, scaled: bool) -> None:
        """Add a coordinate centred and scaled by the original; left out if constant in the original."""
        gaps, old = np.isnan(values), values[self.released.height :]
        old = old[~np.isnan(old)]
        mean, sd = (float(old.mean()), float(old.std())) if len(old) else (0.0, 0.0)
        unit = sd if scaled else 1.0
        if sd > MIN_RELATIVE_SD * abs(mean):
            into.append(np.where(gaps, 0.0, values - mean) * np.sqrt(weight) / unit)
        if gaps.any() and not gaps.all():
            self.categories.append(gaps.astype(np.int64))
            self.penalties.append(weight * ((sd / unit) ** 2 if sd > 0 else 1.0))

    def _labels(self, released: pl.Series, original: pl.Series, *, guess: bool) -> pl.Series:
        """Original values, replaced by their released labels if the column was only coarsened."""
        if self.files.second is None:
            return original
        new, old = released.gather(self.files.second), original.gather(self.files.first)
        if not _is_coarsened(new, old, self.laws, guess):
            return original
        labels = pl.DataFrame({"old": old, "new": new, "has_label": True}).unique("old")
        table = original.alias("old").to_frame()
        labelled = table.join(labels, on="old", how="left", nulls_equal=True, maintain_order="left")
        label = pl.when("has_label").then("new").otherwise("old").alias(original.name)
        return labelled.select(label).to_series()


def _whitening(original: Floats) -> Floats:
    """Whitening matrix that turns Euclidean distance into z' R^-1 z, R the correlations of the original."""
    spread = original.std(axis=0)
    centred = (original - original.mean(axis=0)) / spread
    values, vectors = np.linalg.eigh(centred.T @ centred / len(original))
    loud = values > MIN_VARIANCE_SHARE * values.max()
    return np.asarray(vectors[:, loud] / np.sqrt(values[loud]))


def _rescaled(values: Floats, split: int, scale: Scale) -> Floats:
    """The values, their logarithms with sign, or their ranks within their own file; missing stays missing.

    The logarithm is asinh(x / u), u a hundredth of the original's median absolute value: linear near zero.
    """
    if scale == "values":
        return values
    if scale == "logarithms":
        sizes = np.abs(values[split:][np.isfinite(values[split:])])
        unit = float(np.median(sizes[sizes > 0])) / 100 if (sizes > 0).any() else 1.0
        return np.arcsinh(values / unit)
    parts = [pl.Series(part, nan_to_null=True) for part in (values[:split], values[split:])]
    shares = [(part.rank() / max(1, part.count())).cast(pl.Float64).to_numpy() for part in parts]
    return np.concatenate(shares)


def _ranks(released: pl.Series, original: pl.Series) -> tuple[Floats, int]:
    """Ranks in the order of the categories that occur, missing as NaN, and the number of categories."""
    if isinstance(original.dtype, pl.Enum) and released.dtype == original.dtype:
        both = pl.concat([released, original]).to_physical()
        return both.cast(pl.Float64).to_numpy(), len(original.dtype.categories)
    if not all(s.dtype.is_numeric() or s.dtype.is_temporal() or s.dtype == pl.Null for s in (released, original)):
        raise DataError(f"Column {released.name!r} has no order in both files: make it an Enum, numbers or dates.")
    values = numbers(released, original)
    coded = code(pl.Series(values, nan_to_null=True))
    missing = coded.values.null_count()
    return np.where(np.isnan(values), np.nan, coded.codes.astype(np.float64)), coded.size - missing


def _comparable(released: pl.Series, original: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Categories cast to one type: numbers as numbers, points in time as such, all others as text."""
    number = released.dtype.is_numeric() and original.dtype.is_numeric()
    kind: Any = pl.Float64() if number else pl.Datetime("us") if is_date(released, original) else pl.String()
    return released.cast(kind), original.cast(kind)


def _is_coarsened(released: pl.Series, original: pl.Series, laws: tuple[Law, ...], guess: bool) -> bool:
    """Whether a column was only coarsened, so that whoever knows the original value knows the released label.

    It was if each original value has one released label and the laws say so; without laws, if `guess` is set, if there
    are fewer labels than values, and two records a value on average (else it could look so by chance).
    """
    if released.equals(original, null_equal=True):
        return False
    values = original.n_unique()
    if pl.DataFrame({"old": original, "new": released}).n_unique() > values:
        return False
    coarsens = [law.coarsens for law in laws if released.name in law.columns]
    return all(coarsens) if coarsens else guess and released.n_unique() < values and 2 * values <= len(released)
