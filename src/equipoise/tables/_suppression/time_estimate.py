"""How long a suppression will take in all, said with its progress: a rough guess, better with every stage.

A stage that is a share done takes its time so far over that share. Of the stages that follow it is known how many times
as long as everything before they take on large tables, about: finding 1, taking out 1, the guard up to 1.
"""

import time
from collections.abc import Callable

from equipoise.ground.progress import Progress

STAGES = {"finding cells": 3.0, "taking out": 1.7, "looking for cutting": 1.5, "suppressing more": 1.0}
"""How a stage begins its reports, and the whole time as a multiple of the time until its end."""
MIN_SECONDS, MIN_SHARE = 10.0, 0.02
"""Work that is done sooner needs no estimate; nor can a stage be judged before this share of it."""


def with_estimate(progress: Progress, clock: Callable[[], float] = time.monotonic) -> Progress:
    """Progress whose words end with the time that the whole is likely to take, where it is long enough.

    >>> now, words = iter([0.0, 0.0, 60.0]), []
    >>> tell = with_estimate(lambda count, total, what: words.append(what), lambda: next(now))
    >>> tell(0, 10, "finding cells to suppress"), tell(5, 10, "finding cells to suppress"), words[-1]
    (None, None, 'finding cells to suppress (about 6 min in all)')
    """
    begun, stage, since = clock(), "", 0.0

    def tell(count: int, total: int, what: str) -> object:
        nonlocal stage, since
        now = clock() - begun
        name = next((name for name in STAGES if what.startswith(name)), "")
        if name != stage:
            stage, since = name, now
        share = count / total if total else 0.0
        if name and share >= MIN_SHARE:
            whole = (since + (now - since) / share) * STAGES[name]
            if whole >= MIN_SECONDS:
                what = f"{what} (about {_words(whole)} in all)"
        return progress(count, total, what)

    return tell


def _words(seconds: float) -> str:
    return f"{round(seconds / 60):,} min" if seconds >= 90 else f"{10 * max(1, round(seconds / 10))} s"
