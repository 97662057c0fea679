"""Value disclosure: how well a snooper knows a person's numeric values from the release."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from equipoise.data.numeric_columns import floats, numeric_columns
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, ParameterError, RolesError
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score
from equipoise.risk._snoopers import (
    Terms,
    best_fit_errors,
    crossed_tree_errors,
    flexible_errors,
    learnt_errors,
    learnt_forest_errors,
    neighbour_errors,
    seen_by_snoopers,
    tree_errors,
    usable_columns,
)

SNOOPERS = ("mean", "linked record", "best linear", "all columns", "curved", "nearest", "flexible", "trees")
Errors = dict[str, float]
NORMAL_95, EXACT_SHARE = 1.96, 1e-12
"""Standard errors of a 95 % interval; share of the variance below which an error is none."""


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
      every other column, while there are 30 records for each term;
    - by a random forest, whose trees guess for records they have not seen, by the mean of the records most alike, and
      by Bayes' rule with the values of all other people as the prior, joined with the numbers by the best linear rule
      ("flexible"; on at most 3,000 records drawn by a public seed);
    - with `trees`, by boosted trees that learn from other people's pairs of records, in three folds (extra `learn`).
    With the role household or person the snooper also reads the other rows of a unit: how many, and their means.
    The linear and curved rules are fitted to the originals: they are the least upper bound of what any intruder reaches
    by a rule of that form, from public moments, from the law or by luck. With few records for each column that bound is
    loose, never low. Copies of the same people (`Roles.sample`) are averaged first; for several releases, see
    `attacks.averaged`. `snooper="own"` leaves the first three, as in the source.

    A fully synthetic file has nobody's record: the snooper knows a person's other columns (`known`; all that the
    release holds unless given) and learns x from the synthetic records, by linear and curved regression, by a
    random forest ("flexible") and by the nearest records ("nearest": one, or the mean of five), tried on the people of
    the original. With a holdout the baseline is the success of the same snooper with people who are not in the file:
    what is no more than that is learnt about everybody.

    value = 1 - MSE / Var(x) of the strongest, the reciprocal-MSE risk on a scale from 0 (nothing but the mean) to 1
    (the value itself). The detail has a row per column: the relative MSE of each snooper, `risk`, who is `strongest`,
    and `baseline`. With a person's own record the interval (95 %) is how far chance may move the number in a file of so
    many units: the standard error of MSE / Var(x), a ratio of means over units, with the squared errors of the best
    linear rule as the shape of those of the strongest.

    Source: Duncan and Keller-McNulty (2000), risk as the reciprocal of the snooper's mean squared error; Kim (1986) and
    Fuller (1993), *Masking procedures for microdata disclosure limitation*, for prediction from all masked columns;
    Breiman (2001), *Random forests*.
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
            notes=(f"Strongest in {worst['column']!r}: {worst['strongest']}.", *self._assumption(released)),
            cells=lambda: table,
        )

    def _assumption(self, released: Records) -> tuple[str, ...]:
        if not released.synthetic:
            return ()
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
            _add(errors, "curved", best_fit_errors(terms.curved, released_table, originals))
            _add(errors, "flexible", flexible_errors(terms, released_table, masked, originals, linear, units))
            if self.trees:
                _add(errors, "trees", crossed_tree_errors(terms.linear, released_table, originals))
        chances = [_relative_standard_error(y, x, units) for y, x in zip(masked.T, originals.T, strict=True)]
        return [_row(*row) for row in zip(columns, errors, chances, strict=True)]

    def _synthetic(self, released: Records, original: Records, columns: tuple[str, ...]) -> list[dict[str, object]]:
        """Snoopers who learn from synthetic records and know a person's other columns."""
        usable = self._known(released, original)
        every = tuple(dict.fromkeys((*columns, *usable)))
        table, holdout = released.collect(*every), original.holdout
        people = [original.collect(*every), *((holdout.collect(*every),) if holdout else ())]
        return [self._learnt(table, people, column, [c for c in usable if c != column]) for column in columns]

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
        x, y = floats(people[0], (target,))[:, 0], floats(released, (target,))[:, 0]
        errors = [_mean_only(y, x), *(dict[str, float]() for _ in people[1:])]
        if known_columns and not np.isnan(y).all():
            terms = Terms.of(released, known_columns)
            _add(errors, "all columns", learnt_errors(terms.linear, released, target, people))
            _add(errors, "curved", learnt_errors(terms.curved, released, target, people))
            _add(errors, "nearest", neighbour_errors(terms.curved, released, target, people))
            _add(errors, "flexible", learnt_forest_errors(terms, released, target, people))
            if self.trees:
                _add(errors, "trees", tree_errors(terms.linear, released, target, people))
        row = _row(target, errors[0])
        baseline = max(0.0, 1.0 - errors[1].get(str(row["strongest"]), 1.0)) if len(errors) > 1 else 0.0
        return {**row, "baseline": baseline}


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


def _relative_standard_error(y: Floats, x: Floats, units: Integers) -> float:
    """Standard error of a mean squared error over the variance, as a share of it, by the best linear rule's errors."""
    both = ~np.isnan(x) & ~np.isnan(y)
    if both.sum() < 3 or np.ptp(y[both]) == 0 or np.ptp(x[both]) == 0:
        return 0.0
    centred = x[both] - x[both].mean()
    errors = (centred - np.polyval(np.polyfit(y[both] - y[both].mean(), centred, 1), y[both] - y[both].mean())) ** 2
    if errors.mean() <= EXACT_SHARE * (centred**2).mean():
        return 0.0
    excess = errors / errors.mean() - centred**2 / (centred**2).mean()
    sums = np.bincount(np.unique(units[both], return_inverse=True)[1], weights=excess)
    return float(np.sqrt((sums**2).sum()) / both.sum())


def _interval(risk: float, relative_standard_error: float) -> tuple[float, float] | None:
    half = NORMAL_95 * (1.0 - risk) * relative_standard_error
    return (max(0.0, risk - half), min(1.0, risk + half)) if half > 0 else None


def _row(column: str, errors: Errors, chance: float = 0.0) -> dict[str, object]:
    strongest = min(errors, key=lambda name: errors[name])
    risk = min(1.0, max(0.0, 1.0 - errors[strongest]))
    relative = {name: errors.get(name) for name in SNOOPERS}
    return {"column": column, **relative, "risk": risk, "chance": chance, "strongest": strongest, "baseline": 0.0}
