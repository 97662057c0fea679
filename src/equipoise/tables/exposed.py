"""How many sensitive cells an attacker can still bound too closely."""

from dataclasses import dataclass
from typing import Literal

import polars as pl

from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import both
from equipoise.methods.method import Rule, label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score
from equipoise.tables.audits import Exposure, exposure


@dataclass(frozen=True, slots=True)
class Exposed:
    """Share of the cells that `rule` calls sensitive which an attacker can bound to within their protection levels.

    With x the true value of a sensitive cell, l and u its levels and [a, b] all that it can be given what is published,
    the cell is exposed where a > x - l or b < x + u. The attacker knows every published number, all relations, that
    nothing is negative, and the law: the cells suppressed, the base of a rounding, the largest change by cell keys or
    of an adjustment. In the table as it is all are exposed: 1. `of="shortfall"` is graded: the mean over sensitive
    cells of the share of [x - l, x + u] that lies outside [a, b]. The same rule measures every method, whatever rule
    the method itself goes by.

    Source: Fischetti and Salazar-Gonzalez (2001) for the attacker's problem; Hundepool et al. (2012), *Statistical
    Disclosure Control*, section 4.3, for protection levels.
    Misleads when values within [a, b] are not equally likely, as around a nearest multiple, or when the attacker has
    other tables (`tables.difference`). Cost: at most two linear programs for each cell that is not published as it is;
    of changed tables of more than 5,000 cells the relations are not used.

    >>> from equipoise.ground.randomness import Draws
    >>> made = eq.table(eq.Records.of(pl.DataFrame({"k": ["a"] * 9 + ["b"] * 4 + ["c"]}), eq.Roles("k")), "k")
    >>> rule = eq.rules.MinCount(3)
    >>> shown = [made, eq.tables.Suppress(rule).apply(made, Draws(1)), eq.tables.Round(2).apply(made, Draws(1))]
    >>> [Exposed(rule).measure(released, made).value for released in shown]
    [1.0, 0.0, 0.0]
    """

    rule: Rule
    of: Literal["cells", "shortfall"] = "cells"

    def __post_init__(self) -> None:
        check_fields(self)

    def measure(self, released: Table, original: Table) -> Score:
        table, true_table = both(released, original, "Exposed")
        intervals = exposure(table, true_table, self.rule)
        many = int(intervals.sensitive.sum())
        risk = intervals.exposed if self.of == "cells" else intervals.shortfall
        return Score(
            label(self),
            float(risk[intervals.sensitive].mean()) if many else 0.0,
            side="risk",
            number=float(intervals.exposed.sum()),
            unit="share of sensitive cells" if self.of == "cells" else "share of their levels",
            notes=(*intervals.notes, *(() if many else ("The rule calls no cell sensitive.",))),
            cells=lambda: _detail(true_table, intervals),
        )


def _detail(table: Table, intervals: Exposure) -> pl.DataFrame:
    return table.table.select(table.by).with_columns(
        value=intervals.value, lower=intervals.low, upper=intervals.high, sensitive=pl.Series(intervals.sensitive),
        risk=pl.Series(intervals.shortfall),
    )  # fmt: skip
