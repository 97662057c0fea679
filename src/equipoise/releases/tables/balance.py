"""Balance a table: try what a policy file names on one table, choose the best inside the limits, audit it."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from equipoise.data.records import Records
from equipoise.data.tables.table import Table
from equipoise.ground.progress import Progress
from equipoise.methods.method import Measure, Rule, label
from equipoise.methods.score import Scores
from equipoise.policies.policy import Policy, Verdict, refused
from equipoise.policies.policy_file import Job
from equipoise.policies.table_section import rules_of
from equipoise.provenance.journal import Journal
from equipoise.recipe.catalogue import parse, to_plain
from equipoise.recipe.recipe import Recipe
from equipoise.releases.balance import chosen_of, hinted, kept_journal, remembered, tidy
from equipoise.releases.release import FORMAT, FRESH, finite
from equipoise.releases.tables.table_register import audit_together
from equipoise.releases.tables.tabulate import Tabulated, certified
from equipoise.search.adaptive_search import AdaptiveSearch
from equipoise.search.frontier import Frontier
from equipoise.search.recipe_space import Family, described, pooled
from equipoise.search.sweep import adaptively
from equipoise.search.table_sweep import TableComparison, diagnoses, every, original_trial, some_of
from equipoise.tables import Distance, Exposed, Suppress
from equipoise.trials.table_method_names import recipe_text
from equipoise.trials.table_runner import TableRunner
from equipoise.trials.trial import Trial, Trials


@dataclass(frozen=True)
class TableRelease:
    """A table that was released: what was published with its audit, the trial measured on it, the verdict, the place.

    `policy_text` is the policy file that makes it again.
    """

    table: Tabulated
    verdict: Verdict
    policy: Policy
    source: str
    policy_text: str = field(repr=False)
    title: str | None = None
    folder: Path = Path()

    @property
    def comparison(self) -> TableComparison:
        assert self.table.compared is not None
        return self.table.compared

    @property
    def trial(self) -> Trial:
        return self.comparison.chosen

    @property
    def original(self) -> Trial:
        return self.comparison.original

    @property
    def frontier(self) -> Frontier:
        return self.comparison.frontier

    @property
    def public(self) -> Path:
        return self.folder / "public"

    @property
    def private(self) -> Path:
        return self.folder / "private"

    @property
    def report(self) -> Path:
        """The internal report, with the map; the one for the public is `public/report.html`."""
        return self.private / "report.html"

    def journal(self) -> Iterator[str]:
        """The format, then a line per candidate: what was tried and what it scored, or why it was left out."""
        yield json.dumps({"format": FORMAT, "scores": list(self.trial.scores.keys())})
        for trial in self.comparison.trials:
            masks = [to_plain(mask) for mask in trial.recipe.masks]
            yield json.dumps({"masks": masks, "values": [finite(s.value) for s in trial.scores]}, default=str)
        for left in self.comparison.trials.left_out:
            yield json.dumps({"method": left.name, "left_out": left.reason})


def balance_table(
    job: Job, folder: Path, *, put: Callable[[TableRelease, Records], None], progress: Progress | None = None
) -> TableRelease:
    """Find the best protected table that a policy asks for, audit it, and have `put` write it to the folder.

    What was tried is written down as it goes, in a private journal beside the folder: a run that was stopped or killed
    goes on where it was, with the same seed.
    """
    assert job.table is not None
    tidy(folder)
    given, book = job.read(), job.registered()
    table = job.table.with_plain_trees(job.table.prepared(given), job.folder)
    depends = {f.name: getattr(table, f.name) for f in fields(table)}
    seed = book.table_seed(given) if book else None
    with kept_journal(job, folder, given, given, seed=seed, table=depends) as journal:
        found = replace(found_table(job, given, journal.seed, journal, progress), folder=folder)
        put(found, given)
    return found


def found_table(
    job: Job, given: Records, seed: int, journal: Journal | None = None, progress: Progress | None = None
) -> TableRelease:
    """Tabulate, try the candidates, choose, run the chosen one afresh, measure and audit it; nothing is written.

    Raises RefusedError when no candidate meets the limits, when the fresh run breaks one, or when the audit fails: a
    withheld cell that can be computed exactly, a cell that the rule of the suppression calls sensitive known to within
    its level, or, where numbers were changed, one that a limit of no exposure is about. With a register the table is
    audited together with the earlier ones of the same data.
    """
    assert job.table is not None
    records, measures = job.table.prepared(given), scales(job)
    recipes = [replace(recipe, seed=seed) for recipe in job.recipes(records)]
    methods = [mask for recipe in recipes for mask in recipe.masks]
    made = job.table.made(records, job.folder, methods, rules_of((*methods, *measures)), seed)
    raw, doubts = original_trial(made, measures), diagnoses(made, (*methods, *measures))
    runner = TableRunner(made, measures, journal=journal, progress=progress)
    if job.search.search == "grid":
        tried = some_of(every(runner, recipes, job.draws))
    else:
        families = described(job.candidates, records, seed) or pooled(recipes, records)
        tried = _searched(job, families, runner)
    with remembered(job, tried, lambda: (raw, None)):
        found, trial, verdict = _chosen(job, made, tried, seed)
        if book := job.registered():
            more = audit_together(book, given, found, weighed(job, given))
            found = replace(found, notes=(*found.notes, *more))
    limits, text = job.policy(), job.again(given).to_toml()
    found = replace(found, compared=TableComparison(tried, raw, trial, limits, doubts))
    return TableRelease(found, verdict, limits, Path(job.data.path).name, text, job.title)


def _searched(job: Job, families: Sequence[Family], runner: TableRunner) -> Trials:
    """The trials that an adaptive search asks for."""
    search = AdaptiveSearch(families, job.policy(), job.search.budget)
    return adaptively(runner, search, draws=job.draws, policy=job.policy(), seconds=job.search.seconds)


def _chosen(job: Job, made: Table, tried: Trials, seed: int) -> tuple[Tabulated, Trial, Verdict]:
    """The best trial run afresh, judged and audited."""
    limits = job.policy()
    chosen = chosen_of(tried, limits)
    shown = chosen.recipe.run(made, FRESH)
    with hinted(chosen):
        trial, verdict = _judged(made, shown, chosen.recipe, scales(job), limits)
    return certified(made, shown, chosen.recipe.masks[-1], audited_by(chosen.recipe, limits), seed), trial, verdict


def weighed(job: Job, records: Records) -> str | None:
    """The weight by which a table of a policy adds up."""
    return (job.table.weight if job.table else None) or records.roles.weight


def _judged(
    made: Table, shown: Table, recipe: Recipe, measures: tuple[Measure, ...], limits: Policy
) -> tuple[Trial, Verdict]:
    """What is to be published, measured and judged: a draw that no sweep has looked at."""
    scores = Scores(m.measure(shown, made).brief() for m in measures)
    trial = Trial(recipe, scores, name=recipe_text(recipe))
    verdict = limits.judge(trial)
    if not verdict:
        raise refused(trial, verdict)
    return trial, verdict


def scales(job: Job) -> tuple[Measure, ...]:
    """The measures of the policy; where none says what users lose, the distance."""
    found = job.scales()
    return found if any(not isinstance(measure, Exposed) for measure in found) else (*found, Distance())


def audited_by(recipe: Recipe, limits: Policy) -> Rule | None:
    """The rule of the final audit: that of the suppression, or those of which no cell may be exposed."""
    method: Any = recipe.masks[-1]
    if isinstance(method, Suppress):
        return method.rule
    strict = {label(parse(limit.score, "measure")) for limit in limits.parsed if _none(limit.sign, limit.bound)}
    found = [m.rule for m in limits.measures() if isinstance(m, Exposed) and label(m) in strict]
    return reduce(or_, found) if found else None


def _none(sign: str, bound: float) -> bool:
    return sign == "<=" and bound <= 0
