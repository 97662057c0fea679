"""Share of key values that were blanked."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, as_cells
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.ground.errors import RolesError
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score

TOP_LABEL = "*"
"""The label that says nothing: the top of hierarchies."""


@dataclass(frozen=True, slots=True)
class BlankKeys:
    """Share of the key values that the release lacks and the original has: suppressed, or recoded to "*".

    (blank values of the release - those of the original) / (records x keys), over `columns` where they are named. A
    withheld column is blank throughout. The detail has a row per column.

    Source: Templ, Kowarik and Meindl (2015), *Statistical disclosure control for micro-data using the R package
    sdcMicro*, who report suppressions by key. Misleads when few values are blank and they are the ones that matter:
    blanks of the old alone shift the mean age (see `Bias`). Cost: O(cells).

    >>> frame = pl.DataFrame({"age": [30, 31, 31, None], "sex": ["f", "f", "m", "m"]})
    >>> old = eq.Records.of(frame, eq.Roles(["age", "sex"]))
    >>> new = eq.Records.of(frame.with_columns(age=pl.Series([None, 31, 31, None])), old.roles)
    >>> BlankKeys().measure(new, old).value
    0.125
    """

    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def by(self, roles: Roles) -> tuple[str, ...]:
        return self.columns or roles.keys

    def measure(self, released: Records | Cells, original: Records | Cells) -> Score:
        columns = self.by(original.roles) if isinstance(original, Records) else original.by
        if not columns:
            raise RolesError("No keys were named: say in which columns blanks are counted.")
        before, after = (_blanks(data, columns) for data in (original, released))
        records = original.height() if isinstance(original, Records) else original.records
        more = np.maximum(after - before, 0)
        table = pl.DataFrame({"column": columns, "blank": more, "share": more / records})
        return Score(
            label(self),
            float(more.sum() / (records * len(columns))),
            "lower",
            side="utility",
            number=float(more.sum()),
            unit="share of key values",
            cells=lambda: table,
        )


def _blanks(data: Records | Cells, columns: tuple[str, ...]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The blank values of each column."""
    if isinstance(data, Records):
        present, size = tuple(c for c in columns if c in data.schema()), data.height()
        cells = as_cells(data, present) if present else None
    else:
        present, size, cells = columns, data.records, data
    counts = {c: _blank(cells, c) for c in present} if cells is not None else {}
    return np.array([counts.get(c, size) for c in columns], dtype=np.int64)


def _blank(cells: Cells, column: str) -> int:
    values = cells.values(column)
    says_nothing = values.is_null() | (values.cast(pl.String) == TOP_LABEL).fill_null(value=True)
    return int(cells.counts(column)[says_nothing.to_numpy()].sum())
