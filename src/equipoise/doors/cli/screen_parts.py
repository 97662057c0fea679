"""Parts that all screens share: titles, sentences, tables."""

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from equipoise.doors.cli.exit_codes import one_line

MAX_WIDTH = 100
"""Terminal columns that a table fills at most."""


class Screen(Console):
    """Standard output: colour only on a terminal that wants it, markup and emoji codes never read."""

    def __init__(self) -> None:
        super().__init__(markup=False, highlight=False, emoji=False)

    def on_broken_pipe(self) -> None:
        """Raise instead of exiting: `guarded` chooses the exit code."""
        raise BrokenPipeError


def screen() -> Console:
    return Screen()


def flat(text: str) -> str:
    """One line with percent signs next to their numbers, as a terminal breaks lines at any space."""
    return one_line(text.replace("\xa0%", "%"))


def table(first: str, *numbers: str) -> Table:
    """A table whose number columns line up with those of the next one."""
    width = min(screen().width, MAX_WIDTH) - 2
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", width=width)
    table.add_column(first, ratio=1, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True, min_width=8)
    return table


def say(out: Console, first: str, then: str, style: str = "bold") -> None:
    out.print(Text.assemble((first, style), f": {then}"), soft_wrap=True)


def title(out: Console, words: str) -> None:
    out.print(f"\n{words}", style="bold")


def listed(out: Console, heading: str, lines: Iterable[str]) -> None:
    title(out, heading)
    for line in lines:
        out.print(indented(Text(one_line(line))))


def indented(what: Table | Text) -> Padding:
    return Padding(what, (0, 0, 0, 2), expand=False)


def places(out: Console, paths: Mapping[str, object]) -> None:
    """Where what was made is, after an empty line."""
    out.print()
    for name, path in paths.items():
        out.print(Text(f"{name:<15}", "bold"), str(path), sep="", soft_wrap=True)


def best_of(counts: Mapping[str, int]) -> str:
    """How many candidates the release was chosen from, in words."""
    inside, total = counts["inside"], f"{counts['tried']:,} tried"
    best = f"the best of {inside:,} candidates" if inside > 1 else "the only candidate"
    return f"{best} inside the limits ({total})"
