"""Plan of a policy, for records or a table: what its candidates are run on, how they are measured, and the trials."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from equipoise.data.records import Records
from equipoise.data.tables.table import Table
from equipoise.ground.errors import RefusedError
from equipoise.ground.progress import Progress
from equipoise.methods.method import Measure
from equipoise.policies.policy import Policy
from equipoise.policies.policy_file import Job
from equipoise.provenance.journal import Journal
from equipoise.recipe.recipe import Recipe
from equipoise.search.adaptive_search import AdaptiveSearch
from equipoise.search.explain_choice import refusal
from equipoise.search.ranking import ahead_of, inside
from equipoise.search.recipe_space import Family, described, pooled
from equipoise.search.sweep import adaptively, all_of
from equipoise.trials.runner import Runner
from equipoise.trials.trial import Trial, Trials

Ends = Callable[[], tuple[Trial, Trial | None]]
"""The original as it is, and no data at all where that can be measured."""


@dataclass(frozen=True)
class Plan:
    """The data, the measures, and the candidates: all recipes, or families of them for an adaptive search."""

    data: Records | Table
    measures: tuple[Measure, ...]
    recipes: tuple[Recipe, ...]
    families: tuple[Family, ...]
    ends: Ends


def recipes_of(job: Job, records: Records, seed: int) -> tuple[Recipe, ...]:
    """Every recipe of the policy, with the seed of the run."""
    return tuple(replace(recipe, seed=seed) for recipe in job.recipes(records))


def candidates_of(job: Job, records: Records, seed: int) -> tuple[tuple[Recipe, ...], tuple[Family, ...]]:
    """Every recipe where all are tried; families for an adaptive search, read off recipes where it must be."""
    adaptive = job.search.search == "adaptive"
    if adaptive and (families := described(job.candidates, records, seed)):
        return (), families
    recipes = recipes_of(job, records, seed)
    return recipes, pooled(recipes, records) if adaptive else ()


def trials_of(job: Job, plan: Plan, journal: Journal | None = None, progress: Progress | None = None) -> Trials:
    """The trials of a policy's candidates: all of them, or those an adaptive search asks for."""
    how = job.search
    with Runner(plan.data, plan.measures, journal=journal, processes=how.processes, progress=progress) as runner:
        if how.search == "grid":
            return all_of(runner, plan.recipes, job.draws)
        search = AdaptiveSearch(plan.families, job.policy(), how.budget)
        return adaptively(runner, search, draws=job.draws, policy=job.policy(), seconds=how.seconds)


def chosen_of(trials: Sequence[Trial], policy: Policy) -> Trial:
    """The trial to release; a refusal says what each limit would have to be."""
    best = ahead_of(trials, policy)
    if not inside(policy, best):
        raise RefusedError(refusal(trials, policy))
    return best
