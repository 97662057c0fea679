"""Share of records that were withheld."""

from dataclasses import dataclass

import polars as pl

from equipoise.data.records import Records
from equipoise.methods.method import label
from equipoise.methods.score import Score


@dataclass(frozen=True, slots=True)
class WithheldRecords:
    """Share of the records of the original that the release does not have: 1 - n'/n, at least 0.

    Source: Samarati (2001), *Protecting respondents' identities in microdata release*, the limit on suppressed tuples.
    Misleads when those withheld differ from the others: see `Bias`. A release of as many synthetic records withholds
    none by this count. Cost: none.

    >>> old = eq.Records.of(pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}), eq.Roles(numeric="x"))
    >>> new = eq.Records.of(pl.DataFrame({"x": [1.0, 2.0, 3.0]}), eq.Roles(numeric="x"))
    >>> WithheldRecords().measure(new, old).value
    0.25
    """

    def measure(self, released: Records, original: Records) -> Score:
        before, after = original.height(), released.height()
        fewer = max(0, before - after)
        return Score(
            label(self),
            fewer / before,
            "lower",
            side="utility",
            number=float(fewer),
            unit="share of records",
            cells=lambda: pl.DataFrame({"original": [before], "released": [after]}),
        )
