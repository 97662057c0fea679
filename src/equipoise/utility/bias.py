"""Largest shift of a column's mean or distribution between the original and the release."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from equipoise.data.records import Records
from equipoise.data.weighted_samples import sample_notes, weights
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import require_columns
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score
from equipoise.utility._default_queries import content
from equipoise.utility._user_view import UserView, remembered


@dataclass(frozen=True, slots=True)
class Bias:
    """How far a release misleads about a single column: the largest shift of a mean or of a distribution.

    Of numbers |m' - m| / s, the shift of the mean in standard deviations of the original; of categories half the sum of
    |p' - p| over the categories of the release, the share of the records that would have to be somewhere else. Over all
    columns that users analyse, unless `columns` are named; the detail has a row for each. Read as a user does: bands by
    their middles, records without a value passed over, so blanks that fall on some people more than on others count.
    Coarser categories are no bias, and withheld columns cannot mislead: `Overlap` has what they cost.

    Source: Cohen (1988), *Statistical power analysis*, for the shift in standard deviations, of which 0.1 is half of
    what is called small; total variation for shares. Misleads when the columns keep their means and lose what they have
    to do with each other. Cost: O(records x columns).

    >>> frame = pl.DataFrame({"age": list(range(20, 60)), "sex": ["f", "m"] * 20})
    >>> old = eq.Records.of(frame, eq.Roles(["age", "sex"]))
    >>> young = pl.when(pl.col("age") < 50).then("age").alias("age")
    >>> new = eq.Records.of(frame.with_columns(young), old.roles)
    >>> round(Bias(("age",)).measure(new, old).value, 3)
    0.433
    """

    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def measure(self, released: Records, original: Records) -> Score:
        columns = self.columns or remembered(original, "content", lambda: content(original))
        require_columns(columns, original.schema())
        view = UserView.of(released, original, columns)
        before, after = weights(original, view.old), weights(released, view.new)
        shifts = {
            c: remembered(
                original,
                ("shift", c, released.synthetic, *view.place(c)),
                partial(_shift, view.old[c], before, view.new[c], after),
            )
            for c in columns
            if c not in view.lost
        }
        table = pl.DataFrame({"column": [*shifts], "shift": [*shifts.values()]}, schema_overrides={"shift": pl.Float64})
        return Score(
            label(self),
            max(shifts.values(), default=0.0),
            "lower",
            side="utility",
            unit="standard deviations, or share of records",
            notes=(*view.notes(), *sample_notes(original, 0)),
            cells=lambda: table,
        )


def _shift(old: pl.Series, before: Floats, new: pl.Series, after: Floats) -> float:
    numeric = old.dtype.is_numeric() and new.dtype.is_numeric()
    kind = pl.Float64 if numeric else pl.String
    (x, y) = (
        pl.DataFrame({"value": values.cast(kind), "w": w}).with_columns(pl.col(pl.Float64).fill_nan(None)).drop_nulls()
        for values, w in ((old, before), (new, after))
    )
    if not x.height or not y.height:
        return 0.0
    if not numeric:
        shares = [t.group_by("value").agg(pl.col("w").sum() / t["w"].sum()) for t in (x, y)]
        gap = pl.col("w").fill_null(0) - pl.col("w_right").fill_null(0)
        return float(shares[0].join(shares[1], on="value", how="full").select(gap.abs().sum()).item()) / 2
    mean, other = (np.average(t["value"], weights=t["w"]) for t in (x, y))
    deviation = float(np.sqrt(np.average((x["value"].to_numpy() - mean) ** 2, weights=x["w"])))
    return float(abs(other - mean)) / deviation if deviation > 0 else float(other != mean)
