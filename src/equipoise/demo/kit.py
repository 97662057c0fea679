"""A demo folder: the data, and the policies that balance it."""

from importlib.resources import files
from pathlib import Path

from equipoise.core.errors import DataError
from equipoise.demo.survey import survey

DATA = "survey.parquet"
POLICIES = ("survey.toml", "methods.toml")
"""The main one first."""


def write(folder: str | Path) -> Path:
    """Write the housing survey and its policies into a folder; give the path of the main policy.

    `survey.toml` coarsens the keys; `methods.toml` compares six methods for two numbers.
    """
    place = Path(folder)
    if any((place / name).exists() for name in (DATA, *POLICIES)):
        raise DataError(f"{str(place)!r} holds a demo already: name another folder.")
    place.mkdir(parents=True, exist_ok=True)
    survey().write_parquet(place / DATA)
    for name in POLICIES:
        (place / name).write_text(files("equipoise.demo").joinpath(name).read_text(encoding="utf-8"), encoding="utf-8")
    return place / POLICIES[0]
