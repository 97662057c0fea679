"""Screens and JSON answers for tables: methods compared, and the table that a policy released."""

from math import isfinite
from typing import Any

from rich.console import Console
from rich.text import Text

from equipoise.doors.cli.exit_codes import one_line
from equipoise.doors.cli.json_answers import scores
from equipoise.doors.cli.screen_parts import best_of, flat, indented, listed, places, say, screen, table, title
from equipoise.doors.report.page_parts import Facts
from equipoise.doors.report.period_section import change_counts, period_words
from equipoise.doors.report.table_grid import grid
from equipoise.doors.report.table_page import certificate
from equipoise.ground.system import privacy
from equipoise.methods.score import Score
from equipoise.presentation.numbers import value_text
from equipoise.recipe.catalogue import to_plain
from equipoise.releases.table_release import TableRelease
from equipoise.releases.tabulated import Tabulated
from equipoise.search.table_comparison import TableComparison

SCORE_HEADINGS = {n.lower(): n for n in ("Exposed", "Suppressed", "Distance")} | {"kept_margins": "Totals kept"}


def side_by_side(out: Console, compared: TableComparison) -> None:
    """A row per method with its scores, the released one marked, and the methods that could not be run."""
    names = compared.chosen.scores.keys()
    title(out, "Methods compared")
    rows = table("Method", *(SCORE_HEADINGS.get(name.partition("(")[0], one_line(name)) for name in names))
    for trial in (*compared.trials, compared.original):
        mark = " (released)" if trial.recipe == compared.chosen.recipe and trial is not compared.original else ""
        rows.add_row(one_line(trial.words() + mark), *(_value(score) for score in trial.scores))
    out.print(indented(rows))
    if compared.trials.left_out:
        listed(out, "Left out", [flat(f"{method.name}: {method.reason}") for method in compared.trials.left_out])


def _value(score: Score) -> str:
    return flat(value_text(score.value, score.unit)) if isfinite(score.value) else "n/a"


def table_as_published(out: Console, tabulated: Tabulated) -> None:
    """The table as it is published, in reading order: an x is suppressed; columns that do not fit stand below."""
    facts = grid(tabulated, public=True)
    title(out, flat(f"{facts['unit']} by {', '.join(tabulated.table.by)}"))
    for block in facts["blocks"]:
        if block["name"]:
            out.print(indented(Text(flat(f"{facts['over']}: {block['name']}"), "bold")))
        labels = ["  " * max(0, row["depth"] - 1) + flat(row["label"]) for row in block["rows"]]
        for columns in _screenfuls(facts, block, out.width - max(map(len, labels)) - 4):
            rows = table(flat(facts["corner"]), *(flat(facts["columns"][i]["label"]) for i in columns))
            rows.width = None
            for label, row in zip(labels, block["rows"], strict=True):
                rows.add_row(label, *(row["cells"][i]["text"] for i in columns), style="bold" if row["total"] else "")
            out.print(indented(rows))
            out.print()
    legend = ["x: suppressed."] if tabulated.counts["suppressed"] else []
    for line in (*legend, *(f"Shown: {cut}; table.csv has all." for cut in facts["cuts"])):
        out.print(indented(Text(line, "dim")))


def _screenfuls(facts: Facts, block: Facts, width: int) -> list[list[int]]:
    """The columns of a block, as many at a time as fit the width."""
    screenfuls: list[list[int]] = [[]]
    left = width
    for i, column in enumerate(facts["columns"]):
        wide = 2 + max(8, len(column["label"]), *(len(row["cells"][i]["text"]) for row in block["rows"]))
        if screenfuls[-1] and wide > left:
            screenfuls.append([])
            left = width
        screenfuls[-1].append(i)
        left -= wide
    return screenfuls


def differences(out: Console, tabulated: Tabulated) -> None:
    """What became of the cells since the last period, where the pattern followed one."""
    if counts := change_counts(tabulated):
        heading = ", ".join(f"{many:,} {kind}" for kind, many in counts)
        listed(out, "Differences to the last period", [flat(f"Cells: {heading}."), *period_words(tabulated)])


def audit(out: Console, tabulated: Tabulated) -> None:
    """The audit that was passed: against whom, against whom not, and in numbers."""
    listed(out, "Audit: passed against", map(flat, tabulated.attackers.internal))
    listed(out, "Not against", map(flat, tabulated.attackers.not_cover))
    title(out, "In numbers, for an outsider")
    rows = table("", "")
    rows.show_header = False
    for name, number in certificate(tabulated):
        rows.add_row(name, flat(number))
    out.print(indented(rows))


def remarks(out: Console, tabulated: Tabulated) -> None:
    """Warnings about the rules, of which the report names an example, and notes."""
    if tabulated.warnings:
        listed(out, "The rule needs a second look", _doubts(tabulated))
    if tabulated.notes:
        listed(out, "Notes", map(flat, tabulated.notes))


def _doubts(tabulated: Tabulated) -> list[str]:
    several = len(tabulated.warnings) > 1 or tabulated.compared is not None
    lines = [f"{w.rule}: {w.words}" if several else w.words for w in tabulated.warnings]
    more = " The internal report names the worst of them." if any(w.example for w in tabulated.warnings) else ""
    return [*map(flat, lines[:-1]), flat(lines[-1] + more)]


def released(release: TableRelease) -> None:
    """Screen of `balance` for a table."""
    out, tabulated = screen(), release.table
    say(out, "Released", best_of(candidates(release)), "bold green")
    out.print(indented(Text(flat(release.trial.words()), "bold")))
    out.print(indented(Text(flat(tabulated.words))))
    side_by_side(out, release.comparison)
    audit(out, tabulated)
    differences(out, tabulated)
    remarks(out, tabulated)
    places(out, {"Your report": release.report, "To publish": release.public, "To keep secret": release.private})
    if note := privacy():
        out.print(note, style="dim")


def candidates(release: TableRelease) -> dict[str, int]:
    """The numbers of candidates tried, on the frontier, inside the limits, and left out."""
    compared = release.comparison
    inside = sum(release.policy.judge(trial).accepted for trial in compared.trials)
    return {
        "tried": len(compared.trials),
        "frontier": len(compared.frontier),
        "inside": inside,
        "left_out": len(compared.trials.left_out),
    }


def plain_release(release: TableRelease) -> dict[str, Any]:
    """A released table as plain data with stable keys, without labels and values of cells."""
    plain = release.table.to_plain()
    return {
        "verdict": "accepted" if release.verdict else "refused",
        "reasons": list(release.verdict.reasons),
        "done": [law.words for law in release.table.table.history],
        "masks": [to_plain(mask) for mask in release.trial.recipe.masks],
        "scores": scores(release.trial.scores),
        "limits": dict(release.policy.limits),
        "candidates": candidates(release),
        "table": {
            name: plain[name] for name in ("words", "by", "value", "rule", "counts", "audit", "notes", "changes")
        },
        "compared": plain["compared"],
        "warnings": [{"rule": w.rule, "words": w.words.replace("\xa0", " ")} for w in release.table.warnings],
        "folder": str(release.folder),
        "data": str(release.public / "table.csv"),
        "report": str(release.report),
        "public_report": str(release.public / "report.html"),
    }
