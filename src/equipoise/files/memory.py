"""Memory checks before a file is read whole, and before work on records."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from equipoise.data.records import Records, row_texts
from equipoise.ground.errors import DataError
from equipoise.ground.system import free_memory as available

MEMORY_PER_TEXT_BYTE = 2.5
"""Bytes of memory for each byte of text while a file that cannot be read in pieces is read."""

SAMPLE_RECORDS = 1_000
"""First records whose size in memory, and as text, stands for that of all."""
RELEASE_BYTES = 100_000_000


@dataclass(frozen=True)
class MemoryLine:
    """Memory of a piece of work: copies of each record, what else a record takes, and what any such work takes.

    Fitted to peaks measured (`ru_maxrss`) on files of many texts, many numbers, many records and long texts.
    """

    copies: float = 1.0
    record_bytes: int = 0
    any_bytes: int = 0
    with_text: bool = False
    """Whether each record is also made a text, as often as it is copied."""


WORK = {
    "open": MemoryLine(),
    "release": MemoryLine(3.5, 250, RELEASE_BYTES, with_text=True),
    "assess": MemoryLine(3.0, 130, 45_000_000),
    "propose a policy for": MemoryLine(3.0, 250, 120_000_000),
    "attack": MemoryLine(2.0, 2_000, 90_000_000),
    "coarsen": MemoryLine(1.0, 20, 41_000_000),
    "tabulate": MemoryLine(1.0, 90, 62_000_000),
    "decide on": MemoryLine(1.0, 30, 48_000_000),
}
"""What can be done to records, in words that follow "To"; the last three look at a few columns alone."""


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


def refuse_work(records: Records, work: str, *columns: Any) -> None:
    """Refuse records that this work has no memory for, before it begins. Only these columns count, where named.

    Data on an engine is not looked at. Cost: one count of the records, and the first thousand of them.
    """
    if not records.frame.implementation.is_polars():
        return
    need, free = memory_of(records, work, *columns), available()
    if need > free:
        raise DataError(
            f"To {work} {records.height():,} records x {len(records.schema()):,} columns takes about {size(need)} of "
            f"memory and {size(free)} are free: leave out columns or records, or use a machine with more memory, or "
            "PySpark."
        )


def memory_of(records: Records, work: str, *columns: Any) -> float:
    """Bytes that a piece of work on records takes, by the first thousand of them; columns are names, or several."""
    line, words = WORK[work], {word for some in columns for word in ((some,) if isinstance(some, str) else some or ())}
    names = [name for name in records.schema() if name in words]
    frame = records.frame.select(names) if names else records.frame
    table = replace(records, frame=frame.head(SAMPLE_RECORDS)).collect()
    width = table.estimated_size() / max(1, table.height)
    letters = row_texts(table).str.len_bytes().mean() if line.with_text else None
    width += letters if isinstance(letters, float) else 0.0
    return records.height() * (line.copies * width + line.record_bytes) + line.any_bytes


def size(count: float) -> str:
    """A number of bytes in MB or GB.

    >>> size(3_210_000_000), size(5e6)
    ('3.2 GB', '5.0 MB')
    """
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"
