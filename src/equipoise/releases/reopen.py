"""Reopen a released file or folder: its data, and the laws of its masks from the public evidence."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from equipoise.data.records import Law, Records
from equipoise.data.roles import Roles
from equipoise.files import read
from equipoise.ground.argument_types import fits
from equipoise.ground.errors import DataError, RolesError

EVIDENCE = "evidence.json"


def reopen(path: str | Path, roles: Roles | None = None, **options: Any) -> Records:
    """A released file with the roles given, or the data of a release folder with its history as well.

    An intruder reads the evidence too: what it says about the masks is what they may know of them. `options` are those
    of a CSV file.
    """
    place = Path(path)
    if not place.is_dir():
        return opened(place, roles, **options)
    evidence = evidence_of_folder(place)
    data = public_folder(place) / str(evidence["output"]["file"])
    return replace(opened(data, roles), history=tuple(map(_law, evidence["masks"])))


def public_folder(folder: Path) -> Path:
    """The public part of a release folder, or the folder where it is that part itself."""
    public = next((p for p in (folder / "public", folder) if (p / EVIDENCE).is_file()), None)
    if public is None:
        raise DataError(f"The folder {str(folder)!r} is not a release: it has no public/{EVIDENCE}.")
    return public


def evidence_of_folder(folder: Path) -> dict[str, Any]:
    """The public evidence of a release folder."""
    return _evidence(public_folder(folder) / EVIDENCE)


def opened(path: Path, roles: Roles | None, **options: Any) -> Records:
    """A file, roles that do not fit it refused by its name."""
    try:
        return read(path, roles, **options)
    except RolesError as error:
        raise RolesError(f"In {str(path)!r}: {error}") from None


def _evidence(path: Path) -> dict[str, Any]:
    try:
        evidence = json.loads(path.read_text(encoding="utf-8"))
        name = evidence["output"]["file"]
        shaped = fits(evidence["withheld"], list[str]) and fits(evidence.get("input", {}), dict[str, Any])
        if (
            not isinstance(name, str)
            or Path(name).name != name
            or not all(map(_is_law, evidence["masks"]))
            or not shaped
        ):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"Cannot read {str(path)!r}: it is not the evidence of a release.") from None
    return dict(evidence)


def _is_law(law: Any) -> bool:
    parts = {"mask": str, "words": str, "parameters": dict[str, Any], "columns": list[str]}
    return isinstance(law, dict) and "mask" in law and all(n not in law or fits(law[n], k) for n, k in parts.items())


def _law(law: dict[str, Any]) -> Law:
    parameters = {name: _frozen(value) for name, value in law.get("parameters", {}).items()}
    law_columns = law.get("columns") or parameters.get("columns") or parameters.get("column") or ()
    columns = (law_columns,) if isinstance(law_columns, str) else tuple(law_columns)
    return Law(str(law["mask"]), columns, str(law.get("words", "")), parameters, coarsens=bool(law.get("coarsens")))


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value
