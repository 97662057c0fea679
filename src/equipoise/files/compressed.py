"""Compressed text: what is inside a .gz, .bz2, .xz, .zst or .zip, in memory."""

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from equipoise.files.format import Signature
from equipoise.files.memory import refuse_beyond, size
from equipoise.ground.errors import DataError, import_extra

PIECE_BYTES = 1 << 24
UNPACK_ADVICE = "unpack it first: a plain CSV file is read in pieces"


def unpack(path: Path) -> bytes:
    """The only file inside, whole; refused before it fills the memory."""
    try:
        return OPENERS[path.suffix.lower()](path)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, ValueError) as error:
        if isinstance(error, DataError | PermissionError):
            raise
        raise DataError(
            f"{str(path)!r} is not a whole compressed file: it is damaged, cut off or something else."
        ) from None


def _zip(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        inside = [part for part in archive.infolist() if not part.is_dir() and not part.filename.startswith("__MACOSX")]
        if len(inside) != 1:
            raise DataError(f"{str(path)!r} holds {len(inside):,} files: it must hold one.")
        return part(archive, inside[0].filename, path)


def part(archive: zipfile.ZipFile, name: str, path: Path) -> bytes:
    """One file of an archive, whole; refused before it fills the memory."""
    inside = archive.getinfo(name)
    if inside.flag_bits & 1:
        raise DataError(f"{str(path)!r} is encrypted: save it without a password first.")
    refuse_beyond(path, inside.file_size, f"{inside.file_size / 1e6:,.0f} MB unpacked", UNPACK_ADVICE)
    with archive.open(inside) as file:
        return _content(file, path)


def _gzip(path: Path) -> bytes:
    """The last four bytes hold the length modulo 4 GB."""
    with path.open("rb") as packed:
        packed.seek(-4, 2)
        length = max(int.from_bytes(packed.read(4), "little"), path.stat().st_size)
    refuse_beyond(path, length, f"{length / 1e6:,.0f} MB unpacked", UNPACK_ADVICE)
    with gzip.open(path) as file:
        return _content(file, path)


def _bzip2(path: Path) -> bytes:
    with bz2.open(path) as file:
        return _content(file, path)


def _xz(path: Path) -> bytes:
    with lzma.open(path) as file:
        return _content(file, path)


def _zstd(path: Path) -> bytes:
    arrow = import_extra("pyarrow")
    with arrow.OSFile(str(path)) as file, arrow.CompressedInputStream(file, "zstd") as stream:
        return _content(stream, path)


def _content(stream: Any, path: Path) -> bytes:
    """All of a stream, piece by piece: what an archive says of its length is not trusted."""
    content = bytearray()
    while piece := stream.read(PIECE_BYTES):
        content += piece
        refuse_beyond(path, len(content), f"more than {size(len(content))} unpacked", UNPACK_ADVICE, words="more than")
    return bytes(content)


OPENERS: Mapping[str, Callable[[Path], bytes]] = {
    ".gz": _gzip,
    ".bz2": _bzip2,
    ".xz": _xz,
    ".zst": _zstd,
    ".zip": _zip,
}
ARCHIVE_SUFFIXES = tuple(OPENERS)
ARCHIVE_SIGNATURES = (
    Signature(b"PK\x03\x04", "a ZIP archive or an Excel workbook, not a text file", (".zip",)),
    Signature(b"\x1f\x8b", "compressed by gzip, not a text file", (".gz",)),
    Signature(b"\x28\xb5\x2f\xfd", "compressed by zstd, not a text file", (".zst",)),
    Signature(b"BZh", "compressed by bzip2, not a text file", (".bz2",)),
    Signature(b"\xfd7zXZ\x00", "compressed by xz, not a text file", (".xz",)),
)
