"""Mean overlap of the confidence intervals that users compute from the release and from the original."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.records import Records
from equipoise.data.weighted_samples import sample_notes, weights
from equipoise.ground.errors import DataError, ParameterError, require_columns
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields, share
from equipoise.methods.score import Score
from equipoise.utility._default_queries import default_queries
from equipoise.utility._queries import Question, combined, compared, parse
from equipoise.utility._user_view import UserView, remembered

DETAIL_COLUMNS = ("term", "original", "released", "error", "released_error", "overlap")
LOST = pl.DataFrame({"term": ["withheld"], "overlap": [0.0]})


@dataclass(frozen=True, repr=False)
class OwnFunction:
    """An analysis of one's own: a function of a frame that gives each estimate with its standard error."""

    function: Callable[[pl.DataFrame], Mapping[str, tuple[float, float]]]
    needed: tuple[str, ...] = ()

    @classmethod
    def of(cls, function: Any) -> "OwnFunction":
        if not callable(function) and not isinstance(function, OwnFunction):
            raise ParameterError("functions must be Python functions of a frame, which no file can name.")
        return function if isinstance(function, OwnFunction) else cls(function)

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __repr__(self) -> str:
        return self.name

    def compared(self, old: pl.DataFrame, new: pl.DataFrame, z: float, root: float) -> pl.DataFrame:
        """A row per quantity; what the function cannot give from the release is lost."""
        before = self._numbers(old)
        if before is None:
            raise ParameterError(f"The function {self.name!r} must give {{name: (estimate, standard error)}}.")
        after = self._numbers(new) or {}
        pairs = [(*before[term], *after.get(term, (np.nan, np.nan))) for term in before]
        e, s, estimate, error = np.array(pairs, dtype=np.float64).reshape(-1, 4).T
        return compared(tuple(before), e, s * root, estimate, error * root, z)

    def _numbers(self, table: pl.DataFrame) -> dict[str, tuple[float, float]] | None:
        try:
            return {str(name): (float(e), float(s)) for name, (e, s) in self.function(table).items()}
        except Exception:  # a function of somebody else's may raise anything, and quote data
            return None


@dataclass(frozen=True, slots=True)
class Overlap:
    """What users of the release would still find: the mean overlap of confidence intervals before and after.

    For each quantity of an analysis J = (o/w + o/w')/2, with o the length that the intervals from the original and from
    the release share and w, w' their own lengths: 1 where both are the same, 0 where they are apart. Its mean over the
    quantities of an analysis (of recoded categories the mean of both views, below), then over the analyses. An analysis
    is a query of `utility.Estimate`; without any they are made from the file: the distribution of every column (of
    numbers the mean and three quantiles), means by group, associations in pairs, and the regression of each obvious
    outcome. Quantities from fewer than `smallest` original records are left out. In Python `functions` take a Polars
    frame and give {name: (estimate, standard error)}; one that fails on the release has lost its analysis. `known_as`
    names the score.

    Computed as a user would: bands count by their middles, or evenly spread for quantiles and Gini coefficients, and
    open ends by their bound; records lacking a value are passed
    over, so blanks that fall on some people more than on others are bias; recoded categories are compared as recoded
    and also as collected, the records of a label dealt out evenly over its categories. Of a withheld column nothing
    is left. A fresh sample of the same size reaches 0.71, which the note repeats: more than that is hardly noticed.

    Source: Karr et al. (2006), *A framework for evaluating the utility of data altered to protect confidentiality*.
    Misleads when users ask something else: name their analyses. Cost: O(records) for each query.

    >>> frame = pl.DataFrame({"x": range(100), "g": ["a", "b"] * 50})
    >>> old = eq.Records.of(frame, eq.Roles("g", numeric="x"))
    >>> new = eq.Records.of(frame.with_columns(pl.col("x") + 5), eq.Roles("g", numeric="x"))
    >>> measure = Overlap(("mean:x", "table:g"))
    >>> measure.measure(old, old).value, round(measure.measure(new, old).value, 3)
    (1.0, 0.78)
    """

    estimates: tuple[str, ...] | None = None
    level: float = 0.95
    smallest: int = 30
    functions: tuple[Any, ...] = ()
    known_as: str = ""

    def __post_init__(self) -> None:
        check_fields(self, smallest=1)
        object.__setattr__(self, "functions", tuple(map(OwnFunction.of, self.functions)))
        share(self.level, "level", open_=True)
        for query in self.estimates or ():
            parse(query)

    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns that the queries name, and those of them that must be numbers."""
        questions = [parse(query) for query in self.estimates or ()]
        needed, numbers = ([c for q in questions for c in getattr(q, name)] for name in ("needed", "numbers"))
        return tuple(dict.fromkeys(needed)), tuple(dict.fromkeys(numbers))

    def words(self) -> tuple[str, ...]:
        """The queries in words."""
        return tuple(parse(query).words() for query in self.estimates or ())

    def table(self, score: Score) -> pl.DataFrame:
        """The detail of a score in the words of a report: `analysis`, `term`, both estimates with ends, `overlap`."""
        titles = {
            query: parse(query).words() for query in score.detail["analysis"].unique() if query not in self._names
        }
        rows = score.detail.with_columns(
            pl.lit(None, dtype=pl.Float64).alias(c) for c in DETAIL_COLUMNS[1:5] if c not in score.detail.columns
        )
        ends = {
            f"{name}_{side}": pl.col(name) + sign * self._z * pl.col(error)
            for name, error in (("original", "error"), ("released", "released_error"))
            for side, sign in (("low", -1), ("high", 1))
        }
        return rows.with_columns(analysis=pl.col("analysis").replace(titles), **ends)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.functions)

    def _questions(self, original: Records) -> dict[str, Question | OwnFunction]:
        """What is asked, by what it is called: the queries, else functions alone, else those of the file."""
        queries = self.estimates or ()
        if not queries and not self.functions:
            queries = remembered(original, "default queries", lambda: default_queries(original))
        return {query: parse(query) for query in queries} | {one.name: one for one in self.functions}

    def measure(self, released: Records, original: Records) -> Score:
        questions = self._questions(original)
        needed = (c for one in questions.values() for c in (one.needed or original.schema()))
        columns = tuple(dict.fromkeys(needed))
        require_columns(columns, original.schema())
        view = UserView.of(released, original, columns)
        parts = [
            remembered(
                original,
                (
                    "analysis",
                    question,
                    self.level,
                    self.smallest,
                    released.synthetic,
                    *view.place(*question.needed or columns),
                ),
                partial(self._analysis, question, view, released, original),
            )
            for question in questions.values()
        ]
        views = {query: [rows for rows in part if rows.height] for query, part in zip(questions, parts, strict=True)}
        means = [np.mean([_mean(rows) for rows in part]) for part in views.values() if part]
        if not means:
            return self._of_few(released, original)
        return Score(
            label(self),
            float(np.mean(means)),
            "higher",
            side="utility",
            unit="share of the interval",
            notes=(self._words(len(means)), *view.notes(), *sample_notes(original, 0)),
            cells=lambda: _detail(views),
        )

    def _of_few(self, released: Records, original: Records) -> Score:
        """Of a file so small that no analysis rests on enough records: of the default ones whatever there is."""
        if self.estimates or self.functions:
            raise DataError(f"No analysis rests on {self.smallest} records or more: there is nothing to compare.")
        if self.smallest > 1:
            score = replace(self, smallest=1, known_as=label(self)).measure(released, original)
            return replace(score, notes=(*score.notes, f"Rests on fewer than {self.smallest} records."))
        note = "There is nothing to analyse."
        return Score(label(self), 0.0, "higher", side="utility", notes=(note,), cells=LOST.clear)

    def _analysis(
        self, question: Question | OwnFunction, view: UserView, released: Records, original: Records
    ) -> tuple[pl.DataFrame, ...]:
        """A row per quantity of one query or function; of recoded categories as released, and again as collected."""
        if isinstance(question, OwnFunction):
            return (question.compared(view.raw, view.new, self._z, view.root).select(DETAIL_COLUMNS),)
        if set(question.needed) & view.lost or set(question.numbers) & view.labelled:
            return (LOST,)
        new = view.spread if question.kind in ("quantile", "gini", "share") else view.new
        old = view.raw if question.kind == "share" and not question.by else view.old
        rows = self._rows(question, new, old, view.root, released, original)
        dealt = [view.dealt[c] for c in question.needed if c in view.dealt]
        if not dealt or old is view.raw:
            return (rows,)
        fine = self._rows(question, new.with_columns(dealt), view.raw, view.root, released, original)
        return rows, fine.with_columns(pl.col("term") + " as collected")

    def _rows(
        self,
        question: Question,
        released_table: pl.DataFrame,
        original_table: pl.DataFrame,
        root: float,
        released: Records,
        original: Records,
    ) -> pl.DataFrame:
        """A row per quantity of a query that rests on enough records of the original."""
        new, old = (_complete(table, question) for table in (released_table, original_table))
        if old.height < self.smallest:
            return LOST.clear()
        if new.height < 2:
            return LOST
        quantities = question.terms(new, old)
        e, s = quantities.fit(old.select(question.needed), weights(original, old))
        estimate, error = combined(quantities, question, released, new, old.height)
        rows = compared(quantities.names, e, s * root, estimate, error * root, self._z)
        return rows.filter(quantities.sizes(old) >= self.smallest).select(DETAIL_COLUMNS)

    @property
    def _z(self) -> float:
        return NormalDist().inv_cdf((1 + self.level) / 2)

    def _words(self, analyses: int) -> str:
        fresh = fresh_sample_overlap(self.level)
        return f"Mean over {analyses:,} analyses; a fresh sample of the same size reaches {fresh:.2f}."


def fresh_sample_overlap(level: float = 0.95) -> float:
    """Expected overlap of two independent samples of one size: E max(0, 1 - |d|/(2 z s)), d normal with 2 s^2.

    >>> round(fresh_sample_overlap(), 4)
    0.7127
    """
    normal = NormalDist()
    reach = normal.inv_cdf((1 + level) / 2) * 2**0.5
    return 2 * normal.cdf(reach) - 1 - 2 * (normal.pdf(0) - normal.pdf(reach)) / reach


def _mean(rows: pl.DataFrame) -> float:
    return float(np.mean(rows["overlap"].to_numpy()))


def _detail(views: dict[str, list[pl.DataFrame]]) -> pl.DataFrame:
    """The rows of all analyses, with the query of each."""
    tables = [rows.select(pl.lit(query).alias("analysis"), pl.all()) for query, part in views.items() for rows in part]
    return pl.concat(tables, how="diagonal")


def _complete(table: pl.DataFrame, question: Question) -> pl.DataFrame:
    """The records that have every column of the query."""
    return table.with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None)).drop_nulls(question.needed)
