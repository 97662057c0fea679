"""Shuffle columns so that their relation to other columns stays and nothing else does."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.numeric_columns import beside, numeric_columns, root, times
from equipoise.data.records import Law, Records
from equipoise.data.row_draws import together
from equipoise.ground.arrays import Floats, inverse
from equipoise.ground.errors import DataError, ParameterError, require_columns
from equipoise.ground.packed_keys import code
from equipoise.ground.randomness import Draws
from equipoise.methods.parameters import check_fields

CATEGORIES = 50
"""Categories of a text column beyond which it is refused as `given`: each is a column of the regression."""
DIGITS = 10
"""Digits of the regression that are used, so that the order of rows cannot show in the last one."""
SPARE = 10
"""Records beyond the number of regression columns that are needed to estimate anything."""


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Give the values of `columns` to other records at random, keeping how they go with one another and with `given`.

    Each column X becomes normal scores x* = Phi^-1((rank - 1/2) / n), equal values sharing the mean rank; so do the
    numeric columns of `given`, while each category of a text column is an indicator. With x* = D b + e fitted by least
    squares and S the covariance of the residuals of all columns, scores y* = D b + N(0, S) are drawn, and the record
    with the r-th smallest y* gets the r-th smallest value of X (a normal copula). So

    - the values are those of the original: the distribution of every column is kept exactly;
    - given `given`, what a record gets says nothing about what it had: y* does not look at X but through b and S;
    - rank correlations among `columns` and with `given` are kept up to sampling error where they are monotone.

    `given` are the columns that are released as they are: by default the keys and numeric columns of the roles that are
    not shuffled; `()` keeps only the relations among `columns`. Missing values of X stay where they are; missing
    values of `given` are scored 0, with an indicator. Unweighted. Cost: O(n log n + n q^2), q columns of D.

    Source: Muralidhar and Sarathy (2006), *Data shuffling: a new masking approach for numerical data*; theirs goes from
    rank correlations by 2 sin(pi r / 6), ours estimates the correlation of the scores, which is never infeasible.
    Does not guard against inference from `given`: where it explains a column well the shuffled value is near the truth;
    nor against relations that are not monotone or hold in small groups only, which are lost.

    >>> Shuffle(["income"], given=["age"])
    Shuffle(columns=('income',), given=('age',))
    """

    columns: tuple[str, ...]
    given: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if both := [c for c in self.columns if c in (self.given or ())]:
            raise ParameterError(f"Column {both[0]!r} cannot be both shuffled and given.")

    def apply(self, data: Records, draws: Draws) -> Records:
        columns = numeric_columns(data, self.columns)
        predictors = self._predictors(data, columns)
        table, keys = together(data)
        design = _design(table, predictors)
        model, centre = _fitted(beside([_scores(table[c]) for c in columns]), design)
        noise = beside([draws.normal(keys, counter) for counter in range(len(columns))])
        target_scores = centre + times(noise, model.residual)
        shuffled = table.with_columns(_dealt(table[c], target_scores[:, i]) for i, c in enumerate(columns))
        return data.with_frame(shuffled, self.law(columns, predictors, model))

    def law(self, columns: tuple[str, ...], predictors: tuple[str, ...], model: "ScoreModel") -> Law:
        """What the public may know; `explained` is the share of each column's scores that `given` predicts."""
        explained = {c: round(float(r), 2) for c, r in zip(columns, model.explained, strict=True)}
        parameters = {"columns": list(columns), "given": list(predictors), "explained": explained}
        return Law("shuffle", columns, self._describe(predictors), parameters, detail=model)

    def words(self) -> str:
        return self._describe(self.given)

    def _describe(self, predictors: tuple[str, ...] | None) -> str:
        conditions = "the other columns" if predictors is None else ", ".join(predictors)
        columns = ", ".join(self.columns) or "the numeric columns"
        return f"values of {columns} shuffled, keeping rank correlations with {conditions or 'one another'}"

    def _predictors(self, data: Records, columns: tuple[str, ...]) -> tuple[str, ...]:
        default = (*data.roles.keys, *data.roles.numeric)
        predictors = tuple(dict.fromkeys(c for c in default if c not in columns)) if self.given is None else self.given
        require_columns(predictors, data.schema())
        return predictors


@dataclass(frozen=True, eq=False)
class ScoreModel:
    """The fitted scores: slopes on the design, the root of the residual covariance, the share explained."""

    slopes: Floats
    residual: Floats
    explained: Floats


def _fitted(scores: Floats, design: Floats) -> tuple[ScoreModel, Floats]:
    """Least squares column by column over its known values, and the fitted scores of every record.

    Residual correlations are those of records without gaps; a trace of noise is always left, to tell equals apart.
    """
    slopes = np.round(beside([_slope(x, design) for x in scores.T]), DIGITS)
    centre = times(design, slopes)
    residuals = scores - centre
    present = ~np.isnan(residuals)
    spread = np.array(
        [np.sqrt(np.mean(e[t] ** 2)) if t.any() else 0.0 for e, t in zip(residuals.T, present.T, strict=True)]
    )
    total = np.array([np.var(x[t]) if t.any() else 0.0 for x, t in zip(scores.T, present.T, strict=True)])
    explained = 1 - np.divide(spread**2, total, out=np.ones(len(total)), where=total > 0)
    residual = root(spread[:, None] * _alike(residuals if present.all() else residuals[present.all(axis=1)]) * spread)
    trace = 10.0**-DIGITS * np.eye(len(total))
    return ScoreModel(slopes, np.round(residual, DIGITS) + trace, np.clip(explained, 0, 1)), centre


def _alike(residuals: Floats) -> Floats:
    """The correlations of residuals; none where there is no spread or there are too few records."""
    size = residuals.shape[1]
    if len(residuals) < SPARE:
        return np.eye(size)
    covariance = np.cov(residuals.T, bias=True).reshape(size, size)
    spread = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    correlations: Floats = np.divide(covariance, spread, out=np.eye(size), where=spread > 1e-12)
    np.fill_diagonal(correlations, 1.0)
    return correlations


def _slope(x: Floats, design: Floats) -> Floats:
    present = ~np.isnan(x)
    if not present.any():
        return np.zeros(design.shape[1])
    if present.sum() < design.shape[1] + SPARE:
        raise DataError(
            f"Shuffling needs {design.shape[1] + SPARE:,} known values in each column, there are {int(present.sum()):,}"
            f": name fewer columns in given."
        )
    used = design if present.all() else design[present]
    return np.asarray(np.linalg.lstsq(used.T @ used, used.T @ x[present], rcond=1e-10)[0], dtype=np.float64)


def _design(table: pl.DataFrame, predictors: tuple[str, ...]) -> Floats:
    """A constant, and the columns made of each given one."""
    parts = [np.ones((table.height, 1)), *(_columns(table[c]) for c in predictors)]
    return np.concatenate([part.T for part in parts]).T


def _columns(column: pl.Series) -> Floats:
    """Normal scores of what has an order, indicators of what has none."""
    if column.dtype.is_numeric() or column.dtype.is_temporal():
        scores = _scores(column)
        gaps = np.isnan(scores)
        return np.column_stack([np.where(gaps, 0.0, scores), *([gaps.astype(np.float64)] if gaps.any() else [])])
    coded = code(column)
    if coded.size > CATEGORIES:
        raise DataError(
            f"Column {column.name!r} has {coded.size:,} categories, more than {CATEGORIES}: leave it out of given, or "
            f"recode it first."
        )
    return np.asarray(coded.codes[:, None] == np.arange(1, coded.size), dtype=np.float64)


def _scores(column: pl.Series) -> Floats:
    """Phi^-1((rank - 1/2) / n) of the known values, NaN for the others."""
    from scipy.special import ndtri

    values = column.fill_nan(None) if column.dtype.is_float() else column
    size = len(values) - values.null_count()
    ranks = values.rank("average").cast(pl.Float64).to_numpy()
    return np.asarray(ndtri((ranks - 0.5) / max(1, size)))


def _dealt(column: pl.Series, scores: Floats) -> pl.Series:
    """The known values given out in the order of the wanted scores."""
    present = (
        column.is_not_null() & column.is_not_nan() if column.dtype.is_float() else column.is_not_null()
    ).to_numpy()
    places = np.flatnonzero(present)
    dealt = column.gather(places).sort().gather(inverse(np.argsort(scores[places])))
    if len(places) == len(column):
        return dealt
    source = np.arange(len(column))
    source[places] = len(column) + np.arange(len(places))
    return pl.concat([column, dealt]).gather(source)
