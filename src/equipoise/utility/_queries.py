"""What users ask of a file, as text: means, shares, quantiles, Gini coefficients, correlations, regressions, tables.

Each query gives estimates and their standard errors, the same quantities from the original and from the release.
"""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from equipoise.data.records import Records
from equipoise.data.weighted_samples import ratio, weights
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, ParameterError, shown
from equipoise.utility._estimators import correlated, gini, least_squares, logistic, quantile, share_errors

Kind = Literal["mean", "share", "quantile", "gini", "correlation", "regression", "logit", "table"]
QUERY_FORMS = (
    "write 'mean:income', 'share:age>=60', 'quantile:income,0.9', 'gini:income', 'correlation:x,y', "
    "'regression:y ~ x1 + x2', 'logit:y ~ x1 + x2' or 'table:sex,region'; ' by sex' at the end asks for each group"
)
CONDITION = re.compile(r"(.+?)\s*(>=|<=|=|<|>)\s*(.+)")
MAX_GROUPS = 100
"""Groups of a query at most: each is fitted by itself."""


@dataclass(frozen=True, slots=True)
class Quantities:
    """Names of the quantities, how a file gives an estimate and a standard error of each, and from how many records."""

    names: tuple[str, ...]
    fit: Callable[[pl.DataFrame, Floats], tuple[Floats, Floats]]
    sizes: Callable[[pl.DataFrame], Integers]


@dataclass(frozen=True, slots=True)
class Question:
    """A parsed query: what to estimate, from which columns, in which groups."""

    kind: Kind
    columns: tuple[str, ...]
    share: float = 0.5
    by: str | None = None
    condition: tuple[str, str] = ("=", "")

    @property
    def needed(self) -> tuple[str, ...]:
        """Every column that it reads."""
        return (*self.columns, *((self.by,) if self.by else ()))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that must be numbers."""
        as_labels = self.kind in ("table", "logit") or (self.kind == "share" and self.condition[0] == "=")
        return () if as_labels else self.columns[: 2 if self.kind == "correlation" else 1]

    def words(self) -> str:
        """The query in words.

        >>> parse("quantile:income,0.9 by sex").words(), parse("table:sex,region").words()
        ('0.9 quantile of income, by sex', 'table of sex x region')
        """
        many = {"table": " x ", "correlation": " and "}.get(self.kind, " + ")
        outcome, *causes = self.columns
        what = {
            "quantile": f"{self.share:g} quantile of {outcome}",
            "share": f"share with {outcome} {' '.join(self.condition)}",
            "regression": f"regression of {outcome} on {many.join(causes)}",
            "logit": f"logistic regression of {outcome} on {many.join(causes)}",
            "gini": f"Gini coefficient of {outcome}",
        }.get(self.kind, f"{self.kind} of {many.join(self.columns)}")
        return f"{what}, by {self.by}" if self.by else what

    def terms(self, new: pl.DataFrame, old: pl.DataFrame) -> Quantities:
        """The quantities to estimate, the same for both files."""
        if self.by:
            return _grouped(replace(self, by=None), self.by, new, old)
        if self.kind == "table":
            return _table(self.columns, new, old)
        for column in self.numbers:
            _refuse_text(column, new, old)
        if self.kind in ("regression", "mean", "logit"):
            return _regression(self.columns, new, old, logit=self.kind == "logit")
        name = "".join((*self.columns, *self.condition)) if self.kind == "share" else " x ".join(self.columns)
        return Quantities((name,), self._fit_numbers, lambda table: np.array([table.height]))

    def _fit_numbers(self, table: pl.DataFrame, w: Floats) -> tuple[Floats, Floats]:
        if self.kind == "share":
            return share_errors(w[_meeting(table[self.columns[0]], *self.condition)].sum() / w.sum(), w)
        numbers = [_values(table[column]) for column in self.columns]
        if self.kind == "quantile":
            return quantile(numbers[0], w, self.share)
        return gini(numbers[0], w) if self.kind == "gini" else correlated(numbers[0], numbers[1], w)


def parse(query: str) -> Question:
    """A query from its text.

    >>> parse("quantile:income,0.9").share, parse("regression: y ~ a + b").columns, parse("income").kind
    (0.9, ('y', 'a', 'b'), 'mean')
    >>> parse("gini:income by region")
    Question(kind='gini', columns=('income',), share=0.5, by='region', condition=('=', ''))
    >>> parse("share:age>=60 by sex").condition
    ('>=', '60')
    """
    problem = ParameterError(f"Cannot read the query {shown(query)}: {QUERY_FORMS}.")
    if not isinstance(query, str) or not query.strip():
        raise problem
    statistic, by, group = query.rpartition(" by ")
    question = _parsed(statistic if by else query, problem)
    if not by:
        return question
    if question.kind == "table" or not group.strip() or group.strip() in question.columns:
        raise problem
    return replace(question, by=group.strip())


def _parsed(query: str, problem: ParameterError) -> Question:
    word, mark, rest = (part.strip() for part in query.partition(":"))
    kind = word if mark else "mean"
    if kind in ("mean", "gini"):
        return Question("gini" if kind == "gini" else "mean", _names(rest if mark else word, "", problem, 1))
    if kind == "quantile":
        column, _, text = rest.replace("@", ",").rpartition(",")
        return Question("quantile", _names(column, "", problem, 1), _share(text, problem))
    if kind == "correlation":
        return Question("correlation", _names(rest, ",", problem, 2, 2))
    if kind == "regression" or kind == "logit":
        outcome, tilde, causes = rest.partition("~")
        columns = (*_names(outcome, "", problem, 1), *_names(causes, "+", problem)) if tilde else ()
        if len(set(columns)) < max(2, len(columns)):
            raise problem
        return Question("logit" if kind == "logit" else "regression", columns)
    if kind == "share":
        if not (match := CONDITION.fullmatch(rest)) or (match[2] != "=" and not _is_number(match[3])):
            raise problem
        return Question("share", (match[1].strip(),), condition=(match[2], match[3]))
    if kind == "table":
        return Question("table", _names(rest.replace("+", ","), ",", problem))
    raise problem


def _names(text: str, mark: str, problem: ParameterError, most: int | None = None, least: int = 1) -> tuple[str, ...]:
    names = tuple(part.strip() for part in (text.split(mark) if mark else [text]))
    if not all(names) or len(set(names)) < len(names) or (most and len(names) > most) or len(names) < least:
        raise problem
    return names


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _meeting(values: pl.Series, sign: str, bound: str) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Which values meet a condition; equality of labels is that of their texts."""
    if sign == "=" and not (values.dtype.is_numeric() and _is_number(bound)):
        return (values.cast(pl.String) == bound).to_numpy()
    compare = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "=": operator.eq}[sign]
    return np.asarray(compare(_values(values), float(bound)))


def _share(text: str, problem: ParameterError) -> float:
    try:
        share = float(text)
    except ValueError:
        raise problem from None
    if not 0 < share < 1:
        raise ParameterError(f"The share of a quantile must be between 0 and 1, got {share:g}.")
    return share


def _refuse_text(column: str, *tables: pl.DataFrame) -> None:
    for table in tables:
        if not (table.schema[column].is_numeric() or table.schema[column] == pl.Boolean):
            raise DataError(f"Column {column!r} is {table.schema[column]}, not numeric: it has no mean or quantile.")


def _values(column: pl.Series) -> Floats:
    return column.cast(pl.Float64).to_numpy()


def _outcome(column: str, new: pl.DataFrame, old: pl.DataFrame) -> Callable[[pl.DataFrame], Floats]:
    """Of two values the later one as 1; refused where the original has another number of values."""
    values = old[column].drop_nulls().unique().sort()
    if len(values) != 2:
        raise DataError(f"Column {column!r} has {len(values):,} values: a logistic regression needs two.")
    return lambda table: (table[column].cast(pl.String) == str(values.cast(pl.String)[1])).cast(pl.Float64).to_numpy()


def _regression(columns: tuple[str, ...], new: pl.DataFrame, old: pl.DataFrame, *, logit: bool = False) -> Quantities:
    """Slopes of the first column on the others, of log odds if `logit`; a mean is the intercept alone."""
    outcome = _outcome(columns[0], new, old) if logit else lambda table: _values(table[columns[0]])
    solve = logistic if logit else least_squares
    makers = [_causes(column, new, old) for column in columns[1:]]
    names = tuple(name for labels, _ in makers for name in labels)

    def fit(table: pl.DataFrame, w: Floats) -> tuple[Floats, Floats]:
        parts = [np.ones((table.height, 1)), *(make(table) for _, make in makers)]
        slopes, errors = solve(np.column_stack(parts), outcome(table), w)
        return (slopes[1:], errors[1:]) if names else (slopes, errors)

    def sizes(table: pl.DataFrame) -> Integers:
        behind = [make(table) for _, make in makers]
        return np.concatenate([(one != 0).sum(axis=0) for one in behind]) if names else np.array([table.height])

    return Quantities(names or columns, fit, sizes)


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

    def sums(table: pl.DataFrame, w: Floats) -> Floats:
        rows = table.cast(kinds).with_columns(pl.col(pl.Float64).fill_nan(None), __eq_weight=w)
        sums = rows.group_by(columns).agg(pl.col("__eq_weight").sum())
        joined = cells.join(sums, on=columns, how="left", nulls_equal=True, maintain_order="left")["__eq_weight"]
        return joined.fill_null(0.0).to_numpy()

    def fit(table: pl.DataFrame, w: Floats) -> tuple[Floats, Floats]:
        return share_errors(sums(table, w) / w.sum(), w)

    return Quantities(names, fit, lambda table: sums(table, np.ones(table.height)).astype(np.int64))


def _shared(one: pl.DataType, two: pl.DataType) -> pl.DataType:
    if one == two:
        return one
    return pl.Float64() if one.is_numeric() and two.is_numeric() else pl.String()


def _grouped(question: Question, by: str, new: pl.DataFrame, old: pl.DataFrame) -> Quantities:
    """The quantities of each group of the original; a group that a file lacks has no estimate."""
    groups = old[by].cast(pl.String).drop_nulls().unique().sort().to_list()
    if len(groups) > MAX_GROUPS:
        raise DataError(f"Column {by!r} has {len(groups):,} groups: a query takes {MAX_GROUPS} at most.")
    inner = question.terms(new, old)

    def rows(table: pl.DataFrame, group: str) -> Integers:
        return np.flatnonzero((table[by].cast(pl.String) == group).fill_null(value=False).to_numpy())

    def fit(table: pl.DataFrame, w: Floats) -> tuple[Floats, Floats]:
        places = [rows(table, group) for group in groups]
        none = np.full(len(inner.names), np.nan)
        fits = [inner.fit(table[at], w[at]) if len(at) > 1 else (none, none) for at in places]
        return np.concatenate([e for e, _ in fits]), np.concatenate([s for _, s in fits])

    return Quantities(
        tuple(f"{name}, {group}" for group in groups for name in inner.names),
        fit,
        lambda table: np.concatenate([inner.sizes(table[rows(table, group)]) for group in groups]),
    )


def combined(
    quantities: Quantities, question: Question, released: Records, new: pl.DataFrame, n: int
) -> tuple[Floats, Floats]:
    """Estimate and error of the released file; of m synthetic sets, combined."""
    column = released.roles.sample
    sets = [new] if column is None else new.partition_by(column, maintain_order=True)
    fits = [quantities.fit(one.select(question.needed), weights(released, one)) for one in sets]
    e, s = np.array([fit[0] for fit in fits]), np.array([fit[1] for fit in fits])
    if len(sets) == 1 and not released.synthetic:
        return fits[0]
    sizes = np.array([[one.height / n] for one in sets])
    between = e.var(axis=0, ddof=1) / len(sets) if len(sets) > 1 else (1 + sizes[0]) * s[0] ** 2
    return e.mean(axis=0), np.sqrt((sizes * s**2).mean(axis=0) + between)


def compared(names: tuple[str, ...], e: Floats, s: Floats, estimate: Floats, error: Floats, z: float) -> pl.DataFrame:
    """A row per quantity: both estimates with their errors, the overlap of their intervals, the squared error.

    One that the release cannot give (NaN) overlaps nowhere, and has no squared error.
    """
    gap = (estimate - e) ** 2
    return pl.DataFrame(
        {
            "term": names,
            "original": e,
            "released": estimate,
            "error": s,
            "released_error": error,
            "overlap": np.nan_to_num(overlap(e, z * s, estimate, z * error)),
            "square": ratio(gap, s**2, np.where(gap > 0, 1.0, 0.0)),
            "utility": ratio(np.ones(len(e)), s**2 + gap, np.nan),
        }
    ).with_columns(pl.col("square", "utility").fill_nan(None))


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
