"""How alike two texts are, by a maintained library, and the pairs of distinct values that are alike.

A file of n records has v distinct values: only these are compared, a few thousand at a time, never all of them kept.
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
from equipoise.ground.errors import MissingExtraError, ParameterError

Similarity = Literal["jaro-winkler", "levenshtein"]
SIMILARITIES: tuple[Similarity, ...] = ("jaro-winkler", "levenshtein")
EDGES = (0.1000003, 0.2500003)
"""Distances that end the bands of similar values; no ratio of small numbers falls on one, so rounding moves no pair."""
PAIRS = 4_000_000_000
"""Pairs of distinct values that are compared at most: a minute or two."""
BLOCK = 1 << 22
"""Pairs of values compared at a time."""


def known(similarity: Any) -> None:
    """Refuse a similarity nobody knows."""
    if similarity not in SIMILARITIES:
        raise ParameterError(f"similarity must be one of {', '.join(SIMILARITIES)}, got {similarity!r}.")


def _library(similarity: Similarity) -> tuple[Any, Any]:
    """The package's functions for many pairs, and its distance: 1 - similarity, in [0, 1]."""
    try:
        from rapidfuzz import process
        from rapidfuzz.distance import JaroWinkler, Levenshtein
    except ModuleNotFoundError:
        raise MissingExtraError.for_package("rapidfuzz", "strings") from None
    return process, (JaroWinkler if similarity == "jaro-winkler" else Levenshtein).normalized_distance


@dataclass(frozen=True, eq=False, repr=False)
class Words:
    """The distinct values of a text column of two files, null among them, and how far apart they are.

    `asking` and `asked` are the codes that occur in the first and in the second file. A missing value is as far as can
    be, 1, from every other and equal to itself.
    """

    values: pl.Series
    asking: Integers
    asked: Integers
    similarity: Similarity = "jaro-winkler"

    @cached_property
    def texts(self) -> Any:
        return np.array(self.values.to_list(), dtype=object)

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        return self.values.is_null().to_numpy()

    @cached_property
    def floor(self) -> float:
        """No two different values are closer: an edit costs 1 / length, by Jaro-Winkler at least 0.6 / 3 of that."""
        longest = max((len(text) for text in self.texts if text is not None), default=0)
        return (0.2 if self.similarity == "jaro-winkler" else 1.0) / max(1, longest) * (1 - 1e-9)

    def distance(self, one: Integers, two: Integers) -> Floats:
        """The distance of each pair of codes; equal pairs are looked at once.

        >>> names = Words(pl.Series(["Ricard", "Ricardo"]), np.array([0, 1]), np.array([0, 1]), "levenshtein")
        >>> names.distance(np.array([0, 0]), np.array([0, 1])).round(3).tolist()
        [0.0, 0.143]
        """
        process, distance = _library(self.similarity)
        keys, place = np.unique(one.astype(np.int64) * len(self.values) + two, return_inverse=True)
        first, second = self.texts[keys // len(self.values)], self.texts[keys % len(self.values)]
        missing = self.missing[keys // len(self.values)] | self.missing[keys % len(self.values)]
        found = np.ones(len(keys))
        found[~missing] = process.cpdist(
            first[~missing].tolist(), second[~missing].tolist(), scorer=distance, dtype=np.float64
        )
        found[keys // len(self.values) == keys % len(self.values)] = 0.0
        answer: Floats = found[place]
        return answer

    def near(self, most: float) -> tuple[Integers, Integers, Floats]:
        """Pairs of different codes that are at most so far apart, in order, and their distances.

        O(distinct values here x distinct values there) comparisons, about 50 million a second; the memory is that of
        the pairs found.
        """
        here, there = self._told(self.asking), self._told(self.asked)
        if len(here) * len(there) > PAIRS:
            raise ParameterError(
                f"{self.values.name!r} has {len(here):,} and {len(there):,} distinct texts, and at most {PAIRS:,} "
                "pairs are compared: group similar texts first, or leave the column out."
            )
        process, distance = _library(self.similarity)
        texts, found = self.texts[there].tolist(), []
        step = max(1, BLOCK // max(1, len(there)))
        for start in range(0, len(here), step):
            part = here[start : start + step]
            apart = process.cdist(self.texts[part].tolist(), texts, scorer=distance, dtype=np.float64, workers=-1)
            rows, columns = np.nonzero((apart <= most) & (part[:, None] != there))
            found.append((part[rows], there[columns], apart[rows, columns]))
        return _joined(found)

    def _told(self, codes: Integers) -> Integers:
        """Codes that are no missing value, in order."""
        codes = np.sort(codes)
        return codes[~self.missing[codes]].astype(np.int64)

    @cached_property
    def bands(self) -> "tuple[Band, ...]":
        """The similar values of each value, in bands that end at `EDGES`."""
        one, two, apart = self.near(EDGES[-1])
        edges = (0.0, *EDGES)
        found = []
        for low, high in pairwise(edges):
            kept = (apart > low) & (apart <= high)
            start = np.searchsorted(one[kept], np.arange(len(self.values) + 1))
            found.append(Band(start, two[kept], apart[kept]))
        return tuple(found)


@dataclass(frozen=True, eq=False, repr=False)
class Band:
    """For each code the similar codes of the other file, those of code c at start[c] to start[c + 1]."""

    start: Integers
    codes: Integers
    distance: Floats


def _joined(found: Sequence[tuple[Integers, Integers, Floats]]) -> tuple[Integers, Integers, Floats]:
    if not found:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
    one, two, apart = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return one, two, apart
