"""The verb `publish`: which cells of a survey to publish, from a file to a report."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

import equipoise as eq
from equipoise.data.records import Records
from equipoise.doors.cli import json_answers
from equipoise.doors.cli import shared_options as o
from equipoise.doors.cli.declared_options import declared, field_values
from equipoise.doors.cli.exit_codes import one_line
from equipoise.doors.cli.progress_bar import bar
from equipoise.doors.cli.screen_parts import flat, indented, listed, places, say, screen, table, title
from equipoise.doors.report import publication_page as report
from equipoise.files import read
from equipoise.ground.errors import DataError, ParameterError, RolesError, hint
from equipoise.presentation.numbers import number, value_text
from equipoise.publishing.cells_of_domains import COUNT_COLUMNS
from equipoise.publishing.publish import Published, PublishOptions

MOST_SHOWN = 15
"""Cells listed at most with --show-values; the files have them all."""
SOURCE = "Microdata, or a table of cells with columns n, N and y, in any format; a database, with --query."
Shown = Annotated[bool, o.switch("--show-values", "Also name the cells withheld: they are data values.")]


@declared(PublishOptions, {"keys": o.Keys, "weight": o.Weight}, o.READ)
def publish(
    ctx: typer.Context,
    file: Annotated[Path | None, o.argument("FILE", SOURCE)] = None,
    *,
    show_values: Shown = False,
    as_json: o.AsJson = False,
    **options: Any,
) -> None:
    """Decide which cells of a survey to publish, weighing what publishing may disclose against what silence costs.

    equipoise publish survey.parquet --domain region --target occupation --weight w --loss uniques:10 --risk 0.2
    """
    fields, merge, out = _fields(options), options["merge"], options["out"]
    with bar("weighing the losses") as progress:
        source, records = _source(file, ctx.params)
        if progress:
            progress(1, 1, "reading")
        fields["population"] = _population(options["population"], records)
        tree = records.roles.hierarchies.get(merge) if merge else None
        decision = eq.publish(source, name=o.data_path(file).name, hierarchy=tree, **fields)
    if as_json:
        plain = decision.to_plain(values=show_values)
        json_answers.show({"file": str(o.data_path(file)), **plain, "out": str(out) if out else None})
    else:
        _screen(o.data_path(file), decision, out, show_values)


def _fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that can be read before the data."""
    aims = [name for name in ("risk", "share", "cutoff") if options[name] is not None]
    if len(aims) != 1:
        others = f", not {' and '.join(f'--{name}' for name in aims)}" if aims else ""
        raise ParameterError(f"Say how far to go with one of --risk 0.2, --share 0.6 and --cutoff 1{others}.")
    return field_values(
        PublishOptions, options, domain=lambda names: o.names(names) or None, target=_target,
        prior=lambda text: None if text is None else _two(text, "--prior", "ALPHA,BETA, like 0.5,1.5"),
        covariates=lambda names: o.names(names) or None, compare=lambda names: names or (),
        risk_at_most=lambda text: _share(text, "--risk"), publish_share=lambda text: _share(text, "--share"),
        ways=lambda texts: dict(_way(text) for text in texts or ()),
    )  # fmt: skip


def _target(texts: Sequence[str] | None) -> Any:
    """Columns, or one class of one or several columns."""
    if not texts or not any("=" in text for text in texts):
        return o.names(texts) or None
    pairs = [text.partition("=") for text in texts]
    if not all(mark and column.strip() and value.strip() for column, mark, value in pairs):
        raise ParameterError("--target names columns, or a class of each: occupation=nurse.")
    return {column.strip(): value.strip() for column, _, value in pairs}


def _share(text: str | None, name: str) -> float | None:
    """A share, also in percent."""
    if text is None:
        return None
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise ParameterError(f"{name} must be a share between 0 and 1, like 0.2 or 20%.") from None
    if not 0 <= value <= 1:
        tip = f" Write {value:g} % as {value / 100:g}." if 1 < value <= 100 else ""
        raise ParameterError(f"{name} must be a share between 0 and 1.{tip}")
    return value


def _way(text: str) -> tuple[str, tuple[float, float]]:
    name, mark, values = text.partition("=")
    if not mark or not name.strip():
        raise ParameterError("--way is written NAME=DISCLOSURE,SILENCE, like round=0.5,0.1.")
    return name.strip(), _two(values, "--way", "NAME=DISCLOSURE,SILENCE, like round=0.5,0.1")


def _two(text: str, name: str, form: str) -> tuple[float, float]:
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(f"{name} is two numbers: {form}.") from None
    return first, second


def _source(file: Path | None, options: Mapping[str, Any]) -> tuple[Any, Records]:
    """The records, or a table of cells where the file holds n, N and y and nothing says otherwise."""
    areas = {**options, "domain": options["domain"] or None}
    records = o.opened(file, areas, keys_needed=False)
    schema = records.schema()
    lacking = [name for name in COUNT_COLUMNS if name not in schema]
    sampled = records.roles.weight or options["population"]
    if not lacking and not sampled:
        return records.collect(), records
    if lacking and len(lacking) < len(COUNT_COLUMNS) and not sampled and not options["target"]:
        raise RolesError(f"A table of cells needs the columns n, N and y: there is no {' and no '.join(lacking)}.")
    return records, records


def _population(text: str | None, records: Records) -> Any:
    """A column of the data, or a file with the population of each domain."""
    if text is None or text in records.schema():
        return text
    if Path(text).exists() or Path(text).suffix:
        return read(text).collect()
    raise DataError(f"--population {text!r} is neither a column nor a file.{hint(text, list(records.schema()))}")


def _screen(file: Path, decision: Published, place: Path | None, show_values: bool) -> None:
    out = screen()
    say(out, "Publish or suppress", f"{one_line(file.name)}, {decision.counts['total']:,} cells")
    out.print()
    out.print(indented(Text(flat(decision.words), "bold")))
    out.print(indented(Text(flat(f"{report.whole_cells(decision)} {report.drawn_line(decision)}"))))
    for word, meaning in report.meanings(decision):
        out.print(indented(Text(one_line(f"{word}: {meaning}"), "dim")))
    _rules(decision)
    if decision.answers:
        listed(out, f"With more answers along {one_line(str(decision.merge))}", [flat(decision.answers.words)])
    listed(out, "Notes", map(flat, decision.notes))
    if show_values:
        _withheld(decision)
    elif not place:
        out.print("\nAdd --show-values to name the cells withheld (they are data values).", style="dim")
    if place:
        places(out, {"The decision": place} if place.suffix else {"Your report": place / "report.html"})
        out.print("It names cells by their values: keep it inside.", style="dim")


def _rules(decision: Published) -> None:
    """What each rule would give, the best first."""
    out, what = screen(), "risk" if decision.by_share else "withheld"
    title(out, f"What the wrong rule would cost, at the same {'share published' if decision.by_share else 'risk'}")
    rows = table("Cells ordered by", what.capitalize(), "More")
    for row in report.by_cost(decision).iter_rows(named=True):
        more = "" if row["rule"] == "optimal" else report.points(row["cost"])
        rows.add_row(one_line(report.sentence(row["rule"])), flat(value_text(row[what], "share")), more)
    out.print(indented(rows))
    if text := report.cost_words(decision):
        out.print(indented(Text(flat(text))))


def _withheld(decision: Published) -> None:
    out, names = screen(), [*decision.publication.data.keys] or ["y", "n", "N"]
    cells = decision.cells.filter(~decision.cells["publish"]).sort("ratio", descending=True, nulls_last=True)
    more = f", the first {MOST_SHOWN} of {cells.height:,}" if cells.height > MOST_SHOWN else ""
    title(out, f"Cells withheld{more}")
    rows = table(one_line(", ".join(names)), "y", "Expected Y", "R1/R0")
    for row in cells.head(MOST_SHOWN).iter_rows(named=True):
        label = one_line(", ".join(str(row[name]) for name in names))
        rows.add_row(label, number(row["y"]), number(row["mean"]), number(row["ratio"] or 0.0))
    out.print(indented(rows))
