"""String similarity (Jaro-Winkler, Levenshtein) by RapidFuzz, and the pairs of distinct values that are similar.

Only distinct values are compared, a few thousand at a time; the full matrix of distances is never held.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import ParameterError, import_extra

Similarity = Literal["jaro-winkler", "levenshtein"]
SIMILARITIES: tuple[Similarity, ...] = ("jaro-winkler", "levenshtein")
BAND_EDGES = (0.1000003, 0.2500003)
"""Distances that end the bands of similar values; no ratio of small numbers falls on one, so rounding moves no pair."""
MAX_TEXT_PAIRS = 4_000_000_000
"""Pairs of distinct values compared at most: a minute or two."""
PAIRS_PER_BLOCK = 1 << 22
"""Pairs of values compared at a time."""


def _library(similarity: Similarity) -> tuple[Any, Any]:
    """The package's functions for many pairs, and its distance: 1 - similarity, in [0, 1]."""
    distances = import_extra("rapidfuzz.distance")
    kind = distances.JaroWinkler if similarity == "jaro-winkler" else distances.Levenshtein
    return import_extra("rapidfuzz.process"), kind.normalized_distance


@dataclass(frozen=True, eq=False, repr=False)
class Words:
    """Distinct values of a text column of two files, null among them, and the distances between them.

    `first_codes` and `second_codes` are the codes that occur in each file. A missing value has the largest distance, 1,
    from every other and is equal to itself.
    """

    values: pl.Series
    first_codes: Integers
    second_codes: Integers
    similarity: Similarity = "jaro-winkler"

    @cached_property
    def texts(self) -> Any:
        return np.array(self.values.to_list(), dtype=object)

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        return self.values.is_null().to_numpy()

    @cached_property
    def floor(self) -> float:
        """Smallest distance of two different values: an edit costs 1 / length, by Jaro-Winkler 0.6 / 3 of that."""
        longest = max((len(text) for text in self.texts if text is not None), default=0)
        return (0.2 if self.similarity == "jaro-winkler" else 1.0) / max(1, longest) * (1 - 1e-9)

    def distance(self, one: Integers, two: Integers) -> Floats:
        """Distance of each pair of codes; equal pairs are computed once.

        >>> names = Words(pl.Series(["Ricard", "Ricardo"]), np.array([0, 1]), np.array([0, 1]), "levenshtein")
        >>> names.distance(np.array([0, 0]), np.array([0, 1])).round(3).tolist()
        [0.0, 0.143]
        """
        process, distance = _library(self.similarity)
        keys, place = np.unique(one.astype(np.int64) * len(self.values) + two, return_inverse=True)
        first, second = self.texts[keys // len(self.values)], self.texts[keys % len(self.values)]
        missing = self.missing[keys // len(self.values)] | self.missing[keys % len(self.values)]
        distances = np.ones(len(keys))
        distances[~missing] = process.cpdist(
            first[~missing].tolist(), second[~missing].tolist(), scorer=distance, dtype=np.float64
        )
        distances[keys // len(self.values) == keys % len(self.values)] = 0.0
        return np.asarray(distances[place])

    def near(self, max_distance: float) -> tuple[Integers, Integers, Floats]:
        """Pairs of different codes within the distance, in order, and their distances.

        O(distinct values of the first x of the second file) comparisons, about 50 million a second; the memory is that
        of the pairs returned.
        """
        first_codes, second_codes = self._present_codes(self.first_codes), self._present_codes(self.second_codes)
        if len(first_codes) * len(second_codes) > MAX_TEXT_PAIRS:
            raise ParameterError(
                f"{self.values.name!r} has {len(first_codes):,} and {len(second_codes):,} distinct texts, and at most "
                f"{MAX_TEXT_PAIRS:,} pairs are compared: group similar texts first, or leave the column out."
            )
        process, distance = _library(self.similarity)
        texts, pairs = self.texts[second_codes].tolist(), []
        step = max(1, PAIRS_PER_BLOCK // max(1, len(second_codes)))
        for start in range(0, len(first_codes), step):
            part = first_codes[start : start + step]
            apart = process.cdist(self.texts[part].tolist(), texts, scorer=distance, dtype=np.float64, workers=-1)
            rows, columns = np.nonzero((apart <= max_distance) & (part[:, None] != second_codes))
            pairs.append((part[rows], second_codes[columns], apart[rows, columns]))
        return _concatenate(pairs)

    def _present_codes(self, codes: Integers) -> Integers:
        """Codes of values that are not missing, in order."""
        codes = np.sort(codes)
        return codes[~self.missing[codes]].astype(np.int64)

    @cached_property
    def bands(self) -> "tuple[Band, ...]":
        """Similar values of each value, in bands that end at `BAND_EDGES`."""
        one, two, apart = self.near(BAND_EDGES[-1])
        edges = (0.0, *BAND_EDGES)
        bands = []
        for low, high in pairwise(edges):
            in_band = (apart > low) & (apart <= high)
            start = np.searchsorted(one[in_band], np.arange(len(self.values) + 1))
            bands.append(Band(start, two[in_band], apart[in_band]))
        return tuple(bands)


@dataclass(frozen=True, eq=False, repr=False)
class Band:
    """Similar codes in the other file for each code, those of code c at start[c] to start[c + 1]."""

    start: Integers
    codes: Integers
    distance: Floats


def _concatenate(pairs: Sequence[tuple[Integers, Integers, Floats]]) -> tuple[Integers, Integers, Floats]:
    if not pairs:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
    one, two, apart = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return one, two, apart
