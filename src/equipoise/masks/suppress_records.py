"""Suppress the keys of records in unsafe classes."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data import engines
from equipoise.data.cells import Cells, count
from equipoise.data.moving_units import cell_of
from equipoise.data.records import Law, Records
from equipoise.data.roles import names
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import EngineError, ParameterError, RolesError
from equipoise.ground.randomness import Draws
from equipoise.methods.method import Rule, label
from equipoise.methods.sensitive_values import flagged, sensitive_of


@dataclass(frozen=True, slots=True)
class SuppressRecords:
    """Blank all keys of the records in classes that the `rule` flags; other columns stay, and so do the records.

    A class are the records with equal `keys` (those of the roles unless given). Blanked, not removed: weights, totals
    and sensitive values of the file stay what they were, as in ARX. Records without any key are left as they are.

    Source: Samarati (2001), *Protecting respondents' identities in microdata release*, tuple suppression.
    Does not guard against what a blanked record tells: that its keys are rare, and its sensitive values; fewer than k
    blanked records are a class of fewer than k. Cost: one count and one pass.

    >>> from equipoise.data.roles import Roles
    >>> from equipoise.rules import MinCount
    >>> records = Records.of(pl.DataFrame({"age": [30, 30, 31], "pay": [5, 6, 7]}), Roles(["age"]))
    >>> SuppressRecords(MinCount(2)).apply(records, Draws(1)).collect().rows()
    [(30, 5), (30, 6), (None, 7)]
    """

    rule: Rule
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", names(self.keys, "keys"))
        if not isinstance(self.rule, Rule) or isinstance(self.rule, type):
            raise ParameterError("rule must be a rule: eq.rules.MinCount(3).")

    def apply(self, data: Records, draws: Draws) -> Records:
        keys = self._keys(data)
        cells = count(data, tuple(dict.fromkeys((*keys, *sensitive_of([self.rule])))))
        unsafe = self._flagged(cells, keys)
        if data.kind == "pyspark":
            raise EngineError("Spark cannot suppress records: give Polars, pandas, PyArrow, DuckDB or file data.")
        table = data.collect()
        hidden = pl.Series(unsafe[cell_of(table, cells)])
        blank = [pl.when(~hidden).then(pl.col(key)).alias(key) for key in keys]
        return data.with_frame(engines.like(data.frame, table.with_columns(blank)), self.law(keys))

    def words(self) -> str:
        return f"keys of records suppressed by {label(self.rule)}"

    def law(self, keys: tuple[str, ...]) -> Law:
        text = f"{', '.join(keys)} suppressed for records in unsafe classes"
        return Law("suppress_records", keys, text, {"rule": label(self.rule), "keys": list(keys)})

    def _keys(self, data: Records) -> tuple[str, ...]:
        keys = self.keys or data.roles.keys
        if not keys:
            raise RolesError("There are no keys to suppress: name them in the roles.")
        for key in keys:
            if key not in data.schema():
                raise RolesError.missing(key, list(data.schema()))
        return keys

    def _flagged(self, cells: Cells, keys: tuple[str, ...]) -> Integers:
        """Which cells are in unsafe classes; those without any key are not."""
        has_key = np.zeros(len(cells), dtype=np.bool_)
        for key in keys:
            has_key |= cells.keys[key].is_not_null().to_numpy()
        return flagged(self.rule, cells, keys) & has_key
