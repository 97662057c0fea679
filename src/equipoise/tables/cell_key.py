"""Perturb counts by the keys of the records in them."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from equipoise.data.records import Law
from equipoise.data.tables.keyed_cells import count_variables, count_view, with_count
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import changed, whole, without
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError, ParameterError
from equipoise.ground.randomness import Draws
from equipoise.methods.parameters import above, check_fields
from equipoise.tables._perturbation_table import Ptable, generate, read


@dataclass(frozen=True, slots=True)
class CellKey:
    """Change each count by a number that depends on the records in it alone: the same cell is changed alike everywhere.

    Every record has a key in [0, 1) (`tables.record_keys`, then `eq.table(..., key="rkey")`). A cell's key is the
    fractional part of their sum, uniform whatever the cell; with its count i it is looked up in a perturbation table:
    the change v is that of the first interval whose upper end is at least the key. Weighted counts change by v times
    the mean weight. The table does not add up any more; 0 stays 0.

    The perturbation table is a file `ptable` (columns i, v and p_int_ub or p_ij_ub; the last i holds for larger counts
    too), or made here: the law of maximum entropy of mean 0, variance at most `variance`, no change beyond `most`, no
    published count from 1 to `above`.

    Count variables of the table (`eq.table(..., counts=["ill"])`: how many records have a 1 there) change by the keys
    of those records, into the columns `published_ill`; `ptables` gives them files of their own ("ill=FILE").

    Source: Fraser and Wooton (2006); Thompson, Broadfoot and Elazar (2013), *Methodology for the automatic
    confidentialisation of statistical outputs*; Giessing (2016) for the law; the R packages cellKey and ptable.
    Does not guard against an intruder who averages: a count that can be rebuilt from many cells is known better than
    each of them (`tables.Rebuild` measures it); nor against a large `most` with a `variance` so small that most cells
    are true. Whoever has record keys and the table can undo it. Cost: O(cells).

    >>> frame = pl.DataFrame({"sex": ["f", "f", "m"], "rkey": [0.3, 0.25, 0.9]})
    >>> made = eq.table(eq.Records.of(frame, eq.Roles("sex")), "sex", key="rkey")
    >>> CellKey(most=2, variance=1.0).apply(made, Draws(1)).table.select("sex", "n", "published").rows()
    [('Total', 3, 3.0), ('f', 2, 2.0), ('m', 1, 2.0)]
    """

    random: ClassVar[bool] = False

    ptable: str | None = None
    most: int = 5
    variance: float = 2.0
    above: int = 0
    ptables: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self, most=1, above=0)
        above(self.variance, "variance")
        if self.ptable is not None and not isinstance(self.ptable, str):
            raise ParameterError("ptable must be the path of a file, or left out.")
        if not all(all(text.partition("=")[::2]) for text in self.ptables):
            raise ParameterError("ptables are written NAME=FILE: the count variable, and the file of its ptable.")

    def apply(self, data: Table, draws: Draws) -> Table:
        table, values = whole(data, "CellKey")
        if table.measured or not np.allclose(values, table.total):
            raise DataError("CellKey is for tables of counts: this one holds amounts.")
        if "key" not in table.more.columns:
            raise DataError(
                "The table has no cell keys: add record keys with tables.record_keys and name their column, "
                "eq.table(..., key='rkey')."
            )
        law, variables = self.law(), count_variables(table)
        if unknown := [text for text in self.ptables if text.partition("=")[0] not in variables]:
            raise ParameterError(
                f"ptables are for count variables of the table: {unknown[0].partition('=')[0]!r} is none."
            )
        released = changed(table, _perturbed(law, table, table.numbers("key")), self._law(law))
        for name in variables:
            view = count_view(table, name)
            own = self.law(name)
            numbers = _perturbed(own, view, table.numbers(f"key_{name}"))
            released = with_count(without(released, f"key_{name}"), name, numbers, self._law(own))
        return without(released, "key")

    def law(self, name: str | None = None) -> Ptable:
        """The perturbation table, or that of a count variable."""
        own = dict(text.partition("=")[::2] for text in self.ptables).get(name or "")
        path = own or self.ptable
        return read(path) if path else generate(self.most, self.variance, self.above)

    def _law(self, law: Ptable) -> Law:
        """What the public may know: the largest change and the largest variance, not the table."""
        counts = np.arange(law.largest + 1)
        most, variance = float(np.abs(law.v).max()), float(law.variance(counts).max())
        biased = f" The law of {law.biased} counts is biased." if law.biased else ""
        words = f"{self.words()}. The cells do not add up any more.{biased}"
        return Law("cell_key", (), words, {"additive": False, "most": most, "variance": round(variance, 6)}, detail=law)

    def words(self) -> str:
        if self.ptable:
            return "counts changed by the keys of their records, by a given perturbation table"
        gap = f", none from 1 to {self.above} published" if self.above else ""
        return (
            f"counts changed by the keys of their records, by at most {self.most} with variance up to "
            f"{self.variance:g}{gap}"
        )


def _perturbed(law: Ptable, table: Table, keys: Floats) -> Floats:
    """The counts with their changes, weighted ones by as many mean weights."""
    weight = np.divide(table.total, table.n, out=np.zeros(len(table)), where=table.n > 0)
    return np.maximum(table.total + law.change(table.n, keys) * weight, 0.0)
