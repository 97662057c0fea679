"""Memory checks before a file is read whole, and before work on records."""

import re
from pathlib import Path

from equipoise.data.records import Records
from equipoise.ground.errors import DataError
from equipoise.ground.system import free_memory as available

MEMORY_PER_TEXT_BYTE = 2.5
"""Bytes of memory for each byte of text while a file that cannot be read in pieces is read."""

TEXT_BYTES, OTHER_BYTES = 16, 1
"""Bytes of a text in memory beside its letters; the least that a value of any other type takes, numbers apart."""
COPIES_FOR_RELEASE = 3
"""The original, the released records, and these in their new order."""


def refuse_beyond(
    path: Path, values: float, shape: str, instead: str, room: float = MEMORY_PER_TEXT_BYTE, words: str = "about"
) -> None:
    """Refuse a file whose values take more memory than there is: what is needed, what there is, what to do."""
    need, free = values * room, available()
    if free is not None and need > free:
        raise DataError(
            f"Reading {str(path)!r} ({shape}) needs {words} {size(need)} of memory and {size(free)} are free: "
            f"{instead}."
        )


def refuse_work(records: Records, copies: int, work: str) -> None:
    """Refuse records of which so many copies do not fit in memory, before any work; a lower bound of what it takes.

    Data on an engine is not looked at. Cost: one count of the records, and their types.
    """
    if not records.frame.implementation.is_polars():
        return
    widths = [_width(str(kind)) for kind in records.schema().values()]
    rows, free = records.height(), available()
    if (need := copies * rows * sum(widths)) > free:
        raise DataError(
            f"To {work} {rows:,} records x {len(widths):,} columns takes at least {size(need)} of memory and "
            f"{size(free)} are free: leave out columns or records, or use a machine with more memory, or PySpark."
        )


def _width(kind: str) -> int:
    bits = re.fullmatch(r"(?:U?Int|Float)(\d+)", kind)
    return int(bits[1]) // 8 if bits else TEXT_BYTES if kind == "String" else OTHER_BYTES


def size(count: float) -> str:
    """A number of bytes in MB or GB.

    >>> size(3_210_000_000), size(5e6)
    ('3.2 GB', '5.0 MB')
    """
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"
