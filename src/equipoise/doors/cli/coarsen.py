"""The verb `coarsen`: the best combination of hierarchy levels for a rule, and its release."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

import equipoise as eq
from equipoise.doors.cli import json_answers
from equipoise.doors.cli import shared_options as o
from equipoise.doors.cli.declared_options import declared
from equipoise.doors.cli.exit_codes import one_line
from equipoise.doors.cli.progress_bar import bar
from equipoise.doors.cli.screen_parts import flat, indented, places, say, screen, table
from equipoise.files import table_csv
from equipoise.ground.errors import ParameterError
from equipoise.ground.whole_files import refuse_page, write_whole
from equipoise.recipe.catalogue import parse, typed
from equipoise.rules import MinCount
from equipoise.search.best_coarsening import LOSSES, BestCoarsening, best_coarsening, read_loss

PANEL = "What must hold, and what it may cost"

_option = partial(o.option, panel=PANEL)
Least = Annotated[int | None, _option("Every class needs at least so many records (k-anonymity).", "K")]
RuleNames = Annotated[
    o.Names,
    _option(
        "A rule that classes must pass: diversity:ill,3 or k-map:5,register.csv (5 people of a population in each "
        "class); repeat for more.",
        "NAME:VALUES",
    ),
]
MeanRisk = Annotated[
    str | None, _option("The most that the mean risk of all released records, 1 / the records alike, may be.", "SHARE")
]
Weights = Annotated[
    o.Names, _option("How much a key counts in the loss, 1 when not given: age=0.5; repeat for more.", "KEY=WEIGHT")
]
Share = Annotated[str, _option("Share of the records that may be suppressed instead, 2% when not given.", "SHARE")]
LossName = Annotated[
    str, _option(f"What coarsening costs: {', '.join(LOSSES).replace('_', '-')}; granularity when not given.", "NAME")
]
Seconds = Annotated[float | None, _option("Stop after so long, with the best so far and a lower bound.", "SECONDS")]
Place = Annotated[Path | None, o.option("Make the release: the folder to write it to.", "DIR")]
MapFile = Annotated[Path | None, o.option("Count every combination of levels, and write them all.", "FILE.csv")]


@declared(None, {"keys": o.Keys, "sensitive": o.Sensitive, "weight": o.Weight, "id": o.Id, "direct": o.Direct}, o.READ)
def coarsen(
    ctx: typer.Context,
    file: o.File = None,
    k: Least = None,
    rule: RuleNames = None,
    mean_risk: MeanRisk = None,
    suppress: Share = "2%",
    loss: LossName = "granularity",
    key_weight: Weights = None,
    seconds: Seconds = None,
    out: Place = None,
    map: MapFile = None,
    overwrite: o.Overwrite = False,
    as_json: o.AsJson = False,
    **_: Any,
) -> None:
    """Find the coarsening of the keys that satisfies the rules and loses least, over all levels of all hierarchies.

    equipoise coarsen people.csv --keys age,sex,region --hierarchy age=intervals:5,10 --k 5 --out DIR
    """
    with bar("writing") as progress:
        rules = [*([MinCount(k)] if k is not None else []), *(parse(text, "rule") for text in rule or ())]
        if not rules and mean_risk is None:
            raise ParameterError("Say what must hold: --k 5, --mean-risk 5%, or a rule such as --rule diversity:ill,3.")
        if map is not None:
            refuse_page(map, overwrite, reads=(file,))
        share, average = typed(suppress, float, "--suppress"), typed(mean_risk, float | None, "--mean-risk")
        priced = read_loss(loss, dict(_weight(text) for text in key_weight or ()))
        records = o.opened(file, ctx.params)
        best = best_coarsening(
            records, rules, priced, share,
            mean_risk_at_most=average, whole=map is not None, seconds=seconds, progress=progress,
        )  # fmt: skip
        out = None if best.interrupted else out
        if map is not None and not best.interrupted:
            write_whole(map, table_csv(best.lattice))
        if out is not None:
            eq.protect(records, best.recipe.masks, out, overwrite=overwrite, progress=progress)
    if as_json:
        json_answers.show({"file": str(o.data_path(file)), **best.to_plain(), "folder": str(out) if out else None})
    else:
        _screen(str(o.data_path(file)), best, out)


def _weight(text: str) -> tuple[str, float]:
    key, mark, weight = text.rpartition("=")
    if not mark:
        raise ParameterError("Write the weight of a key like --key-weight age=0.5.")
    return key, typed(weight, float, "--key-weight")


def _screen(file: str, best: BestCoarsening, place: Path | None) -> None:
    out = screen()
    say(out, "Coarsening", one_line(f"{Path(file).name}, {best.nodes:,} combinations of levels"))
    out.print()
    out.print(indented(Text(flat(best.words()), "bold")))
    out.print()
    rows = table("key", "level")
    for key, level in best.levels.items():
        rows.add_row(one_line(key), one_line(level))
    out.print(indented(rows))
    if place is None:
        out.print("\nNothing was released: name a folder with --out.", style="dim")
    else:
        places(out, {"Release": place})
