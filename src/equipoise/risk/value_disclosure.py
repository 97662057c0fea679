"""Value disclosure: how well a snooper knows a person's numeric values from the release."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from equipoise.data.column_parts import with_parts
from equipoise.data.numeric_columns import floats, numeric_columns
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, ParameterError, RolesError
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score
from equipoise.risk._value_snoopers.best_rules import (
    EXACT_SHARE,
    best_fit_errors,
    elliptical_standard_error,
    flexible_errors,
    relative_standard_error,
)
from equipoise.risk._value_snoopers.boosted_trees import crossed_tree_errors
from equipoise.risk._value_snoopers.guesses_by_others import equal_value_errors
from equipoise.risk._value_snoopers.learnt_from_synthetic import learnt_errors
from equipoise.risk._value_snoopers.logarithms import logarithm_errors
from equipoise.risk._value_snoopers.released_terms import Terms, as_numbers, matrix
from equipoise.risk._value_snoopers.snooper_view import seen_by_snoopers, usable_columns

SNOOPERS = (
    "mean",
    "linked record",
    "best linear",
    "all columns",
    "curved",
    "quadratic",
    "nearest",
    "equal",
    "logarithms",
    "flexible",
    "trees",
)
OWN_VALUE = SNOOPERS[:3]
"""Those who read the released value of the column alone."""
Errors = dict[str, float]
NORMAL_95 = 1.96
"""Standard errors of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class ValueDisclosure:
    """Share of a numeric column's variance that the strongest snooper explains, in the column where it is largest.

    The snooper has the person's released record y and guesses each original value x:
    - by the mean of the released values;
    - by the released value itself ("linked record"), or shrunk towards the mean ("best linear": MSE = 1 - corr(x, y)^2
      as a share of Var(x));
    - by the best linear rule in all released numbers and dates at once ("all columns"): for noise of covariance N on
      values of covariance S its R^2 is (S (S + N)^-1 S)_jj / S_jj, which the release and its law tell the public;
    - by the best sum of bent lines in all released columns ("curved"): up to four bends a number, and 20 categories of
      every other column, or of squares and products ("quadratic"), while there are 30 records for each term;
    - by the mean of all others equal in one released column, such as a weight or a small area, or in two or three while
      records are few, and by lines beside it, also with slopes of their own in each group, drawn towards those of all
      ("equal"); by these rules and bent lines in logarithms, where amounts are products ("logarithms");
    - by random forests and extra trees, whose trees guess for records they have not seen, by kernel ridge regression in
      four folds, by the mean of the records most alike, and by Bayes' rule with the values of all other people as the
      prior, joined with the numbers by the best linear rule ("flexible"; on at most 3,000 records drawn by a public
      seed). This snooper has the true values of everybody else: of a group that was given its mean he subtracts the
      others (groups of 10: 0.98, where the mean alone tells 0.91), which nobody without those values can;
    - with `trees`, by boosted trees that learn from other people's pairs of records, in three folds (extra `learn`).
    With the role household or person the snooper also reads the other rows of a unit: how many, their means and
    categories; of a date its day, month and weekday, of texts with over 20 values the first one to four characters.
    The linear and curved rules are fitted to the originals: they are the least upper bound of what any intruder reaches
    by a rule of that form, from public moments, from the law or by luck. With few records for each column that bound is
    loose, never low. Copies of the same people (`Roles.sample`) are averaged first; for several releases, see
    `attacks.averaged`. `snooper="own"` leaves the first three, as in the source.

    A fully synthetic file has nobody's record: the snooper knows a person's other columns (`known`; all that the
    release holds unless given) and learns x from the synthetic records, by linear, curved and quadratic regression, by
    the nearest records ("nearest": one, or the mean of five), those equal in one to three columns ("equal"), the same
    in logarithms, by forests, extra trees down to single records (which find people whose values were copied) and
    kernels, and by the best mixture of all these ("flexible"), tried on at most 5,000 people of the original. With a
    holdout the baseline is the success of the same snooper with people who are not in the file: what is no more is
    learnt about everybody.

    value = 1 - MSE / Var(x) of the strongest, the reciprocal-MSE risk on a scale from 0 (nothing but the mean) to 1
    (the value itself). The detail has a row per column: the relative MSE of each snooper, `risk`, who is `strongest`,
    and `baseline`. The interval (95 %) is how far chance may move the number in a file of so many units: the standard
    error of MSE / Var(x), a ratio of means over units, with the squared errors of the strongest snooper in synthetic
    files and those of the best linear rule as their shape in all others; there, for a rule of another form, at least
    that of R^2 in elliptical laws of this kurtosis, 2 R (1 - R^2) sqrt((1 + kurtosis) / n).

    Source: Duncan and Keller-McNulty (2000), risk as the reciprocal of the snooper's mean squared error; Kim (1986) and
    Fuller (1993), *Masking procedures for microdata disclosure limitation*, for prediction from all masked columns;
    Breiman (2001), *Random forests*; Geurts, Ernst and Wehenkel (2006), *Extremely randomized trees*; Muirhead (1982),
    *Aspects of multivariate statistical theory*, section 5.1, for the interval.
    Misleads when the person is not found, when few values that matter hide behind an average over all, and where
    columns combine in ways that are neither sums nor found by trees. Cost: O(records x terms^2), at most records / 30
    terms beside the columns, and a forest of some tenths of a second, in memory; synthetic files that for every column.

    >>> records = eq.Records.of(pl.DataFrame({"x": [1.0, 2.0, 4.0]}), eq.Roles(numeric="x"))
    >>> ValueDisclosure().measure(records, records).value
    1.0
    """

    columns: tuple[str, ...] | None = None
    snooper: Literal["strongest", "own"] = "strongest"
    known: tuple[str, ...] | None = None
    trees: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if not isinstance(self.trees, bool):
            raise ParameterError("trees must be true or false.")

    def measure(self, released: Records, original: Records) -> Score:
        columns = numeric_columns(original, self.columns)
        rows = self._synthetic(released, original, columns) if released.synthetic else self._own(released, original)
        table = pl.DataFrame(rows, infer_schema_length=None)
        worst = table.sort("risk", descending=True).row(0, named=True)
        return Score(
            label(self),
            float(worst["risk"]),
            baseline=float(worst["baseline"]),
            interval=_interval(worst["risk"], worst["chance"]),
            unit="share of the variance of a value",
            notes=(
                f"Strongest in {worst['column']!r}: {worst['strongest']}.",
                *self._assumption(released, worst["strongest"]),
            ),
            cells=lambda: table,
        )

    def _assumption(self, released: Records, strongest: str) -> tuple[str, ...]:
        if not released.synthetic:
            informed = strongest in ("equal", "logarithms", "flexible")
            return ("This snooper knows the true values of all other people.",) if informed else ()
        known_columns = ", ".join(self.known) if self.known else "all other columns of a person"
        return (f"The file is synthetic: the snooper knows {known_columns} and learns the value from its records.",)

    def _own(self, released: Records, original: Records) -> list[dict[str, object]]:
        """Snoopers who have the person's own record."""
        columns = numeric_columns(original, self.columns)
        every, released_table, original_table, units = seen_by_snoopers(released, original, columns)
        originals = floats(original_table, columns)
        masked = floats(released_table, columns)
        errors = [_errors(y, x) for y, x in zip(masked.T, originals.T, strict=True)]
        if self.snooper == "strongest":
            terms = Terms.of(released_table, every)
            _add(errors, "all columns", linear := best_fit_errors(terms.linear, released_table, originals))
            certain = max(linear) <= EXACT_SHARE  # as with more columns than records: nobody errs less
            if not certain:
                _add(errors, "curved", best_fit_errors(terms.curved, released_table, originals))
                _add(errors, "quadratic", best_fit_errors(terms.linear, released_table, originals, products=True))
                _add(errors, "equal", equal_value_errors(terms.linear, released_table, every, originals, units))
                _add(errors, "logarithms", logarithm_errors(released_table, every, originals, units))
                _add(errors, "flexible", flexible_errors(terms, released_table, masked, originals, linear, units))
            if self.trees and not certain:
                _add(errors, "trees", crossed_tree_errors(matrix(terms.linear, released_table), originals))
        pairs = zip(masked.T, originals.T, errors, strict=True)
        chances = [_relative_standard_error(y, x, units, own) for y, x, own in pairs]
        return [_row(*row) for row in zip(columns, errors, chances, strict=True)]

    def _synthetic(self, released: Records, original: Records, columns: tuple[str, ...]) -> list[dict[str, object]]:
        """Snoopers who learn from synthetic records and know a person's other columns."""
        usable = self._known(released, original)
        every = tuple(dict.fromkeys((*columns, *usable)))
        table, holdout = released.collect(*every), original.holdout
        files = [original.collect(*every), *((holdout.collect(*every),) if holdout else ())]
        people = [with_parts(file, usable, like=table) for file in files]
        table = with_parts(table, usable)
        known_columns = (*usable, *table.columns[len(every) :])
        return [self._learnt(table, people, column, [c for c in known_columns if c != column]) for column in columns]

    def _known(self, released: Records, original: Records) -> tuple[str, ...]:
        if self.snooper == "own":
            return ()
        for column in self.known or ():
            if column not in released.schema() or column not in original.schema():
                raise RolesError.missing(column, list(released.schema()))
        return self.known or usable_columns(released, original)

    def _learnt(
        self, released: pl.DataFrame, people: list[pl.DataFrame], target: str, known_columns: list[str]
    ) -> dict[str, object]:
        x, y = as_numbers(people[0][target]), as_numbers(released[target])
        errors, chance, baseline = _mean_only(y, x), 0.0, 0.0
        if known_columns and not np.isnan(y).all():
            terms = Terms.of(released, known_columns)
            (learnt, chance), *others = learnt_errors(terms, released, target, people, trees=self.trees)
            errors |= learnt
            strongest = min(errors, key=lambda name: errors[name])
            baseline = max(0.0, *(1.0 - outside.get(strongest, 1.0) for outside, _ in others)) if others else 0.0
        return {**_row(target, errors, chance), "baseline": baseline}


def _add(errors: list[Errors], snooper: str, relative_errors: list[float]) -> None:
    for row, error in zip(errors, relative_errors, strict=True):
        row[snooper] = error


def _errors(y: Floats, x: Floats) -> Errors:
    """Mean squared errors relative to the variance, over people with a value; without a link the mean is guessed."""
    has_value = ~np.isnan(x)
    both = has_value & ~np.isnan(y)
    spread = _variance(x[has_value])
    centre = float(np.nanmean(y)) if both.any() else 0.0
    mean = float(((x[has_value] - centre) ** 2).mean()) / spread
    link, share = np.where(both, y, centre)[has_value], float(both.sum() / has_value.sum())
    linked = float(((x[has_value] - link) ** 2).mean()) / spread
    fit = _correlation(x[both], y[both]) ** 2 * share
    return {"mean": mean, "linked record": linked, "best linear": 1.0 - fit}


def _mean_only(y: Floats, x: Floats) -> Errors:
    values = x[~np.isnan(x)]
    centre = float(np.nanmean(y)) if not np.isnan(y).all() else 0.0
    return {"mean": float(((values - centre) ** 2).mean()) / _variance(values)}


def _variance(x: Floats) -> float:
    spread = float(x.var()) if len(x) else 0.0
    if spread == 0:
        raise DataError("A column without variation has no value to disclose: leave it out.")
    return spread


def _correlation(x: Floats, y: Floats) -> float:
    if len(x) < 2 or x.std() == 0 or y.std() == 0:
        return 0.0
    return float(np.clip(np.corrcoef(x, y)[0, 1], -1.0, 1.0))


def _relative_standard_error(y: Floats, x: Floats, units: Integers, errors: Errors) -> float:
    """Standard error of a mean squared error over the variance, as a share of it, by the best linear rule's errors.

    Where that rule explains little they are the deviations themselves, which never differ from their mean square by
    chance: for a stronger rule of another form it is at least that of its R^2 in an elliptical law.
    """
    has_value = ~np.isnan(x)
    both = has_value & ~np.isnan(y)
    if both.sum() < 3 or np.ptp(y[both]) == 0 or np.ptp(x[both]) == 0:
        return 0.0
    centred, masked = x[both] - x[both].mean(), y[both] - y[both].mean()
    squares = (centred - masked * (centred @ masked) / (masked @ masked)) ** 2
    linear = relative_standard_error(squares, centred, units[both])
    least = min(errors.values())
    if least >= min(error for name, error in errors.items() if name in OWN_VALUE):
        return linear
    return max(linear, elliptical_standard_error(1.0 - least, x[has_value], units[has_value]))


def _interval(risk: float, relative_standard_error: float) -> tuple[float, float] | None:
    half = NORMAL_95 * (1.0 - risk) * relative_standard_error
    return (max(0.0, risk - half), min(1.0, risk + half)) if half > 0 else None


def _row(column: str, errors: Errors, chance: float = 0.0) -> dict[str, object]:
    strongest = min(errors, key=lambda name: errors[name])
    risk = min(1.0, max(0.0, 1.0 - errors[strongest]))
    relative = {name: errors.get(name) for name in SNOOPERS}
    return {"column": column, **relative, "risk": risk, "chance": chance, "strongest": strongest, "baseline": 0.0}
