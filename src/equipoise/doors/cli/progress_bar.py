"""A progress bar on stderr while work takes long; nothing when stderr is not a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from equipoise.ground.interrupts import at_first_interrupt
from equipoise.ground.progress import Progress


@contextmanager
def bar(then: str) -> Iterator[Progress | None]:
    """A progress function for long work; `then` describes what happens after the last step."""
    from rich.console import Console

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    if not sys.stderr.isatty() or console.is_dumb_terminal:
        yield None
        return
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, transient=True) as progress:
        task = progress.add_task("reading", total=None)

        def tell(count: int, total: int, what: str) -> None:
            if count < total:
                progress.update(task, description=what, completed=count, total=total)
            else:
                progress.reset(task, description=then, total=None)

        yield tell


@contextmanager
def bar_to_stop(then: str) -> Iterator[Progress]:
    """A bar for work that Ctrl-C brings to a quick end with a result; a second Ctrl-C ends it without one."""
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        print("Stopping: what is left is done the quick way. Ctrl-C again ends without a result.", file=sys.stderr)

    with bar(then) as shown:

        def tell(count: int, total: int, what: str) -> bool:
            if shown is not None:
                shown(count, total, what)
            return not stopped

        with at_first_interrupt(stop):
            yield tell
