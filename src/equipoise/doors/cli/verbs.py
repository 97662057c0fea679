"""The verbs that make a release, and the one that tries to break it."""

from pathlib import Path
from typing import Annotated

import typer

import equipoise as eq
from equipoise.doors.cli import attack_screen, json_answers, screens, table_screens
from equipoise.doors.cli import shared_options as o
from equipoise.doors.cli.progress_bar import bar
from equipoise.doors.cli.write_to_database import goal, in_memory
from equipoise.recipe.catalogue import parse
from equipoise.releases.release import Release
from equipoise.releases.tables.balance import TableRelease


def protect(
    ctx: typer.Context,
    file: o.File = None,
    *,
    out: o.Out,
    mask: Annotated[
        o.Names,
        typer.Option(
            help="What to do, in this order: recode:age,5 or top-code --column salary --at 100000; repeat for more.",
            metavar="NAME[:FIELDS]", show_default=False,
        ),
    ] = None,
    limit: Annotated[
        o.Names,
        typer.Option(
            help='What must hold, or nothing is released: "uniques < 0.02"; repeat for more.',
            metavar='"MEASURE < NUMBER"', show_default=False,
        ),
    ] = None,
    allow: o.Allow = None,
    format: o.Format = None,
    register: o.Register = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            help="Sign the evidence with this private Ed25519 key (PEM).", metavar="KEY.pem", show_default=False
        ),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(
            help="Also put the released data into the database of --query, as this table.", metavar="TABLE",
            show_default=False,
        ),
    ] = None,
    overwrite: o.Overwrite = False,
    as_json: o.AsJson = False,
    keys: o.Keys = None,
    sensitive: o.Sensitive = None,
    numeric: o.Numeric = None,
    weight: o.Weight = None,
    household: o.Household = None,
    domain: o.Domain = None,
    id: o.Id = None,
    direct: o.Direct = None,
    hierarchy: o.Trees = None,
    roles: o.RolesFile = None,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    decimal: o.Decimal = None,
    sheet: o.Sheet = None,
    metadata: o.Metadata = None,
    query: o.Query = None,
    database: o.Database = None,
) -> None:  # fmt: skip
    """Apply masks to a file, in order, and write the release with its report.

    The fields of a mask may follow it as options: --mask top-code --column salary --at 100000

    Options directly after its name are its own; further on, until the next --mask, those protect does not have.

    All about one: --mask top-code --help
    """
    with bar("masking, measuring and writing the release") as progress:
        policy = o.limits(limit or (), allow or ())
        masks = [parse(text, "mask") for text in mask or ()]
        if table := goal(into, file, ctx.params):
            table.refuse(overwrite)
        records = o.opened(file, ctx.params)
        records = in_memory(records) if table else records
        if progress:
            progress(1, 1, "reading")
        made = eq.protect(
            records, masks, out, policy=policy, format=format, overwrite=overwrite, register=register,
            sign=sign, progress=progress,
        )  # fmt: skip
        if table:
            table.put(made, overwrite)
    _answer(made, as_json, searched=False)


def balance(
    policy: o.PolicyFile,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The release folder, when not as the policy says (beside it, by default).", metavar="DIR",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="A page to write, for internal use, also when the policy refuses.", metavar="REPORT.html",
            show_default=False,
        ),
    ] = None,
    overwrite: o.Overwrite = False,
    as_json: o.AsJson = False,
) -> None:  # fmt: skip
    """The main job: try every candidate of a policy file, and release the best one inside its limits.

    A policy with a table section releases a table.
    """
    with bar("measuring and writing the release") as progress:
        made = eq.balance(policy, out=out, report=report, overwrite=overwrite, progress=progress)
    _answer(made, as_json, searched=True)


def attack(
    ctx: typer.Context,
    released: Annotated[
        list[Path],
        typer.Argument(
            metavar="RELEASED", help="The released file, or a release folder; several noisy copies of one file.",
            show_default=False,
        ),
    ],
    against: Annotated[
        Path | None,
        typer.Option(
            help="What the intruder has: the original file, or a register with other columns and other people; "
            "a database, with --query.", metavar="FILE", show_default=False,
        ),
    ] = None,
    known: Annotated[
        o.Names,
        typer.Option(
            help="The columns of which the intruder knows the values: age,sex,region.", metavar="COLUMNS",
            show_default=False,
        ),
    ] = None,
    size: Annotated[int, typer.Option(help="Try every combination of up to so many known columns.", min=1)] = 2,
    attack: Annotated[
        o.Names,
        typer.Option(
            help="What to try, nearest or interval --width 0.05; repeat for more. All of them when not given.",
            metavar="NAME[:FIELDS]", show_default=False,
        ),
    ] = None,
    exposed: Annotated[
        int, typer.Option(help="List so many of the people at most risk, by id or row number.", min=0)
    ] = 0,
    out: Annotated[
        Path | None, typer.Option(help="A page to write, for internal use.", metavar="REPORT.html", show_default=False)
    ] = None,
    overwrite: o.Overwrite = False,
    as_json: o.AsJson = False,
    sensitive: o.Sensitive = None,
    numeric: o.Numeric = None,
    id: o.RecordId = None,
    hierarchy: o.Trees = None,
    roles: o.RolesFile = None,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    decimal: o.Decimal = None,
    sheet: o.Sheet = None,
    metadata: o.Metadata = None,
    query: o.Query = None,
    database: o.Database = None,
) -> None:  # fmt: skip
    """Try to break a release, whatever made it: whom could an intruder find who knows some columns?

    The fields of an attack may follow it as options: --attack nearest --metric mahalanobis

    All about one: --attack nearest --help
    """
    with bar("writing the page") as progress:
        methods = [o.attack_named(text) for text in attack or ()] or None
        files = o.attacked(released, against, ctx.params)
        found = eq.attack(
            files.released,
            files.original,
            known=files.known,
            size=size,
            attacks=methods,
            progress=progress,
            out=out,
            overwrite=overwrite,
        )
        people = found.exposed(exposed) if exposed else None
    if as_json:
        json_answers.show(json_answers.attack(released, o.shown(against), found, people, out))
    else:
        attack_screen.show_attack(released, o.shown(against), found, people, out)


def _answer(made: Release | TableRelease, as_json: bool, *, searched: bool) -> None:
    if isinstance(made, TableRelease):
        json_answers.show(table_screens.plain_release(made)) if as_json else table_screens.released(made)
    elif as_json:
        json_answers.show(json_answers.release(made, searched=searched))
    else:
        screens.release(made, searched=searched)
