"""A protected table as a folder: what may be published, and what stays inside. And the Python door to it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.core import machine
from equipoise.core.hierarchy import Hierarchy
from equipoise.core.method import Rule, name_of
from equipoise.core.progress import Progress
from equipoise.core.ready import Ready
from equipoise.core.records import Records
from equipoise.doors.report import render_table
from equipoise.files.argus import described
from equipoise.flow import tabulate as flow
from equipoise.flow.fingerprint import hash_of
from equipoise.flow.job import Job
from equipoise.flow.release import FORMAT, refuse_existing, staged
from equipoise.flow.rule_doctor import parts_of
from equipoise.flow.table_balance import TableRelease
from equipoise.flow.table_balance import balance_table as flow_balance
from equipoise.flow.tabulate import Tabulated


def tabulate(
    records: Records,
    by: str | Sequence[str] = (),
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
    compare: Sequence[Any] = (),
    ready: bool | Ready = False,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Tabulated:
    """Make a table with all its margins, protect it, audit what is published, and write it where `out` says.

    `rule` says which cells are sensitive ('p-percent:10% | min-count:3'); `method` is what to do about them:
    `tables.Suppress(rule)` unless told, `tables.Round`, `tables.CellKey` or `tables.Adjust`. `compare` names other
    methods ('round:5') that are measured beside it, for the map in the internal report. The rest are those of
    `eq.table`. A table whose audit fails raises RefusedError and nothing is written.

    `out` is written whole or not at all: `public/` (table, report, evidence) has nothing that tells sensitive cells
    from helpers, and no parameter of the rule; `private/` has statuses, audit, internal report and seed.
    """
    place = Path(out) if out is not None else None
    if place is not None:
        refuse_existing(place, overwrite)
    found = flow.tabulate(
        records, by, value, rule=rule, method=method, hierarchies=hierarchies, holding=holding, weight=weight,
        request=request, key=key, seed=seed, compare=compare, ready=ready, progress=progress,
    )  # fmt: skip
    if place is not None:
        write(found, place, overwrite, Path(records.source.path).name if records.source else "the table")
    return found


def balance_table(job: Job, folder: Path, overwrite: bool, progress: Progress | None = None) -> TableRelease:
    """Find the best protected table that a policy file asks for, and write it with the policy that makes it again."""
    refuse_existing(folder, overwrite)
    made = replace(flow_balance(job, progress), folder=folder)
    kept = {"policy.toml": made.policy_text, "journal.jsonl": "".join(line + "\n" for line in made.journal())}
    write(made.table, folder, overwrite, made.source, kept=kept, title=made.title)
    return made


def write(
    found: Tabulated,
    folder: Path,
    overwrite: bool,
    source: str,
    *,
    kept: Mapping[str, str] | None = None,
    title: str | None = None,
) -> None:
    """Write the folder whole or not at all; `source` is the name of the file, `kept` are more private files."""
    with staged(folder, overwrite) as stage:
        public, private = stage / "public", stage / "private"
        machine.make_folder(public, private=False)
        machine.make_folder(private, private=True)
        found.public.write_csv(public / "table.csv")
        found.public.write_parquet(public / "table.parquet")
        machine.write(public / "report.html", render_table(found, source, public=True, title=title))
        machine.write(public / "evidence.json", json.dumps(_evidence(found, public), indent=2, allow_nan=False) + "\n")
        found.internal.write_csv(private / "table.csv")
        machine.write(private / "table.sbs", _sbs(found.internal, found.table.by))
        for name, text in described(found.table.axes, "table").items():
            machine.write(private / name, text)
        found.audit.write_csv(private / "audit.csv")
        machine.write(private / "report.html", render_table(found, source, public=False, title=title))
        machine.write(private / "seed.json", json.dumps({"format": FORMAT, "seed": str(found.seed)}))
        for name, text in (kept or {}).items():
            machine.write(private / name, text)
        for file in private.iterdir():
            machine.restrict(file)


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
