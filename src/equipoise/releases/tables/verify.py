"""Verify a released table: its files agree, its audit holds again, and it is made again from the original."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.data.records import Records
from equipoise.ground.errors import EquipoiseError
from equipoise.provenance.findings import Finding, failing
from equipoise.provenance.fingerprint import content_of, keyed_hash
from equipoise.releases.replay import read_secret
from equipoise.releases.tables.stored_cells import CELLS, cells_of
from equipoise.releases.tables.table_recipe_file import table_again
from equipoise.tables import audit

NAME = "table.csv"
LOOSE = 1e-6
"""How far the ends of an interval may differ, as a share."""


def table_checks(
    public: Path, private: Path | None, evidence: dict[str, Any], original: Records | str | Path | None
) -> Iterator[Finding]:
    """What can be checked of a table beyond hashes and signature. Cost: that of its audit, and of making it again."""
    yield _alike(public)
    if private is None:
        yield Finding("again", None, "The table was not made again: private/ is not here.")
        return
    yield _numbers(public, private)
    yield _audited(private, evidence)
    yield _again(public, private, evidence, original)


def _alike(public: Path) -> Finding:
    """The same table in both formats."""
    try:
        one, two = pl.read_csv(public / NAME, infer_schema_length=None), pl.read_parquet(public / "table.parquet")
    except (OSError, pl.exceptions.PolarsError):
        return Finding("formats", False, "The released table cannot be read.")
    same = content_of(one) == content_of(two)
    return failing("formats", [] if same else ["table.csv and table.parquet differ."], "Both formats hold one table.")


def _numbers(public: Path, private: Path) -> Finding:
    """What is published is what the private table says of each cell."""
    try:
        shown = pl.read_csv(public / NAME, infer_schema_length=None)
        inside = pl.read_csv(private / NAME, infer_schema_length=None)
        kept = inside.select(c for c in shown.columns if c != "status")
        faults = (
            [] if content_of(shown.drop("status")) == content_of(kept) else ["The numbers are not those of private/."]
        )
        hidden = shown.filter((pl.col("status") == "withheld") != pl.col("published").is_null()).height
    except (OSError, pl.exceptions.PolarsError):
        return Finding("numbers", False, "The private table cannot be read, or has other columns.")
    faults += ["A withheld cell has a number, or a published one has none."] if hidden else []
    return failing("numbers", faults, "Every number is that of the private table.")


def _audited(private: Path, evidence: dict[str, Any]) -> Finding:
    """No withheld cell can be computed, and the intervals are those of the audit that was written."""
    if evidence.get("method") != "suppress":
        return Finding("audit", None, "Numbers were changed: they are audited when the table is made again.")
    try:
        table = cells_of(private)
        found, said = audit(table), pl.read_csv(private / "audit.csv", infer_schema_length=None)
    except (EquipoiseError, OSError, pl.exceptions.PolarsError):
        return Finding("audit", None, f"{CELLS} could not be read back.")
    faults = ["A withheld cell can be computed exactly."] if found["exact"].any() else []
    if said.height != found.height:
        faults.append("Other cells are withheld than were audited.")
    elif said.height and not _close(found, said, table.by):
        faults.append("The intervals of withheld cells are not those of the audit.")
    return failing("audit", faults, "Audited again, no withheld cell can be computed.")


def _close(found: pl.DataFrame, said: pl.DataFrame, by: tuple[str, ...]) -> bool:
    names = dict.fromkeys(by, pl.String)
    one, two = (frame.cast(names).sort(by).select(*by, "lower", "upper") for frame in (found, said))  # type: ignore[arg-type]
    if not one.select(by).equals(two.select(by)):
        return False
    gaps = [(one[end] - two[end]).abs() <= LOOSE * (1 + two[end].abs()) for end in ("lower", "upper")]
    return all(bool(gap.fill_null(value=True).all()) for gap in gaps)


def _again(public: Path, private: Path, evidence: dict[str, Any], original: Records | str | Path | None) -> Finding:
    try:
        made, records = table_again(private, original)
    except EquipoiseError as error:
        return Finding("again", None, f"The table was not made again: {str(error).rstrip('.')}.")
    said = evidence.get("input", {}).get("hmac_sha256")
    if said is not None and keyed_hash(records, bytes.fromhex(read_secret(private)["hash_key"])) != said:
        return Finding("original", False, "The original is not the file that the table was made from.")
    shown = pl.read_csv(public / NAME, infer_schema_length=None)
    if content_of(made.public) == content_of(shown):
        return Finding("again", True, "Made again from the original and audited, the table is the same.", proof=True)
    return Finding("again", False, "Made again from the original, the table is another one.")
