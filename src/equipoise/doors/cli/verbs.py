"""The verbs, each one flow function of the same name."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from equipoise import demo as kit
from equipoise.core.errors import DataError
from equipoise.demo.kit import DATA, POLICIES
from equipoise.doors import python as door
from equipoise.doors.cli import options as o
from equipoise.doors.cli import plain, screens
from equipoise.doors.cli.bar import bar
from equipoise.doors.cli.longhand import asked_about, fold
from equipoise.flow.assess import assess as measure_file
from equipoise.flow.catalogue import Verb, parse
from equipoise.flow.release import Release

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
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class _WithMethods(_Verb):
    """A verb whose option `--mask NAME` (or `--measure NAME`) may be followed by the fields of NAME."""

    verb: Verb

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        flag = f"--{self.verb}"
        if method := asked_about(args, flag, self.verb):
            screens.card(method, self.verb)
            raise typer.Exit
        return super().parse_args(ctx, fold(args, flag, self.verb, {name for p in self.params for name in p.opts}))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, and the methods that are listed now."""
        super().format_help(ctx, formatter)
        screens.screen().print(screens.listed(self.verb))


class _WithMeasures(_WithMethods):
    verb = "measure"


class _WithMasks(_WithMethods):
    verb = "mask"


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


@app.command(cls=_Verb)
def demo(
    out: Annotated[Path, typer.Option(help="The folder to make.", metavar="DIR")] = Path("equipoise-demo"),
    overwrite: o.Overwrite = False,
    as_json: o.AsJson = False,
) -> None:
    """Make an invented housing survey and its policy, and find the best release of it."""
    with _undone(out, overwrite), bar("measuring and writing the release") as progress:
        policy = kit.write(out)
        made = door.balance(policy, overwrite=overwrite, progress=progress)
    _answer(made, as_json, searched=True)
    if not as_json:
        screens.next_steps(policy, made)


@app.command(cls=_WithMeasures)
def assess(
    ctx: typer.Context,
    file: o.File,
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
        plain.show(plain.assessment(file, records, found, show_values))
    else:
        screens.assessment(file, records, found, show_values)


@app.command(cls=_WithMasks)
def protect(
    ctx: typer.Context,
    file: o.File,
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
    format: o.Format = None,
    register: o.Register = None,
    overwrite: o.Overwrite = False,
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
) -> None:  # fmt: skip
    """Apply masks to a file, in order, and write the release with its report.

    The fields of a mask may follow it as options: --mask top-code --column salary --at 100000

    Options directly after its name are its own; further on, until the next --mask, those protect does not have.

    All about one: --mask top-code --help
    """
    with bar("masking, measuring and writing the release") as progress:
        policy = o.limits(limit or ())
        masks = [parse(text, "mask") for text in mask or ()]
        records = o.opened(file, ctx.params)
        if progress:
            progress(1, 1, "reading")
        made = door.protect(records, masks, out, policy=policy, format=format, overwrite=overwrite, register=register)
    _answer(made, as_json, searched=False)


@app.command(cls=_Verb)
def balance(
    policy: o.PolicyFile,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The release folder, when not as the policy says (beside it, by default).", metavar="DIR",
            show_default=False,
        ),
    ] = None,
    overwrite: o.Overwrite = False,
    as_json: o.AsJson = False,
) -> None:  # fmt: skip
    """The main job: try every candidate of a policy file, and release the best one inside its limits."""
    with bar("measuring and writing the release") as progress:
        made = door.balance(policy, out=out, overwrite=overwrite, progress=progress)
    _answer(made, as_json, searched=True)


@app.command(cls=_Verb)
def methods(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One of them.", show_default=False)] = None,
) -> None:
    """List every rule, mask and measure, or tell all about one."""
    if name is None:
        screens.catalogue()
    else:
        screens.card(*screens.method_named(name))


def _answer(made: Release, as_json: bool, *, searched: bool) -> None:
    if as_json:
        plain.show(plain.release(made, searched=searched))
    else:
        screens.release(made, searched=searched)


@contextmanager
def _undone(folder: Path, overwrite: bool) -> Iterator[None]:
    """A demo folder that is written whole or not at all."""
    files = [folder / name for name in (DATA, *POLICIES)]
    if not overwrite and any(file.exists() for file in files):
        raise DataError(f"{str(folder)!r} holds a demo already: name another folder, or add --overwrite.")
    fresh = next((place for place in (*reversed(folder.parents), folder) if not place.exists()), None)
    try:
        for file in files:
            file.unlink(missing_ok=True)
        yield
    except BaseException:
        for file in files:
            file.unlink(missing_ok=True)
        if fresh:
            shutil.rmtree(fresh, ignore_errors=True)
        raise
