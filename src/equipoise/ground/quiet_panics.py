"""Keep what a panic of an engine's own language writes off the terminal: it may quote data."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter, FileIO, TextIOWrapper
from threading import Lock
from typing import IO

PANIC = b"panicked at"
_lock = Lock()
_users = 0
_caught: tuple[IO[bytes], int] | None = None
"""Where standard error goes meanwhile, and where it went before."""


@contextmanager
def quiet_panics() -> Iterator[None]:
    """Within it standard error is held back, where it is the real one; what is no panic is passed on afterwards.

    Several threads may be within it at once: the last to leave passes it on. Cost: three system calls.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _users, _caught
    with _lock:
        _users += 1
        if _users == 1 and _is_real():
            sys.stderr.flush()
            if (file := _place_apart()) is not None:
                _caught = file, os.dup(2)
                os.dup2(file.fileno(), 2)


def _leave() -> None:
    global _users, _caught
    with _lock:
        _users -= 1
        if _users or _caught is None:
            return
        sys.stderr.flush()
        (file, real), _caught = _caught, None
        os.dup2(real, 2)
        os.close(real)
        _pass_on(file)


@contextmanager
def own_words() -> Iterator[None]:
    """Within it Python alone writes to standard error; what engines write there is passed on afterwards, but no panic.

    For the command line: panics come wherever an engine is, also where no reader or query waits for them.
    """
    stream = sys.stderr
    under = getattr(getattr(stream, "buffer", None), "raw", None)
    file = _place_apart() if _is_real() else None
    if file is None or not isinstance(under, FileIO) or not isinstance(stream, TextIOWrapper):
        yield
        return
    stream.flush()
    raw = type(under)(os.dup(2), "wb")
    sys.stderr = TextIOWrapper(BufferedWriter(raw), stream.encoding, stream.errors, line_buffering=True)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(raw.fileno(), 2)
        sys.stderr.close()
        sys.stderr = stream
        _pass_on(file)


def _place_apart() -> IO[bytes] | None:
    """Where to put what engines write: in memory, or in a file; None where there is no place for either."""
    try:
        if hasattr(os, "memfd_create"):
            return os.fdopen(os.memfd_create("stderr"), "w+b")
        return tempfile.TemporaryFile()
    except OSError:
        return None


def _pass_on(file: IO[bytes]) -> None:
    with file:
        file.seek(0)
        text = file.read()
    if PANIC not in text:
        sys.stderr.write(text.decode("utf-8", errors="replace"))


def _is_real() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.fileno() == 2
    except (OSError, ValueError):
        return False
