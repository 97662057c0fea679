"""What an intruder has: the released columns, what is known of each person, and the laws; and what a guess is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.records import Law
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError
from equipoise.ground.packed_keys import code, group


@dataclass(frozen=True, eq=False, repr=False)
class IntruderFiles:
    """The released and the original columns, row by row of the same people, and the public laws between them.

    `known` are the columns whose original values the intruder has; `released` may hold others that laws speak of.
    """

    released: pl.DataFrame
    original: pl.DataFrame
    known: tuple[str, ...]
    laws: tuple[Law, ...]

    def __len__(self) -> int:
        return self.released.height


@dataclass(frozen=True, eq=False, repr=False)
class RecordGuess:
    """For each person the probability that the intruder names the right record, and among how many they choose."""

    name: str
    risk: Floats
    candidates: Integers


def numbers(column: pl.Series) -> Floats:
    """Numbers, points in time in microseconds, or places in the order of an Enum; missing is NaN."""
    same = column.cast(pl.Datetime("us")) if isinstance(column.dtype, pl.Date | pl.Datetime) else column
    found = same.to_physical().cast(pl.Float64).to_numpy()
    if np.isinf(found).any():
        raise DataError(f"Column {column.name!r} holds infinite values: remove them first.")
    return found


def is_number(files: IntruderFiles, column: str) -> bool:
    """A column of numbers or of points in time in both files."""
    kinds = [table.schema[column] for table in (files.released, files.original)]
    told = [kind for kind in kinds if kind != pl.Null]
    return bool(told) and (all(kind.is_numeric() for kind in told) or all(kind.is_temporal() for kind in told))


def alike(here: pl.Series, there: pl.Series) -> tuple[Integers, Integers]:
    """Codes of two columns, equal where their values are: numbers as numbers, all others as text."""
    if here.dtype != there.dtype or isinstance(here.dtype, pl.Categorical):
        kind = pl.Float64() if here.dtype.is_numeric() and there.dtype.is_numeric() else pl.String()
        here, there = here.cast(kind), there.cast(kind)
    codes = code(pl.concat([here, there])).codes.astype(np.int64)
    return codes[: len(here)], codes[len(here) :]


def joint(columns: Sequence[Integers], size: int) -> Integers:
    """Rows numbered by their combination of codes; all 0 without columns."""
    if not columns:
        return np.zeros(size, dtype=np.int64)
    return group(list(columns), [int(column.max(initial=0)) + 1 for column in columns])[0]


def joint_both(pairs: Sequence[tuple[Integers, Integers]], size: int) -> tuple[Integers, Integers]:
    """The same over two files, numbered alike."""
    found = joint([np.concatenate(pair) for pair in pairs], 2 * size)
    return found[:size], found[size:]
