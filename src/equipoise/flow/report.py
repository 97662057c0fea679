"""Report: everything a report tells, as plain facts. Doors decide how it looks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date

import polars as pl

from equipoise.core.cells import count
from equipoise.core.method import Measure, OnCells
from equipoise.core.records import Law, Records
from equipoise.core.score import Score, Scores
from equipoise.flow.assess import Assessment
from equipoise.flow.attack import Attack
from equipoise.flow.frontier import Frontier
from equipoise.flow.missing import both_ways
from equipoise.flow.policy import Policy, Verdict
from equipoise.flow.recipe import Recipe
from equipoise.flow.trial import Trial


@dataclass(frozen=True)
class Report:
    """What was asked, what was done, what it cost, what was chosen from."""

    title: str
    version: str
    made: date
    policy: Policy
    verdict: Verdict
    chosen: Trial
    original: Trial
    nothing: Trial | None
    frontier: Frontier = field(repr=False)
    before: Assessment = field(repr=False)
    after: Assessment = field(repr=False)
    laws: tuple[Law, ...] = ()
    withheld: tuple[str, ...] = ()
    attack: Attack | None = field(default=None, repr=False)
    untried: str = ""


Render = Callable[[Report, bool], str]
"""From a report, and whether it is the public one, to a self-contained HTML page."""


def ends(records: Records, measures: Sequence[Measure]) -> tuple[Trial, Trial | None]:
    """The two ends of the map: the original file, and no data at all (all keys in one cell)."""
    original = Trial(Recipe(), Scores(both_ways(m, records, records) for m in measures), name="original")
    on_cells = [m for m in measures if isinstance(m, OnCells)]
    if len(on_cells) < len(measures):
        return original, None
    return original, Trial(Recipe(), Scores(_empty(m, records) for m in on_cells), name="no data")


def _empty(measure: OnCells, records: Records) -> Score:
    cells = whole = count(records, measure.by(records.roles))
    for key in records.roles.keys:
        if key in cells.by:
            cells = cells.relabel(key, lambda values, n: pl.Series(["*"] * len(values)))
    return measure.measure(cells, whole).brief()
