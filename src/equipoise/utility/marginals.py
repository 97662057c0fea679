"""Hellinger distance of one- and two-way tables between released and original file."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, as_cells
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.data.weighted_samples import sample_notes
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import ParameterError
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score


@dataclass(frozen=True, slots=True)
class Marginals:
    """Mean Hellinger distance of all tables of up to `ways` columns, 0 for equal tables and 1 for disjoint ones.

    With the shares p and q of the cells of one table, H = sqrt(1/2 sum (sqrt p - sqrt q)^2), and the total variation is
    TV = 1/2 sum |p - q|; H^2 <= TV <= sqrt(2) H. Every table counts alike. The detail has a row per table, with both
    distances and its cells. The columns are the keys unless named. Shares are of weights where there is a weight role.
    A missing value is a category of its own. The files need not hold the same records.

    Source: Hellinger (1909); Shlomo and Young (2006), *Statistical disclosure control methods through a risk-utility
    framework*, for tables. Misleads when a column was recoded: new categories share nothing with the old, and every
    table with it counts as lost; the notes name it. Cost: O(records x tables), or O(cells x tables) from cells.

    >>> old = Cells.of(pl.DataFrame({"sex": ["f", "m"], "n": [1, 1]}))
    >>> new = Cells.of(pl.DataFrame({"sex": ["f", "m"], "n": [2, 0]}))
    >>> round(Marginals().measure(new, old).value, 4), Marginals().measure(new, old).detail["total_variation"].item()
    (0.5412, 0.5)
    """

    columns: tuple[str, ...] | None = None
    ways: int = 2

    def __post_init__(self) -> None:
        check_fields(self, ways=1)
        if self.columns == ():
            raise ParameterError("columns must name at least one column.")

    def by(self, roles: Roles) -> tuple[str, ...]:
        return self.columns or roles.keys

    def measure(self, released: Records | Cells, original: Records | Cells) -> Score:
        columns = self.columns or (original.roles.keys if isinstance(original, Records) else original.by)
        if not columns:
            raise ParameterError("There are no tables to compare: name columns, or keys in the roles.")
        tables = [by for size in range(1, self.ways + 1) for by in combinations(columns, size)]
        rows = [_compared(as_cells(released, by), as_cells(original, by)) for by in tables]
        detail = pl.DataFrame(rows)
        strange = [row["table"] for row in rows[: len(columns)] if row["hellinger"] > 1 - 1e-12]
        weighed = sample_notes(original, 0) if isinstance(original, Records) else ()
        return Score(
            label(self),
            float(np.mean([row["hellinger"] for row in rows])),
            side="utility",
            unit="mean Hellinger distance",
            notes=(*weighed, *(f"No category of {name!r} is in both files: it was recoded." for name in strange)),
            cells=lambda: detail,
        )


def _compared(new: Cells, old: Cells) -> dict[str, Any]:
    """Both distances between two tables by the same columns."""
    q, p = _shares(new, old)
    return {
        "table": " x ".join(old.by),
        "ways": len(old.by),
        "cells": len(p),
        "hellinger": min(1.0, float(np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum() / 2))),
        "total_variation": min(1.0, float(np.abs(p - q).sum() / 2)),
    }


def _shares(new: Cells, old: Cells) -> tuple[Floats, Floats]:
    """The share of each cell in both tables, over the cells of either."""
    one, two = new.table, old.table
    for column in old.by:
        kinds = one.schema[column], two.schema[column]
        if kinds[0] != kinds[1]:
            shared = pl.Float64 if all(kind.is_numeric() for kind in kinds) else pl.String
            one, two = (table.with_columns(pl.col(column).cast(shared)) for table in (one, two))
    both = pl.concat(
        [
            one.select(*old.by, q=pl.col("total") / pl.col("total").sum(), p=0.0),
            two.select(*old.by, q=0.0, p=pl.col("total") / pl.col("total").sum()),
        ]
    )
    added = both.group_by(old.by, maintain_order=True).agg(pl.col("p", "q").sum())
    return added["q"].to_numpy(), added["p"].to_numpy()
