"""The one seam through which long work reports and is stopped."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from equipoise.ground.errors import Cancelled

T = TypeVar("T")

Progress = Callable[[int, int, str], object]
"""Called with (done, total, what); returning False stops the work with `Cancelled`."""


def tracked(items: Sequence[T], what: str, progress: Progress | None) -> Iterator[T]:
    """Yield the items, reporting before the first and after each one.

    >>> seen = []
    >>> list(tracked("ab", "letters", lambda done, total, what: seen.append((done, total))))
    ['a', 'b']
    >>> seen
    [(0, 2), (1, 2), (2, 2)]
    """
    report(progress, 0, len(items), what)
    for done, item in enumerate(items, start=1):
        yield item
        report(progress, done, len(items), what)


def report(progress: Progress | None, done: int, total: int, what: str) -> None:
    if progress is not None and progress(done, total, what) is False:
        raise Cancelled(f"Stopped during: {what} ({done:,} of {total:,} done). Nothing was written.")
