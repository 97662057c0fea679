"""Tables that were released of one data asset: their cells, beside the register, and what the public can infer of each.

The register names every table of the asset; a private folder beside it has the cells with their protection levels, and
of tables whose numbers were changed what the public can tell of each cell, so that later tables are audited with them.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import amount
from equipoise.data.records import Law, Records
from equipoise.data.tables.count_table import table
from equipoise.data.tables.table import Table
from equipoise.files import read
from equipoise.ground.errors import DataError
from equipoise.provenance.fingerprint import hash_of
from equipoise.provenance.people_tokens import CONTENT
from equipoise.provenance.seed_register import Register
from equipoise.tables.audits import KnownTable, bounds, frame, read_back

CELLS, LEVELS, BOUNDS = "table.sbs", "levels.parquet", "bounds.parquet"
"""Private files: every cell with its status, the levels of sensitive ones, what the public can infer of each."""
Entry = Mapping[str, Any]


def cells_of(private: Path) -> Table:
    """The table with its statuses: suppressed is what is sensitive or secondary."""
    cells = table(read(private / CELLS), ready=True)
    if "published" in cells.more.columns:
        return cells
    marked = "sensitive" in cells.more.columns
    hidden = cells.more["sensitive"].fill_null(value=False).to_numpy() if marked else np.zeros(len(cells), dtype=bool)
    status = pl.Series(np.where(hidden, "sensitive", "published"))
    return cells.protected(np.where(hidden, np.nan, amount(cells)), status, Law("suppress", (), "as it was released"))


def earlier_tables(
    register: Register, records: Records, *, measured: str | None, weight: str | None
) -> tuple[list[KnownTable], int]:
    """The tables of the asset that add up the same quantity, and the number of the others."""
    entries = register.tables(records)
    same = [entry for entry in entries if (entry.get("measured"), entry.get("weight")) == (measured, weight)]
    return [recalled(register, entry) for entry in same], len(entries) - len(same)


def keep_table(
    register: Register, records: Records, released: KnownTable, *, private: Path, seed: int, weight: str | None,
    title: str,
) -> None:  # fmt: skip
    """Keep a table that is released: the seed, its cells from its private folder, and whom it counts."""
    view = register.view(records)
    entry: dict[str, Any] = {"cells": hash_of(private / CELLS), "measured": released.table.measured, "weight": weight}
    stage = register.new_shelf()
    for file in (private / CELLS, private / "table.rda", *sorted(private.glob("*.hrc"))):
        if file.is_file():
            shutil.copy2(file, stage / file.name)
    if released.method == "suppress":
        _levels(released).write_parquet(stage / LEVELS)
    else:
        frame(released).write_parquet(stage / BOUNDS)
        entry |= {"bounds": hash_of(stage / BOUNDS), "method": released.method}
    register.shelve(stage, _folder(entry))
    by = list(released.table.by)
    facts = {
        "kind": "table",
        "title": title,
        "masks": [released.method],
        "keys": by,
        "columns": by,
        "table": entry,
    }
    true = view.tokens.of_true_values(view.tokens.bases.get(CONTENT, ()))
    register.keep(view, pl.DataFrame({**view.tokens.all(), **true}), facts, {"table": entry, "seed": seed})


def _levels(released: KnownTable) -> pl.DataFrame:
    """How far each sensitive cell must stay uncertain, by its labels."""
    labels = released.table.table.select(pl.col(released.table.by).cast(pl.String))
    levels = labels.with_columns(below=pl.Series(released.below), above=pl.Series(released.above))
    return levels.filter(released.table.more["status"] == "sensitive")


def recalled(register: Register, entry: Entry) -> KnownTable:
    """An earlier table as it was kept; of one that suppresses cells the rest is known."""
    place = _place(register, entry)
    cells = cells_of(place)
    if "bounds" in entry:
        return read_back(cells, pl.read_parquet(place / BOUNDS), str(entry["method"]))
    hidden, (low, high) = np.isnan(cells.published_values), bounds(cells, False)
    labels = cells.table.select(pl.col(cells.by).cast(pl.String))
    rows = labels.join(pl.read_parquet(place / LEVELS), on=list(cells.by), how="left", maintain_order="left")
    below, above = (rows[side].fill_null(0.0).to_numpy() for side in ("below", "above"))
    return KnownTable(cells, "suppress", cells.published_values, low, high, hidden, below, above)


def _folder(entry: Entry) -> str:
    """What was changed is kept by what the public can tell of it: other noise on the same cells is another table."""
    return str(entry.get("bounds", entry["cells"]))


def _place(register: Register, entry: Entry) -> Path:
    place = register.shelf / _folder(entry)
    hashes = {CELLS: entry["cells"], **({BOUNDS: entry["bounds"]} if "bounds" in entry else {})}
    if any(not (place / name).is_file() or hash_of(place / name) != digest for name, digest in hashes.items()):
        raise DataError("The register names an earlier table whose cells are not beside it any more, or were changed.")
    return place
