"""Methods for tables side by side, and tables that a policy released: what people see, and the same as plain data."""

from math import isfinite
from typing import Any

from rich.console import Console
from rich.text import Text

from equipoise.doors.cli.exit_codes import one_line
from equipoise.doors.cli.json_answers import scores
from equipoise.doors.cli.screen_parts import best_of, flat, indented, listed, say, screen, title
from equipoise.doors.cli.screen_parts import table as columns_of
from equipoise.doors.report.table_page import certificate
from equipoise.ground.system import privacy
from equipoise.methods.score import Score
from equipoise.presentation.numbers import said
from equipoise.recipe.catalogue import to_plain
from equipoise.releases.table_release import TableRelease
from equipoise.releases.tabulated import Tabulated
from equipoise.search.table_comparison import TableComparison

HEADS = {"exposed": "Exposed", "withheld": "Withheld", "distance": "Distance", "kept_margins": "Totals kept"}


def side_by_side(out: Console, compared: TableComparison) -> None:
    """A row per method with its scores, the released one marked, and what could not be tried."""
    names = compared.chosen.scores.keys()
    title(out, "Methods compared")
    rows = columns_of("Method", *(HEADS.get(name.partition("(")[0], one_line(name)) for name in names))
    for trial in (*compared.trials, compared.original):
        mark = " (released)" if trial.recipe == compared.chosen.recipe and trial is not compared.original else ""
        rows.add_row(one_line(trial.words() + mark), *(_value(score) for score in trial.scores))
    out.print(indented(rows))
    if compared.trials.left_out:
        listed(out, "Left out", [flat(f"{left.name}: {left.reason}") for left in compared.trials.left_out])


def _value(score: Score) -> str:
    return flat(said(score.value, score.unit)) if isfinite(score.value) else "n/a"


def doubts(out: Console, found: Tabulated) -> None:
    """What is wrong with the rules; the report names an example."""
    if not found.warnings:
        return
    several = len(found.warnings) > 1 or found.compared is not None
    lines = [f"{w.rule}: {w.words}" if several else w.words for w in found.warnings]
    more = " The internal report names the worst of them." if any(w.example for w in found.warnings) else ""
    listed(out, "The rule needs a second look", [*map(flat, lines[:-1]), flat(lines[-1] + more)])


def released(made: TableRelease) -> None:
    """What `balance` says of a table."""
    out, found = screen(), made.table
    say(out, "Released", best_of(candidates(made)), "bold green")
    out.print(indented(Text(flat(made.trial.words()), "bold")))
    out.print(indented(Text(flat(found.words))))
    side_by_side(out, made.comparison)
    title(out, "Audit: passed")
    rows = columns_of("", "")
    rows.show_header = False
    for name, number in certificate(found):
        rows.add_row(name, flat(number))
    out.print(indented(rows))
    doubts(out, found)
    if found.notes:
        listed(out, "Notes", map(flat, found.notes))
    out.print()
    for name, path in (("Your report", made.report), ("To publish", made.public), ("To keep secret", made.private)):
        out.print(Text(f"{name:<15}", "bold"), str(path), sep="", soft_wrap=True)
    if note := privacy():
        out.print(note, style="dim")


def candidates(made: TableRelease) -> dict[str, int]:
    """How many were tried, how many nobody beats, how many are inside the limits, how many could not be made."""
    compared = made.comparison
    inside = sum(made.policy.judge(trial).accepted for trial in compared.trials)
    return {
        "tried": len(compared.trials),
        "frontier": len(compared.frontier),
        "inside": inside,
        "left_out": len(compared.trials.left_out),
    }


def plain_release(made: TableRelease) -> dict[str, Any]:
    """A released table as plain data with stable keys, without labels and values of cells."""
    told = made.table.to_plain()
    return {
        "verdict": "accepted" if made.verdict else "refused",
        "reasons": list(made.verdict.reasons),
        "done": [law.words for law in made.table.table.history],
        "masks": [to_plain(mask) for mask in made.trial.recipe.masks],
        "scores": scores(made.trial.scores),
        "limits": dict(made.policy.limits),
        "candidates": candidates(made),
        "table": {name: told[name] for name in ("words", "by", "value", "rule", "counts", "notes")},
        "compared": told["compared"],
        "warnings": [{"rule": w.rule, "words": w.words.replace("\xa0", " ")} for w in made.table.warnings],
        "folder": str(made.folder),
        "data": str(made.public / "table.csv"),
        "report": str(made.report),
        "public_report": str(made.public / "report.html"),
    }
