"""A protected table as a folder: what may be published, and what stays inside. And the Python door to it."""

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.core.hierarchy import Hierarchy
from equipoise.core.method import Rule, name_of
from equipoise.core.records import Records
from equipoise.doors.report import render_table
from equipoise.flow import tabulate as flow
from equipoise.flow.fingerprint import hash_of
from equipoise.flow.release import FORMAT, refuse_existing, staged
from equipoise.flow.rule_doctor import parts_of
from equipoise.flow.tabulate import Tabulated


def tabulate(
    records: Records,
    by: str | Sequence[str],
    value: str | None = None,
    *,
    rule: Rule | str | None = None,
    method: Any = None,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    holding: str | None = None,
    weight: str | None = None,
    request: str | None = None,
    key: str | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
) -> Tabulated:
    """Make a table with all its margins, protect it, audit what is published, and write it where `out` says.

    `rule` says which cells are sensitive ('p-percent:10% | min-count:3'); `method` is what to do about them:
    `tables.Suppress(rule)` unless told, `tables.Round` or `tables.CellKey`. The rest are those of `eq.table`. A
    table whose audit fails raises RefusedError and nothing is written.

    `out` is written whole or not at all: `public/` (table, report, evidence) has nothing that tells sensitive cells
    from helpers, and no parameter of the rule; `private/` has statuses, audit, internal report and seed.
    """
    place = Path(out) if out is not None else None
    if place is not None:
        refuse_existing(place, overwrite)
    found = flow.tabulate(
        records, by, value, rule=rule, method=method, hierarchies=hierarchies, holding=holding, weight=weight,
        request=request, key=key, seed=seed,
    )  # fmt: skip
    if place is not None:
        write(found, place, overwrite, Path(records.source.path).name if records.source else "the table")
    return found


def write(found: Tabulated, folder: Path, overwrite: bool, source: str) -> None:
    """Write the folder whole or not at all; `source` is the name of the file."""
    with staged(folder, overwrite) as stage:
        public, private = stage / "public", stage / "private"
        public.mkdir(mode=0o755)
        private.mkdir(mode=0o700)
        found.public.write_csv(public / "table.csv")
        found.public.write_parquet(public / "table.parquet")
        _put(public / "report.html", render_table(found, source, public=True))
        _put(public / "evidence.json", json.dumps(_evidence(found, public), indent=2, allow_nan=False) + "\n")
        found.internal.write_csv(private / "table.csv")
        _put(private / "table.sbs", _sbs(found.internal, found.table.by))
        found.audit.write_csv(private / "audit.csv")
        _put(private / "report.html", render_table(found, source, public=False))
        _put(private / "seed.json", json.dumps({"format": FORMAT, "seed": str(found.seed)}))
        for file in private.iterdir():
            file.chmod(0o600)


def _evidence(found: Tabulated, public: Path) -> dict[str, Any]:
    """What the public may check: the kind of rule without its parameters, how many cells, what was written."""
    files = ("table.csv", "table.parquet")
    return {
        "format": FORMAT,
        "made": datetime.now(UTC).date().isoformat(),
        "versions": {name: version(name) for name in ("equipoise", "polars", "numpy")},
        "table": {"by": list(found.table.by), "value": found.table.measured or "records"},
        "method": name_of(type(found.method)),
        "rule": kinds(found),
        "words": found.public_words,
        "cells": {"total": found.counts["cells"], "withheld": found.counts["withheld"]},
        "audit": "passed",
        "output": [{"file": name, "sha256": hash_of(public / name)} for name in files],
    }


def kinds(found: Tabulated) -> list[str]:
    """The kinds of rule that were used, without parameters: offices keep these to themselves."""
    return list(dict.fromkeys(name_of(type(part)) for part in parts_of(found.rule)))


def _sbs(cells: pl.DataFrame, by: tuple[str, ...]) -> str:
    """A line per cell as tau-ARGUS writes them: labels, value, contributors, status number."""
    return cells.select(*by, "value", "contributors", "code").write_csv(include_header=False, quote_style="non_numeric")


def _put(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
