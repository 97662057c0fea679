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
from equipoise.doors.cli.exit_codes import one_line
from equipoise.doors.cli.method_options import split
from equipoise.doors.cli.progress_bar import bar
from equipoise.doors.cli.screen_parts import flat, indented, listed, say, screen, table, title
from equipoise.doors.report.publication_page import (
    by_cost,
    cost_words,
    drawn_line,
    meanings,
    points,
    sentence,
    whole_cells,
)
from equipoise.files import read
from equipoise.ground.errors import DataError, ParameterError, RolesError, hint
from equipoise.presentation.numbers import number, said
from equipoise.publishing.cells_of_domains import COUNTS
from equipoise.publishing.publish import Published

MOST_SHOWN = 15
"""Cells listed at most with --show-values; the files have them all."""
MODEL, LIMIT, MORE = "Losses and population", "How far to go: one of these", "More answers"


def _option(text: str, metavar: str, panel: str = MODEL) -> Any:
    return typer.Option(help=text, metavar=metavar, rich_help_panel=panel, show_default=False)


Source = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE", show_default=False,
        help="Microdata, or a table of cells with columns n, N and y, in any format; a database, with --query.",
    ),
]  # fmt: skip
Areas = Annotated[o.Names, _option("The areas that were sampled: region, or region,age.", "COLUMNS")]
Target = Annotated[
    o.Names, _option("The classes (occupation), or one class (occupation=nurse).", "COLUMNS or COLUMN=CLASS")
]
LossName = Annotated[
    str,
    typer.Option(
        help="The loss of disclosure: uniques:S, gamma-uniques:S,a, subclasses:keys=age+sex, small-group:S, "
        "respondents:S, threshold:MINIMUM.", metavar="NAME:VALUES", rich_help_panel=MODEL,
    ),
]  # fmt: skip
Silent = Annotated[
    str,
    typer.Option(
        help="What withholding a cell costs: cell, y, Y, n, N, or a column with its importance.", metavar="NAME",
        rich_help_panel=MODEL,
    ),
]  # fmt: skip
Prior = Annotated[
    str | None, _option("Of a cell's share of its domain; fitted over the domains when not given.", "ALPHA,BETA")
]
Size = Annotated[
    str | None,
    _option("A column with the domain's N, or a file of domains and N; else the sum of weights.", "COLUMN or FILE"),
]
Covariates = Annotated[o.Names, _option("Columns on which the mean of the prior depends.", "COLUMNS")]
Compare = Annotated[
    o.Names, _option("What would another loss cost? Also of both: uniques:1/cell. Repeatable.", "NAME:VALUES")
]
Risk = Annotated[str | None, _option("Leave at most this share of the risk of publishing everything.", "SHARE", LIMIT)]
Share = Annotated[str | None, _option("Publish at least this share of what there is.", "SHARE", LIMIT)]
Cutoff = Annotated[
    float | None, _option("Publish where R1, the loss of publishing, is below so many times R0.", "NUMBER", LIMIT)
]
Merge = Annotated[
    str | None, _option("Also cut the hierarchy of this column: merge cells, or tell coarser ones.", "COLUMN", MORE)
]
Way = Annotated[
    o.Names,
    _option(
        "What else can be done with a cell: the shares of both losses it leaves, as round=0.5,0.1.",
        "NAME=DISCLOSURE,SILENCE", MORE,
    ),
]  # fmt: skip
Place = Annotated[
    Path | None,
    typer.Option(
        help="A folder for decision.csv, decision.json and report.html, or one such file; they name cells.",
        metavar="DIR or FILE", show_default=False,
    ),
]  # fmt: skip
Shown = Annotated[
    bool, typer.Option("--show-values", help="Also name the cells withheld: they are data values.", metavar=" ")
]


def publish(
    ctx: typer.Context,
    file: Source = None,
    domain: Areas = None,
    target: Target = None,
    loss: LossName = "uniques:10",
    nonpublication: Silent = "y",
    prior: Prior = None,
    population: Size = None,
    covariates: Covariates = None,
    compare: Compare = None,
    risk: Risk = None,
    share: Share = None,
    cutoff: Cutoff = None,
    merge: Merge = None,
    way: Way = None,
    out: Place = None,
    overwrite: o.Overwrite = False,
    show_values: Shown = False,
    as_json: o.AsJson = False,
    keys: o.Keys = None,
    weight: o.Weight = None,
    hierarchy: o.Trees = None,
    roles: o.RolesFile = None,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    decimal: o.Decimal = None,
    sheet: o.Sheet = None,
    metadata: o.Metadata = None,
    query: o.Query = None,
    database: o.Database = None,
) -> None:
    """Decide which cells of a survey to publish, weighing what publishing may disclose against what silence costs.

    equipoise publish survey.parquet --domain region --target occupation --weight w --loss uniques:10 --risk 0.2
    """
    asked = _asked(ctx.params)
    with bar("weighing the losses") as progress:
        source, records = _source(file, ctx.params)
        if progress:
            progress(1, 1, "reading")
        found = eq.publish(
            source,
            out=out,
            overwrite=overwrite,
            name=o.shown(file).name,
            domain=_names(domain) or None,
            target=_target(target),
            population=_population(population, records),
            hierarchy=records.roles.hierarchies.get(merge) if merge else None,
            **asked,
        )
    if as_json:
        json_answers.show(_answer(o.shown(file), found, out, show_values))
    else:
        _screen(o.shown(file), found, out, show_values)


# What was asked -------------------------------------------------------------------------------------------------------


def _asked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that can be read before the data."""
    given = [name for name in ("risk", "share", "cutoff") if options[name] is not None]
    if len(given) != 1:
        named = f", not {' and '.join(f'--{name}' for name in given)}" if given else ""
        raise ParameterError(f"Say how far to go with one of --risk 0.2, --share 0.6 and --cutoff 1{named}.")
    return {
        "disclosure": options["loss"],
        "nonpublication": options["nonpublication"],
        "prior": _prior(options["prior"]),
        "covariates": _names(options["covariates"]) or None,
        "compare": options["compare"] or (),
        "risk_at_most": _share(options["risk"], "--risk"),
        "publish_share": _share(options["share"], "--share"),
        "cutoff": options["cutoff"],
        "merge": options["merge"],
        "ways": dict(_way(text) for text in options["way"] or ()),
    }


def _names(given: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(name for text in given or () for name in split(text))


def _target(given: Sequence[str] | None) -> Any:
    """Columns, or one class of one or several columns."""
    if not given or not any("=" in text for text in given):
        return _names(given) or None
    pairs = [text.partition("=") for text in given]
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


def _prior(text: str | None) -> tuple[float, float] | None:
    return None if text is None else _two(text, "--prior", "ALPHA,BETA, like 0.5,1.5")


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
    lacking = [name for name in COUNTS if name not in schema]
    sampled = records.roles.weight or options["population"]
    if not lacking and not sampled:
        return records.collect(), records
    if lacking and len(lacking) < len(COUNTS) and not sampled and not options["target"]:
        raise RolesError(f"A table of cells needs the columns n, N and y: there is no {' and no '.join(lacking)}.")
    return records, records


def _population(text: str | None, records: Records) -> Any:
    """A column of the data, or a file with the population of each domain."""
    if text is None or text in records.schema():
        return text
    if Path(text).exists() or Path(text).suffix:
        return read(text).collect()
    raise DataError(f"--population {text!r} is neither a column nor a file.{hint(text, list(records.schema()))}")


# What is answered -----------------------------------------------------------------------------------------------------


def _answer(file: Path, found: Published, out: Path | None, show_values: bool) -> dict[str, Any]:
    return {"file": str(file), **found.to_plain(values=show_values), "out": str(out) if out else None}


def _screen(file: Path, found: Published, place: Path | None, show_values: bool) -> None:
    out = screen()
    say(out, "Publish or suppress", f"{one_line(file.name)}, {found.counts['total']:,} cells")
    out.print()
    out.print(indented(Text(flat(found.words), "bold")))
    out.print(indented(Text(flat(f"{whole_cells(found)} {drawn_line(found)}"))))
    for word, meaning in meanings(found):
        out.print(indented(Text(one_line(f"{word}: {meaning}"), "dim")))
    _rules(found)
    if found.answers:
        listed(out, f"With more answers along {one_line(str(found.merge))}", [flat(found.answers.words)])
    listed(out, "Notes", map(flat, found.notes))
    if show_values:
        _withheld(found)
    elif not place:
        out.print("\nAdd --show-values to name the cells withheld (they are data values).", style="dim")
    if place:
        out.print()
        words = "The decision" if place.suffix else "Your report"
        shown = place if place.suffix else place / "report.html"
        out.print(Text(f"{words:<15}", "bold"), str(shown), sep="", soft_wrap=True)
        out.print("It names cells by their values: keep it inside.", style="dim")


def _rules(found: Published) -> None:
    """What each rule would give, the best first."""
    out, what = screen(), "risk" if found.by_share else "withheld"
    title(out, f"What the wrong rule would cost, at the same {'share published' if found.by_share else 'risk'}")
    rows = table("Cells ordered by", what.capitalize(), "More")
    for row in by_cost(found).iter_rows(named=True):
        more = "" if row["rule"] == "optimal" else points(row["cost"])
        rows.add_row(one_line(sentence(row["rule"])), flat(said(row[what], "share")), more)
    out.print(indented(rows))
    if told := cost_words(found):
        out.print(indented(Text(flat(told))))


def _withheld(found: Published) -> None:
    out, names = screen(), [*found.publication.data.keys] or ["y", "n", "N"]
    cells = found.cells.filter(~found.cells["publish"]).sort("ratio", descending=True, nulls_last=True)
    more = f", the first {MOST_SHOWN} of {cells.height:,}" if cells.height > MOST_SHOWN else ""
    title(out, f"Cells withheld{more}")
    rows = table(one_line(", ".join(names)), "y", "Expected Y", "R1/R0")
    for row in cells.head(MOST_SHOWN).iter_rows(named=True):
        named = one_line(", ".join(str(row[name]) for name in names))
        rows.add_row(named, number(row["y"]), number(row["mean"]), number(row["ratio"] or 0.0))
    out.print(indented(rows))
