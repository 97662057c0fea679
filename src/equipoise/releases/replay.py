"""Replay: make a release of records or a table again, from its private folder and the original file."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.files import read
from equipoise.ground.errors import DataError, EquipoiseError
from equipoise.ground.randomness import new_seed
from equipoise.inspection.direct_identifiers import without_direct
from equipoise.methods.method import Measure
from equipoise.policies.policy_file import Job
from equipoise.policies.scoped_measures import scale
from equipoise.provenance.recipe_file import RECIPE, StoredTable, read_recipe
from equipoise.recipe.recipe import Recipe
from equipoise.releases.release import Release, release
from equipoise.releases.table_release import TableCase
from equipoise.releases.tabulate import tabulate
from equipoise.releases.tabulated import Tabulated


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
    path = None if original is None else str(Path(original).resolve())
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
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"Cannot read {str(private / 'seed.json')!r}: it is not the seed of a release.") from None
    return secret


def _measures(job: Job, names: tuple[str, ...]) -> tuple[Measure, ...]:
    """The measures by the names of their scores; one that no file can name is left out."""
    measures = [_measure(name, job) for name in names]
    return tuple(measure for measure in measures if measure is not None)


def _measure(name: str, job: Job) -> Measure | None:
    try:
        return scale(name, job.scenarios)
    except EquipoiseError:
        return None
