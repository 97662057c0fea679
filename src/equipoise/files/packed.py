"""Compressed text: what is inside a .gz, .zst or .zip, in memory."""

import gzip
import zipfile
import zlib
from importlib import import_module
from pathlib import Path

from equipoise.core.errors import DataError, MissingExtraError
from equipoise.files.memory import refuse_beyond

SUFFIXES = (".gz", ".zst", ".zip")
SWELL = 20
"""Text is rarely compressed to less than a twentieth: the guess where the archive does not say."""


def unpacked(path: Path) -> bytes:
    """The only file inside, whole; refused before it fills the memory."""
    try:
        kind = path.suffix.lower()
        return _zip(path) if kind == ".zip" else _gzip(path) if kind == ".gz" else _zstd(path)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{str(path)!r} is not a whole compressed file: it is damaged, cut off or something else."
        ) from None


def _zip(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        inside = [part for part in archive.infolist() if not part.is_dir() and not part.filename.startswith("__MACOSX")]
        if len(inside) != 1:
            raise DataError(f"{str(path)!r} holds {len(inside):,} files: it must hold one.")
        if inside[0].flag_bits & 1:
            raise DataError(f"{str(path)!r} is encrypted: save it without a password first.")
        _refuse(path, inside[0].file_size)
        return archive.read(inside[0])


def _gzip(path: Path) -> bytes:
    """The last four bytes hold the length modulo 4 GB."""
    with path.open("rb") as file:
        file.seek(-4, 2)
        said = int.from_bytes(file.read(4), "little")
    _refuse(path, max(said, path.stat().st_size))
    with gzip.open(path) as file:
        return file.read()


def _zstd(path: Path) -> bytes:
    _refuse(path, path.stat().st_size * SWELL)
    try:
        arrow = import_module("pyarrow")
    except ImportError:
        raise MissingExtraError.named("pyarrow", "arrow") from None
    with arrow.OSFile(str(path)) as file, arrow.CompressedInputStream(file, "zstd") as stream:
        return bytes(stream.read())


def _refuse(path: Path, size: int) -> None:
    refuse_beyond(path, size, f"{size / 1e6:,.0f} MB unpacked", "unpack it first: a plain CSV file is read in pieces")
