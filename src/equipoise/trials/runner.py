"""Runner: tries recipes on records or on a table, in one process or several, from the journal where it knows them."""

import time
from collections import Counter
from collections.abc import Hashable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Self

import narwhals as nw

from equipoise.data.records import Records
from equipoise.data.tables.table import Table
from equipoise.ground import system
from equipoise.ground.errors import DataError, InfeasibleError
from equipoise.ground.progress import Progress, report
from equipoise.methods.method import Measure
from equipoise.methods.score import Scores
from equipoise.provenance.journal import Journal
from equipoise.recipe.recipe import Recipe
from equipoise.trials.scorer import Bench, prefix_of
from equipoise.trials.table_method_names import recipe_text
from equipoise.trials.table_scorer import TableScorer, drawn_once
from equipoise.trials.time_left import Pace
from equipoise.trials.trial import LeftOut, Trial, Trials, over_draws
from equipoise.trials.worker_count import worker_count

MIN_SECONDS_LEFT = 20.0
"""Seconds of work left, by the trials so far, that make it worth while to start more processes."""
MIN_TIMED_TRIALS = 2
"""Trials on records that are timed before more processes are thought of."""
QUICK_TRIAL_SECONDS = 0.2
"""Seconds below which a trial on cells stays in its process, where the cells of the last ones are."""


class Runner:
    """Scores recipes on one file, or on one table: none twice, each written down when it is done.

    Several processes give the same scores as one: a draw depends on seed and record alone. They are started only where
    the first trials show that it pays; masks and measures defined in a script of one's own stay in one process, and so
    do the methods of a table. `processes=None` is every core, as far as memory allows. Trials of a table are named in
    short.
    """

    def __init__(
        self,
        original: Records | Table,
        measures: Sequence[Measure],
        *,
        details: bool = False,
        journal: Journal | None = None,
        processes: int | None = 1,
        progress: Progress | None = None,
        total: int = 0,
    ) -> None:
        self.tabular = isinstance(original, Table)
        self.bench = TableScorer(original, measures) if isinstance(original, Table) else Bench(original, measures)
        self.details, self.journal, self.progress = details, journal, progress
        self.processes = 1 if details or self.tabular else processes
        self.pace = Pace()
        self.done, self.total, self.evaluated, self.seconds = 0, total, 0, 0.0
        self.known: dict[Hashable, Scores] = {}
        self.pool: Executor | None = None
        self.pending: dict[Future[tuple[Scores, float]], Hashable] = {}
        self.tasks: dict[Hashable, tuple[Recipe, int]] = {}
        self.open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.open.close()

    def run(self, recipes: Sequence[Recipe], draws: int = 1, *, counts: bool = True) -> list[Trial | LeftOut]:
        """A trial for each recipe, in order; one that cannot be made of this data is said to be left out."""
        trials: list[Trial | LeftOut] = []
        waiting = Counter(recipe.family for recipe in recipes)
        for recipe in recipes:
            self._share_out(recipes[len(trials) :], draws, waiting)
            trials.append(self._trial(recipe, 1 if drawn_once(recipe) else draws))
            waiting[recipe.family] -= 1
            self.done += counts
            self.tell(waiting)
        return trials

    def _trial(self, recipe: Recipe, draws: int) -> Trial | LeftOut:
        name = recipe_text(recipe) if self.tabular else None
        try:
            trial = over_draws(recipe, [self.score(recipe, draw) for draw in range(draws)])
        except (InfeasibleError, DataError) as problem:
            if isinstance(problem, DataError) and not self.tabular:
                raise
            return LeftOut(name or recipe.words(), str(problem))
        return replace(trial if self.details else trial.brief(), name=name)

    def tell(self, waiting: dict[str, int]) -> None:
        """Report how far it is; more may be waiting than this batch, up to the total."""
        beyond = self.total - self.done - sum(waiting.values())
        rest = self.pace.words({**waiting, "": beyond} if beyond > 0 else waiting)
        activity = "trying methods" if self.tabular else "trying recipes"
        report(self.progress, min(self.done, self.total), self.total, f"{activity}, {rest}" if rest else activity)

    def score(self, recipe: Recipe, draw: int) -> Scores:
        """The scores of one draw: known, in the journal, being made by another process, or made here."""
        name = _name(recipe, draw)
        while name in self.pending.values():
            self._take()
        if name not in self.known and not self._recall(recipe, draw):
            start = time.perf_counter()
            scores = self.bench.score(recipe, draw)
            self._enter(recipe, draw, scores, time.perf_counter() - start)
        return self.known[name]

    def _recall(self, recipe: Recipe, draw: int) -> bool:
        """Whether the journal knows the scores; they cost what they cost when they were made."""
        scores = self.journal.get(recipe, draw) if self.journal and not self.details else None
        if scores is None or not self.journal:
            return False
        self.known[_name(recipe, draw)] = scores
        self.seconds += self.journal.seconds(recipe, draw)
        self.evaluated += 1
        return True

    def _enter(self, recipe: Recipe, draw: int, scores: Scores, seconds: float) -> None:
        brief = scores if self.details else Scores(score.brief() for score in scores)
        self.known[_name(recipe, draw)] = brief
        self.pace.took(recipe.family, seconds)
        self.seconds += seconds
        self.evaluated += 1
        if self.journal:
            self.journal.add(recipe, draw, brief, seconds)

    def _share_out(self, recipes: Sequence[Recipe], draws: int, waiting: dict[str, int]) -> None:
        """Hand what is ahead to other processes, where that is worth it."""
        if self.processes == 1 or self.pending or not self._worth(waiting):
            return
        ahead = {
            _name(recipe, draw): (recipe, draw)
            for recipe in recipes
            if not self._quick(recipe)
            for draw in range(1 if drawn_once(recipe) else draws)
            if _name(recipe, draw) not in self.known and not self._recall(recipe, draw)
        }
        if len(ahead) > 1 and self._start():
            assert self.pool is not None
            try:
                self.pending = {self.pool.submit(_work, *task): name for name, task in ahead.items()}
                self.tasks = ahead
            except BrokenExecutor:
                self.pending, self.pool, self.processes = {}, None, 1

    def _quick(self, recipe: Recipe) -> bool:
        """Whether a recipe is scored on cells faster than another process could be told of it."""
        return self.bench.on_cells(recipe) and self.pace.mean(recipe.family) < QUICK_TRIAL_SECONDS

    def _worth(self, waiting: dict[str, int]) -> bool:
        if self.pool is not None:
            return True
        ahead = self.pace.seconds_left({**waiting, "": max(0, self.total - self.done - sum(waiting.values()))})
        return self.pace.timed >= MIN_TIMED_TRIALS and ahead is not None and ahead > MIN_SECONDS_LEFT

    def _start(self) -> bool:
        """The processes, each with the records; False where they cannot be sent."""
        if self.pool is not None:
            return True
        try:
            packed = _packed(self.bench.original)
            self.processes = worker_count(self.processes, packed.collect().estimated_size())
            if self.processes > 1:
                workers = system.workers(self.processes, _prepare, (packed, self.bench.measures))
                self.pool = self.open.enter_context(workers)
                self.pace.workers = self.processes
        except Exception:
            self.processes = 1
        return self.pool is not None

    def _take(self) -> None:
        """Enter what other processes have done since; what they failed at is tried again here, and fails here."""
        for future in wait(self.pending, return_when=FIRST_COMPLETED).done:
            name = self.pending.pop(future)
            if future.exception() is None:
                self._enter(*self.tasks[name], *future.result())


def _name(recipe: Recipe, draw: int) -> Hashable:
    """A draw of a recipe by value: the seed counts only where a mask may draw."""
    return (prefix_of(recipe.masks), None if drawn_once(recipe) else recipe.seed, draw)


def _packed(records: Records | Table) -> Records:
    """The records in memory, as they can be sent."""
    if isinstance(records, Table) or not records.frame.implementation.is_polars():
        raise ValueError("The data stays on its engine.")
    holdout = _packed(records.holdout) if records.holdout else None
    return replace(records, frame=nw.from_native(records.collect().lazy()), holdout=holdout)


BENCH: list[Bench] = []
"""The bench of this process, where it is one that was started to help."""


def _prepare(original: Records, measures: tuple[Measure, ...]) -> None:
    BENCH[:] = [Bench(original, measures)]


def _work(recipe: Recipe, draw: int) -> tuple[Scores, float]:
    start = time.perf_counter()
    scores = Scores(score.brief() for score in BENCH[0].score(recipe, draw))
    return scores, time.perf_counter() - start


def attempted(
    table: Table, recipes: Sequence[Recipe], measures: Sequence[Measure], progress: Progress | None = None
) -> Trials:
    """What can be made of a table, and what cannot, be it all."""
    runner = Runner(table, measures, progress=progress, total=len(recipes))
    runner.tell({})
    return split_outcomes(runner.run(recipes))


def split_outcomes(outcomes: Sequence[Trial | LeftOut]) -> Trials:
    """The trials, and what was left out."""
    left_out = (outcome for outcome in outcomes if isinstance(outcome, LeftOut))
    return Trials((outcome for outcome in outcomes if isinstance(outcome, Trial)), left_out)
