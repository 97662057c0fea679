"""Numeric columns as a weighted sample: moments over known values, and pairs of a released and an original file."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned
from equipoise.data.numeric_columns import floats, numeric_columns
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, EngineError


@dataclass(frozen=True, eq=False, repr=False)
class WeightedSample:
    """The columns of a file, a row per record, missing as NaN, and the weight of each record (1 without a weight role).

    >>> two = WeightedSample(("x",), np.array([[1.0], [3.0], [np.nan]]), np.ones(3))
    >>> two.means().tolist(), two.variances().tolist()
    ([2.0], [2.0])
    """

    names: tuple[str, ...]
    values: Floats
    weights: Floats

    @property
    def present(self) -> Integers:
        return ~np.isnan(self.values)

    def means(self) -> Floats:
        """Weighted means over known values; NaN where there is none."""
        totals = self.present.T @ self.weights
        return ratio(np.nan_to_num(self.values).T @ self.weights, totals, np.nan)

    def variances(self) -> Floats:
        """sum w (x - mean)^2 / sum w x n/(n-1), with n known values: the usual variance without weights."""
        return np.array([covariance(x, x, self.weights) for x in self.values.T])

    def correlations(self) -> Floats:
        """Correlation of each pair of columns, over the records that have both; 0 where one does not vary."""
        size = len(self.names)
        matrix = np.eye(size)
        for i in range(size):
            for j in range(i):
                matrix[i, j] = matrix[j, i] = correlation(self.values[:, i], self.values[:, j], self.weights)
        return matrix

    def complete(self) -> "WeightedSample":
        """The records that have every column."""
        rows = self.present.all(axis=1)
        return WeightedSample(self.names, self.values[rows], self.weights[rows])


def covariance(x: Floats, y: Floats, weights: Floats) -> float:
    """Weighted covariance over the records that have both, with the factor n/(n-1); 0 for fewer than two.

    >>> covariance(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 9.0]), np.ones(3))
    3.5
    """
    both = ~(np.isnan(x) | np.isnan(y)) & (weights > 0)
    n, w = int(both.sum()), weights[both]
    if n < 2:
        return 0.0
    one, two = x[both] - w @ x[both] / w.sum(), y[both] - w @ y[both] / w.sum()
    return float(w @ (one * two) / w.sum()) * n / (n - 1)


def correlation(x: Floats, y: Floats, weights: Floats) -> float:
    """Weighted correlation over the records that have both; 0 where one does not vary.

    >>> correlation(np.array([1.0, 2.0, np.nan]), np.array([2.0, 4.0, 9.0]), np.ones(3))
    1.0
    """
    gaps = np.isnan(x) | np.isnan(y)
    one, two = np.where(gaps, np.nan, x), np.where(gaps, np.nan, y)
    spread = np.sqrt(covariance(one, one, weights) * covariance(two, two, weights))
    return float(np.clip(covariance(one, two, weights) / spread, -1, 1)) if spread > 0 else 0.0


def ratio(above: Floats, below: Floats, otherwise: float | Floats = 0.0) -> Floats:
    """above / below, and `otherwise` where below is 0."""
    start = np.broadcast_to(np.asarray(otherwise, dtype=np.float64), above.shape).copy()
    return np.divide(above, below, out=start, where=below > 0)


def weights(records: Records, table: pl.DataFrame) -> Floats:
    """The weight of each row of a table with the records' weight column, 1 where there is no such role."""
    name = records.roles.weight
    return np.ones(table.height) if name is None else table[name].cast(pl.Float64).to_numpy()


def sample(records: Records, columns: tuple[str, ...]) -> WeightedSample:
    """Numeric columns of a file. O(records x columns)."""
    names = numeric_columns(records, columns)
    table = records.collect(*with_weight(records, names))
    return checked(WeightedSample(names, floats(table, names), weights(records, table)))


def pair(released: Records, original: Records, columns: tuple[str, ...]) -> tuple[WeightedSample, WeightedSample]:
    """Both files as aligned samples with the original's weights; a value missing in one is missing in both.

    Refused where the files do not hold the same records.
    """
    if released.synthetic:
        raise EngineError("The released file is synthetic: its records are nobody's and cannot be compared one by one.")
    names = numeric_columns(original, columns)
    numeric_columns(released, names)
    released_table, original_table = aligned(released, original, with_weight(original, names))
    new, old, weight = floats(released_table, names), floats(original_table, names), weights(original, original_table)
    gaps = np.isnan(new) | np.isnan(old)
    new, old = np.where(gaps, np.nan, new), np.where(gaps, np.nan, old)
    return checked(WeightedSample(names, new, weight)), checked(WeightedSample(names, old, weight))


def with_weight(records: Records, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the columns to read, including the weight."""
    return tuple(dict.fromkeys((*columns, *((records.roles.weight,) if records.roles.weight else ()))))


def checked(data: WeightedSample) -> WeightedSample:
    """Refuse infinite values, and files without any value."""
    if np.isinf(data.values).any():
        raise DataError("A column holds infinite values: remove them first.")
    if not (data.present & (data.weights[:, None] > 0)).any():
        raise DataError(f"No record has a value in {', '.join(data.names)}: there is nothing to compare.")
    return data


def sample_notes(original: Records, missing: int) -> tuple[str, ...]:
    """Notes for a score on weights and missing values."""
    weighted = (f"Weighted by {original.roles.weight!r}.",) if original.roles.weight else ()
    return (*weighted, *((f"{missing:,} missing values were passed over.",) if missing else ()))
