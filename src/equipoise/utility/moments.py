"""Change of means, variances and correlations between released and original file."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.numeric_columns import numeric_columns
from equipoise.data.records import Records
from equipoise.data.weighted_samples import WeightedSample, correlation, covariance, pair, sample, sample_notes
from equipoise.ground.errors import EngineError
from equipoise.methods.method import label
from equipoise.methods.score import Score

TEXTS, NUMBERS = ("statistic", "column", "with"), ("original", "released", "change")
SCHEMA = pl.Schema({name: pl.String() if name in TEXTS else pl.Float64() for name in (*TEXTS, *NUMBERS)})


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean change of means, variances and correlations, 0 when all are kept.

    The value is the mean of three parts, each a mean over columns or pairs of columns: |m' - m| / S for means;
    |v' - v| / max(v, v') for variances; |r' - r| for correlations (absent with one column). S is the original standard
    deviation, or |m| (else 1) where a column does not vary. The detail has a row per statistic. Where
    both files hold the same records it also has the regression of the original on the released values: `slope` (1 when
    no correction is needed; s2/(s2 + l2) under noise, by which a user undoes attenuation) and `fit`, its r^2: these do
    not enter the value. Weighted; each statistic is taken over the values known to it.

    Source: Domingo-Ferrer and Torra (2001), *Disclosure control methods and information loss for microdata*, table of
    means, variances and correlations. Misleads when relations are not linear, or tails matter: moments may agree where
    quantiles do not. Cost: O(records x columns^2).

    >>> old = eq.Records.of(pl.DataFrame({"x": [1.0, 2.0, 3.0]}), eq.Roles(numeric="x"))
    >>> new = eq.Records.of(pl.DataFrame({"x": [1.0, 2.0, 6.0]}), eq.Roles(numeric="x"))
    >>> round(Moments().measure(new, old).value, 4)  # (1/1 + 6/7) / 2
    0.9286
    """

    columns: tuple[str, ...] | None = None

    def measure(self, released: Records, original: Records) -> Score:
        columns = numeric_columns(original, self.columns)
        new, old = sample(released, columns), sample(original, columns)
        rows = _means(new, old) + _variances(new, old) + _correlations(new, old)
        parts = pl.DataFrame(rows, schema=SCHEMA, orient="row").group_by("statistic").agg(pl.col("change").mean())
        missing = int((~new.present).sum() + (~old.present).sum())

        def detail() -> pl.DataFrame:
            return pl.DataFrame([*rows, *_regressions(released, original, columns)], schema=SCHEMA, orient="row")

        return Score(
            label(self),
            float(parts["change"].sort().mean()),  # type: ignore[arg-type]
            side="utility",
            unit="share",
            notes=sample_notes(original, missing),
            cells=detail,
        )


def _means(after: WeightedSample, before: WeightedSample) -> list[tuple[Any, ...]]:
    old, new = np.nan_to_num(before.means()), np.nan_to_num(after.means())
    spread = np.sqrt(before.variances())
    unit = np.where(spread > 0, spread, np.where(old != 0, np.abs(old), 1.0))
    change = np.abs(new - old) / unit
    return [("mean", name, None, *map(float, row)) for name, *row in zip(after.names, old, new, change, strict=True)]


def _variances(after: WeightedSample, before: WeightedSample) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for name, new, old in zip(after.names, after.variances().tolist(), before.variances().tolist(), strict=True):
        largest = max(new, old)
        rows.append(("variance", name, None, old, new, abs(new - old) / largest if largest > 0 else 0.0))
    return rows


def _correlations(after: WeightedSample, before: WeightedSample) -> list[tuple[Any, ...]]:
    new, old = after.correlations().tolist(), before.correlations().tolist()
    return [
        ("correlation", after.names[j], after.names[i], old[i][j], new[i][j], abs(new[i][j] - old[i][j]))
        for i in range(len(after.names))
        for j in range(i)
    ]


def _regressions(released: Records, original: Records, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Slope and fit of the original on the released values, where the files hold the same records."""
    rows: list[tuple[Any, ...]] = []
    with suppress(EngineError):
        new, old = pair(released, original, columns)
        for name, x, y in zip(columns, new.values.T, old.values.T, strict=True):
            spread = covariance(x, x, new.weights)
            slope = covariance(x, y, new.weights) / spread if spread > 0 else None
            fit = correlation(x, y, new.weights) ** 2
            rows += [("slope", name, None, 1.0, slope, None), ("fit", name, None, 1.0, fit, None)]
    return rows
