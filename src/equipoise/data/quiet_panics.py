"""Keep what a panic of an engine's own language writes off the terminal: it may quote data."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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
            file = tempfile.TemporaryFile()  # noqa: SIM115 - the last thread to leave closes it
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
