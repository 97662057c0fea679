"""Value disclosure: how well a snooper who has linked a record knows the person's numeric values."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned
from equipoise.data.numeric_columns import floats, numeric_columns
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score

SNOOPERS = ("mean", "linked record", "best linear")


@dataclass(frozen=True, slots=True)
class ValueDisclosure:
    """Share of a numeric column's variance that the strongest snooper explains, in the column where it is largest.

    The snooper guesses each original value x from the released file: by its mean, by the person's own released value y
    (the linked record), or by the best linear predictor, which shrinks y towards the mean. The value is
    1 - MSE / Var(x) of the strongest, the reciprocal-MSE risk on a scale from 0 (nothing but the mean) to 1 (the value
    itself). Against a fully synthetic file only the mean is left. The detail has a row per column: the MSE of each
    snooper, `risk` and who is `strongest`.

    Source: Duncan and Keller-McNulty (2000), risk as the reciprocal of the snooper's mean squared error; the best
    linear snooper is theirs with shrinkage. Misleads when the relation is not linear, or when the person is not found.
    Cost: O(records x columns).

    >>> records = eq.Records.of(pl.DataFrame({"x": [1.0, 2.0, 4.0]}), eq.Roles(numeric="x"))
    >>> ValueDisclosure().measure(records, records).value
    1.0
    """

    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def measure(self, released: Records, original: Records) -> Score:
        columns = numeric_columns(original, self.columns)
        guess = _mean_only if released.synthetic else _errors
        sides = (released.collect(*columns), original.collect(*columns))
        released_table, original_table = sides if released.synthetic else aligned(released, original, columns)
        pairs = zip(columns, floats(released_table, columns).T, floats(original_table, columns).T, strict=True)
        table = pl.DataFrame([_row(column, guess(y, x)) for column, y, x in pairs])
        worst = table.sort("risk", descending=True).row(0, named=True)
        note = f"Strongest in {worst['column']!r}: {worst['strongest']}."
        value = float(worst["risk"])
        return Score(
            label(self),
            value,
            baseline=0.0,
            unit="share of the variance of a value",
            notes=(note,),
            cells=lambda: table,
        )


def _errors(y: Floats, x: Floats) -> dict[str, float]:
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


def _mean_only(y: Floats, x: Floats) -> dict[str, float]:
    values = x[~np.isnan(x)]
    return {"mean": float(((values - np.nanmean(y)) ** 2).mean()) / _variance(values)}


def _variance(x: Floats) -> float:
    spread = float(x.var()) if len(x) else 0.0
    if spread == 0:
        raise DataError("A column without variation has no value to disclose: leave it out.")
    return spread


def _correlation(x: Floats, y: Floats) -> float:
    if len(x) < 2 or x.std() == 0 or y.std() == 0:
        return 0.0
    return float(np.clip(np.corrcoef(x, y)[0, 1], -1.0, 1.0))


def _row(column: str, errors: dict[str, float]) -> dict[str, object]:
    strongest = min(errors, key=lambda name: errors[name])
    risk = min(1.0, max(0.0, 1.0 - errors[strongest]))
    return {"column": column, **{name: errors.get(name) for name in SNOOPERS}, "risk": risk, "strongest": strongest}
