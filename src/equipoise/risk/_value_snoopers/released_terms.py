"""The columns of a release as terms of a regression: numbers, bends, squares and products, categories."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations_with_replacement, islice

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats

KNOT_QUANTILES = (0.5, 0.9, 0.1, 0.98)
"""Where the lines of the curved snooper may bend; the first ones where records are few."""
RECORDS_PER_TERM = 30
"""Records for each term of a rule, so that it does not learn records by heart."""
MAX_CATEGORIES = 20
"""Categories of a column that have a term, the most frequent."""
SINGULAR_SHARE = 1e-10
"""Share of the largest eigenvalue below which a direction counts for nothing."""


@dataclass(frozen=True)
class Term:
    """A column as a number or code, what lies beyond a knot, whether it is missing, or whether it has this category."""

    column: str
    kind: str
    centre: float = 0.0
    unit: float = 1.0
    knot: float = 0.0
    category: str | None = None
    codes: pl.DataFrame | None = None

    def values(self, table: pl.DataFrame) -> Floats:
        if self.kind == "category":
            return (as_text(table[self.column]) == self.category).fill_null(False).to_numpy().astype(np.float64)
        if self.codes is not None:
            text = pl.DataFrame({"category": as_text(table[self.column])})
            codes = text.join(self.codes, on="category", how="left", maintain_order="left")["code"]
            return codes.fill_null(-1).to_numpy().astype(np.float64)
        numbers = as_numbers(table[self.column])
        if self.kind == "missing":
            return np.isnan(numbers).astype(np.float64)
        scaled = np.where(np.isnan(numbers), 0.0, (numbers - self.centre) / self.unit)
        return scaled if self.kind == "number" else np.maximum(scaled - self.knot, 0.0)


@dataclass(frozen=True)
class Terms:
    """The terms of a regression: numbers as they are (`linear`), with bends and categories (`curved`), or as trees cut
    them (`coded`: a category by how frequent it is).
    """

    linear: tuple[Term, ...]
    curved: tuple[Term, ...]
    categorical: tuple[str, ...]
    released: pl.DataFrame = field(repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*(term.column for term in self.linear if term.kind == "number"), *self.categorical)

    @cached_property
    def coded(self) -> tuple[Term, ...]:
        codes = (Term(c, "code", codes=_codes(self.released[c])) for c in self.categorical)
        return (*self.linear, *codes)

    @classmethod
    def of(cls, released: pl.DataFrame, columns: Sequence[str]) -> "Terms":
        """Terms from the released file; bends and categories while there are 30 records for each term."""
        schema = released.schema
        numeric = [c for c in columns if is_number(schema[c])]
        categorical = tuple(c for c in columns if not is_number(schema[c]))
        linear = tuple(term for c in numeric for term in _of_number(released[c]))
        room = released.height // RECORDS_PER_TERM - len(linear)
        every_bend = (bend for place in range(len(KNOT_QUANTILES)) for bend in _bends(released, linear, place))
        bends = list(islice(every_bend, max(0, room)))
        room -= len(bends)
        categories: list[Term] = []
        for column in categorical if room > 0 else ():
            more = list(_of_category(released[column]))
            categories += more if len(more) <= room else []
            room -= len(more) if len(more) <= room else 0
        return cls(linear, (*linear, *bends, *categories), categorical, released)


def is_number(kind: pl.DataType) -> bool:
    return kind.is_numeric() or kind.is_temporal()


def as_numbers(column: pl.Series) -> Floats:
    """Numbers, points in time as numbers too; anything else, and infinities, are missing."""
    if not is_number(column.dtype):
        return np.full(len(column), np.nan)
    numbers = (column.to_physical() if column.dtype.is_temporal() else column).cast(pl.Float64).to_numpy()
    return np.where(np.isfinite(numbers), numbers, np.nan)


def as_text(column: pl.Series) -> pl.Series:
    return column.cast(pl.String)


def _of_number(column: pl.Series) -> Iterator[Term]:
    numbers = as_numbers(column)
    present = numbers[~np.isnan(numbers)]
    centre, unit = (float(present.mean()), float(present.std())) if len(present) else (0.0, 0.0)
    if unit > 0:
        yield Term(column.name, "number", centre, unit)
    if 0 < len(present) < len(numbers):
        yield Term(column.name, "missing")


def _bends(released: pl.DataFrame, linear: Sequence[Term], place: int) -> Iterator[Term]:
    """One bend in each number, at a quantile of its released values."""
    for term in linear:
        if term.kind == "number":
            values = term.values(released)
            knot = float(np.quantile(values, KNOT_QUANTILES[place]))
            if values.min() < knot < values.max():
                yield Term(term.column, "bend", term.centre, term.unit, knot)


def _of_category(column: pl.Series) -> Iterator[Term]:
    counts = as_text(column).drop_nulls().value_counts(name="n").sort(["n", column.name], descending=[True, False])
    for category in counts[column.name].head(MAX_CATEGORIES):
        yield Term(column.name, "category", category=category)


def _codes(column: pl.Series) -> pl.DataFrame:
    """Categories by number, the most frequent first."""
    counts = as_text(column).alias("category").drop_nulls().value_counts(name="n")
    return counts.sort(["n", "category"], descending=[True, False]).select("category").with_row_index("code")


def matrix(terms: Sequence[Term], table: pl.DataFrame) -> Floats:
    """A row for each record, a column for each term, and one of ones."""
    numbers = np.ones((table.height, len(terms) + 1))
    for place, term in enumerate(terms, start=1):
        numbers[:, place] = term.values(table)
    return numbers


def with_products(x: Floats, records: int) -> Floats:
    """The terms of a matrix, their squares and products, while there are 30 of the `records` for each."""
    room = max(0, records // RECORDS_PER_TERM - x.shape[1])
    if not room:
        return x
    pairs = sorted(combinations_with_replacement(range(1, x.shape[1]), 2), key=lambda pair: pair[1] - pair[0])
    return np.column_stack([x, *(x[:, one] * x[:, two] for one, two in pairs[:room])])


def coefficients(x: Floats, y: Floats) -> Floats:
    """Least squares, the shortest solution where several fit alike. O(n m^2), m the smaller of records and terms."""
    if x.shape[0] < x.shape[1]:
        return np.asarray(x.T @ (np.linalg.pinv(x @ x.T, rcond=SINGULAR_SHARE, hermitian=True) @ y))
    inverse = np.linalg.pinv(x.T @ x, rcond=SINGULAR_SHARE, hermitian=True)
    return np.asarray(inverse @ (x.T @ y))
