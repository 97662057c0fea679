"""Progress reports of long work, its signs of life, and its cancellation."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from equipoise.ground.errors import Cancelled

T = TypeVar("T")

Progress = Callable[[int, int, str], object]
"""Called with (steps finished, total, what); returning False stops the work with `Cancelled`."""
SIGN_OF_LIFE_SECONDS = 1.0
"""After this long without a report the last one is repeated."""
MIN_SHARE_DONE, MIN_SECONDS_LEFT = 0.01, 5.0
"""Share of the work that counts as done from the start, and the least time left that is told."""


def tracked(items: Sequence[T], what: str, progress: Progress | None) -> Iterator[T]:
    """Yield the items, reporting before the first and after each one.

    >>> calls = []
    >>> list(tracked("ab", "letters", lambda count, total, what: calls.append((count, total))))
    ['a', 'b']
    >>> calls
    [(0, 2), (1, 2), (2, 2)]
    """
    report(progress, 0, len(items), what)
    for count, item in enumerate(items, start=1):
        yield item
        report(progress, count, len(items), what)


def report(progress: Progress | None, count: int, total: int, what: str) -> None:
    if progress is not None and progress(count, total, what) is False:
        raise Cancelled(f"Stopped during: {what} ({count:,} of {total:,} done). Nothing was written.")


@contextmanager
def signs_of_life(progress: Progress | None, what: str) -> Iterator[Progress | None]:
    """A progress function that repeats its last report from a thread while the work says nothing, inside a solver say.

    Reports never overlap. A stop that is asked for in between is answered at the next report of the work.
    """
    if progress is None:
        yield None
        return
    heart = _Heart(progress, what)
    thread = threading.Thread(target=heart.beat, daemon=True)
    thread.start()
    try:
        yield heart.tell
    finally:
        heart.done.set()
        thread.join()


class _Heart:
    """The last report, when it was made, and whether to stop."""

    def __init__(self, progress: Progress, what: str) -> None:
        self.progress, self.last, self.when = progress, (0, 1, what), time.monotonic()
        self.stopped = False
        self.lock, self.done = threading.RLock(), threading.Event()

    def tell(self, count: int, total: int, what: str) -> object:
        with self.lock:
            self.last = (count, total, what)
            self._call()
            return not self.stopped

    def beat(self) -> None:
        while not self.done.wait(SIGN_OF_LIFE_SECONDS / 2):
            with self.lock:
                if time.monotonic() - self.when >= SIGN_OF_LIFE_SECONDS:
                    self._call()

    def _call(self) -> None:
        self.when = time.monotonic()
        self.stopped |= self.progress(*self.last) is False


class Stoppable:
    """Progress whose stop is remembered: what can be left out is left out, what is needed goes on.

    The first stop raises `Cancelled` at the next report; after that reports are signs of life alone.
    """

    def __init__(self, progress: Progress) -> None:
        self.progress, self.stopped = progress, False

    def __call__(self, count: int, total: int, what: str) -> bool:
        go_on = self.progress(count, total, what) is not False or self.stopped
        self.stopped |= not go_on
        return go_on

    def going_on(self, count: int, total: int, what: str) -> bool:
        """For work that cannot be left out: a stop is remembered and does not end it."""
        self.stopped |= self.progress(count, total, what) is False
        return True


class TimeLeft:
    """Progress that adds an estimate of all the time left, from the share of it that each stage usually takes.

    `shares` is by how the report of a stage begins, in order; what a longer beginning says goes first. A stage that is
    left out has taken no time; one that comes again counts as where it stopped.

    >>> told, clock = [], iter([0.0, 10.0, 30.0]).__next__
    >>> tell = TimeLeft(lambda *report: told.append(report[2]), {"read": 0.25, "solv": 0.75}, clock)
    >>> tell(1, 2, "reading"), tell(1, 2, "solving")
    (None, None)
    >>> told
    ['reading, about 70 s left', 'solving, about 20 s left']
    """

    def __init__(self, progress: Progress, shares: Mapping[str, float], clock: Callable[[], float] = time.monotonic):
        self.progress, self.shares, self.clock = progress, shares, clock
        self.began, self.done = clock(), MIN_SHARE_DONE

    def __call__(self, count: int, total: int, what: str) -> object:
        stage = max((name for name in self.shares if what.startswith(name)), key=len, default=None)
        if stage is not None:
            names = list(self.shares)
            before = sum(self.shares[name] for name in names[: names.index(stage)])
            self.done = max(self.done, before + self.shares[stage] * min(1.0, count / max(total, 1)))
        elapsed = self.clock() - self.began
        left = elapsed * (1 - self.done) / self.done
        told = elapsed >= SIGN_OF_LIFE_SECONDS and left >= MIN_SECONDS_LEFT
        return self.progress(count, total, f"{what}, about {spoken(left)} left" if told else what)


def spoken(seconds: float) -> str:
    """A time as people say it.

    >>> spoken(42), spoken(200), spoken(9000)
    ('40 s', '3 min', '2.5 h')
    """
    if seconds < 90:
        return f"{max(10, round(seconds, -1)):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
