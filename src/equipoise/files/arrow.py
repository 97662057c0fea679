"""Arrow IPC files (Feather): scanned."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from equipoise.data.engines import without_hidden
from equipoise.data.labels import Labels
from equipoise.files.column_types import STORABLE, same
from equipoise.files.format import Format, Signature
from equipoise.ground.errors import DataError
from equipoise.ground.system import free_memory

BLOCK_BYTES, BUFFER_BYTES = 24, 16
DICTIONARY_BATCH, BLOCK_FIELDS = 2, (2, 3)
"""The kind of message that holds categories; the fields of the footer that list dictionaries and batches."""


def load(path: Path) -> pl.LazyFrame:
    """Scan a file."""
    try:
        if _has_impossible_buffer(path):
            raise ValueError
        frame = pl.scan_ipc(path, glob=False)
        frame.collect_schema()
    except Exception:
        raise DataError(f"{str(path)!r} is not a whole Arrow file: it is damaged, cut off or something else.") from None
    return frame


def _has_impossible_buffer(path: Path) -> bool:
    """Whether a compressed buffer says that it unpacks to more than fits in memory: Polars would end the process.

    Reads the tables of contents (FlatBuffers) and eight bytes of each buffer. Cost: O(batches x columns).
    """
    data = np.memmap(path, np.uint8, "r")
    footer = len(data) - 10 - _number(data, len(data) - 10, 4)
    table = footer + _number(data, footer, 4)
    most = free_memory()
    for field in BLOCK_FIELDS:
        first, count = _vector(data, _field(data, table, field))
        for block in range(first, first + count * BLOCK_BYTES, BLOCK_BYTES):
            start = _number(data, block, 8)
            if any(not -1 <= size <= most for size in _unpacked(data, start, start + _number(data, block + 8, 4))):
                return True
    return False


def _unpacked(data: np.memmap, start: int, body: int) -> Iterator[int]:
    """The unpacked length of every compressed buffer of a batch; -1 is one that is stored as it is."""
    root = start + (8 if _number(data, start, 4) == -1 else 4)
    message = root + _number(data, root, 4)
    batch = _inner(data, _field(data, message, 2))
    batch = _inner(data, _field(data, batch, 1)) if data[_field(data, message, 1)] == DICTIONARY_BATCH else batch
    first, count = _vector(data, _field(data, batch, 2)) if _field(data, batch, 3) else (0, 0)
    for buffer in range(first, first + count * BUFFER_BYTES, BUFFER_BYTES):
        if _number(data, buffer + 8, 8):
            yield _number(data, body + _number(data, buffer, 8), 8)


def _number(data: np.memmap, place: int, length: int) -> int:
    if not 0 <= place <= len(data) - length:
        raise ValueError("outside the file")
    return int.from_bytes(data[place : place + length].tobytes(), "little", signed=True)


def _inner(data: np.memmap, place: int) -> int:
    return place + _number(data, place, 4)


def _field(data: np.memmap, table: int, number: int) -> int:
    """Where a field of a FlatBuffers table is; 0 where it has none."""
    fields = table - _number(data, table, 4)
    within = 4 + 2 * number < _number(data, fields, 2)
    offset = _number(data, fields + 4 + 2 * number, 2) if within else 0
    return table + offset if offset else 0


def _vector(data: np.memmap, place: int) -> tuple[int, int]:
    """Where the items of a vector begin, and how many there are."""
    start = _inner(data, place) if place else 0
    return (start + 4, _number(data, start, 4)) if place else (0, 0)


def save(frame: pl.LazyFrame, path: Path, labels: Labels) -> None:
    """Write a file, piece by piece, without what was blanked: Arrow keeps the values beneath those that are missing."""
    frame = frame.map_batches(without_hidden, streamable=True)
    frame.sink_ipc(path, compression="zstd", maintain_order=True)


FORMATS = (
    Format(
        name="arrow",
        title="Arrow",
        suffixes=(".arrow", ".feather", ".ipc"),
        load=load,
        save=save,
        signatures=(Signature(b"ARROW1", "an Arrow file", (".arrow", ".feather", ".ipc")),),
        types=same(*STORABLE),
        any_date=True,
    ),
)
