"""Memory check before a file is read whole."""

from pathlib import Path

from equipoise.ground.errors import DataError
from equipoise.ground.system import free_memory as available

MEMORY_PER_TEXT_BYTE = 2.5
"""Bytes of memory for each byte of text while a file that cannot be read in pieces is read."""


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


def size(count: float) -> str:
    """A number of bytes in MB or GB.

    >>> size(3_210_000_000), size(5e6)
    ('3.2 GB', '5.0 MB')
    """
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"
