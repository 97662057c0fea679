"""Release a random part of the file."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.records import Law, Records
from equipoise.data.row_draws import picked
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError
from equipoise.ground.packed_keys import code
from equipoise.ground.randomness import Draws
from equipoise.methods.parameters import share


@dataclass(frozen=True, slots=True)
class Sample:
    """Keep a simple random sample of the records: `fraction` of them, rounded, each set of that size equally likely.

    Where there is a household role, whole households are drawn: `fraction` of them. Weights are divided by the share
    drawn, so that estimates of totals stay unbiased. An intruder can no longer be sure that his target is in the file:
    a sample unique need not be one of the population (`risk.PopulationUniques`, `risk.Individual`).

    Source: Cochran (1977), *Sampling Techniques*, ch. 2; Willenborg and de Waal (2001), section 1.4.
    Does not guard against somebody who knows that his target took part, nor for records that everybody knows.
    Estimates from the sample have variance (1/f - 1) S^2 N more. Cost: one sort of the records.

    >>> records = eq.Records.of(pl.DataFrame({"age": range(10), "w": [1.0] * 10}), eq.Roles(["age"], weight="w"))
    >>> Sample(0.5).apply(records, Draws(1)).collect()["w"].to_list()
    [2.0, 2.0, 2.0, 2.0, 2.0]
    """

    fraction: float

    def __post_init__(self) -> None:
        share(self.fraction, "fraction")

    def apply(self, data: Records, draws: Draws) -> Records:
        home, weight = data.roles.household, data.roles.weight
        uniform = draws.uniform(data.keys_of_rows()) if not home else self._by_home(data.collect(home)[home], draws)
        rows, share = self._rows(uniform)
        changed = {weight: (pl.col(weight).cast(pl.Float64) / share)} if weight else {}
        return picked(data, rows, self.law(data, share), **changed)

    def words(self) -> str:
        return f"a random {self.fraction:.4g} of the records"

    def law(self, data: Records, share: float) -> Law:
        what = "households" if data.roles.household else "records"
        weights = f"; {data.roles.weight} divided by that share" if data.roles.weight else ""
        text = f"a random sample of {share:.4g} of the {what}{weights}"
        return Law("sample", (), text, {"fraction": self.fraction, "kept": share}, coarsens=True)

    def _by_home(self, homes: pl.Series, draws: Draws) -> Floats:
        """One draw for all members of a household."""
        if homes.null_count():
            raise DataError(f"{homes.null_count():,} records have no household: whole households cannot be drawn.")
        coded = code(homes)
        return draws.uniform(coded.values.cast(pl.String))[coded.codes]

    def _rows(self, uniform: Floats) -> tuple[Integers, float]:
        """The rows of the smallest draws, in the order of the file, and the share of units kept."""
        values = np.unique(uniform)
        size = round(self.fraction * len(values))
        if not size:
            raise DataError(f"A sample of {self.fraction:g} of {len(values):,} leaves no record: take more.")
        return np.flatnonzero(uniform <= values[size - 1]), size / len(values)
