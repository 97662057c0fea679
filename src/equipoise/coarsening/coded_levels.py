"""Levels of a key as integer codes ("ladder"), so that a coarsening is a table look-up.

The codes follow the hierarchy: values of one coarser category are adjacent, so that coarsening a key keeps the order
of its codes wherever the levels nest.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from equipoise.data.hierarchy import Hierarchy
from equipoise.data.levels import Level, Lookup, OriginalLevel, as_text
from equipoise.ground.arrays import Floats, Integers, inverse
from equipoise.ground.packed_keys import code


@dataclass(frozen=True, eq=False, repr=False)
class CodedLevels:
    """The levels of a key that may be released, as codes.

    `names` are their names; `steps[l][v]` is the category of value v at level l, `labels[l]` the categories;
    `shares[l][v]` the leaves under that category as a share of the `domain`, the number of leaves; `counts[v]` the
    records with the value. A level counts the leaves that its hierarchy lists, also those that no record has; where it
    lists none (intervals, prefixes, dates), the values that occur. A missing value is a category of its own at every
    level, the first, with one leaf.

    >>> tree = Hierarchy.mapping({"a": "vowel", "b": "consonant", "c": "consonant", "e": "vowel"}, root=True)
    >>> ladder, place = CodedLevels.of("letter", pl.Series(["a", "b", "c"]), np.array([5, 1, 1]), tree)
    >>> ladder.names, ladder.domain, [step.tolist() for step in ladder.steps]
    (('original', '1', 'all'), 4, [[0, 1, 2], [0, 0, 1], [0, 0, 0]])
    >>> place.tolist(), ladder.shares[1].tolist()
    ([2, 0, 1], [0.5, 0.5, 0.5])
    """

    key: str
    names: tuple[str, ...]
    labels: tuple[pl.Series, ...]
    steps: tuple[Integers, ...]
    shares: tuple[Floats, ...]
    domain: int
    counts: Integers

    @classmethod
    def of(
        cls, key: str, values: pl.Series, counts: Integers, tree: Hierarchy | None = None
    ) -> tuple["CodedLevels", Integers]:
        """Coded levels of these distinct values, and the code of each value."""
        levels = tree.allowed if tree else (OriginalLevel(),)
        everything = tree.levels if tree else levels
        texts = [level.label(values) for level in levels]
        coded = [code(text).codes.astype(np.int64) for text in texts]
        order = np.lexsort([np.arange(len(values)), *sorted(coded, key=lambda codes: -int(codes.max()))])
        domain = _domain(values, everything)
        shares = tuple(_share(level, values, domain)[order] for level in levels)
        steps = tuple(_by_first_occurrence(codes[order]) for codes in coded)
        labels = tuple(
            text.gather(order[np.unique(step, return_index=True)[1]]) for text, step in zip(texts, steps, strict=True)
        )
        names = tuple(level.name for level in levels)
        return cls(key, names, labels, steps, shares, domain, counts[order]), inverse(order)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def size(self) -> int:
        return len(self.counts)

    @cached_property
    def within(self) -> Integers:
        """within[a, b]: level b is a function of level a, so that b is as coarse as a or coarser."""
        return np.array([[_function(a, b) for b in self.steps] for a in self.steps])

    @cached_property
    def chain(self) -> bool:
        """Whether every level is a function of the one before it."""
        return bool(np.array_equal(self.within, np.triu(np.ones_like(self.within))))

    @cached_property
    def bits_lost(self) -> Floats:
        """Entropy loss of each level in bits: sum over records of - log2 of the share of its value in the category."""
        a = self.counts.astype(np.float64)
        categories = (np.bincount(step, weights=a)[step] for step in self.steps)
        return np.array([float(a @ np.log2(b / np.maximum(a, 1))) for b in categories])

    @cached_property
    def above(self) -> tuple[tuple[int, ...], ...]:
        """For each level the next coarser ones, with no level between."""
        strict = self.within & ~self.within.T
        return tuple(tuple(_next(strict, level)) for level in range(len(self)))

    @property
    def tops(self) -> tuple[int, ...]:
        """The coarsest levels, that of the fewest categories first."""
        coarsest = [level for level, more in enumerate(self.above) if not more]
        return tuple(sorted(coarsest, key=lambda level: len(self.labels[level])))

    @cached_property
    def below(self) -> tuple[tuple[int, ...], ...]:
        """For each level the next finer ones."""
        strict = (self.within & ~self.within.T).T
        return tuple(tuple(_next(strict, level)) for level in range(len(self)))


def _next(strict: Integers, level: int) -> list[int]:
    beyond = np.flatnonzero(strict[level])
    return [int(b) for b in beyond if not any(strict[m, b] for m in beyond)]


def _function(fine: Integers, coarse: Integers) -> bool:
    pairs = fine * (int(coarse.max()) + 1) + coarse
    return len(np.unique(pairs)) == len(np.unique(fine))


def _by_first_occurrence(codes: Integers) -> Integers:
    """Codes numbered by first occurrence, increasing along the tree."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def _domain(values: pl.Series, levels: tuple[Level, ...]) -> int:
    """Number of leaves: those that the hierarchy lists and others that occur, without the missing value."""
    texts = as_text(values).drop_nulls()
    listed = next((level for level in levels if isinstance(level, Lookup)), None)
    if listed is None:
        return max(1, len(texts))
    return len(set(_leaves(listed, values).to_list()) | set(texts.to_list()))


def _leaves(level: Lookup, values: pl.Series) -> pl.Series:
    """The leaves that a level lists, as text of the column's values: 2 for 2.0 in a float column."""
    texts = pl.Series(list(level.leaves), dtype=pl.String)
    if not values.dtype.is_float():
        return texts
    numbers = as_text(texts.cast(pl.Float64, strict=False))
    return pl.select(pl.coalesce(numbers, texts)).to_series()


def _share(level: Level, values: pl.Series, domain: int) -> Floats:
    """The share of the domain under the category of each value."""
    own = np.where(values.is_null().to_numpy(), 1 / domain, np.nan)
    if isinstance(level, OriginalLevel):
        return np.where(np.isnan(own), 1 / domain, own)
    labels = level.label(values)
    leaves = pl.DataFrame({"label": labels}).filter(values.is_not_null()).group_by("label").agg(n=pl.len())
    if isinstance(level, Lookup):
        rows_of_leaves = pl.DataFrame({"label": labels, "leaf": as_text(values)}).drop_nulls("leaf")
        strangers = rows_of_leaves.filter(~pl.col("leaf").is_in(_leaves(level, values).implode()))["label"]
        rows = pl.concat([pl.Series("label", [g[level.place] for g in level.leaves.values()]), strangers])
        leaves = rows.to_frame().group_by("label").agg(n=pl.len())
    elif level.name == "all":
        leaves = leaves.with_columns(n=pl.lit(domain))
    numbers = pl.DataFrame({"label": labels}).join(leaves, on="label", how="left", maintain_order="left")["n"]
    share: Floats = numbers.cast(pl.Float64).fill_null(np.nan).to_numpy() / domain
    return np.where(np.isnan(own), np.minimum(share, 1.0), own)
