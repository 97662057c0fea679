"""Sweep: score many recipes on one file or table, all of them or those that matter."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

import narwhals as nw
import polars as pl

from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.data.tables.table import Table
from equipoise.ground.errors import EngineError, InfeasibleError, ParameterError, RolesError
from equipoise.ground.progress import Progress
from equipoise.ground.randomness import Draws, new_seed
from equipoise.methods.method import Measure
from equipoise.methods.parameters import one_of, whole_number
from equipoise.policies.policy import Policy, scored
from equipoise.recipe.recipe import Recipe, refuse_strangers, refuse_tables
from equipoise.search.adaptive_search import AdaptiveSearch
from equipoise.search.frontier import frontier
from equipoise.search.ranking import ahead_of
from equipoise.search.recipe_space import pooled
from equipoise.trials.runner import Runner, split_outcomes
from equipoise.trials.table_scorer import drawn_once
from equipoise.trials.trial import LeftOut, Trial, Trials, original_trial
from equipoise.trials.worker_count import refuse_processes

How = Literal["grid", "adaptive"]
LIMIT_DISTANCE = 0.3
"""Distance from a limit, as a share of it, within which a random recipe is drawn as often as told."""


def sweep(
    records: Records | Table,
    recipes: Iterable[Recipe],
    measures: Iterable[Measure],
    *,
    draws: int = 1,
    holdout: float = 0.0,
    search: How = "grid",
    policy: Policy | None = None,
    budget: int | None = None,
    seconds: float | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
    details: bool = False,
) -> Trials:
    """One trial per recipe, in order; or, with `search="adaptive"`, trials of the recipes that matter.

    Recipes that only coarsen, scored by measures that need only cells, are evaluated by roll-up from the finest cell
    table: the records are counted once, whatever the number of recipes. Recipes with other masks run on the records,
    `draws` times; the records after masks that two recipes share are made once. A recipe that cannot be run on this
    data is left out, and `left_out` of the answer says why. A table with margins (`eq.table`) is swept with methods and
    measures of `tables`, one after the other.

    Parameters
    ----------
    records
        The original file, or a table made from it.
    recipes, measures
        What to try, and how to score it.
    draws
        Independent draws of each recipe that has a random mask. An adaptive search draws once to find its way, and all
        times what is on the frontier or may be chosen.
    holdout
        Share of records reserved before any mask runs; attacks find them as `original.holdout`.
    search
        "grid" tries all; "adaptive" starts coarse and goes where the frontier bends and where the limits are.
    policy
        The limits an adaptive search is to look around.
    budget, seconds
        When an adaptive search stops: trials (a fifth of all when not given), and time.
    processes
        Processes that share trials on records where that pays; every core, as far as memory allows, when not given.
        The scores are the same.
    progress
        Called with (done, total, what); returning False stops.
    details
        Keep what is behind each score (memory for every trial).
    """
    scales, candidates = tuple(measures), tuple(recipes)
    if not scales or not candidates:
        raise ParameterError("A sweep needs at least one recipe and one measure.")
    whole_number(draws, "draws")
    one_of(search, "search", ("grid", "adaptive"))
    refuse_processes(processes)
    if isinstance(records, Table):
        if holdout or processes not in (None, 1):
            raise ParameterError("A table has no records to hold out, and its methods are tried in one process.")
        refuse_strangers(candidates, scales)
        original_trial(records, scales)
    else:
        refuse_tables(candidates)
        _refuse_strangers(candidates, records)
        records = reserve(records, holdout) if holdout else records
    with Runner(records, scales, details=details, processes=processes, progress=progress) as runner:
        if search == "grid":
            return all_of(runner, candidates, draws)
        way = AdaptiveSearch(pooled(candidates, _columns_of(records)), policy, budget)
        return adaptively(runner, way, draws=draws, policy=policy, seconds=seconds)


def _columns_of(data: Records | Table) -> Records:
    """The records whose columns tell an adaptive search how far apart two recipes are; a table has none."""
    return data if isinstance(data, Records) else Records.of(pl.DataFrame({"none": [0]}), Roles())


def all_of(runner: Runner, recipes: Sequence[Recipe], draws: int) -> Trials:
    """A trial of every recipe."""
    runner.total = len(recipes)
    runner.tell({})
    return _sorted(runner.run(recipes, draws))


def adaptively(
    runner: Runner, search: AdaptiveSearch, *, draws: int, policy: Policy | None = None, seconds: float | None = None
) -> Trials:
    """The trials a search asks for, until its budget is used up, or the time.

    The time is that of the trials, also of those a journal remembers. Of random masks one draw shows the way; trials
    near a limit, those on the frontier and those that the policy would choose are drawn to the full.
    """
    runner.total = search.budget
    runner.tell({})
    outcomes: list[Trial | LeftOut] = []
    while (seconds is None or runner.seconds < seconds) and (asks := search.ask()):
        batch = runner.run([ask.recipe for ask in asks])
        batch = [_near(runner, trial, draws, policy) for trial in batch]
        search.tell(asks, batch)
        outcomes += batch
    runner.done = runner.total
    trials = _sorted(outcomes)
    return confirmed(runner, trials, draws, policy) if draws > 1 else trials


def _near(runner: Runner, trial: Trial | LeftOut, draws: int, policy: Policy | None) -> Trial | LeftOut:
    """The trial, drawn to the full where it is near a limit: on which side it is must not be chance."""
    if draws == 1 or policy is None or isinstance(trial, LeftOut) or drawn_once(trial.recipe):
        return trial
    gaps = [abs(scored(trial, limit).value - limit.bound) / (abs(limit.bound) or 1.0) for limit in policy.parsed]
    return runner.run([trial.recipe], draws, counts=False)[0] if min(gaps, default=1.0) < LIMIT_DISTANCE else trial


def confirmed(runner: Runner, trials: Trials, draws: int, policy: Policy | None) -> Trials:
    """The same trials, those that count drawn to the full: the frontier, and what the policy would choose."""
    best = {id(trial) for trial in frontier(trials)}
    trials = _fully_drawn(runner, trials, [trial for trial in trials if id(trial) in best], draws)
    while policy is not None and policy.parsed:
        ahead = ahead_of(trials, policy)
        if drawn_once(ahead.recipe) or len(ahead.draws) == draws:
            break
        trials = _fully_drawn(runner, trials, [ahead], draws)
    return trials


def _fully_drawn(runner: Runner, trials: Trials, some: Sequence[Trial], draws: int) -> Trials:
    """The trials, some of them drawn to the full; one that fails in a later draw is left out."""
    few = [trial for trial in some if not drawn_once(trial.recipe) and len(trial.draws) < draws]
    full = runner.run([trial.recipe for trial in few], draws, counts=False)
    instead = {id(trial): more for trial, more in zip(few, full, strict=True)}
    return _sorted([*(instead.get(id(trial), trial) for trial in trials), *trials.left_out])


def _sorted(outcomes: Sequence[Trial | LeftOut]) -> Trials:
    trials = split_outcomes(outcomes)
    if not trials and trials.left_out:
        raise InfeasibleError(
            f"None of {len(outcomes):,} candidates can be made of this data. {trials.left_out[0].reason}"
        )
    return trials


def _refuse_strangers(recipes: Sequence[Recipe], records: Records) -> None:
    """A mask on a column that is not there would do nothing to cells, and pass as harmless."""
    schema = records.schema()
    for mask in dict.fromkeys(mask for recipe in recipes for mask in recipe.masks):
        column = getattr(mask, "column", None)
        if column is not None and column not in schema:
            raise RolesError.missing(column, list(schema))


def reserve(records: Records, share: float, seed: int | None = None) -> Records:
    """The records without a random share of them, which stays reachable as `holdout`."""
    if not 0 < share < 1:
        raise ParameterError(f"holdout must be a share between 0 and 1, got {share:g}.")
    if not records.frame.implementation.is_polars():
        raise EngineError("A holdout can be reserved from Polars, pandas, PyArrow or file data only.")
    chances = Draws(new_seed() if seed is None else seed).child(0).uniform(records.keys_of_rows())
    table = records.collect()
    out = pl.Series(chances < share)
    if out.all() or not out.any():
        raise ParameterError(f"A holdout of {share:g} leaves no records on one side.")
    holdout = replace(records, frame=nw.from_native(table.filter(out).lazy()))
    return replace(records, frame=nw.from_native(table.filter(~out).lazy()), holdout=holdout)
