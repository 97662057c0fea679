"""A progress bar on stderr while work takes long; nothing when stderr is not a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from equipoise.ground.progress import Progress


@contextmanager
def bar(then: str) -> Iterator[Progress | None]:
    """What to hand to a flow function as `progress`; `then` says what it does once all is counted off."""
    from rich.console import Console

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    if not sys.stderr.isatty() or console.is_dumb_terminal:
        yield None
        return
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=console, transient=True) as shown:
        task = shown.add_task("reading", total=None)

        def tell(done: int, total: int, what: str) -> None:
            if done < total:
                shown.update(task, description=what, completed=done, total=total)
            else:
                shown.reset(task, description=then, total=None)

        yield tell
