"""The verb `table`: a table with margins from a file, protected, audited, and written with its report."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

import equipoise as eq
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.records import Records
from equipoise.doors.cli import json_answers
from equipoise.doors.cli import shared_options as o
from equipoise.doors.cli.declared_options import declared, field_values
from equipoise.doors.cli.exit_codes import one_line
from equipoise.doors.cli.method_options import split
from equipoise.doors.cli.progress_bar import bar_to_stop
from equipoise.doors.cli.ready_table_options import READY_OPTIONS, asked_ready
from equipoise.doors.cli.screen_parts import flat, indented, places, say, screen
from equipoise.doors.cli.table_screens import audit, differences, remarks, side_by_side, table_as_published
from equipoise.files import format_of
from equipoise.ground.errors import ParameterError
from equipoise.policies.column_hierarchies import column_tree
from equipoise.recipe.catalogue import parse
from equipoise.releases.tabulate import HOW, TableOptions
from equipoise.releases.tabulated import Tabulated
from equipoise.rules import Marked
from equipoise.tables import CellKey, CellKeyAmounts, Round, Suppress

COLUMNS = "=columns:"


Cost = Annotated[
    str | None, o.option("What suppressing a cell loses: value (the default), count, cells or a column.", "NAME", HOW)
]
Way = Annotated[str | None, o.option("fast (the default), or optimal: the cheapest pattern, proven.", "NAME", HOW)]
Like = Annotated[
    str | None,
    o.option("The last period's release: what it suppressed costs less to suppress again.", "FOLDER", HOW),
]
Insiders = Annotated[
    bool, o.switch("--outsiders-only", "Do not guard against those who contribute and know their own cells.", HOW)
]
Pooled = Annotated[
    int | None, o.option("Guard against so many together of those who are alone in cells: 1 unless given.", "SIZE", HOW)
]
RoundedBeside = Annotated[
    str | None, o.option("Round published cells, beside suppression: 5 (sums add up), or 5,nearest.", "BASE", HOW)
]
Changed = Annotated[
    str | None,
    o.option(
        'Change numbers by this method in place of suppression: round:5, cell-key, "cell-key-amounts(small=0.1)".',
        "METHOD",
        HOW,
    ),
]
Base = Annotated[int | None, o.option("Round to multiples of this that add up, in place of suppression.", "BASE", HOW)]
Keyed = Annotated[
    bool,
    o.switch("--cell-key", "Change counts or amounts by the keys of their records, in place of suppression.", HOW),
]
Shown = Annotated[
    bool, o.switch("--show-table", "Also print the table as it is published: its categories are data values.")
]
Trees = Annotated[
    o.Names,
    o.option(
        "The groups of a column: industry=prefix:3,1 · region=csv:FILE · region=hrc:FILE · "
        "region=columns:province,country · age=intervals:5,10.",
        "COLUMN=KIND:...",
        o.ROLES,
    ),
]


@declared(TableOptions, READY_OPTIONS, {"weight": o.Weight}, o.READ | {"hierarchy": Trees})
def table(
    ctx: typer.Context,
    file: o.File = None,
    *,
    cost: Cost = None,
    method: Way = None,
    like: Like = None,
    outsiders_only: Insiders = False,
    coalition: Pooled = None,
    round_published: RoundedBeside = None,
    round: Base = None,
    change: Changed = None,
    cell_key: Keyed = False,
    show_table: Shown = False,
    as_json: o.AsJson = False,
    **options: Any,
) -> None:
    """Make a table with its margins in which no outsider or contributor can compute a sensitive cell, with the proof.

    equipoise table firms.csv --by region,industry --value turnover --rule p-percent:10% --out DIR
    """
    if str(file).lower().endswith(".arb"):
        format_of(str(file))  # Answers with the commands that do its job, whatever options are missing.
    columns, out = asked_ready(ctx.params), options["out"]
    fields = field_values(TableOptions, options, by=o.names, counts=o.names, compare=lambda names: names or ())
    fields |= _protection(ctx.params)
    with bar_to_stop("protecting and auditing the table") as progress:
        records, trees = _opened(file, ctx.params)
        tabulated = eq.tabulate(records, hierarchies=trees, ready=columns or False, progress=progress, **fields)
    if as_json:
        json_answers.show({"file": str(o.data_path(file)), **tabulated.to_plain(), **_places(out)})
    else:
        _screen(o.data_path(file), tabulated, out, show_table)


def _protection(options: Mapping[str, Any]) -> dict[str, Any]:
    """The rule and the method, before any data is read."""
    if not options["by"] and not options["ready"]:
        raise ParameterError("Missing option '--by': the columns of the table.")
    rule = parse(options["rule"], "rule") if options["rule"] else None
    method = _changing(options)
    if rule is None and options["ready"] and method is None:
        rule = Marked()
    keyed = isinstance(method, CellKey | CellKeyAmounts) or any("cell" in text for text in options["compare"] or ())
    if options["key"] and not keyed:
        raise ParameterError("--key is for --cell-key: the column with the keys of the records.")
    if method is not None:
        _refuse_unused(options)
        return {"rule": rule, "method": method}
    if rule is None:
        raise ParameterError("Say which cells are sensitive with --rule p-percent:10%, or change all with --round 5.")
    parts = {name: options[name] for name in ("cost", "method", "like", "coalition") if options[name] is not None}
    parts |= _rounding(options["round_published"]) if options["round_published"] else {}
    return {"rule": rule, "method": Suppress(rule, singletons=not options["outsiders_only"], **parts)}


def _rounding(text: str) -> dict[str, Any]:
    """How published cells are rounded: 5, or 5,nearest."""
    base, _, kind = text.partition(",")
    if not base.strip().isdecimal():
        raise ParameterError(f"--round-published takes a whole number, like 5 or 5,nearest, not {text!r}.")
    return {"round": int(base), **({"rounding": kind.strip()} if kind else {})}


def _changing(options: Mapping[str, Any]) -> Any:
    """The method that changes numbers; None where cells are suppressed."""
    ways = [name for name in ("round", "cell_key", "change") if options[name]]
    if len(ways) > 1:
        first, second = (f"--{name.replace('_', '-')}" for name in ways[:2])
        raise ParameterError(f"{first} and {second} are two ways to protect a table: take one.")
    if options["round"] is not None:
        return Round(options["round"], controlled=not options["publish"])
    if options["cell_key"]:
        return CellKeyAmounts() if options["value"] else CellKey()
    return parse(options["change"], "mask") if options["change"] else None


def _refuse_unused(options: Mapping[str, Any]) -> None:
    """Refuse what says how to suppress cells where none are."""
    for name in ("cost", "method", "like", "outsiders_only", "coalition", "round_published"):
        if options[name]:
            raise ParameterError(
                f"--{name.replace('_', '-')} is about suppressing cells: not with --round, --cell-key, --change."
            )


def _opened(file: Path | None, options: Mapping[str, Any]) -> tuple[Records, dict[str, Hierarchy]]:
    """The records, and the hierarchies that their own columns make."""
    texts = options["hierarchy"] or ()
    trees = [text for text in texts if COLUMNS not in text]
    records = o.opened(file, {**options, "hierarchy": trees}, keys_needed=False)
    own = [text.partition(COLUMNS) for text in texts if COLUMNS in text]
    return records, {column: column_tree(records, column, split(groups)) for column, _, groups in own}


def _places(out: Path | None) -> dict[str, str | None]:
    if out is None:
        return {"folder": None, "table": None, "report": None, "public_report": None}
    return {
        "folder": str(out),
        "table": str(out / "public" / "table.csv"),
        "report": str(out / "private" / "report.html"),
        "public_report": str(out / "public" / "report.html"),
    }


def _screen(file: Path, result: Tabulated, place: Path | None, shown: bool) -> None:
    out = screen()
    say(
        out,
        "Table",
        one_line(f"{result.what} by {', '.join(result.table.by)} from {file.name}, {len(result.table):,} cells"),
    )
    out.print()
    out.print(indented(Text(flat(result.words), "bold")))
    if shown:
        table_as_published(out, result)
    audit(out, result)
    differences(out, result)
    if result.compared:
        side_by_side(out, result.compared)
    remarks(out, result)
    if place is None:
        out.print("\nNothing was written: name a folder with --out.", style="dim")
        return
    places(out, {"Your report": place / "private/report.html", "To publish": place / "public"})
    out.print("What is private tells primary from secondary suppressions: keep it inside.", style="dim")
