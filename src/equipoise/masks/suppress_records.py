"""Suppress the keys of records in unsafe classes."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, count
from equipoise.data.moving_units import cell_of
from equipoise.data.records import Law, Records
from equipoise.data.row_draws import all_in_memory
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import RolesError, require_columns
from equipoise.ground.randomness import Draws
from equipoise.methods.method import Rule, label
from equipoise.methods.parameters import check_fields
from equipoise.methods.sensitive_values import flagged, sensitive_of


@dataclass(frozen=True, slots=True)
class SuppressRecords:
    """Blank all keys of the records in classes that the `rule` flags; other columns stay, and so do the records.

    A class are the records with equal `keys` (those of the roles unless given). Blanked, not removed: weights, totals
    and sensitive values of the file stay what they were, as in ARX. Records without any key are left as they are.

    Source: Samarati (2001), *Protecting respondents' identities in microdata release*, tuple suppression.
    Does not guard against what a blanked record tells: that its keys are rare, and its sensitive values; fewer than k
    blanked records are a class of fewer than k. Cost: one count and one pass.

    >>> records = eq.Records.of(pl.DataFrame({"age": [30, 30, 31], "pay": [5, 6, 7]}), eq.Roles(["age"]))
    >>> SuppressRecords(eq.rules.MinCount(2)).apply(records, Draws(1)).collect().rows()
    [(30, 5), (30, 6), (None, 7)]
    """

    rule: Rule
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, data: Records, draws: Draws) -> Records:
        keys = self._keys(data)
        cells = count(data, tuple(dict.fromkeys((*keys, *sensitive_of([self.rule])))))
        unsafe = self._flagged(cells, keys)
        table = all_in_memory(data)
        hidden = pl.Series(unsafe[cell_of(table, cells)])
        blank = [pl.when(~hidden).then(pl.col(key)).alias(key) for key in keys]
        return data.with_frame(table.with_columns(blank), self.law(keys))

    def words(self) -> str:
        return f"keys of records suppressed by {label(self.rule)}"

    def law(self, keys: tuple[str, ...]) -> Law:
        text = f"{', '.join(keys)} suppressed for records in unsafe classes"
        return Law("suppress_records", keys, text, {"rule": label(self.rule), "keys": list(keys)})

    def _keys(self, data: Records) -> tuple[str, ...]:
        keys = self.keys or data.roles.keys
        if not keys:
            raise RolesError("There are no keys to suppress: name them in the roles.")
        require_columns(keys, data.schema())
        return keys

    def _flagged(self, cells: Cells, keys: tuple[str, ...]) -> Integers:
        """Which cells are in unsafe classes; those without any key are not."""
        has_key = np.zeros(len(cells), dtype=np.bool_)
        for key in keys:
            has_key |= cells.table[key].is_not_null().to_numpy()
        return flagged(self.rule, cells, keys) & has_key
