"""R (.rds, .rda, .RData): one data frame is read, factors as text; the release is Parquet, which R reads.

Labels of the haven package are not kept: save such a file as .sav or .dta, which holds them in a standard way.
"""

import bz2
import gzip
import lzma
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.files.compressed import ARCHIVE_SIGNATURES
from equipoise.files.format import Format
from equipoise.files.memory import refuse_beyond
from equipoise.ground.errors import DataError, import_extra

R_SIGNATURES = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"X\n", b"RDX", b"A\n", b"RDA")
MEMORY_PER_BYTE, MEMORY_PER_TEXT = 6, 550
"""Bytes of memory for each byte inside, and beside that for each text, which is a Python object for a while."""
TEXT_MARKS = (b"\x00\x04\x00\x09", b"\x00\x00\x80\x09", b"\x00\x00\x40\x09", b"\x00\x00\x00\x09")
"""How a text begins: plain, UTF-8, Latin-1, other."""
PIECE_BYTES = 1 << 24


def load(path: Path) -> pl.DataFrame:
    """Read the one data frame of an .rds file."""
    return _table(_read(path, "read_rds"), path)


def load_named(path: Path) -> pl.DataFrame:
    """Read the only data frame of an .rda file."""
    objects = _read(path, "read_rda")
    frames = [value for value in objects.values() if hasattr(value, "columns")]
    if len(frames) != 1:
        raise DataError(f"{str(path)!r} holds {len(frames):,} data frames: save one alone, with saveRDS.")
    return _table(frames[0], path)


def _read(path: Path, reader: str) -> Any:
    with path.open("rb") as file:
        head = file.read(8)
    if not head.startswith(R_SIGNATURES):
        advice = ": tau-ARGUS metadata goes with its .asc file, which is what to read" if path.suffix == ".rda" else ""
        raise DataError(f"{str(path)!r} is not an R file{advice}.")
    package = import_extra("rdata")
    try:
        _refuse_large(path)
    except DataError:
        raise
    except Exception:
        raise DataError(_broken(path)) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            constructors = {**package.conversion.DEFAULT_CLASS_MAP, "Date": _days, "POSIXct": _moments}
            return getattr(package, reader)(path, constructor_dict=constructors)
    except Exception:
        raise DataError(_broken(path)) from None


def _broken(path: Path) -> str:
    return f"{str(path)!r} is not a whole R file: it is damaged, cut off or something else."


def _refuse_large(path: Path) -> None:
    """Refuse a file by the bytes and about how many texts are inside, while it is unpacked once, piece by piece."""
    with path.open("rb") as file:
        head = file.read(3)
    openers: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}
    unpack = openers.get(head[:2], open)
    size = need = 0
    with unpack(path, "rb") as stream:
        while piece := stream.read(PIECE_BYTES):
            size += len(piece)
            need += MEMORY_PER_BYTE * len(piece) + MEMORY_PER_TEXT * sum(piece.count(mark) for mark in TEXT_MARKS)
            shape = f"more than {size / 1e6:,.0f} MB unpacked"
            refuse_beyond(path, need, shape, "save it as Parquet or CSV in R", 1, "more than")


def _days(values: Any, attributes: Any) -> Any:
    """R's dates: days since 1970."""
    return _times(values, 86_400)


def _moments(values: Any, attributes: Any) -> Any:
    """R's date-times: seconds since 1970 in UTC."""
    return _times(values, 1)


def _times(values: Any, unit: int) -> Any:
    seconds = np.ma.filled(np.ma.asarray(values).astype(float), np.nan) * unit
    finite = np.isfinite(seconds)
    times = np.where(finite, seconds * 1e6, 0).astype("int64").astype("datetime64[us]")
    times[~finite] = np.datetime64("NaT")
    return times


def _table(content: Any, path: Path) -> pl.DataFrame:
    if not hasattr(content, "columns"):
        raise DataError(f"{str(path)!r} holds no data frame.")
    try:
        table = pl.from_pandas(content, include_index=False)
        return table.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    except Exception:
        raise DataError(f"{str(path)!r} holds a data frame with columns of mixed types.") from None


ONE = Format(
    name="rds",
    title="R object",
    suffixes=(".rds",),
    load=load,
    signatures=tuple(
        replace(sign, suffixes=(".rds", ".rda", ".rdata")) for sign in ARCHIVE_SIGNATURES if sign.head in R_SIGNATURES
    ),
    becomes="parquet",
    extra="r",
)
FORMATS = (ONE, replace(ONE, name="rda", title="R workspace", suffixes=(".rda", ".rdata"), load=load_named))
