"""The verb `roles`: propose a role for every column, with the reason."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from equipoise.doors.cli import json_answers, screen_parts, screens
from equipoise.doors.cli import shared_options as o
from equipoise.doors.cli.declared_options import declared
from equipoise.doors.cli.exit_codes import one_line
from equipoise.doors.cli.progress_bar import bar
from equipoise.ground.system import shell_word
from equipoise.ground.whole_files import refuse_page
from equipoise.inspection.suggest_roles import Proposal, Suggestion, levels, suggest_roles

STYLES = {"direct": "bold red", "none": "dim"}


@declared(None, o.SOURCE)
def roles(
    ctx: typer.Context,
    file: o.File = None,
    out: Annotated[Path | None, o.option("A roles file to write, with the reasons as comments.", "ROLES.toml")] = None,
    overwrite: o.Overwrite = False,
    as_json: o.AsJson = False,
    **_: Any,
) -> None:
    """Propose a role for every column of a file, with the reason; nothing is applied until you name the roles file.

    Direct identifiers are pointed out: with the role direct they are withheld from every release.
    """
    if out is not None:
        refuse_page(out, overwrite, "file", "roles.toml", reads=(file,))
    with bar("looking at the columns"):
        source, arguments = o.source_of(file, ctx.params)
        suggestion = suggest_roles(source, **arguments)
    if out is not None:
        suggestion.toml(out, overwrite=overwrite)
    if as_json:
        json_answers.show(_json_answer(o.data_path(file), suggestion, out))
    else:
        _screen(o.data_path(file), suggestion, out, o.typed(file, ctx.params))


def _json_answer(file: Path, suggestion: Suggestion, out: Path | None) -> dict[str, Any]:
    """The answer of --json: no value of the data, so a hierarchy is described by the names of its levels."""
    return {
        "file": str(file),
        "records": suggestion.records,
        "looked_at": suggestion.looked_at,
        "columns": [
            {
                "column": p.column,
                "role": p.role,
                "reason": p.reason,
                "confidence": p.confidence,
                "levels": [level.name for level in p.hierarchy.levels[1:]] if p.hierarchy else [],
            }
            for p in suggestion.proposals
        ],
        "direct": list(suggestion.direct),
        "roles_file": str(out) if out else None,
    }


def _screen(file: Path, suggestion: Suggestion, out: Path | None, typed: str) -> None:
    console = screen_parts.screen()
    sample = f", {suggestion.looked_at:,} of them looked at" if suggestion.looked_at < suggestion.records else ""
    size = f"{suggestion.records:,} records{sample}, {len(suggestion.proposals)} columns"
    screen_parts.say(console, one_line(file.name), size)
    console.print()
    console.print(_table(suggestion.proposals, console))
    console.print(
        "\nA role with ? is likely, with ?? a guess. A proposal is not a decision: check every line.", style="dim"
    )
    if suggestion.direct:
        columns = ", ".join(map(one_line, suggestion.direct))
        console.print(Text(f"Direct identifiers, withheld from a release or refused in it: {columns}", "bold red"))
    name = shell_word(out or "roles.toml")
    if out is None:
        screens.steps(("Write them to a file with the reasons, and edit it", f"equipoise roles {typed} --out {name}"))
    else:
        screens.steps(("Check the roles file, then use it", f"equipoise assess {typed} --roles {name}"))


def _table(proposals: tuple[Proposal, ...], console: Console) -> Table:
    """A row per column: its name, role and reason, with the levels of its hierarchy under the reason."""
    width = min(console.width, screen_parts.MAX_WIDTH)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", width=width)
    table.add_column("Column", overflow="fold", max_width=24)
    table.add_column("Role", no_wrap=True)
    table.add_column("Why", ratio=1)
    marks = {"high": "", "medium": " ?", "low": " ??"}
    for p in proposals:
        style = STYLES.get(p.role, "")
        why = Text(one_line(p.reason))
        if p.role != "numeric" and (tree := levels(p)):
            why.append(f"\nlevels: {one_line(tree)}", "dim")
        table.add_row(Text(one_line(p.column), style), Text(f"{p.role}{marks[p.confidence]}", style), why)
    return table
