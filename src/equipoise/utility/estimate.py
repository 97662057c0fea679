"""Accuracy of a user's own statistic: confidence-interval overlap or squared error."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import polars as pl

from equipoise.data.records import Records
from equipoise.data.weighted_samples import sample_notes, weights, with_weight
from equipoise.ground.errors import DataError, require_columns
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields, share
from equipoise.methods.score import Score
from equipoise.utility._queries import Question, combined, compared, parse


@dataclass(frozen=True, slots=True)
class Estimate:
    """How well the released file answers a user's own question: overlap of confidence intervals, or squared error.

    The query is 'mean:income' (or just 'income'), 'share:age>=60' (or 'share:sex=f'), 'quantile:income,0.9',
    'gini:income', 'correlation:x,y', 'regression:y ~ x1 + x2' (each slope; text columns as indicators against their
    first category), 'logit:y ~ x1 + x2' (the same of log odds, of an outcome with two values: its later one) or
    'table:sex,region' (the share of each cell; '+' also separates); ' by sex' at the end of any but a table asks for
    each group. Estimates e, e' of the original and the released file have standard errors s, s'.

    - `overlap`: J = (o/w + o/w')/2, o the length that the two intervals e +- z s share and w, w' their lengths, from
      0 to 1; the mean over terms.
    - `square`: (e' - e)^2 / s^2, the mean over terms: how much the mask errs in units of sampling variance. Over draws
      the trial's mean v of it gives U = 1/(s^2 (1 + v)), the reciprocal MSE of Duncan and Keller-McNulty: under
      independent noise on a mean v is l2/s2, and U = n/(s2 + l2).

    Errors are linearised, with weights w: mean and regression by the sandwich with n/(n-k), quantiles by Woodruff,
    Gini coefficients and correlations by their influence functions, cells by p (1-p)/n with two successes and failures
    added. With a `sample` role (m synthetic sets of k records) e' is the mean over sets and s'^2 = (k/n) mean(s_i^2) +
    b/m, b their variance between; for one fully synthetic set (1 + k/n) s_1^2 stands for b. Records lacking a column of
    the query are passed over. The files need not hold the same records.

    Source: Karr et al. (2006), *A framework for evaluating the utility of data altered to protect confidentiality*;
    Woodruff (1952); White (1980); Langel and Tille (2013); Raab, Nowok and Dibben (2016) for synthetic sets. Misleads
    when the query is not what users ask. Cost: O(records x terms^2).

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
        e, s = quantities.fit(old.select(question.needed), weights(original, old))
        estimate, error = combined(quantities, question, released, new, old.height)
        table = compared(quantities.names, e, s, estimate, error, NormalDist().inv_cdf((1 + self.level) / 2))
        return Score(
            label(self),
            float(table[self.score].mean()),  # type: ignore[arg-type]
            "higher" if self.score == "overlap" else "lower",
            side="utility",
            unit="share of the interval" if self.score == "overlap" else "times the sampling variance",
            notes=sample_notes(original, 0),
            cells=lambda: table,
        )


def _read(records: Records, question: Question) -> pl.DataFrame:
    """The records that have every column of the query, with their weight and set."""
    schema = records.schema()
    require_columns(question.needed, schema)
    extra = (records.roles.sample,) if records.roles.sample else ()
    table = records.collect(*dict.fromkeys((*with_weight(records, question.needed), *extra)))
    if question.kind != "table":
        table = table.with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None)).drop_nulls(question.needed)
    table = table.filter(pl.col(records.roles.weight) > 0) if records.roles.weight else table
    if table.height < 2:
        raise DataError(f"Fewer than two records have {', '.join(question.needed)}: there is nothing to estimate.")
    return table
