"""The verbs that make a release, and the one that tries to break it."""

from pathlib import Path
from typing import Annotated, Any

import typer

import equipoise as eq
from equipoise.doors.cli import attack_screen, json_answers, screens, table_screens
from equipoise.doors.cli import shared_options as o
from equipoise.doors.cli.declared_options import declared, field_values
from equipoise.doors.cli.progress_bar import bar
from equipoise.doors.write_to_database import goal, in_memory
from equipoise.intrusion.attack import AttackOptions
from equipoise.recipe.catalogue import parse
from equipoise.releases.balance import BalanceOptions, ProtectOptions
from equipoise.releases.release import Release
from equipoise.releases.table_release import TableRelease

MASK = "What to do, in this order: recode:age,5 or top-code --column salary --at 100000; repeat for more."
LIMIT = 'What must hold, or nothing is released: "uniques < 0.02"; repeat for more.'
INTO = "Also put the released data into the database of --query, as this table."
RELEASED = (
    "A release folder, made again from its private part to know for certain whose record is whose; or a released file; "
    "or several noisy copies of one file."
)
AGAINST = (
    "What the intruder has: the original file, or a register with other columns and other people; a database, with "
    "--query. The original of its policy where a release folder has its private part."
)
EXPOSED = "List so many of the people at most risk, by id or row number."


@declared(ProtectOptions, o.PEOPLE, {"direct": o.Direct}, o.READ)
def protect(
    ctx: typer.Context,
    file: o.File = None,
    *,
    out: o.Out,
    mask: Annotated[o.Names, o.option(MASK, "NAME[:FIELDS]")] = None,
    limit: Annotated[o.Names, o.option(LIMIT, '"MEASURE < NUMBER"')] = None,
    allow: o.Allow = None,
    into: Annotated[str | None, o.option(INTO, "TABLE")] = None,
    as_json: o.AsJson = False,
    **options: Any,
) -> None:
    """Apply masks to a file, in order, and write the release with its report.

    The fields of a mask may follow it as options: --mask top-code --column salary --at 100000

    Options directly after its name are its own; further on, until the next --mask, those protect does not have.

    All about one: --mask top-code --help
    """
    with bar("masking, measuring and writing the release") as progress:
        policy = o.limits(limit or (), allow or ())
        masks = [parse(text, "mask") for text in mask or ()]
        if table := goal(into, file, ctx.params):
            table.refuse(options["overwrite"])
        records = o.opened(file, ctx.params)
        records = in_memory(records) if table else records
        if progress:
            progress(1, 1, "reading")
        release = eq.protect(
            records, masks, out, policy=policy, progress=progress, **field_values(ProtectOptions, options)
        )
        if table:
            table.put(release, options["overwrite"])
    _answer(release, as_json, searched=False)


@declared(BalanceOptions)
def balance(policy: o.PolicyFile, *, as_json: o.AsJson = False, **options: Any) -> None:
    """The main job: try every candidate of a policy file, and release the best one inside its limits.

    A policy with a table section releases a table.
    """
    with bar("measuring and writing the release") as progress:
        release = eq.balance(policy, progress=progress, **field_values(BalanceOptions, options))
    _answer(release, as_json, searched=True)


@declared(AttackOptions, {"sensitive": o.Sensitive, "numeric": o.Numeric, "id": o.RecordId}, o.READ)
def attack(
    ctx: typer.Context,
    released: Annotated[list[Path], o.argument("RELEASED", RELEASED)],
    against: Annotated[Path | None, o.option(AGAINST, "FILE")] = None,
    *,
    exposed: Annotated[int, typer.Option(help=EXPOSED, min=0)] = 0,
    as_json: o.AsJson = False,
    **options: Any,
) -> None:
    """Try to break a release, whatever made it: whom could an intruder find who knows some columns?

    The fields of an attack may follow it as options: --attack nearest --metric mahalanobis

    All about one: --attack nearest --help
    """
    with bar("writing the page") as progress:
        fields = field_values(
            AttackOptions, options, attacks=lambda texts: list(map(o.attack_named, texts or ())) or None
        )
        files = o.attacked(released, against, ctx.params)
        outcome = eq.attack(files.released, files.original, progress=progress, **{**fields, "known": files.known})
        people = outcome.exposed(exposed) if exposed else None
    if as_json:
        json_answers.show(
            json_answers.attack(released, o.intruders_path(against, files), outcome, people, options["out"])
        )
    else:
        attack_screen.show_attack(released, o.intruders_path(against, files), outcome, people, options["out"])


def _answer(release: Release | TableRelease, as_json: bool, *, searched: bool) -> None:
    if isinstance(release, TableRelease):
        json_answers.show(table_screens.plain_release(release)) if as_json else table_screens.released(release)
    elif as_json:
        json_answers.show(json_answers.release(release, searched=searched))
    else:
        screens.release(release, searched=searched)
