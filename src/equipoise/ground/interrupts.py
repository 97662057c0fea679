"""Signals that ask a run to end: Ctrl-C, SIGTERM and a closed terminal."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread

REQUESTS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
PATIENCE_SECONDS = 1.0
"""Time for a request to be heard; `timeout` and closed terminals send two in a row."""


@contextmanager
def at_first_interrupt(action: Callable[[], None]) -> Iterator[None]:
    """Within it the first Ctrl-C does this and lets the work go on; a second one ends it as usual."""

    def act(*_: object) -> None:
        signal.signal(signal.SIGINT, usual)
        action()

    usual = signal.signal(signal.SIGINT, act)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Within it Ctrl-C waits; it comes when this ends well. For steps that are short and belong together."""
    if current_thread() is not main_thread():
        yield
        return
    came: list[int] = []
    usual = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if came:
        signal.raise_signal(came[0])


@contextmanager
def ended_like_interrupt() -> Iterator[None]:
    """Within it a request to end (SIGTERM, a closed terminal) does what Ctrl-C does; only in the main thread.

    Python hears a signal between two of its own steps: where an engine does not come back, a second request, after a
    second or more, ends the process as SIGKILL does. The next run clears what that leaves.
    """
    if current_thread() is not main_thread():
        yield
        return
    last_heard = [0.0]

    def hear(*_: object) -> None:
        last_heard[0] = time.monotonic()
        signal.raise_signal(signal.SIGINT)

    free = [number for number in REQUESTS if signal.getsignal(number) == signal.SIG_DFL]
    usual = {number: signal.signal(number, hear) for number in free}
    try:
        with _watched(last_heard):
            yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


@contextmanager
def _watched(last_heard: list[float]) -> Iterator[None]:
    """A thread learns of every signal as it comes, whatever the main thread does."""
    if os.name == "nt":
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    thread = Thread(target=_end_when_unheard, args=(reading, last_heard), daemon=True)
    thread.start()
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)
        thread.join()
        os.close(reading)


def _end_when_unheard(reading: int, last_heard: list[float]) -> None:
    """End the process where a request comes, and one before it was not heard in time."""
    request = 0.0
    while number := os.read(reading, 1):
        if number[0] in REQUESTS:
            now = time.monotonic()
            if last_heard[0] >= request - PATIENCE_SECONDS:
                request = now
            elif now - request >= PATIENCE_SECONDS:
                os.kill(os.getpid(), signal.SIGKILL)
