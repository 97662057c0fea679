"""A protected table as a folder: what may be published, and what stays inside. And the Python door to it."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.data.hierarchy import Hierarchy
from equipoise.data.records import Records
from equipoise.data.tables.ready_table import Ready
from equipoise.doors.report import render_table
from equipoise.files.argus import metadata_files
from equipoise.ground import system
from equipoise.ground.progress import Progress
from equipoise.methods.method import Rule, name_of
from equipoise.policies.dominance_check import parts_of
from equipoise.policies.policy_file import Job
from equipoise.provenance.fingerprint import hash_of, keyed_hash
from equipoise.provenance.recipe_file import RECIPE
from equipoise.provenance.seed_register import Register
from equipoise.releases.evidence import Signer, hashes, sealed, versions
from equipoise.releases.release import FORMAT, put_evidence, refuse_existing, staged
from equipoise.releases.tables import tabulate as flow
from equipoise.releases.tables.balance import TableRelease, weighed
from equipoise.releases.tables.balance import balance_table as flow_balance
from equipoise.releases.tables.table_recipe_file import table_text
from equipoise.releases.tables.table_register import audit_together, keep_table
from equipoise.releases.tables.tabulate import Tabulated


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
    register: str | Path | Register | None = None,
    sign: str | Path | None = None,
    progress: Progress | None = None,
) -> Tabulated:
    """Make a table with all its margins, protect it, audit what is published, and write it where `out` says.

    `rule` says which cells are sensitive ('p-percent:10% | min-count:3'); `method` is what to do about them:
    `tables.Suppress(rule)` unless told, `tables.Round`, `tables.CellKey` or `tables.Adjust`. `compare` names other
    methods ('round:5') that are measured beside it, for the map in the internal report. The rest are those of
    `eq.table`. A table whose audit fails raises RefusedError and nothing is written.

    `out` is written whole or not at all: `public/` (table, report, evidence) has nothing that tells sensitive cells
    from helpers, and no parameter of the rule; `private/` has statuses, audit, internal report and seed.

    With a `register` the table is audited together with the earlier tables of the same data that it names, refused
    where they give something away together, and kept there when it is written; random changes take its seed. `sign` is
    a private Ed25519 key (PEM) that signs the evidence.
    """
    place = Path(out) if out is not None else None
    if place is not None:
        refuse_existing(place, overwrite)
    book = register if isinstance(register, Register | None) else Register(register)
    known = book.table_seed(records) if book is not None else None
    seed = seed if known is None else known
    found = flow.tabulate(
        records, by, value, rule=rule, method=method, hierarchies=hierarchies, holding=holding, weight=weight,
        request=request, key=key, seed=seed, compare=compare, ready=ready, progress=progress,
    )  # fmt: skip
    by_weight = weight or records.roles.weight
    if book is not None:
        more = audit_together(book, records, found, by_weight)
        found = replace(found, notes=(*found.notes, *more))
    if place is not None:
        given = {"value": value, "hierarchies": hierarchies, "holding": holding, "weight": weight, "request": request}
        kept = {RECIPE: table_text(records, found, ready, given | {"key": key})}
        name = Path(records.source.path).name if records.source else "the table"
        file = partial(keep_table, book, records, found, weight=by_weight) if book is not None else None
        write(found, place, overwrite, name, records=records, kept=kept, sign=sign, file=file)
    return found


def balance_table(job: Job, folder: Path, overwrite: bool, progress: Progress | None = None) -> TableRelease:
    """Find the best protected table that a policy file asks for, and write it with the policy that makes it again."""
    refuse_existing(folder, overwrite)
    return flow_balance(job, folder, put=partial(_put, job, overwrite), progress=progress)


def _put(job: Job, overwrite: bool, made: TableRelease, records: Records) -> None:
    kept = {"policy.toml": made.policy_text, "journal.jsonl": "".join(line + "\n" for line in made.journal())}
    key = job.folder / job.output.sign if job.output.sign else None
    book = job.registered()
    file = partial(keep_table, book, records, made.table, weight=weighed(job, records)) if book else None
    write(
        made.table, made.folder, overwrite, made.source, records=records, kept=kept, title=made.title, sign=key,
        file=file,
    )  # fmt: skip


def write(
    found: Tabulated,
    folder: Path,
    overwrite: bool,
    source: str,
    *,
    records: Records,
    kept: Mapping[str, str] | None = None,
    title: str | None = None,
    sign: str | Path | None = None,
    file: Callable[[Path], None] | None = None,
) -> None:
    """Write the folder whole or not at all; `source` is the name of the file, `kept` are more private files.

    The `records` are those it was made from, of which the evidence has a keyed hash.

    `file` is called with the private folder before it is put in place: what is published was registered.
    """
    signer = Signer.load(sign) if sign is not None else None
    with staged(folder, overwrite) as stage:
        public, private = stage / "public", stage / "private"
        system.make_folder(public, private=False)
        system.make_folder(private, private=True)
        found.public.write_csv(public / "table.csv")
        found.public.write_parquet(public / "table.parquet")
        system.write(public / "report.html", render_table(found, source, public=True, title=title))
        told = put_evidence(public, _evidence(found, public, records), signer)
        found.internal.write_csv(private / "table.csv")
        system.write(private / "table.sbs", _sbs(found.internal, found.table.by))
        for name, text in metadata_files(found.table.axes, "table").items():
            system.write(private / name, text)
        found.audit.write_csv(private / "audit.csv")
        system.write(private / "report.html", render_table(found, source, public=False, title=title))
        system.write(private / "seed.json", json.dumps(_secret(found.seed, told)))
        for name, text in (kept or {}).items():
            system.write(private / name, text)
        for path in private.iterdir():
            system.restrict(path)
        if file is not None:
            file(private)


def _secret(seed: int, told: bytes) -> dict[str, Any]:
    """The seed, and the seal on the evidence under a key made from it."""
    key = _key(seed)
    return {"format": FORMAT, "seed": str(seed), "hash_key": key.hex(), "seal": sealed(told, key)}


def _key(seed: int) -> bytes:
    """The private key of the hashes and the seal of a table: made again with it."""
    return hashlib.sha256(f"equipoise table {seed}".encode()).digest()


def _evidence(found: Tabulated, public: Path, records: Records) -> dict[str, Any]:
    """What the public may check: the kind of rule without its parameters, how many cells, what was written.

    The hash of the input is keyed; how many records it has is not told, for that may be a cell.
    """
    files = ("table.csv", "table.parquet")
    return {
        "format": FORMAT,
        "made": datetime.now(UTC).date().isoformat(),
        "versions": versions(name_of(type(found.method)), *kinds(found)),
        "input": {"hmac_sha256": keyed_hash(records, _key(found.seed))},
        "table": {"by": list(found.table.by), "value": found.table.measured or "records"},
        "method": name_of(type(found.method)),
        "rule": kinds(found),
        "words": found.public_words,
        "cells": {"total": found.counts["cells"], "withheld": found.counts["withheld"]},
        "audit": "passed",
        "output": [{"file": name, "sha256": hash_of(public / name)} for name in files],
        "files": hashes(public),
    }


def kinds(found: Tabulated) -> list[str]:
    """The kinds of rule that were used, without parameters: offices keep these to themselves."""
    return list(dict.fromkeys(name_of(type(part)) for part in parts_of(found.rule)))


def _sbs(cells: pl.DataFrame, by: tuple[str, ...]) -> str:
    """A line per cell as tau-ARGUS writes them: labels, value, contributors, status number."""
    return cells.select(*by, "value", "contributors", "code").write_csv(include_header=False, quote_style="non_numeric")
