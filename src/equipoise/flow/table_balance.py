"""Balance a table: try what a policy file names on one table, choose the best inside the limits, audit it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from equipoise.core.draws import new_seed
from equipoise.core.errors import RefusedError
from equipoise.core.margins import Table
from equipoise.core.method import Measure, Rule, label
from equipoise.core.progress import Progress
from equipoise.core.records import Records
from equipoise.core.score import Scores
from equipoise.flow.catalogue import parse, to_plain
from equipoise.flow.frontier import Frontier
from equipoise.flow.job import Job
from equipoise.flow.policy import Policy, Verdict
from equipoise.flow.recipe import Recipe
from equipoise.flow.release import FORMAT, FRESH, finite
from equipoise.flow.sweep import sweep
from equipoise.flow.table_job import rules_of
from equipoise.flow.table_register import audit_together
from equipoise.flow.table_sweep import Comparison, diagnoses, original_trial, recipe_text
from equipoise.flow.tabulate import Tabulated, certified
from equipoise.flow.trial import Trial
from equipoise.tables import Distance, Exposed, Suppress


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
    def comparison(self) -> Comparison:
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


def balance_table(job: Job, progress: Progress | None = None) -> TableRelease:
    """Tabulate, try every candidate, choose, run the chosen one afresh, measure and audit it; nothing is written.

    Raises RefusedError when no candidate meets the limits, when the fresh run breaks one, or when the audit fails: a
    withheld cell that can be computed exactly, a cell that the rule of the suppression calls sensitive known to within
    its level, or, where numbers were changed, one that a limit of no exposure is about. With a register the table is
    audited together with the earlier ones of the same data.
    """
    assert job.table is not None
    given = job.read()
    records, limits = job.table.prepared(given), job.policy()
    recipes, measures = job.recipes(records), scales(job)
    book = job.registered()
    kept = book.table_seed(given) if book else None
    seed = job.seed() if kept is None else kept
    seed = new_seed() if seed is None else seed
    methods = [mask for recipe in recipes for mask in recipe.masks]
    used = rules_of((*methods, *measures))
    made = job.table.made(records, job.folder, methods, used, seed)
    tried = sweep(made, [replace(r, seed=seed) for r in recipes], measures, draws=job.draws, progress=progress)
    recipe = limits.choose(tried).recipe
    shown = recipe.run(made, FRESH)
    trial, verdict = _judged(made, shown, recipe, measures, limits)
    found = certified(made, shown, recipe.masks[-1], audited_by(recipe, limits), seed)
    if book:
        audit_together(book, given, found, weighed(job, given))
    compared = Comparison(tried, original_trial(made, measures), trial, limits, diagnoses(made, (*methods, *measures)))
    text = job.again(given).to_toml()
    return TableRelease(replace(found, compared=compared), verdict, limits, Path(job.data.path).name, text, job.title)


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
        raise RefusedError("Nothing was released: " + "; ".join(r for r in verdict.reasons if "outside" in r) + ".")
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
