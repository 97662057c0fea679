"""Demo folders: data, roles and policies."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import polars as pl

from equipoise.data.roles import Roles
from equipoise.demo.business import business
from equipoise.demo.hospital import hospital
from equipoise.demo.survey import survey
from equipoise.ground.errors import DataError, ParameterError, hint
from equipoise.ground.whole_files import staged, staged_file, write_whole


@dataclass(frozen=True)
class Kit:
    """One demo: its description, the function that generates its data, and its policies, the main one first."""

    name: str
    words: str
    make: Callable[[], pl.DataFrame]
    policies: tuple[str, ...]

    @property
    def data(self) -> str:
        return f"{self.name}.parquet"

    @property
    def roles(self) -> str:
        return f"{self.name}-roles.toml"

    @property
    def files(self) -> tuple[str, ...]:
        return (self.data, self.roles, *self.policies)


KITS: Mapping[str, Kit] = {
    kit.name: kit
    for kit in (
        Kit("survey", "a housing survey", survey, ("survey.toml", "methods.toml")),
        Kit("business", "a business survey", business, ("business.toml", "business-table.toml")),
        Kit("hospital", "stays in hospital", hospital, ("hospital.toml",)),
    )
}


def find_kit(name: str) -> Kit:
    """The demo with this name."""
    if name not in KITS:
        raise ParameterError(f"No demo {name!r}.{hint(name, list(KITS))}")
    return KITS[name]


def write(folder: str | Path, name: str = "survey", *, overwrite: bool = False) -> Path:
    """Write a demo (survey, business or hospital), its roles and its policies into a folder; return the main policy.

    `survey.toml` coarsens the keys and `methods.toml` compares six methods for two numbers; `business.toml` coarsens
    industries and masks amounts, `business-table.toml` protects a table of turnover; `hospital.toml` coarsens ages,
    places and dates.
    """
    kit, place = find_kit(name), Path(folder)
    if not overwrite and any((place / file).exists() for file in kit.files):
        raise DataError(f"{str(place)!r} holds a demo already: name another folder.")
    if place.exists():
        return _fill(place, kit)
    with staged(place, overwrite, refuse=lambda *_: None, goal=False) as stage:
        _fill(stage, kit)
    return place / kit.policies[0]


def _fill(place: Path, kit: Kit) -> Path:
    """Write the files of a demo, the main policy last; return its path."""
    with staged_file(place / kit.data) as stage:
        kit.make().write_parquet(stage)
    policies = {file: files("equipoise.demo").joinpath(file).read_text(encoding="utf-8") for file in kit.policies}
    main = kit.policies[0]
    texts = {kit.roles: Roles.from_plain(tomllib.loads(policies[main])["roles"], place).to_toml(), **policies}
    for file in sorted(texts, key=lambda file: file == main):
        write_whole(place / file, texts[file], private=False)
    return place / main
