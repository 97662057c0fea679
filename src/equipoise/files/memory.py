"""How much memory there is, and a refusal before a file fills it."""

import os
import sys
from pathlib import Path

from equipoise.core.errors import DataError

ROOM = 2.5
"""Bytes of memory for each byte of text while a file that cannot be read in pieces is read."""
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def available() -> int | None:
    """Free memory in bytes, within the limit of a container; None where the system does not say."""
    try:
        free = _windows() if sys.platform == "win32" else _elsewhere()
    except (OSError, ValueError, AttributeError):
        return None
    limits = [int(text) for path in LIMITS if path.is_file() and (text := path.read_text().strip()).isdecimal()]
    return min([free, *limits])


def refuse_beyond(path: Path, values: float, shape: str, instead: str, room: float = ROOM) -> None:
    """Refuse a file whose values take more memory than there is: what is needed, what there is, what to do."""
    need, free = values * room, available()
    if free is not None and need > free:
        raise DataError(
            f"Reading {str(path)!r} ({shape}) needs about {size(need)} of memory and {size(free)} are free: {instead}."
        )


def size(count: float) -> str:
    """Bytes for people.

    >>> size(3_210_000_000), size(5e6)
    ('3.2 GB', '5.0 MB')
    """
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


def _elsewhere() -> int:
    info = Path("/proc/meminfo")
    if info.is_file():
        lines = dict(line.split(":", 1) for line in info.read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _windows() -> int:
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            *((name, ctypes.c_ulonglong) for name in ("total", "free", "page", "page_free", "virtual", "virtual_free")),
            ("extended", ctypes.c_ulonglong),
        )

    status = Status(length=ctypes.sizeof(Status))
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined,unused-ignore]
    return int(status.free)
