"""Progress reports of long work, and its cancellation."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from equipoise.ground.errors import Cancelled

T = TypeVar("T")

Progress = Callable[[int, int, str], object]
"""Called with (steps finished, total, what); returning False stops the work with `Cancelled`."""


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
