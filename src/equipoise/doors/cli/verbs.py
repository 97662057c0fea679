"""The verbs, each one flow function of the same name."""

from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from equipoise.doors import api as door
from equipoise.doors.cli import json_answers, screens, table_screens
from equipoise.doors.cli import shared_options as o
from equipoise.doors.cli.coarsen import coarsen
from equipoise.doors.cli.declared_options import declared, field_values
from equipoise.doors.cli.demo import demo
from equipoise.doors.cli.method_options import asked_about, fold
from equipoise.doors.cli.open import open_page
from equipoise.doors.cli.policies import check, init, show_presets
from equipoise.doors.cli.progress_bar import bar
from equipoise.doors.cli.publish import publish
from equipoise.doors.cli.roles import roles
from equipoise.doors.cli.table import table as tabulate
from equipoise.doors.cli.verify import verify
from equipoise.doors.cli.write_to_database import goal, in_memory
from equipoise.inspection.assess import assess as measure_file
from equipoise.intrusion.attack import AttackOptions
from equipoise.recipe.catalogue import Verb, parse
from equipoise.releases.balance import BalanceOptions, ProtectOptions
from equipoise.releases.release import Release
from equipoise.releases.table_release import TableRelease

app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich", no_args_is_help=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 120},
)  # fmt: skip


def command() -> Any:
    """The command line as one command."""
    return typer.main.get_command(app)


class _Verb(TyperCommand):
    """A verb whose usage line reads as it is typed: FILE, not {FILE}."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]


class _WithMethods(_Verb):
    """A verb whose option `--mask NAME` (or `--measure NAME`) may be followed by the fields of NAME."""

    verb: Verb
    flag: str
    family: str | None = None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if method := asked_about(args, self.flag, self.verb):
            screens.card(method, self.verb, self.flag)
            raise typer.Exit
        taken = {name for p in self.params for name in p.opts}
        return super().parse_args(ctx, fold(args, self.flag, self.verb, taken))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, and the methods that are listed now."""
        super().format_help(ctx, formatter)
        screens.screen().print(screens.listed(self.verb, self.family))


class _WithMeasures(_WithMethods):
    verb, flag = "measure", "--measure"


class _WithMasks(_WithMethods):
    verb, flag = "mask", "--mask"


class _WithAttacks(_WithMethods):
    verb, flag, family = "measure", "--attack", "attacks"


@app.callback(invoke_without_command=True)
def equipoise(
    ctx: typer.Context,
    shown: Annotated[
        bool, typer.Option("--version", help="Show the version.", metavar=" ", show_default=False)
    ] = False,
) -> None:
    """Measure disclosure risk, protect the data, keep what users need, and prove the balance.

    Ends with 0 when done, 1 when the policy refuses, 2 on bad input, 3 on an internal error, 130 when stopped.
    """
    if shown:
        print(f"equipoise {version('equipoise')}")
    elif ctx.invoked_subcommand is None:
        print(ctx.get_help(), end="")


app.command("open", cls=_Verb)(open_page)
app.command(cls=_Verb)(demo)
app.command(cls=_Verb)(roles)
app.command(cls=_Verb)(init)
app.command(cls=_Verb)(check)
app.command("presets", cls=_Verb)(show_presets)


@app.command(cls=_WithMeasures)
def assess(
    ctx: typer.Context,
    file: o.File = None,
    measure: Annotated[
        o.Names,
        typer.Option(
            help="A score to give, uniques:3 or uniques --k 3; repeat for more. The usual ones when not given.",
            metavar="NAME[:FIELDS]", show_default=False,
        ),
    ] = None,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Also name the rare categories: they are data values.", metavar=" ")
    ] = False,
    as_json: o.AsJson = False,
    keys: o.Keys = None,
    sensitive: o.Sensitive = None,
    numeric: o.Numeric = None,
    weight: o.Weight = None,
    household: o.Household = None,
    domain: o.Domain = None,
    id: o.Id = None,
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
    """Say what is at stake in a file as it is: its risk, its information, and which keys are behind them.

    The fields of a measure may follow it as options: --measure uniques --k 3

    All about one: --measure uniques --help
    """
    with bar("looking at the keys") as progress:
        records = o.opened(file, ctx.params)
        measures = dict.fromkeys(parse(text, "measure") for text in measure or ()) or None
        found = measure_file(records, measures, progress=progress)
    if as_json:
        json_answers.show(json_answers.assessment(o.shown(file), records, found, show_values))
    else:
        screens.assessment(o.shown(file), records, found, show_values)


@app.command(cls=_WithMasks)
@declared(ProtectOptions, o.PEOPLE, {"direct": o.Direct}, o.READ)
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
    into: Annotated[
        str | None,
        typer.Option(
            help="Also put the released data into the database of --query, as this table.", metavar="TABLE",
            show_default=False,
        ),
    ] = None,
    as_json: o.AsJson = False,
    **options: Any,
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
            table.refuse(options["overwrite"])
        records = o.opened(file, ctx.params)
        records = in_memory(records) if table else records
        if progress:
            progress(1, 1, "reading")
        release = door.protect(
            records, masks, out, policy=policy, progress=progress, **field_values(ProtectOptions, options)
        )
        if table:
            table.put(release, options["overwrite"])
    _answer(release, as_json, searched=False)


@app.command(cls=_Verb)
@declared(BalanceOptions)
def balance(policy: o.PolicyFile, *, as_json: o.AsJson = False, **options: Any) -> None:
    """The main job: try every candidate of a policy file, and release the best one inside its limits.

    A policy with a table section releases a table.
    """
    with bar("measuring and writing the release") as progress:
        release = door.balance(policy, progress=progress, **field_values(BalanceOptions, options))
    _answer(release, as_json, searched=True)


@app.command(cls=_WithAttacks)
@declared(AttackOptions, {"sensitive": o.Sensitive, "numeric": o.Numeric, "id": o.RecordId}, o.READ)
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
    *,
    exposed: Annotated[
        int, typer.Option(help="List so many of the people at most risk, by id or row number.", min=0)
    ] = 0,
    as_json: o.AsJson = False,
    **options: Any,
) -> None:  # fmt: skip
    """Try to break a release, whatever made it: whom could an intruder find who knows some columns?

    The fields of an attack may follow it as options: --attack nearest --metric mahalanobis

    All about one: --attack nearest --help
    """
    with bar("writing the page") as progress:
        fields = field_values(AttackOptions, options, attacks=_attacks)
        files = o.attacked(released, against, ctx.params)
        outcome = door.attack(files.released, files.original, progress=progress, **{**fields, "known": files.known})
        people = outcome.exposed(exposed) if exposed else None
    if as_json:
        json_answers.show(json_answers.attack(released, o.shown(against), outcome, people, options["out"]))
    else:
        screens.attack(released, o.shown(against), outcome, people, options["out"])


def _attacks(texts: list[str] | None) -> list[Any] | None:
    return [o.attack_named(text) for text in texts or ()] or None


app.command(cls=_Verb)(coarsen)
app.command(cls=_Verb)(publish)
app.command("table", cls=_Verb)(tabulate)
app.command(cls=_Verb)(verify)


@app.command(cls=_Verb)
def methods(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One of them.", show_default=False)] = None,
) -> None:
    """List every rule, mask and measure, or tell all about one."""
    if name is None:
        screens.catalogue()
    else:
        screens.card(*screens.method_named(name))


def _answer(made: Release | TableRelease, as_json: bool, *, searched: bool) -> None:
    if isinstance(made, TableRelease):
        json_answers.show(table_screens.plain_release(made)) if as_json else table_screens.released(made)
    elif as_json:
        json_answers.show(json_answers.release(made, searched=searched))
    else:
        screens.release(made, searched=searched)
