"""Replay: make a release again from its private folder and the original file."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from equipoise.data.records import Records
from equipoise.ground.errors import DataError, EquipoiseError
from equipoise.inspection.direct_identifiers import without_direct
from equipoise.methods.method import Measure
from equipoise.policies.policy_file import Job
from equipoise.policies.scoped_measures import scale
from equipoise.provenance.recipe_file import RECIPE, read_recipe
from equipoise.recipe.recipe import Recipe
from equipoise.releases.release import Release, release
from equipoise.releases.report_facts import Render


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
    kept, secret = read_recipe(private / RECIPE), read_secret(private)
    job = Job.load(private / "policy.toml")
    given = original if isinstance(original, Records) else _read(job, original)
    return Again(job, given, Recipe(kept.masks, int(secret["seed"])), kept.draw, _measures(job, kept.measures))


def replay(
    folder: str | Path, out: str | Path, *, render: Render, original: Records | str | Path | None = None,
    overwrite: bool = False,
) -> Release:  # fmt: skip
    """Make a release again in another folder: the same draw of the same recipe, measured and judged once more.

    With the same versions and engine the public data is the same byte for byte, else its content is.
    """
    found = again(folder, original)
    text = (Path(folder) / "private" / "policy.toml").read_text(encoding="utf-8")
    return release(
        found.given, found.recipe, found.job.policy(), out, render=render, format=data_format(Path(folder)),
        overwrite=overwrite, measures=found.measures, title=found.job.title, policy_text=text, draw=found.draw,
    )  # fmt: skip


def data_format(folder: Path) -> str:
    """The format that the released data was written in."""
    found = next((p for p in sorted((folder / "public").glob("data.*")) if p.suffix not in (".cdl", ".rda")), None)
    if found is None:
        raise DataError(f"The folder {str(folder)!r} has no released data.")
    return found.name.partition(".")[2]


def read_secret(private: Path) -> dict[str, Any]:
    """The seed, the key of the keyed hashes and the seal."""
    try:
        found = dict(json.loads((private / "seed.json").read_text(encoding="utf-8")))
        int(found["seed"])
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"Cannot read {str(private / 'seed.json')!r}: it is not the seed of a release.") from None
    return found


def _read(job: Job, original: str | Path | None) -> Records:
    if original is None:
        return job.read()
    return replace(job, data=replace(job.data, path=str(Path(original).resolve()))).read()


def _measures(job: Job, names: tuple[str, ...]) -> tuple[Measure, ...]:
    """The measures by the names of their scores; one that no file can name is left out."""
    found = [_named(name, job) for name in names]
    return tuple(measure for measure in found if measure is not None)


def _named(name: str, job: Job) -> Measure | None:
    try:
        return scale(name, job.scenarios)
    except EquipoiseError:
        return None
