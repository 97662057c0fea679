"""Report: everything a report tells, as plain facts. Doors decide how it looks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

import polars as pl

from equipoise.data.cells import count
from equipoise.data.records import Law, Records
from equipoise.inspection.assess import Assessment
from equipoise.inspection.revealing import NO_COLUMNS
from equipoise.intrusion.attack import Attack
from equipoise.intrusion.baseline import on_original
from equipoise.methods.method import Measure, OnCells, label
from equipoise.methods.score import Score, Scores
from equipoise.policies.policy import Policy, Verdict
from equipoise.presentation.missing_both_ways import both_ways
from equipoise.recipe.recipe import Recipe
from equipoise.releases.overlays import Overlay, changed_columns, overlays
from equipoise.risk import RevealingColumns
from equipoise.search.frontier import Frontier
from equipoise.trials.trial import Trial
from equipoise.utility import Bias, Overlap, WithheldRecords


@dataclass(frozen=True)
class Report:
    """What was asked, what was done, what it cost, what was chosen from.

    `unprotected` has, for each scenario of the attack, how it fares on the original file; `overlays` the distributions
    of the variables that were touched, `unchanged` those that matter and were not; `roles` what each column is;
    `revealing` the columns that single people out; `several` what holds together with other releases of these people;
    `estimates` what users compute from both files, with the ends of the intervals;
    `second` how many people a second release could leave alone, for the officer: it is a score of the original.
    """

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
    assumptions: tuple[str, ...] = ()
    revealing: pl.DataFrame = field(default_factory=lambda: NO_COLUMNS, repr=False)
    several: tuple[str, ...] = ()
    second: tuple[str, ...] = ()
    attack: Attack | None = field(default=None, repr=False)
    untried: str = ""
    unprotected: tuple[Score | None, ...] = field(default=(), repr=False)
    overlays: tuple[Overlay, ...] = field(default=(), repr=False)
    unchanged: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict, repr=False)
    estimates: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)
    signed: bool = False


def completed(report: Report, records: Records, released: Records) -> Report:
    """The report with what is seen only by looking at both files again. O(records) for each variable and attack."""
    touched, rest = changed_columns(records, released)
    return replace(
        report,
        unprotected=on_original(report.attack.scenarios, records) if report.attack else (),
        overlays=overlays(records, released, touched),
        unchanged=rest,
        roles=roles_in_words(records),
        estimates=_estimates(report.policy, records, released),
    )


def _estimates(policy: Policy, records: Records, released: Records) -> pl.DataFrame:
    """What users compute, where the policy goes by it."""
    measure = next((m for m in policy.measures() if isinstance(m, Overlap)), None)
    return measure.table(measure.measure(released, records)) if measure else pl.DataFrame()


ROLE_WORDS = {"keys": "key", "sensitive": "sensitive", "numeric": "number", "domain": "domain"}
SINGLE_COLUMN_ROLES = ("weight", "household", "person", "sample", "id")


def roles_in_words(records: Records) -> dict[str, str]:
    """What each column is, for those with a role."""
    role_words: dict[str, list[str]] = {}
    for role, words in ROLE_WORDS.items():
        for column in getattr(records.roles, role):
            role_words.setdefault(column, []).append(words)
    for role in SINGLE_COLUMN_ROLES:
        if column := getattr(records.roles, role):
            role_words.setdefault(column, []).append(role)
    return {column: ", ".join(words) for column, words in role_words.items()}


def ends(records: Records, measures: Sequence[Measure]) -> tuple[Trial, Trial | None]:
    """The two ends of the map: the original file, and no data at all (all keys in one cell)."""
    original = Trial(Recipe(), Scores(both_ways(m, records, records) for m in measures), name="original")
    counted = [m for m in measures if isinstance(m, OnCells | RevealingColumns | Overlap | Bias | WithheldRecords)]
    if len(counted) < len(measures):
        return original, None
    return original, Trial(Recipe(), Scores(_empty(m, records) for m in counted), name="no data")


def _empty(measure: Measure, records: Records) -> Score:
    if isinstance(measure, Overlap):
        return Score(label(measure), 0.0, "higher", side="utility", unit="share of the interval")
    if isinstance(measure, Bias | WithheldRecords):
        return Score(label(measure), 0.0, "lower", side="utility", number=0)
    if isinstance(measure, RevealingColumns):
        return Score(label(measure), 0.0, number=0, unit="share of people")
    assert isinstance(measure, OnCells)
    cells = whole = count(records, measure.by(records.roles))
    for key in records.roles.keys:
        if key in cells.by:
            cells = cells.relabel(key, lambda values, n: pl.Series(["*"] * len(values)))
    return measure.measure(cells, whole).brief()
