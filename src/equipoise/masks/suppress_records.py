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
from equipoise.ground.packed_keys import group
from equipoise.ground.randomness import Draws
from equipoise.methods.method import Rule, label
from equipoise.methods.parameters import check_fields
from equipoise.methods.sensitive_values import flagged, sensitive_of


@dataclass(frozen=True, slots=True)
class SuppressRecords:
    """Blank all keys of the records in classes that the `rule` flags; other columns stay, and so do the records.

    A class are the records with equal `keys` (those of the roles unless given). Blanked, not removed: weights, totals
    and sensitive values of the file stay what they were, as in ARX. All records without any key are a class as well:
    where the rule flags that one, the smallest of the others is blanked too, until it does not or none is left.

    Source: Samarati (2001), *Protecting respondents' identities in microdata release*, tuple suppression.
    Does not guard against what a blanked record tells: that its keys are rare, and its sensitive values. Cost: one
    count and one pass, and again for each class that is blanked for the others.

    >>> table = pl.DataFrame({"age": [30, 30, 31, 32, 32, 32], "pay": [5, 6, 7, 8, 9, 9]})
    >>> SuppressRecords(eq.rules.MinCount(2)).apply(Records.of(table, eq.Roles(["age"])), Draws(1)).collect().rows()
    [(None, 5), (None, 6), (None, 7), (32, 8), (32, 9), (32, 9)]
    """

    rule: Rule
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, data: Records, draws: Draws) -> Records:
        keys = self._keys(data)
        by = tuple(dict.fromkeys((*keys, *sensitive_of([self.rule]))))
        current, table = data, all_in_memory(data)
        while True:
            cells = count(current, by)
            blank = self._blanked(cells, keys)
            if not blank.any():
                return data.with_frame(table, self.law(keys))
            hidden = pl.Series(blank[cell_of(table, cells)])
            table = table.with_columns(pl.when(~hidden).then(pl.col(key)).alias(key) for key in keys)
            current = Records.of(table, data.roles)

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

    def _blanked(self, cells: Cells, keys: tuple[str, ...]) -> Integers:
        """Which cells lose their keys: those of unsafe classes, else the smallest where those without are unsafe."""
        unsafe, has_key = flagged(self.rule, cells, keys), np.zeros(len(cells), dtype=np.bool_)
        for key in keys:
            has_key |= cells.keys[key].is_not_null().to_numpy()
        if (unsafe & has_key).any() or not unsafe.any() or not has_key.any():
            return unsafe & has_key
        places = [cells.place(key) for key in keys]
        ids, _ = group([cells.cube.codes[place] for place in places], [cells.cube.sizes[place] for place in places])
        size = np.bincount(ids, cells.n)
        size[ids[~has_key]] = np.inf
        return ids == np.argmin(size)
