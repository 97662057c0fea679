"""Screen of `equipoise attack`: what each intruder could do, and the most dangerous combinations of known columns."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from equipoise.doors.cli.exit_codes import one_line
from equipoise.doors.cli.screen_parts import flat, indented, listed, places, say, screen, table, title
from equipoise.doors.cli.screens import MAX_ROWS, four_figures
from equipoise.doors.report.intruder_section import tried_attacks
from equipoise.intrusion.attack import Attack
from equipoise.presentation.numbers import value_text


def show_attack(
    released: Sequence[Path], against: Path, attack: Attack, people: pl.DataFrame | None, page: Path | None
) -> None:
    out, name = screen(), ", ".join(one_line(path.name) for path in released)
    say(out, f"Attack on {name}", f"{attack.records:,} people of {one_line(against.name)}")
    title(out, "What an intruder could do")
    for scenario in attack.scenarios:
        out.print(indented(Text(flat(scenario.words), "bold" if scenario is attack.strongest else "")))
        if words := tried_attacks(scenario):
            out.print(Padding(Text(flat(words), "dim"), (0, 0, 0, 4), expand=False))
    _by_knowledge(out, attack)
    if people is not None:
        _at_risk(out, people)
    if attack.notes:
        listed(out, "Notes", attack.notes)
    if page:
        places(out, {"Your report": page})


def _by_knowledge(out: Console, attack: Attack) -> None:
    """The combinations of known columns that link most people."""
    if attack.knowledge.is_empty():
        return
    more = attack.knowledge.height - MAX_ROWS
    title(out, "Most dangerous knowledge" + (f", the first {MAX_ROWS}: --json lists {more} more" if more > 0 else ""))
    rows = table("Known", "Linked", "Interval", "Guessing")
    for row in attack.worst(MAX_ROWS).iter_rows(named=True):
        value, low, high, guess = (flat(value_text(row[n], "share")) for n in ("value", "low", "high", "baseline"))
        rows.add_row(one_line(row["known"]), value, f"{low} to {high}", guess)
    out.print(indented(rows))


def _at_risk(out: Console, people: pl.DataFrame) -> None:
    name = people.columns[0]
    title(out, f"People at most risk, by {one_line(name) if name != 'record' else 'row number, from 0'}")
    rows = table(one_line(name), *(column.capitalize() for column in people.columns[1:]))
    for row in people.iter_rows():
        rows.add_row(one_line(str(row[0])), *("" if value is None else four_figures(value) for value in row[1:]))
    out.print(indented(rows))
