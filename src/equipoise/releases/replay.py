"""Replay: make a release of records or a table again, from its private folder and the original, record by record."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from equipoise.data import engines
from equipoise.data.records import TRACED_ROW, Records
from equipoise.data.roles import Roles, beside
from equipoise.files import read
from equipoise.ground import system
from equipoise.ground.errors import DataError, EquipoiseError
from equipoise.ground.randomness import new_seed
from equipoise.inspection.direct_identifiers import without_direct
from equipoise.intrusion.who_is_who import with_ids
from equipoise.methods.method import Measure
from equipoise.policies.policy_file import Job
from equipoise.provenance.fingerprint import hash_of, keyed_hash
from equipoise.provenance.recipe_file import RECIPE, StoredTable, read_recipe
from equipoise.recipe.recipe import Recipe
from equipoise.releases.release import Release, release, write_data
from equipoise.releases.release_order import in_release_order
from equipoise.releases.reopen import evidence_of_folder, reopen
from equipoise.releases.table_release import TableCase
from equipoise.releases.tabulate import tabulate
from equipoise.releases.tabulated import Tabulated

MADE_AGAIN = (
    "The release was made again from its private folder, with every record followed through the masks: it is known for "
    "certain whose record is whose, nothing is estimated."
)


@dataclass(frozen=True)
class Again:
    """What a private folder says a release was made of.

    `measures` are those that a file can name.
    """

    job: Job
    given: Records
    recipe: Recipe
    draw: int
    measures: tuple[Measure, ...]

    @property
    def records(self) -> Records:
        """The original records as masks see them."""
        return without_direct(self.given)


def again(folder: str | Path, original: Records | str | Path | None = None) -> Again:
    """Read the private side of a release folder, and the original file: that of the policy unless one is given."""
    private = Path(folder) / "private"
    recipe, secret = read_recipe(private / RECIPE), read_secret(private)
    if isinstance(recipe, StoredTable):
        raise DataError(f"The folder {str(folder)!r} holds a table: make it again with `equipoise balance` or `table`.")
    job = Job.load(private / "policy.toml")
    records = original if isinstance(original, Records) else _at(job, original).read()
    return Again(job, records, Recipe(recipe.masks, int(secret["seed"])), recipe.draw, _measures(job, recipe.measures))


def table_again(private: Path, original: Records | str | Path | None = None) -> tuple[Tabulated, Records]:
    """Make, protect and audit a table once more, from the original that the folder names unless one is given."""
    if (private / "policy.toml").is_file():
        if isinstance(original, Records):
            raise DataError("A table of a policy is made again from a file, not from records in memory.")
        job = _at(Job.load(private / "policy.toml"), original)
        records, seed = job.read(), job.seed()
        return TableCase(job, records).again(new_seed() if seed is None else seed), records
    recipe = read_recipe(private / RECIPE)
    if not isinstance(recipe, StoredTable):
        raise DataError(f"Cannot read {str(private / RECIPE)!r}: it does not say how the table was made.")
    records = original if isinstance(original, Records) else _records(recipe, original, private)
    return tabulate(records, seed=int(read_secret(private)["seed"]), **recipe.options), records


def _records(recipe: StoredTable, original: str | Path | None, private: Path) -> Records:
    path = original or recipe.path
    if not path:
        raise DataError("The table was made from records in memory: give the original.")
    return read(path, Roles.from_plain(recipe.roles, private))


def _at(job: Job, original: str | Path | None) -> Job:
    """The job, reading another file where one is given."""
    path = None if original is None else str(system.without_links(original))
    return job if path is None else replace(job, data=replace(job.data, path=path))


def replay(
    folder: str | Path, out: str | Path, *, original: Records | str | Path | None = None, overwrite: bool = False
) -> Release:
    """Make a release again in another folder: the same draw of the same recipe, measured and judged once more.

    The original is the file that the policy names unless one is given. With the same versions and engine the public
    data comes out byte for byte, else with the same content. `private/replay.py` calls this.
    """
    first = again(folder, original)
    text = (Path(folder) / "private" / "policy.toml").read_text(encoding="utf-8")
    return release(
        first.given, first.recipe, first.job.policy(), out, format=data_format(Path(folder)), overwrite=overwrite,
        measures=first.measures, title=first.job.title, policy_text=text, draw=first.draw,
    )  # fmt: skip


def data_format(folder: Path) -> str:
    """The format that the released data was written in."""
    file = next((p for p in sorted((folder / "public").glob("data.*")) if p.suffix not in (".cdl", ".rda")), None)
    if file is None:
        raise DataError(f"The folder {str(folder)!r} has no released data.")
    return file.name.partition(".")[2]


def read_secret(private: Path) -> dict[str, Any]:
    """The seed, the key of the keyed hashes and the seal."""
    try:
        secret = dict(json.loads((private / "seed.json").read_text(encoding="utf-8")))
        int(secret["seed"])
        bytes.fromhex(secret.get("hash_key", ""))
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"Cannot read {str(private / 'seed.json')!r}: it is not the seed of a release.") from None
    return secret


def _measures(job: Job, names: tuple[str, ...]) -> tuple[Measure, ...]:
    """The measures by the names of their scores; one that no file can name is left out."""
    measures = [_measure(name, job) for name in names]
    return tuple(measure for measure in measures if measure is not None)


def _measure(name: str, job: Job) -> Measure | None:
    try:
        return job.policy().measure_of(name)
    except EquipoiseError:
        return None


def another_input(records: Records, evidence: dict[str, Any], private: Path) -> bool:
    """Whether the records are not those that were released, by the keyed hash of the evidence."""
    digest = evidence.get("input", {}).get("hmac_sha256")
    return digest is not None and keyed_hash(records, bytes.fromhex(read_secret(private).get("hash_key", ""))) != digest


class UntraceableRelease(DataError):
    """The release cannot be made again, so nobody can say whose record is whose."""


def true_pairs(folder: Path, original: Records | None) -> tuple[Records, Records]:
    """The public data and the original, with an id that both share: the original's own, or its row numbers.

    The original is the file that the private policy names where none is given. Refused where private/ is missing, where
    the original is another file, and where the data made again is not the public data.
    """
    try:
        first = _again_with_roles(folder, original)
        evidence = evidence_of_folder(folder)
        if another_input(first.records, evidence, folder / "private"):
            raise DataError("the original is not the file that was released")
        rows = _rows(folder, first, evidence)
    except EquipoiseError as error:
        reason = str(error).rstrip(".")
        raise UntraceableRelease(f"The release was not made again: {reason[0].lower()}{reason[1:]}.") from None
    whole = first.given if original is None else original
    return _with_ids(reopen(folder), whole, rows)


def _again_with_roles(folder: Path, original: Records | None) -> Again:
    """What the private folder says, on the original with the roles of its policy."""
    if not (folder / "private").is_dir():
        raise DataError("private/ is not here")
    if original is None or original.source:
        return again(folder, original.source.path if original is not None and original.source else None)
    return again(folder, replace(original, roles=Job.load(folder / "private" / "policy.toml").read_roles()))


def _rows(folder: Path, first: Again, evidence: dict[str, Any]) -> pl.Series:
    """The row of the original that each record of the public data was made of."""
    records = first.records
    if records.kind == "pyspark":
        raise DataError("records on Spark have no order")
    table = records.collect()
    table_with_rows = table.with_columns(pl.int_range(table.height, dtype=pl.Int64, eager=True).alias(TRACED_ROW))
    released = first.recipe.run(replace(records, frame=engines.like(records.frame, table_with_rows)), first.draw)
    if released.synthetic:
        raise DataError("it is fully synthetic, its records stand for nobody")
    if not _same_data(folder, evidence, released, first):
        raise DataError("made again, the data is another one")
    return engines.collect(in_release_order(released, order_seed(evidence, released, first)).select(TRACED_ROW))[
        TRACED_ROW
    ]


def order_seed(evidence: dict[str, Any], released: Records, first: Again) -> int | None:
    """The seed that orders the released records; none where they were left in their order."""
    kept = evidence.get("order", "kept" if released.coarsened else "shuffled") == "kept"
    return None if kept else first.recipe.seed


def _same_data(folder: Path, evidence: dict[str, Any], released: Records, first: Again) -> bool:
    """Whether the data made again is the public data, row by row."""
    kind = data_format(folder)
    public = folder / "public" / str(evidence["output"]["file"])
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / f"data.{kind}"
        write_data(released, path, kind, (*evidence["withheld"], TRACED_ROW), order_seed(evidence, released, first))
        return hash_of(path) == hash_of(public) or read(path).collect().equals(read(public).collect())


def _with_ids(released: Records, original: Records, rows: pl.Series) -> tuple[Records, Records]:
    """Both files with the same ids: those of the role, else the rows of the original."""
    name = original.roles.id
    if name:
        return with_ids(released, original.collect(name)[name].gather(rows)), original
    name = beside("record", *released.schema(), *original.schema())
    numbers = pl.int_range(original.height(), dtype=pl.Int64, eager=True).alias(name)
    return with_ids(released, rows.alias(name)), with_ids(original, numbers)
