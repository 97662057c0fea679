"""The verb `assess`: the disclosure risk and the information of a file as it is."""

from typing import Annotated, Any

import typer

from equipoise.doors.cli import json_answers, screens
from equipoise.doors.cli import shared_options as o
from equipoise.doors.cli.declared_options import declared
from equipoise.doors.cli.progress_bar import bar
from equipoise.inspection.assess import assess as measure_file
from equipoise.recipe.catalogue import parse

MEASURES = "A score to give, uniques:3 or uniques --k 3; repeat for more. The usual ones when not given."
Measures = Annotated[o.Names, o.option(MEASURES, "NAME[:FIELDS]")]
Shown = Annotated[
    bool,
    o.switch(
        "--show-values", "Also name the rare categories and the ids of the records most at risk: they are data values."
    ),
]


@declared(None, o.PEOPLE, o.READ)
def assess(
    ctx: typer.Context,
    file: o.File = None,
    measure: Measures = None,
    show_values: Shown = False,
    as_json: o.AsJson = False,
    **_: Any,
) -> None:
    """Say what is at stake in a file as it is: its risk, its information, and which keys are behind them.

    The fields of a measure may follow it as options: --measure uniques --k 3

    All about one: --measure uniques --help
    """
    with bar("looking at the keys") as progress:
        records = o.opened(file, ctx.params)
        measures = dict.fromkeys(parse(text, "measure") for text in measure or ()) or None
        assessment = measure_file(records, measures, progress=progress)
    if as_json:
        json_answers.show(json_answers.assessment(o.data_path(file), records, assessment, show_values))
    else:
        screens.assessment(o.data_path(file), records, assessment, show_values)
