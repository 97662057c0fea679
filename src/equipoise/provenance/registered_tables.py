"""Tables that were released of one data asset: their cells, beside the register, and what the public can infer of each.

The register names every table of the asset; a private folder beside it has the cells with their protection levels, and
of tables whose numbers were changed what the public can tell of each cell, so that later tables are audited with them.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.aligned_files import in_order
from equipoise.data.cells import amount
from equipoise.data.records import Law, Records
from equipoise.data.tables.count_table import table
from equipoise.data.tables.record_sets import Members, counted_members
from equipoise.data.tables.table import Table
from equipoise.files import read
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import DataError, ParameterError
from equipoise.provenance.fingerprint import hash_of
from equipoise.provenance.people_tokens import CONTENT, ID, PERSON
from equipoise.provenance.seed_register import EarlierRelease, Register, RegisterView
from equipoise.tables.audits import KnownTable, bounds, frame, read_back

CELLS, LEVELS, BOUNDS = "table.sbs", "levels.parquet", "bounds.parquet"
"""Private files: every cell with its status, the levels of sensitive ones, what the public can infer of each."""
MEMBERS, INNER = "members.parquet", "inner.parquet"
"""Private files: the inner cell of each record, in the order of the tokens of its people, with a token of what it adds;
and a number of its holding where there are any; and the labels of these cells."""
AMOUNTS = 1
"""Step of the draws that make tokens of what records add."""
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


def with_earlier_tables(new: Table, register: Register | None, records: Records, *, weight: str | None) -> Table:
    """The table, counted from these records, with the earlier tables of the same people and kind of quantity beside it.

    Which records the cells of all of them hold is told by the tokens of people. A table whose records are not known is
    taken for one of the same records where it adds up the same column, and left out where it does not.
    """
    if register is not None and "gross" in new.more.columns:
        raise ParameterError(
            "A register audits a cell by the parts of it in earlier tables, which say nothing of the rest where values "
            "may be negative: leave the register out, or release gains and losses as two tables."
        )
    if register is None or not (entries := register.tables(records)):
        return new
    view = register.view(records)
    members = _own(new, view)
    releases = {_folder(one.entry["table"]): one for one in view.earlier if one.entry["kind"] == "table"}
    views: list[KnownTable] = []
    rows: list[tuple[pl.DataFrame | None, EarlierRelease | None]] = []
    for entry in entries:
        earlier = releases.get(_folder(entry))
        kept = _members(register, entry, earlier) if members is not None and earlier is not None else None
        same = (entry.get("measured"), entry.get("weight")) == (new.measured, weight)
        if kept is not None and (entry.get("measured") is None) == (new.measured is None):
            views.append(recalled(register, entry))
            rows.append((kept, earlier))
        elif same and (earlier is not None or "members" not in entry):
            views.append(recalled(register, entry))
            rows.append((None, earlier))
    if members is None:
        return replace(new, beside=tuple(views))
    units = _units(rows, len(members.units))
    placed = (_placed(one, kept, unit, members) for one, (kept, _), unit in zip(views, rows, units, strict=True))
    return replace(new, behind=members, beside=tuple(placed))


def _own(new: Table, view: RegisterView) -> Members | None:
    """Who is in a new table, by the rows of its file, with tokens of what each adds under the key of the register."""
    name = view.tokens.records.roles.id
    ordered = in_order(view.tokens.records)
    members = counted_members(new, None if ordered or not name else view.tokens.table[name])
    if members is None or len(members.units) != view.tokens.table.height or not (ordered or name):
        return None
    amounts = view.tokens.draws.child(AMOUNTS).tokens(pl.Series(members.amounts))
    return replace(members, units=np.arange(len(amounts)), amounts=amounts, space=view)


def _members(register: Register, entry: Entry, earlier: EarlierRelease) -> pl.DataFrame | None:
    """The labels of the inner cell of each record of an earlier table, the token of what it adds, and its holding."""
    place = _place(register, entry)
    if "members" not in entry:
        return None
    rows, cells = pl.read_parquet(place / MEMBERS), pl.read_parquet(place / INNER)
    if rows.height != int(earlier.entry["records"]):
        return None
    more = {"amount": "__eq_amount", "holder": "__eq_holder"}
    return cells[rows["cell"]].with_columns(rows[name].alias(own) for name, own in more.items() if name in rows.columns)


def _units(rows: Sequence[tuple[pl.DataFrame | None, EarlierRelease | None]], size: int) -> list[Integers]:
    """The unit of each record of each earlier table: its row in the new file, else a number by its token."""
    units, absent = [], []
    for kept, earlier in rows:
        if kept is None or earlier is None:
            units.append(np.zeros(0, dtype=np.int64))
            absent.append(pl.Series(dtype=pl.String))
            continue
        unit = np.full(kept.height, -1, dtype=np.int64)
        present = np.flatnonzero((earlier.places >= 0) & (earlier.places < kept.height))
        unit[earlier.places[present]] = present
        basis = next(name for name in (ID, CONTENT, PERSON) if name in earlier.table.columns)
        tokens = earlier.table[basis].head(kept.height).cast(pl.String)
        units.append(unit)
        absent.append((pl.lit(basis) + tokens).pipe(pl.select).to_series().filter(pl.Series(unit < 0)))
    numbers = pl.concat(absent).unique(maintain_order=True) if absent else pl.Series(dtype=pl.String)
    table = pl.DataFrame({"token": numbers, "number": size + np.arange(len(numbers))})
    for unit, tokens in zip(units, absent, strict=True):
        unit[unit < 0] = tokens.alias("token").to_frame().join(table, on="token", maintain_order="left")["number"]
    return units


def _placed(view: KnownTable, kept: pl.DataFrame | None, units: Integers, own: Members) -> KnownTable:
    """An earlier table that knows which records its cells hold."""
    if kept is None:
        return view
    labels = view.table.table.select(pl.col(view.table.by).cast(pl.String)).with_row_index("__eq_row")
    cells = kept.join(labels, on=list(view.table.by), how="left", maintain_order="left")["__eq_row"]
    if cells.null_count():
        return view
    holders = kept["__eq_holder"].to_numpy() if "__eq_holder" in kept.columns else None
    amounts = kept["__eq_amount"].to_numpy()
    members = Members(units, cells.cast(pl.Int64).to_numpy(), amounts, None, own.space, holders=holders)
    return replace(view, table=replace(view.table, behind=members))


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
    entry |= _keep_members(released.table, view, stage)
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


def _keep_members(cells: Table, view: RegisterView, stage: Path) -> dict[str, Any]:
    """Write who is in which inner cell; nothing where that is not known."""
    members = cells.behind if isinstance(cells.behind, Members) else _own(cells, view)
    if members is None:
        return {}
    inner, number = np.unique(members.cells, return_inverse=True)
    cells.table.select(pl.col(cells.by).cast(pl.String))[inner].write_parquet(stage / INNER)
    rows = pl.DataFrame({"cell": number.astype(np.uint32), "amount": members.amounts})
    rows = rows if members.holders is None else rows.with_columns(holder=pl.Series(members.holders))
    rows.write_parquet(stage / MEMBERS)
    return {"members": hash_of(stage / MEMBERS)}


def _levels(released: KnownTable) -> pl.DataFrame:
    """How far each sensitive cell must stay uncertain, by its labels."""
    labels = released.table.table.select(pl.col(released.table.by).cast(pl.String))
    levels = labels.with_columns(below=pl.Series(released.below), above=pl.Series(released.above))
    return levels.filter(released.table.more["status"] == "sensitive")


def recalled(register: Register, entry: Entry) -> KnownTable:
    """An earlier table as it was kept; of one that suppresses cells the rest is known."""
    place = _place(register, entry)
    cells = replace(cells_of(place), measured=entry.get("measured"))
    if "bounds" in entry:
        return read_back(cells, pl.read_parquet(place / BOUNDS), str(entry["method"]))
    hidden, (low, high) = np.isnan(cells.published_values), bounds(cells, False)
    labels = cells.table.select(pl.col(cells.by).cast(pl.String))
    rows = labels.join(pl.read_parquet(place / LEVELS), on=list(cells.by), how="left", maintain_order="left")
    below, above = (rows[side].fill_null(0.0).to_numpy() for side in ("below", "above"))
    return KnownTable(cells, "suppress", cells.published_values, low, high, hidden, below, above)


def _folder(entry: Entry) -> str:
    """What was changed is kept by what the public can tell of it: other noise on the same cells is another table.

    So are the same numbers of other records.
    """
    members = f"-{entry['members'][:16]}" if "members" in entry else ""
    return f"{entry.get('bounds', entry['cells'])}{members}"


def _place(register: Register, entry: Entry) -> Path:
    place = register.shelf / _folder(entry)
    hashes = {CELLS: entry["cells"], BOUNDS: entry.get("bounds"), MEMBERS: entry.get("members")}
    hashes = {name: digest for name, digest in hashes.items() if digest is not None}
    if any(not (place / name).is_file() or hash_of(place / name) != digest for name, digest in hashes.items()):
        raise DataError("The register names an earlier table whose cells are not beside it any more, or were changed.")
    return place
