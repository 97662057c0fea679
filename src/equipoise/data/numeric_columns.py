"""Numeric columns: checks, conversion to floats, and moments computed on the engine that holds the records."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from equipoise.data.records import Records, collect_one
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError, RolesError, require_columns

MOMENT_DIGITS = 12
"""Significant digits of moments, so that engines which add in another order give equal ones."""


@dataclass(frozen=True, eq=False)
class ColumnMoments:
    """Mean and standard deviation (divisor n) of each column over its known values, and the correlations."""

    mean: Floats
    sd: Floats
    correlation: Floats

    @property
    def covariance(self) -> Floats:
        return self.sd[:, None] * self.correlation * self.sd


def numeric_columns(records: Records, columns: tuple[str, ...] | None) -> tuple[str, ...]:
    """The columns named, or those with the numeric role; refused where they are missing or not numbers."""
    schema, names = records.schema(), columns or records.roles.numeric
    if not names:
        raise RolesError("No columns were named, and no column has the role numeric.")
    require_columns(names, schema)
    for column in names:
        if not schema[column].is_numeric():
            raise DataError(f"Column {column!r} is {schema[column]}, not numeric.")
    return names


def floats(table: pl.DataFrame, columns: tuple[str, ...]) -> Floats:
    """The columns as a matrix; missing is NaN. One that a mask turned into labels is refused."""
    for column in columns:
        if not table.schema[column].is_numeric() and table.schema[column] != pl.Null:
            raise DataError(f"Column {column!r} holds no numbers any more: it was coarsened into labels.")
    return beside([table[c].cast(pl.Float64).to_numpy() for c in columns])


def finite(column: str, values: Floats) -> Floats:
    """The values of a column, refused where some are infinite."""
    if np.isinf(values).any():
        raise DataError(f"Column {column!r} holds infinite values: remove them first.")
    return values


def beside(columns: Sequence[Floats]) -> Floats:
    """Columns as a matrix in column-major order, as `times` needs it."""
    return np.stack(columns).T


def times(x: Floats, right: Floats) -> Floats:
    """Matrix product x @ right for a tall x and a small right; computed transposed, which is much faster.

    >>> times(beside([np.array([1.0, 2.0]), np.array([3.0, 4.0])]), np.array([[1.0], [2.0]])).tolist()
    [[7.0], [10.0]]
    """
    return (right.T @ x.T).T


def moments(records: Records, columns: tuple[str, ...], *, joint: bool = False) -> ColumnMoments:
    """Means and standard deviations; with `joint` also correlations, over complete records.

    Unweighted: they describe the file. Two passes, three with `joint`; O(records x columns^2) for the correlations.
    """
    frame = records.frame.select(*(as_float(c).alias(c) for c in columns))
    mean = _aggregate(frame, [nw.col(c).mean().alias(str(i)) for i, c in enumerate(columns)])
    centred = frame.select(*((nw.col(c) - m).alias(c) for c, m in zip(columns, np.nan_to_num(mean), strict=True)))
    square = _aggregate(centred, [(nw.col(c) * nw.col(c)).mean().alias(str(i)) for i, c in enumerate(columns)])
    if not (np.isfinite(mean) | np.isnan(mean)).all() or np.isinf(square).any():
        raise DataError("A column holds infinite values: remove them first.")
    alike = _correlations(centred, columns) if joint and len(columns) > 1 else np.eye(len(columns))
    return ColumnMoments(_round(mean), _round(np.sqrt(square)), _round(alike))


def as_float(column: str) -> nw.Expr:
    """Expression for a column as floats, NaN replaced by null."""
    return nw.col(column).cast(nw.Float64()).fill_nan(None)


def root(matrix: Floats) -> Floats:
    """Symmetric square root of a covariance matrix, also of a singular one.

    >>> root(np.diag([4.0, 0.0])).tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def significant(value: float, digits: int = 3) -> float:
    """A number rounded to a few significant digits, for public output."""
    return float(f"{value:.{digits}g}")


def _correlations(centred: Any, columns: tuple[str, ...]) -> Floats:
    """Correlations over complete records; a column that does not vary among them is uncorrelated."""
    size = len(columns)
    whole = centred.drop_nulls()
    means = _aggregate(whole, [nw.col(c).mean().alias(str(i)) for i, c in enumerate(columns)])
    pairs = [(i, j) for i in range(size) for j in range(i, size)]
    products = [(nw.col(columns[i]) * nw.col(columns[j])).mean().alias(str(k)) for k, (i, j) in enumerate(pairs)]
    covariance = np.zeros((size, size))
    for (i, j), value in zip(pairs, _aggregate(whole, products), strict=True):
        covariance[i, j] = covariance[j, i] = np.nan_to_num(value - means[i] * means[j])
    spread = np.sqrt(np.maximum(np.diag(covariance), 0))
    scaled: Floats = np.divide(
        covariance, np.outer(spread, spread), out=np.eye(size), where=np.outer(spread, spread) > 0
    )
    np.fill_diagonal(scaled, 1.0)
    return scaled


def _aggregate(frame: Any, expressions: list[nw.Expr]) -> Floats:
    row = collect_one(frame.select(*expressions))
    return np.array([np.nan if row[str(i)] is None else float(row[str(i)]) for i in range(len(expressions))])


def _round(values: Floats) -> Floats:
    return np.array([float(f"{v:.{MOMENT_DIGITS}g}") for v in values.ravel()]).reshape(values.shape)
