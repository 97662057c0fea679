"""Formats in and out. A format is one module with `suffixes`, `load` and `save`, listed here."""

from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl

from equipoise.core.errors import DataError, RolesError, hint
from equipoise.core.records import Records, Source
from equipoise.core.roles import Roles
from equipoise.files import arrow, delimited, parquet

__all__ = ["FORMATS", "format_of", "load", "read", "save"]

FORMATS: dict[str, ModuleType] = {"csv": delimited, "parquet": parquet, "arrow": arrow}


def format_of(path: str | Path) -> str:
    """The format a file name says.

    >>> format_of("survey.parquet")
    'parquet'
    """
    suffix = Path(path).suffix.lower()
    for name, module in FORMATS.items():
        if suffix in module.suffixes:
            return name
    known = ", ".join(s for module in FORMATS.values() for s in module.suffixes)
    raise DataError(f"No format for files ending in {suffix!r}. There are: {known}.")


def read(
    source: Any,
    roles: Roles | str | Path | None = None,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
) -> Records:
    """Read a file, or adopt a frame, with the roles of its columns.

    Parameters
    ----------
    source
        A path (.csv, .parquet, .arrow) or a Polars, pandas, PyArrow, DuckDB or PySpark frame. Parquet and Arrow files
        are scanned, not loaded; frames are never changed.
    roles
        `Roles`, or the path of a TOML file with them.
    delimiter, encoding, decimal
        For CSV files; detected when not given.
    """
    known = Roles.from_toml(roles) if isinstance(roles, str | Path) else roles or Roles()
    if not isinstance(known, Roles):
        raise RolesError(f"roles must be Roles or the path of a roles file, got {type(roles).__name__}.")
    if isinstance(source, str | Path):
        frame = load(source, delimiter=delimiter, encoding=encoding, decimal=decimal)
        if FORMATS[format_of(source)] is delimited:
            _refuse_headless(frame.collect_schema().names(), known, source)
        return Records.of(frame, known, Source(str(source), format_of(source)))
    if delimiter or encoding or decimal:
        raise DataError("delimiter, encoding and decimal are for CSV files.")
    return Records.of(source, known)


def _refuse_headless(header: list[str], roles: Roles, path: str | Path) -> None:
    """A first row in which no named column stands may be a record: nothing of it is shown."""
    named = roles.named()
    if named and not set(named) & set(header) and "mean" not in hint(named[0], header):
        raise DataError(
            f"None of the columns with a role is in the first row of {str(path)!r} ({len(header)} fields): "
            "it must hold the column names."
        )


def load(path: str | Path, **options: Any) -> pl.DataFrame | pl.LazyFrame:
    """Read or scan a file; every error is one sentence without data."""
    place = Path(path)
    if not place.exists():
        near = (
            hint(place.name, [p.name for p in place.parent.glob("*") if p.is_file()]) if place.parent.is_dir() else ""
        )
        raise DataError(f"No file at {str(path)!r}.{near if 'mean' in near else ''}")
    if place.is_dir():
        raise DataError(f"{str(path)!r} is a folder, not a file.")
    module = FORMATS[format_of(place)]
    if place.stat().st_size == 0:
        raise DataError(f"The file {str(path)!r} is empty.")
    if module is not delimited and any(value is not None for value in options.values()):
        raise DataError("delimiter, encoding and decimal are for CSV files.")
    loaded: pl.DataFrame | pl.LazyFrame = module.load(place, **options) if module is delimited else module.load(place)
    return loaded


def save(frame: pl.LazyFrame, path: str | Path, format: str) -> None:
    """Write a frame in one of the formats."""
    if format not in FORMATS:
        raise DataError(f"No format {format!r}.{hint(format, list(FORMATS))}")
    FORMATS[format].save(frame, Path(path))
