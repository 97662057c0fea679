"""Tables of one data asset over time: each new one is audited together with those released before.

A withheld cell that follows from two tables together follows from neither alone. The register keeps, beside its seeds,
the cells of every table whose cells were withheld, with their protection levels; a new one of the same quantity must
pass the audit with all of them. Random changes are drawn from one seed for all tables of the asset, so that a cell is
changed in the same way wherever it stands.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.core.errors import DataError, RefusedError
from equipoise.core.records import Records
from equipoise.core.sensitivity import levels
from equipoise.flow.fingerprint import hash_of
from equipoise.flow.register import Register
from equipoise.flow.table_cells import CELLS, cells_of
from equipoise.flow.tabulate import Tabulated
from equipoise.flow.wording import number
from equipoise.tables import difference

LEVELS = "levels.parquet"
SLACK = 1e-6
"""Share of a level by which an interval may miss it."""


def audit_together(register: Register, records: Records, found: Tabulated, weight: str | None = None) -> int:
    """Refuse a table that gives something away together with earlier ones; say how many it was held against.

    No withheld cell of any of them may be computed exactly, and no sensitive one to within its protection level. Does
    not guard against tables whose numbers were changed: they are not held against others. Cost: one audit of all.
    """
    if not found.withholds:
        return 0
    before = [entry for entry in register.tables(records) if _alike(entry, found, weight)]
    if not before:
        return 0
    places = [_place(register, entry) for entry in before]
    told = difference(found.table, [cells_of(place) for place in places])
    exact, close = int(told["exact"].sum()), int(told["exposed"].sum()) + _closer(told, places)
    if exact or close:
        many = f"{number(len(before))} earlier {'table' if len(before) == 1 else 'tables'} of this data"
        what = f"{number(exact)} withheld cells exactly" if exact else f"{number(close)} sensitive cells too closely"
        raise RefusedError(
            f"Nothing was published: together with {many} anybody can compute {what}. Protect them together with "
            "eq.protect_tables, or publish the same groups as before."
        )
    return len(before)


def keep_table(register: Register, records: Records, found: Tabulated, private: Path, *, weight: str | None) -> None:
    """Keep the seed of a table that is released and, where cells are withheld, its cells, from its private folder."""
    register.keep_table_seed(records, found.seed)
    if not found.withholds:
        return
    name = hash_of(private / CELLS)
    if not (register.shelf / name).is_dir():
        stage = register.new_shelf()
        for file in (private / CELLS, private / "table.rda", *sorted(private.glob("*.hrc"))):
            if file.is_file():
                shutil.copy2(file, stage / file.name)
        _levels(found).write_parquet(stage / LEVELS)
        register.shelve(stage, name)
    register.record_table(records, {"cells": name, "measured": found.table.measured, "weight": weight})


def _levels(found: Tabulated) -> pl.DataFrame:
    """How far each sensitive cell must stay uncertain, by its labels."""
    labels = found.table.table.select(pl.col(found.table.by).cast(pl.String))
    if found.rule is None:
        return labels.clear().with_columns(below=pl.lit(0.0), above=pl.lit(0.0))
    known = levels(found.rule, found.table)
    return labels.with_columns(below=known["lower"], above=known["upper"]).filter(found.statuses == "sensitive")


def _closer(told: pl.DataFrame, places: Sequence[Path]) -> int:
    """Sensitive cells of earlier tables that all of them together show to within their levels."""
    return sum(_shown(told.filter(pl.col("table") == i), place) for i, place in enumerate(places, start=1))


def _shown(told: pl.DataFrame, place: Path) -> int:
    known = pl.read_parquet(place / LEVELS)
    by = [name for name in known.columns if name not in ("below", "above")]
    both = told.with_columns(pl.col(by).cast(pl.String)).join(known, on=by, how="inner")
    high = pl.col("upper") < pl.col("value") + pl.col("above") * (1 - SLACK) - SLACK
    low = pl.col("lower") > pl.col("value") - pl.col("below") * (1 - SLACK) + SLACK
    return both.filter(high | low).height


def _alike(entry: Mapping[str, Any], found: Tabulated, weight: str | None) -> bool:
    """Whether two tables add up the same quantity."""
    return bool(entry.get("measured") == found.table.measured and entry.get("weight") == weight)


def _place(register: Register, entry: Mapping[str, Any]) -> Path:
    place = register.shelf / str(entry["cells"])
    if not (place / CELLS).is_file() or hash_of(place / CELLS) != entry["cells"]:
        raise DataError("The register names an earlier table whose cells are not beside it any more, or were changed.")
    return place
