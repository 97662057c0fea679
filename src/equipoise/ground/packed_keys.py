"""Keys as packed integers: code each column once, count by one integer, roll cells up by table look-up.

Cost of counting n records by k coded keys: k passes over n small integers and one addition to an array of the size
of the cross-classification, or a sort where that has more than `MAX_PLACES_PER_RECORD` places per record. Records are
packed `CHUNK_RECORDS` at a time, so memory is that of the codes and the cells. No Python loop over records or cells.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from equipoise.ground.arrays import Floats, Integers

MAX_PLACES_PER_RECORD = 4
"""Up to this many places per record a cross-classification is counted in an array of its own size."""
MAX_DENSE_PLACES = 1 << 24
"""And up to this many places in total, unless there are more records than that."""
MAX_PLACES_PER_ID = 16
"""Up to this many places per id a table of all places numbers them faster than a sort."""
CHUNK_RECORDS = 1 << 15
"""Records packed at a time, few enough to stay in the processor's cache."""
SAMPLE_RECORDS = 1 << 16
"""Records searched first for the values of a text column."""
MAX_WAITING_CELLS = 1 << 22
"""Cells of batches that may wait before they are added up."""
MAX_PACKED_ID = 1 << 62
SPREADING = tuple(np.array([0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xC2B2AE3D27D4EB4F], dtype=np.uint64))
"""Odd multipliers that spread ids over a table (Knuth, vol. 3, 6.4: the first is 2^64 / golden ratio)."""


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
    kind = column.dtype
    if kind == pl.Null:
        return Coded(column.head(1), np.zeros(len(column), dtype=np.uint8))
    if isinstance(kind, pl.String):
        return _text(column)
    if isinstance(kind, pl.Categorical | pl.Enum):
        return _categories(column)
    if kind == pl.Boolean or kind.is_temporal():
        physical = code(column.cast(pl.UInt8) if kind == pl.Boolean else column.to_physical())
        return Coded(physical.values.cast(kind), physical.codes)
    if kind.is_float():
        column = column.fill_nan(None)
        column = pl.select(pl.when(column == 0).then(0.0).otherwise(column).alias(column.name)).to_series()
    return (_short_run(column) if kind.is_integer() else None) or _sorted(column)


def _text(column: pl.Series) -> Coded:
    """Codes of a text column: the first records mostly have all values, which saves a pass over the rest."""
    values = column.head(SAMPLE_RECORDS).unique().drop_nulls().sort()
    codes = column.cast(pl.Enum(values), strict=False).to_physical()
    if codes.null_count() > column.null_count():
        rare = column.filter(codes.is_null()).unique().drop_nulls()
        values = values.append(rare).sort()
        codes = column.cast(pl.Enum(values)).to_physical()
    if not column.null_count():
        return Coded(values, _small(codes.to_numpy(), len(values)))
    nothing = pl.Series(column.name, [None], dtype=pl.String)
    shifted = (codes.cast(pl.UInt32) + 1).fill_null(0)
    return Coded(nothing.append(values), _small(shifted.to_numpy(), len(values) + 1))


def _categories(column: pl.Series) -> Coded:
    """Codes of a categorical column: renumbered in the order of their texts."""
    numbers, values = code(column.to_physical()), column.unique()
    texts = code(values.gather(values.to_physical().arg_sort(nulls_last=False)).cast(pl.String))
    return Coded(texts.values, texts.codes[numbers.codes])


def _short_run(column: pl.Series) -> Coded | None:
    """Codes of integers in a narrow range, by marking which occur instead of sorting; None for a wide range."""
    low, high = column.min(), column.max()
    if not isinstance(low, int) or not isinstance(high, int) or high - low > max(1 << 16, len(column)):
        return None
    if high >= MAX_PACKED_ID or low <= -MAX_PACKED_ID:
        return None
    nulls = int(column.null_count() > 0)
    span = high - low + 1 + nulls
    offsets, met = np.empty(len(column), dtype=_kind(span)), np.zeros(span, dtype=np.bool_)
    rest, unmet = offsets, True
    for piece in column.get_chunks():
        (numbers, lowest), own, rest = _integers(piece, low, nulls), rest[: len(piece)], rest[len(piece) :]
        for step in steps(len(piece)):
            np.subtract(numbers[step], lowest, out=own[step], dtype=np.int64, casting="unsafe")
            if unmet:
                met[own[step]] = True
                unmet = not met.all()
    present = pl.Series(column.name, np.flatnonzero(met)[nulls:] - nulls + low).cast(column.dtype)
    values = pl.Series(column.name, [None] * nulls, column.dtype).append(present)
    return Coded(values, offsets if not unmet else _small(np.cumsum(met) - 1, len(values))[offsets])


def _integers(column: pl.Series, low: int, nulls: int) -> tuple[Integers, int]:
    """Numbers and the lowest of them, where nulls come before the others."""
    if not nulls and column.dtype not in (pl.Int128, pl.UInt128):
        return column.to_numpy(), low
    return (column.cast(pl.Int64) - (low - nulls)).fill_null(0).to_numpy(), 0


def _sorted(column: pl.Series) -> Coded:
    """Codes of any other type, by binary search among the sorted values."""
    values = column.unique().sort(nulls_last=False)
    if column.dtype.is_nested():
        return Coded(values, _small(pl.select(pl.struct(column).rank("dense") - 1).to_series().to_numpy(), len(values)))
    nulls = int(values.null_count() > 0)
    places = _places(values.drop_nulls(), column.drop_nulls())
    full = np.zeros(len(column), dtype=np.int64)
    full[column.is_not_null().to_numpy()] = places + nulls
    return Coded(values, _small(full, len(values)))


def _places(values: pl.Series, column: pl.Series) -> NDArray[Any]:
    """Place of each value among the sorted ones, by Polars where NumPy has no type that holds them exactly."""
    if column.dtype.is_decimal() or column.dtype in (pl.Int128, pl.UInt128):
        return values.search_sorted(column).to_numpy()
    return np.searchsorted(values.to_numpy(), column.to_numpy())


def _small(codes: Integers, size: int) -> Integers:
    return codes.astype(_kind(size), copy=False)


def _kind(size: int) -> type[np.unsignedinteger[Any]]:
    """The smallest type of codes below this size."""
    return np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.uint32


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
        """Give each value of an axis a new code and add up the cells that become equal. O(cells)."""
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


def merge(cubes: Iterable[Cube]) -> Cube:
    """One cube from those of several batches, each with axes of its own.

    Cubes wait until they hold `MAX_WAITING_CELLS`, or more than the sum so far: O(cells of all batches) in total.
    """
    waiting: list[Cube] = []
    for cube in cubes:
        waiting.append(cube)
        if sum(map(len, waiting[1:])) > max(MAX_WAITING_CELLS, len(waiting[0])):
            waiting = [_together(waiting)]
    return _together(waiting)


def _together(cubes: Sequence[Cube]) -> Cube:
    if len(cubes) == 1:
        return cubes[0]
    axes, codes = [], []
    for axis, parts in enumerate(zip(*(cube.axes for cube in cubes), strict=True)):
        whole = code(pl.concat(parts))
        new = np.split(whole.codes, np.cumsum([len(part) for part in parts])[:-1])
        axes.append(whole.values)
        codes.append(np.concatenate([table[cube.codes[axis]] for table, cube in zip(new, cubes, strict=True)]))
    n, total = np.concatenate([cube.n for cube in cubes]), np.concatenate([cube.total for cube in cubes])
    return gather(tuple(axes), tuple(codes), n, total)


def gather(axes: tuple[pl.Series, ...], codes: tuple[Integers, ...], n: Integers | None, total: Floats | None) -> Cube:
    """Add up `n` and `total` (1 each when None) over equal codes; cells without records are omitted."""
    sizes, records = [len(values) for values in axes], len(codes[0])
    if prod(sizes) <= min(MAX_PLACES_PER_RECORD * records, max(MAX_DENSE_PLACES, records)):
        sums = _sums(codes, sizes, n, total)
        occupied = np.flatnonzero(sums.real != 0)
        cell_codes = unpack(occupied, sizes)
    else:
        ids, first = group(codes, sizes)
        sums = _sums([ids], [len(first)], n, total)
        occupied = np.flatnonzero(sums.real != 0)
        cell_codes = tuple(c[first[occupied]] for c in codes)
    cells = sums[occupied]
    return Cube(axes, cell_codes, cells.real.astype(np.int64), (cells.real if total is None else cells.imag).copy())


def _sums(
    codes: Sequence[Integers], sizes: Sequence[int], n: Integers | None, total: Floats | None
) -> NDArray[np.complex128]:
    """Records and weight in each place, as the two parts of a complex number: one visit to memory for both."""
    sums = np.zeros(prod(sizes), dtype=np.complex128)
    both = np.ones(min(CHUNK_RECORDS, len(codes[0])), dtype=np.complex128)
    for step in steps(len(codes[0])):
        packed = pack([column[step] for column in codes], sizes)
        added = both[: len(packed)]
        if n is not None:
            added.real = n[step]
        if total is not None:
            added.imag = total[step]
        np.add.at(sums, packed, added)
    return sums


def steps(records: int) -> Iterator[slice]:
    return (slice(start, start + CHUNK_RECORDS) for start in range(0, records, CHUNK_RECORDS))


def pack(codes: Sequence[Integers], sizes: Sequence[int]) -> Integers:
    """Mixed-radix integer of each record, the first key most significant.

    >>> pack([np.array([0, 1]), np.array([2, 0])], [2, 3]).tolist()
    [2, 3]
    """
    packed: Any = codes[0].astype(np.int32 if prod(sizes) < 1 << 31 else np.int64)
    for column, size in zip(codes[1:], sizes[1:], strict=True):
        packed *= size
        packed += column
    return packed.astype(np.intp, copy=False)


def unpack(packed: Integers, sizes: Sequence[int], into: Integers | None = None) -> tuple[Integers, ...]:
    """Codes of each key from packed integers, the inverse of `pack`; written into the rows of an array if given.

    >>> [codes.tolist() for codes in unpack(np.array([2, 3]), [2, 3])]
    [[0, 1], [2, 0]]
    """
    codes = tuple(np.empty(len(packed), dtype=_kind(size)) for size in sizes) if into is None else tuple(into)
    for step in steps(len(packed)):
        rest: Any = packed[step].astype(np.int32 if prod(sizes) < 1 << 31 else np.int64)
        for own, size in zip(codes[:0:-1], sizes[:0:-1], strict=True):
            higher = rest // size
            own[step] = rest - higher * size
            rest = higher
        codes[0][step] = rest
    return codes


def group(codes: Sequence[Integers], sizes: Sequence[int]) -> tuple[Integers, Integers]:
    """Number the distinct combinations in key order; also the position where each occurs first. O(n log n).

    Combinations are compressed whenever the next key would not fit in 62 bits, so any number of keys works.
    """
    ids, size = codes[0].astype(np.int64), sizes[0]
    for column, more in zip(codes[1:], sizes[1:], strict=True):
        if size * more > MAX_PACKED_ID:
            ids, first = _numbered(ids, size)
            size = len(first)
        ids *= more
        ids += column
        size *= more
    return _numbered(ids, size)


def group_coded(columns: Sequence[Coded]) -> tuple[Integers, Integers]:
    """`group` of coded columns."""
    return group([c.codes for c in columns], [c.size for c in columns])


def occupied_cells(columns: Sequence[Coded]) -> tuple[Integers, Integers, Integers, Integers]:
    """The place of each record; in the order of the keys the places that have some, how many, and the codes there.

    A place is the packed codes where a table of all places is worth it, else a number without gaps. The codes have a
    row for each key, and a type that holds two more.
    """
    codes, sizes = [c.codes for c in columns], [c.size for c in columns]
    records, size, kind = len(codes[0]), prod(sizes), np.min_scalar_type(max(sizes) + 2)
    if size > min(MAX_PLACES_PER_ID * records, MAX_DENSE_PLACES):
        places, first = group(codes, sizes)
        own = np.array([column[first] for column in codes], dtype=kind)
        return places, np.arange(len(first)), np.bincount(places), own
    places = np.empty(records, dtype=np.intp)
    counts: Any = np.zeros(size, dtype=np.uint16)
    for step in steps(records):
        places[step] = pack([column[step] for column in codes], sizes)
        np.add.at(counts, places[step], counts.dtype.type(1))
    if counts.sum(dtype=np.int64) < records:  # a place has more than 16 bits hold
        counts = np.bincount(places, minlength=size)
    occupied = np.flatnonzero(counts != 0)
    own = np.empty((len(sizes), len(occupied)), dtype=kind)
    unpack(occupied, sizes, own)
    return places, occupied, counts[occupied].astype(np.int64), own


def common_ids(
    columns: Sequence[Integers], sizes: Sequence[int], first: Integers, second: Integers
) -> tuple[Integers, Integers]:
    """A number for the codes of each row of two sets of rows: equal numbers, equal codes."""
    rows = np.concatenate([first, second])
    codes = [column[rows] for column in columns]
    if not codes:
        ids: Integers = np.zeros(len(rows), dtype=np.int64)
    else:
        ids = group(codes, sizes)[0] if prod(sizes) > MAX_PACKED_ID else pack(codes, sizes)
    return ids[: len(first)], ids[len(first) :]


def _numbered(ids: Integers, size: int) -> tuple[Integers, Integers]:
    """Ids below `size` renumbered in their order, in place, and the position where each occurs first."""
    if size <= min(MAX_PLACES_PER_ID * len(ids), MAX_DENSE_PLACES):
        return _numbered_by_table(ids, size)
    order = order_of(ids, size)
    ordered = ids[order]
    new = np.ones(len(ids), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    ids[order] = np.cumsum(new) - 1
    return ids, order[new]


def _numbered_by_table(ids: Integers, size: int) -> tuple[Integers, Integers]:
    """`_numbered` where the ids are dense enough: four visits to a table instead of a sort."""
    table = np.zeros(size, dtype=np.int32)
    table[ids[::-1]] = np.arange(len(ids), 0, -1, dtype=np.int32)  # of equal ids the first is written last
    values = np.flatnonzero(table)
    first = table[values].astype(np.int64) - 1
    table[values] = np.arange(len(values), dtype=np.int32)
    ids[:] = table[ids]
    return ids, first


def spread(ids: Integers, bits: int, turn: int = 0) -> Integers:
    """A place for each id in a table of 2^bits places, another one at each turn: equal ids, equal places."""
    return (ids.view(np.uint64) * SPREADING[turn] >> np.uint64(64 - bits)).view(np.intp)


def representatives(ids: Integers) -> Integers:
    """For each id the position of one that is equal, the same for all that are. O(n) by tables, or a sort of the rest.

    >>> representatives(np.array([7, 5, 7])).tolist()
    [2, 1, 2]
    """
    bits = max(1, len(ids)).bit_length() + 1
    table = np.empty(1 << bits, dtype=np.int32 if len(ids) < 1 << 31 else np.int64)
    position = np.arange(len(ids), dtype=table.dtype)
    place = spread(ids, bits)
    table[place] = position
    alike: Integers = table.take(place, mode="clip")
    rest = np.flatnonzero(ids.take(alike) != ids)  # others have their places
    if len(rest):
        _, first, number = np.unique(ids[rest], return_index=True, return_inverse=True)
        alike[rest] = rest[first[number]]
    return alike


def sums_of_equal(ids: Integers, n: Integers) -> Integers:
    """For each id the sum of `n` over all that are equal.

    >>> sums_of_equal(np.array([7, 5, 7]), np.array([1, 2, 3])).tolist()
    [4, 2, 4]
    """
    alike = representatives(ids)
    return np.bincount(alike, n, len(ids)).astype(np.int64).take(alike)


def order_of(ids: Integers, size: int) -> Integers:
    """Stable sorting order of the ids: sorting id and position as one integer is much the fastest."""
    bits = len(ids).bit_length()
    if size << bits > MAX_PACKED_ID:
        return np.argsort(ids, kind="stable")
    order: Integers = ids << bits
    order |= np.arange(len(ids))
    order = pl.Series(order).sort().to_numpy(writable=True)
    order &= (1 << bits) - 1
    return order
