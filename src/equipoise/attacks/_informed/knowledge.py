"""What an intruder has (released columns, known values of each person, public laws), and the guess that follows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.numeric_columns import finite
from equipoise.data.records import Law
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import code, group


@dataclass(frozen=True, eq=False, repr=False)
class IntruderFiles:
    """The released and the original columns, row by row of the same people, and the public laws between them.

    `known` are the columns whose original values the intruder has; `released` may hold others that laws speak of.
    `owner` numbers the people where one may have several records.
    """

    released: pl.DataFrame
    original: pl.DataFrame
    known: tuple[str, ...]
    laws: tuple[Law, ...]
    owner: Integers | None = None

    def __len__(self) -> int:
        return self.released.height


@dataclass(frozen=True, eq=False, repr=False)
class RecordGuess:
    """Probability that the intruder names the right record of each person, and the number of candidates."""

    name: str
    risk: Floats
    candidates: Integers


def numbers(column: pl.Series) -> Floats:
    """Numbers, points in time in microseconds, or places in the order of an Enum; missing is NaN."""
    same = column.cast(pl.Datetime("us")) if isinstance(column.dtype, pl.Date | pl.Datetime) else column
    return finite(column.name, same.to_physical().cast(pl.Float64).to_numpy())


def is_number(files: IntruderFiles, column: str) -> bool:
    """Whether a column holds numbers or points in time in both files."""
    kinds = [table.schema[column] for table in (files.released, files.original)]
    present = [kind for kind in kinds if kind != pl.Null]
    return bool(present) and (all(kind.is_numeric() for kind in present) or all(kind.is_temporal() for kind in present))


def alike(released: pl.Series, original: pl.Series) -> tuple[Integers, Integers]:
    """Codes of two columns, equal where their values are: numbers as numbers, all others as text."""
    if released.dtype != original.dtype or isinstance(released.dtype, pl.Categorical):
        kind = pl.Float64() if released.dtype.is_numeric() and original.dtype.is_numeric() else pl.String()
        released, original = released.cast(kind), original.cast(kind)
    codes = code(pl.concat([released, original])).codes.astype(np.int64)
    return codes[: len(released)], codes[len(released) :]


def joint(columns: Sequence[Integers], size: int) -> Integers:
    """Number of each row's combination of codes; all 0 without columns."""
    if not columns:
        return np.zeros(size, dtype=np.int64)
    return group(list(columns), [int(column.max(initial=0)) + 1 for column in columns])[0]


def joint_both(pairs: Sequence[tuple[Integers, Integers]], size: int) -> tuple[Integers, Integers]:
    """Number of each row's combination of codes in two files, numbered alike."""
    combined = joint([np.concatenate(pair) for pair in pairs], 2 * size)
    return combined[:size], combined[size:]
