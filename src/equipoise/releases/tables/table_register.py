"""Tables of one data asset over time: each new one is audited together with those released before.

A withheld cell that follows from two tables together follows from neither alone, and a number that was rounded twice is
known better than either says. The register keeps, beside its seeds, the cells of every table with their protection
levels, and of those whose numbers were changed what the public can tell of each; a new one of the same quantity must
pass the audit with all of them. Random changes are drawn from one seed for all tables of the asset, so that a cell is
changed by its keys in the same way wherever it stands: one that would be changed in another way is refused.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.records import Records
from equipoise.ground.errors import DataError, RefusedError
from equipoise.methods.method import name_of
from equipoise.methods.protection_levels import levels
from equipoise.presentation.numbers import number
from equipoise.provenance.fingerprint import hash_of
from equipoise.provenance.seed_register import Register
from equipoise.releases.tables.stored_cells import CELLS, cells_of
from equipoise.releases.tables.tabulate import Tabulated
from equipoise.tables import difference
from equipoise.tables.audits.changed_intervals import SMALL
from equipoise.tables.audits.joint_audit import KnownTable, bounds, joint, kept, otherwise, read_back

LEVELS, BOUNDS = "levels.parquet", "bounds.parquet"
SLACK = 1e-6
"""Share of a level by which an interval may miss it."""


def audit_together(
    register: Register, records: Records, found: Tabulated, weight: str | None = None
) -> tuple[str, ...]:
    """Refuse a table that gives something away together with earlier ones; say what it was held against.

    No withheld cell of any of them may be computed exactly, and no sensitive one to within its protection level; of
    tables whose numbers were changed without a rule no small cell exactly; and no cell may be changed by other keys
    than before. Does not guard against tables of other quantities: they are not held against it, which is said. Cost:
    one audit of all.
    """
    every = register.tables(records)
    before = [entry for entry in every if _alike(entry, found, weight)]
    if before and found.withholds and not any("bounds" in entry for entry in before):
        exact, close, related = _withheld(register, found, before)
    elif before:
        exact, close, related = _jointly(register, found, before)
    else:
        return _said(0, len(every), True)
    if exact or close:
        what = f"{number(exact)} withheld cells exactly" if exact else f"{number(close)} sensitive cells too closely"
        what = what if found.withholds else what.replace("withheld", "small or sensitive")
        tip = "Protect them together with eq.protect_tables, or publish" if found.withholds else "Publish"
        raise RefusedError(
            f"Nothing was published: together with {_earlier(len(before))} anybody can compute {what}. {tip} the same "
            "groups as before."
        )
    return _said(len(before), len(every) - len(before), related)


def _earlier(many: int) -> str:
    return f"{number(many)} earlier {'table' if many == 1 else 'tables'} of this data"


def _said(held: int, left: int, related: bool) -> tuple[str, ...]:
    """What was audited and what was not."""
    told = (f"Audited together with {_earlier(held)}.",) if held else ()
    if held and not related:
        told = (*told, "All tables together have too many cells to use how they add up: shared cells were compared.")
    if left:
        what = "counts or adds up" if left == 1 else "count or add up"
        told = (*told, f"Not audited together with {_earlier(left)}, which {what} something else.")
    return told


def _withheld(register: Register, found: Tabulated, before: Sequence[Mapping[str, Any]]) -> tuple[int, int, bool]:
    """What follows from tables that withhold cells and change none; small counts as whole numbers."""
    places = [_place(register, entry) for entry in before]
    told = difference(found.table, [cells_of(place) for place in places])
    return int(told["exact"].sum()), int(told["exposed"].sum()) + _closer(told, places), True


def _jointly(register: Register, found: Tabulated, before: Sequence[Mapping[str, Any]]) -> tuple[int, int, bool]:
    """What follows where the numbers of some were changed."""
    new, earlier = known(found), [_recalled(register, entry) for entry in before]
    if other := otherwise(new, earlier):
        raise RefusedError(
            f"Nothing was published: {number(other)} cells were published before with another change. Whoever has both "
            "can average it out: take the record keys and the perturbation table of the first."
        )
    return joint([new, *earlier])


def known(found: Tabulated) -> KnownTable:
    """What the public can tell of each cell of a table, and which cells need protection."""
    table, nothing = found.table, np.zeros(len(found.table))
    low, high = bounds(table, not found.withholds)
    below, above = nothing, nothing
    few = table.known("contributors")
    guarded = np.isnan(table.told) if found.withholds else (few > 0) & (few < SMALL)
    if found.rule is not None:
        wanted, flagged = levels(found.rule, table), found.rule.flag(table).to_numpy()
        below, above = (np.where(flagged, wanted[side].to_numpy(), 0.0) for side in ("lower", "upper"))
        guarded = guarded if found.withholds else flagged
    return KnownTable(table, name_of(type(found.method)), table.told, low, high, guarded, below, above)


def _recalled(register: Register, entry: Mapping[str, Any]) -> KnownTable:
    """An earlier table as it was kept; of one that withholds cells the rest is known."""
    place = _place(register, entry)
    table = cells_of(place)
    if "bounds" in entry:
        return read_back(table, pl.read_parquet(place / BOUNDS), str(entry["method"]))
    hidden, (low, high) = np.isnan(table.told), bounds(table, False)
    labels = table.table.select(pl.col(table.by).cast(pl.String))
    rows = labels.join(pl.read_parquet(place / LEVELS), on=list(table.by), how="left", maintain_order="left")
    below, above = (rows[side].fill_null(0.0).to_numpy() for side in ("below", "above"))
    return KnownTable(table, "suppress", table.told, low, high, hidden, below, above)


def keep_table(register: Register, records: Records, found: Tabulated, private: Path, *, weight: str | None) -> None:
    """Keep the seed of a table that is released, and its cells from its private folder."""
    register.keep_table_seed(records, found.seed)
    entry = {"cells": hash_of(private / CELLS), "measured": found.table.measured, "weight": weight}
    stage = register.new_shelf()
    for file in (private / CELLS, private / "table.rda", *sorted(private.glob("*.hrc"))):
        if file.is_file():
            shutil.copy2(file, stage / file.name)
    if found.withholds:
        _levels(found).write_parquet(stage / LEVELS)
    else:
        kept(known(found)).write_parquet(stage / BOUNDS)
        entry |= {"bounds": hash_of(stage / BOUNDS), "method": name_of(type(found.method))}
    register.shelve(stage, str(_folder(entry)))
    register.record_table(records, entry)


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


def _folder(entry: Mapping[str, Any]) -> str:
    """What was changed is kept by what the public can tell of it: other noise on the same cells is another table."""
    return str(entry.get("bounds", entry["cells"]))


def _place(register: Register, entry: Mapping[str, Any]) -> Path:
    place = register.shelf / _folder(entry)
    parts = {CELLS: entry["cells"], **({BOUNDS: entry["bounds"]} if "bounds" in entry else {})}
    if any(not (place / name).is_file() or hash_of(place / name) != said for name, said in parts.items()):
        raise DataError("The register names an earlier table whose cells are not beside it any more, or were changed.")
    return place
