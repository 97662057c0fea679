"""Accuracy of a user's own statistic: confidence-interval overlap or squared error."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import polars as pl

from equipoise.data.records import Records
from equipoise.data.weighted_samples import covariance, ratio, sample_notes, weights, with_weight
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError, ParameterError, require_columns, shown
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields, share
from equipoise.methods.score import Score

Kind = Literal["mean", "quantile", "regression", "table"]
QUERY_FORMS = "write 'mean:income', 'quantile:income,0.9', 'regression:y ~ x1 + x2' or 'table:sex,region'"


@dataclass(frozen=True, slots=True)
class Estimate:
    """How well the released file answers a user's own question: overlap of confidence intervals, or squared error.

    The query is 'mean:income' (or just 'income'), 'quantile:income,0.9' (or 'income@0.9'), 'regression:y ~ x1 + x2'
    (each slope; text columns as indicators against their first category) or 'table:sex,region' (the share of each cell;
    '+' also separates). Estimates e, e' of the original and the released file have standard errors s, s'.

    - `overlap`: J = (o/w + o/w')/2, o the length that the two intervals e +- z s share and w, w' their lengths, from
      0 to 1; the mean over terms.
    - `square`: (e' - e)^2 / s^2, the mean over terms: how much the mask errs in units of sampling variance. Over draws
      the trial's mean v of it gives U = 1/(s^2 (1 + v)), the reciprocal MSE of Duncan and Keller-McNulty: under
      independent noise on a mean v is l2/s2, and U = n/(s2 + l2).

    Errors are linearised, with weights w: mean and regression by the sandwich with n/(n-k), quantiles by Woodruff,
    cells by p (1-p)/n with two successes and failures added. With a `sample` role (m synthetic sets of k records) e' is
    the mean over sets and s'^2 = (k/n) mean(s_i^2) + b/m, b their variance between; for one fully synthetic set
    (1 + k/n) s_1^2 stands for b. Records lacking a column of the query are passed over. The files need not hold the
    same records.

    Source: Karr et al. (2006), *A framework for evaluating the utility of data altered to protect confidentiality*;
    Woodruff (1952); White (1980); Raab, Nowok and Dibben (2016) for synthetic sets. Misleads when the query is not
    what users ask. Cost: O(records x terms^2).

    >>> old = eq.Records.of(pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}), eq.Roles(numeric="x"))
    >>> new = eq.Records.of(pl.DataFrame({"x": [1.0, 2.0, 3.0, 6.0]}), eq.Roles(numeric="x"))
    >>> Estimate("mean:x").measure(old, old).value, round(Estimate("mean:x", "square").measure(new, old).value, 6)
    (1.0, 0.6)
    """

    query: str
    score: Literal["overlap", "square"] = "overlap"
    level: float = 0.95

    def __post_init__(self) -> None:
        parse(self.query)
        check_fields(self)
        share(self.level, "level", open_=True)

    def measure(self, released: Records, original: Records) -> Score:
        question = parse(self.query)
        new, old = _read(released, question), _read(original, question)
        quantities = question.terms(new, old)
        e, s = quantities.fit(old.select(question.columns), weights(original, old))
        estimate, error = _combined(quantities, question, released, new, old.height)
        table = _compared(quantities.names, e, s, estimate, error, NormalDist().inv_cdf((1 + self.level) / 2))
        return Score(
            label(self),
            float(table[self.score].mean()),  # type: ignore[arg-type]
            "higher" if self.score == "overlap" else "lower",
            side="utility",
            unit="share of the interval" if self.score == "overlap" else "times the sampling variance",
            notes=sample_notes(original, 0),
            cells=lambda: table,
        )


@dataclass(frozen=True, slots=True)
class Question:
    """A parsed query: what to estimate, from which columns."""

    kind: Kind
    columns: tuple[str, ...]
    share: float = 0.5

    def terms(self, new: pl.DataFrame, old: pl.DataFrame) -> "Quantities":
        """The quantities to estimate, the same for both files."""
        if self.kind == "table":
            return _table(self.columns, new, old)
        _refuse_text(self.columns[0], new, old)
        if self.kind == "quantile":
            return Quantities(self.columns, lambda table, w: quantile(_values(table[self.columns[0]]), w, self.share))
        return _regression(self.columns, new, old)


@dataclass(frozen=True, slots=True)
class Quantities:
    """Names of the quantities, and how a file gives an estimate and a standard error of each."""

    names: tuple[str, ...]
    fit: Callable[[pl.DataFrame, Floats], tuple[Floats, Floats]]


def parse(query: str) -> Question:
    """A query from its text.

    >>> parse("quantile:income,0.9").share, parse("regression: y ~ a + b").columns, parse("income").kind
    (0.9, ('y', 'a', 'b'), 'mean')
    """
    problem = ParameterError(f"Cannot read the query {shown(query)}: {QUERY_FORMS}.")
    if not isinstance(query, str) or not query.strip():
        raise problem
    word, mark, rest = (part.strip() for part in query.partition(":"))
    kind = word if mark else "mean"
    if kind == "mean":
        return Question("mean", _names(rest if mark else word, "", problem, 1))
    if kind == "quantile":
        column, _, text = rest.replace("@", ",").rpartition(",")
        return Question("quantile", _names(column, "", problem, 1), _share(text, problem))
    if kind == "regression":
        outcome, tilde, causes = rest.partition("~")
        if not tilde:
            raise problem
        return Question("regression", (*_names(outcome, "", problem, 1), *_names(causes, "+", problem)))
    if kind == "table":
        return Question("table", _names(rest.replace("+", ","), ",", problem))
    raise problem


def _names(text: str, mark: str, problem: ParameterError, most: int | None = None) -> tuple[str, ...]:
    names = tuple(part.strip() for part in (text.split(mark) if mark else [text]))
    if not all(names) or len(set(names)) < len(names) or (most and len(names) > most):
        raise problem
    return names


def _share(text: str, problem: ParameterError) -> float:
    try:
        share = float(text)
    except ValueError:
        raise problem from None
    if not 0 < share < 1:
        raise ParameterError(f"The share of a quantile must be between 0 and 1, got {share:g}.")
    return share


def _read(records: Records, question: Question) -> pl.DataFrame:
    """The records that have every column of the query, with their weight and set."""
    schema = records.schema()
    require_columns(question.columns, schema)
    extra = (records.roles.sample,) if records.roles.sample else ()
    table = records.collect(*dict.fromkeys((*with_weight(records, question.columns), *extra)))
    if question.kind != "table":
        table = table.with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None)).drop_nulls(question.columns)
    table = table.filter(pl.col(records.roles.weight) > 0) if records.roles.weight else table
    if table.height < 2:
        raise DataError(f"Fewer than two records have {', '.join(question.columns)}: there is nothing to estimate.")
    return table


def _refuse_text(column: str, *tables: pl.DataFrame) -> None:
    for table in tables:
        if not (table.schema[column].is_numeric() or table.schema[column] == pl.Boolean):
            raise DataError(f"Column {column!r} is {table.schema[column]}, not numeric: it has no mean or quantile.")


def _values(column: pl.Series) -> Floats:
    return column.cast(pl.Float64).to_numpy()


def least_squares(design: Floats, y: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Weighted least squares and its sandwich errors, n/(n-k); of collinear columns the shortest solution.

    >>> e, s = least_squares(np.ones((4, 1)), np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4))
    >>> e.round(6).tolist(), s.round(6).tolist()
    ([2.5], [0.645497])
    """
    unit = np.sqrt((design**2).mean(axis=0))
    scaled = design / np.where(unit > 0, unit, 1.0)
    bread = np.linalg.pinv((scaled.T * w) @ scaled, rcond=1e-12, hermitian=True)
    slopes = bread @ (scaled.T @ (w * y))
    pull = (scaled * (w * (y - scaled @ slopes))[:, None]) @ bread
    spare = len(y) / max(1, len(y) - design.shape[1])
    errors = np.sqrt((pull**2).sum(axis=0) * spare)
    back = np.where(unit > 0, unit, 1.0)
    return slopes / back, errors / back


def quantile(x: Floats, w: Floats, share: float) -> tuple[Floats, Floats]:
    """The smallest value that holds at least `share` of the weight, with half of Woodruff's interval as error.

    Where that interval has no length (heaped values), the error of the mean stands in.

    >>> quantile(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.ones(5), 0.5)[0].tolist()
    [3.0]
    """
    order = np.argsort(x, kind="stable")
    steps = np.cumsum(w[order]) / w.sum()
    effective_n = w.sum() ** 2 / (w**2).sum()
    reach = float(np.sqrt(share * (1 - share) / effective_n))
    places = np.searchsorted(steps, np.clip([share - reach, share, share + reach], 0, 1) - 1e-12)
    low, middle, high = x[order][np.minimum(places, len(x) - 1)]
    error = (high - low) / 2 or float(np.sqrt(covariance(x, x, w) / effective_n))
    return np.array([middle]), np.array([error])


def _regression(columns: tuple[str, ...], new: pl.DataFrame, old: pl.DataFrame) -> Quantities:
    """Slopes of the first column on the others; a mean is the intercept alone."""
    makers = [_causes(column, new, old) for column in columns[1:]]
    names = tuple(name for labels, _ in makers for name in labels)

    def fit(table: pl.DataFrame, w: Floats) -> tuple[Floats, Floats]:
        parts = [np.ones((table.height, 1)), *(make(table) for _, make in makers)]
        slopes, errors = least_squares(np.column_stack(parts), _values(table[columns[0]]), w)
        return (slopes[1:], errors[1:]) if names else (slopes, errors)

    return Quantities(names or columns, fit)


def _causes(
    column: str, new: pl.DataFrame, old: pl.DataFrame
) -> tuple[tuple[str, ...], Callable[[pl.DataFrame], Floats]]:
    """A number as it is, anything else as an indicator of every category but the first of the original."""
    if all(t.schema[column].is_numeric() for t in (new, old)):
        return (column,), lambda table: _values(table[column])[:, None]
    first = old[column].cast(pl.String).unique().sort()
    later = new[column].cast(pl.String).unique().sort()
    levels = [*first, *(value for value in later if value not in set(first))][1:]
    names = tuple(f"{column}={value}" for value in levels)

    def indicators(table: pl.DataFrame) -> Floats:
        text = table[column].cast(pl.String)
        columns = [(text == value).cast(pl.Float64).to_numpy() for value in levels]
        return np.column_stack(columns) if columns else np.empty((table.height, 0))

    return names, indicators


def _table(columns: tuple[str, ...], new: pl.DataFrame, old: pl.DataFrame) -> Quantities:
    """The share of each cell that is occupied in either file."""
    kinds: Any = {c: _shared(new.schema[c], old.schema[c]) for c in columns}
    both = [table.select(columns).cast(kinds) for table in (old, new)]
    cells = pl.concat(both).with_columns(pl.col(pl.Float64).fill_nan(None)).unique().sort(columns, nulls_last=False)
    names = tuple(" x ".join("missing" if v is None else str(v) for v in row) for row in cells.iter_rows())

    def fit(table: pl.DataFrame, w: Floats) -> tuple[Floats, Floats]:
        rows = table.cast(kinds).with_columns(pl.col(pl.Float64).fill_nan(None), __eq_weight=w)
        sums = rows.group_by(columns).agg(pl.col("__eq_weight").sum())
        joined = cells.join(sums, on=columns, how="left", nulls_equal=True, maintain_order="left")["__eq_weight"]
        p, effective_n = joined.fill_null(0.0).to_numpy() / w.sum(), float(w.sum() ** 2 / (w**2).sum())
        near = (effective_n * p + 2) / (effective_n + 4)
        return p, np.sqrt(near * (1 - near) / effective_n)

    return Quantities(names, fit)


def _shared(one: pl.DataType, two: pl.DataType) -> pl.DataType:
    if one == two:
        return one
    return pl.Float64() if one.is_numeric() and two.is_numeric() else pl.String()


def _combined(
    quantities: Quantities, question: Question, released: Records, new: pl.DataFrame, n: int
) -> tuple[Floats, Floats]:
    """Estimate and error of the released file; of m synthetic sets, combined."""
    column = released.roles.sample
    sets = [new] if column is None else new.partition_by(column, maintain_order=True)
    fits = [quantities.fit(one.select(question.columns), weights(released, one)) for one in sets]
    e, s = np.array([fit[0] for fit in fits]), np.array([fit[1] for fit in fits])
    if len(sets) == 1 and not released.synthetic:
        return fits[0]
    sizes = np.array([[one.height / n] for one in sets])
    between = e.var(axis=0, ddof=1) / len(sets) if len(sets) > 1 else (1 + sizes[0]) * s[0] ** 2
    return e.mean(axis=0), np.sqrt((sizes * s**2).mean(axis=0) + between)


def _compared(names: tuple[str, ...], e: Floats, s: Floats, estimate: Floats, error: Floats, z: float) -> pl.DataFrame:
    gap = (estimate - e) ** 2
    return pl.DataFrame(
        {
            "term": names,
            "original": e,
            "released": estimate,
            "error": s,
            "released_error": error,
            "overlap": overlap(e, z * s, estimate, z * error),
            "square": ratio(gap, s**2, np.where(gap > 0, 1.0, 0.0)),
            "utility": ratio(np.ones(len(e)), s**2 + gap, np.nan),
        }
    ).with_columns(pl.col("utility").fill_nan(None))


def overlap(e: Floats, half: Floats, estimate: Floats, reach: Floats) -> Floats:
    """Mean share of two intervals that they have in common; an interval of no length is in the other or not.

    >>> overlap(np.array([0.0]), np.array([2.0]), np.array([1.0]), np.array([1.0])).tolist()
    [0.75]
    """
    tops, bottoms = (e + half, estimate + reach), (e - half, estimate - reach)
    common = np.minimum(*tops) - np.maximum(*bottoms)
    inside = np.where(common >= 0, 1.0, 0.0)
    parts = [ratio(np.maximum(common, 0.0), top - low, inside) for top, low in zip(tops, bottoms, strict=True)]
    return np.asarray((parts[0] + parts[1]) / 2)
