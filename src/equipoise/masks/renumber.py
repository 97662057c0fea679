"""Give the groups of a file new numbers."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from equipoise.data.cells import Cells
from equipoise.data.recode_values import recoded
from equipoise.data.records import Law, Records
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import RolesError, require_columns
from equipoise.ground.randomness import Draws
from equipoise.methods.parameters import check_fields


@dataclass(frozen=True, slots=True)
class Renumber:
    """Give households, holdings or patients the new numbers 1, 2, ... in a random order: who belongs together stays.

    The numbers of the `household` role are drawn anew, or those of `columns`: the old ones may be known elsewhere, or
    show when a group was collected. Every order is equally likely and drawn from the secret seed; texts stay texts, and
    what is missing stays missing.

    Source: Benschop, Machingauta and Welch, *Statistical Disclosure Control: A Practice Guide* (World Bank), on
    randomizing the order and the numbering of individuals and households. Does not guard against recognition by who
    lives together: see `risk.Household`. Cost: one pass over the records, and a sort of the groups.

    >>> records = Records.of(pl.DataFrame({"age": [1, 2, 3], "home": [70, 70, 15]}), eq.Roles("age", household="home"))
    >>> a, b, c = Renumber().apply(records, Draws(1)).collect()["home"]
    >>> a == b, sorted({a, b, c})
    (True, [1, 2])
    """

    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, data: Records, draws: Draws) -> Records:
        columns = self._columns(data)
        for place, column in enumerate(columns):
            law = Law(
                "renumber", (column,), f"{column} given new numbers in a random order", {"columns": [column]}, True
            )
            data = recoded(data, column, partial(_numbers, draws.child(place)), law)
        return data

    def roll_up(self, cells: Cells) -> Cells:
        """The cells as they are: new names change no count."""
        return cells

    def words(self) -> str:
        return f"{', '.join(self.columns) or 'households'} with new numbers"

    def _columns(self, data: Records) -> tuple[str, ...]:
        roles, schema = data.roles, data.schema()
        chosen = self.columns or ((roles.household,) if roles.household else ())
        if not chosen:
            raise RolesError("Nothing to give new numbers to: name a household in the roles, or columns.")
        require_columns(chosen, schema)
        for column in chosen:
            if column in (*roles.keys, *roles.sensitive, roles.id, roles.weight):
                raise RolesError(f"Column {column!r} has another role: its values mean something, and keep it.")
        return chosen


def _numbers(draws: Draws, values: pl.Series, counts: Integers) -> pl.Series:
    """A new number for each of the distinct values, as text where they are texts."""
    present = values.is_not_null().to_numpy()
    order = np.argsort(draws.uniform(values.filter(pl.Series(present))), kind="stable")
    numbers = np.zeros(len(values), dtype=np.int64)
    numbers[np.flatnonzero(present)[order]] = np.arange(1, len(order) + 1)
    fresh = pl.select(pl.when(pl.Series(present)).then(pl.Series(numbers))).to_series()
    return (fresh if values.dtype.is_numeric() else fresh.cast(pl.String)).alias(values.name)
