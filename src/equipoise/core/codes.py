"""Keys as packed integers: code each column once, count by one integer, roll cells up by table look-up.

Cost of counting n records by k coded keys: k passes over n small integers and one `bincount` (a sort instead when
the cross-classification has more than `DENSE` places). No Python loop over records or cells anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Integers = NDArray[Any]
Floats = NDArray[np.float64]

DENSE = 1 << 24
"""Up to this many places a cross-classification is counted in an array of its own size."""
LARGEST = 1 << 62


@dataclass(frozen=True, eq=False, repr=False)
class Coded:
    """A column as codes into its sorted distinct values (null first)."""

    values: pl.Series
    codes: Integers

    @property
    def size(self) -> int:
        return len(self.values)


def code(column: pl.Series) -> Coded:
    """Code one column: O(n), or O(n log m) for m distinct values that are neither text nor a short run of integers.

    >>> coded = code(pl.Series(["b", None, "a", "b"]))
    >>> coded.values.to_list(), coded.codes.tolist()
    ([None, 'a', 'b'], [2, 0, 1, 2])
    """
    if column.dtype.is_float():
        column = column.fill_nan(None)
        column = pl.select(pl.when(column == 0).then(0.0).otherwise(column).alias(column.name)).to_series()
    if column.dtype == pl.Null:
        return Coded(column.head(1), np.zeros(len(column), dtype=np.uint8))
    if column.dtype.is_integer():
        short = _short_run(column)
        if short is not None:
            return short
    values = column.unique().sort(nulls_last=False)
    nulls = int(values.null_count() > 0)
    if isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum):
        texts = values.cast(pl.String).unique().sort(nulls_last=False)
        known = texts.drop_nulls()
        found = column.cast(pl.String).cast(pl.Enum(known)).to_physical().cast(pl.UInt32) + nulls
        return Coded(texts.alias(column.name), _small(found.fill_null(0).to_numpy(), len(texts)))
    known = values.drop_nulls()
    places = np.searchsorted(_comparable(known), _comparable(column.drop_nulls()))
    full = np.zeros(len(column), dtype=np.int64)
    full[column.is_not_null().to_numpy()] = places + nulls
    return Coded(values, _small(full, len(values)))


def _short_run(column: pl.Series) -> Coded | None:
    """Integers between nearby bounds: the code is found by counting, not sorting."""
    low, high = column.min(), column.max()
    if not isinstance(low, int) or not isinstance(high, int) or high - low > max(1 << 16, len(column)):
        return None
    nulls = int(column.null_count() > 0)
    offsets = (column.cast(pl.Int64) - low).fill_null(high - low + 1).to_numpy() if nulls else _offsets(column, low)
    seen = np.flatnonzero(np.bincount(offsets, minlength=high - low + 1 + nulls)[: high - low + 1])
    codes = np.zeros(high - low + 1 + nulls, dtype=np.int64)
    codes[seen] = np.arange(len(seen)) + nulls
    values = pl.Series(column.name, [None] * nulls + (seen + low).tolist(), dtype=column.dtype)
    return Coded(values, _small(codes, len(values))[offsets])


def _offsets(column: pl.Series, low: int) -> Integers:
    numbers = column.to_numpy()
    return numbers if low == 0 and numbers.dtype.kind == "u" else numbers.astype(np.int64) - low


def _comparable(values: pl.Series) -> NDArray[Any]:
    """Sorted values as numbers in the same order."""
    if values.dtype.is_decimal():
        return values.cast(pl.Float64).to_numpy()
    if values.dtype == pl.Boolean:
        return values.cast(pl.UInt8).to_numpy()
    return values.to_physical().to_numpy() if values.dtype.is_temporal() else values.to_numpy()


def _small(codes: Integers, size: int) -> Integers:
    kind = np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.uint32
    return codes.astype(kind, copy=False)


@dataclass(frozen=True, eq=False, repr=False)
class Cube:
    """The occupied cells of a cross-classification, in the order of their keys.

    `axes` holds the values of each key, `codes` for each key the code of every cell, `n` and `total` the records
    and the weight in it.
    """

    axes: tuple[pl.Series, ...]
    codes: tuple[Integers, ...]
    n: Integers
    total: Floats

    def __len__(self) -> int:
        return len(self.n)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(values) for values in self.axes)

    def recode(self, axis: int, values: pl.Series, codes: Integers) -> "Cube":
        """Give each value of an axis a new code and add up the cells that meet. O(cells)."""
        axes = (*self.axes[:axis], values, *self.axes[axis + 1 :])
        changed = (*self.codes[:axis], codes[self.codes[axis]], *self.codes[axis + 1 :])
        return gather(axes, changed, self.n, self.total)

    def keep(self, places: Sequence[int]) -> "Cube":
        """Add up over the axes that are not kept. O(cells)."""
        if not places:
            nothing: tuple[pl.Series, ...] = ()
            return Cube(nothing, (), np.array([self.n.sum()]), np.array([self.total.sum()]))
        return gather(tuple(self.axes[i] for i in places), tuple(self.codes[i] for i in places), self.n, self.total)


def tally(columns: Sequence[Coded], weights: Floats | None = None) -> Cube:
    """Count records by coded columns, with the sum of their weights."""
    axes, codes = tuple(c.values for c in columns), tuple(c.codes for c in columns)
    return gather(axes, codes, None, weights)


def gather(axes: tuple[pl.Series, ...], codes: tuple[Integers, ...], n: Integers | None, total: Floats | None) -> Cube:
    """Add up `n` and `total` (1 each when not given) over equal codes."""
    sizes = [len(values) for values in axes]
    places = prod(sizes)
    if places <= max(DENSE, 4 * len(codes[0])) and places <= LARGEST:
        packed = pack(codes, sizes)
        counts = np.bincount(packed, weights=n, minlength=places)
        seen = np.flatnonzero(counts)
        found = np.unravel_index(seen, sizes)
        kept = tuple(_small(c, s) for c, s in zip(found, sizes, strict=True))
        sums = counts if total is None else np.bincount(packed, weights=total, minlength=places)
        return Cube(axes, kept, np.rint(counts[seen]).astype(np.int64), sums[seen].astype(np.float64))
    ids, first = group(codes, sizes)
    counts = np.bincount(ids, weights=n)
    sums = counts if total is None else np.bincount(ids, weights=total)
    kept = tuple(c[first] for c in codes)
    return Cube(axes, kept, np.rint(counts).astype(np.int64), sums.astype(np.float64))


def pack(codes: Sequence[Integers], sizes: Sequence[int]) -> Integers:
    """Mixed-radix integer of each record, the first key most significant."""
    packed: Any = codes[0].astype(np.int32 if prod(sizes) < 1 << 31 else np.int64)
    for column, size in zip(codes[1:], sizes[1:], strict=True):
        packed *= size
        packed += column
    found: Integers = packed
    return found


def group(codes: Sequence[Integers], sizes: Sequence[int]) -> tuple[Integers, Integers]:
    """Number the distinct combinations in key order; also the place where each is first met. O(n log n).

    Combinations are compressed whenever the next key would not fit in 62 bits, so any number of keys works.
    """
    ids, size = codes[0].astype(np.int64), sizes[0]
    for column, more in zip(codes[1:], sizes[1:], strict=True):
        if size * more > LARGEST:
            distinct, ids = np.unique(ids, return_inverse=True)
            size = len(distinct)
        ids, size = ids * more + column, size * more
    _, first, numbers = np.unique(ids, return_index=True, return_inverse=True)
    return numbers, first
