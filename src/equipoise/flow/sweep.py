"""Sweep: score many recipes on one file."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

import narwhals as nw
import polars as pl

from equipoise.core.cells import Cells, count
from equipoise.core.draws import Draws, new_seed
from equipoise.core.errors import EngineError, ParameterError, RolesError
from equipoise.core.margins import Table
from equipoise.core.method import Coarsening, Mask, Measure, OnCells
from equipoise.core.progress import Progress, tracked
from equipoise.core.records import Records
from equipoise.core.score import Scores
from equipoise.flow.recipe import Recipe
from equipoise.flow.table_sweep import refuse_tables, sweep_table
from equipoise.flow.trial import Trial, Trials, over_draws

By = tuple[str, ...]


def sweep(
    records: Records | Table,
    recipes: Iterable[Recipe],
    measures: Iterable[Measure],
    *,
    draws: int = 1,
    holdout: float = 0.0,
    progress: Progress | None = None,
    details: bool = False,
) -> Trials:
    """One trial per recipe, in order.

    Recipes that only coarsen, scored by measures that need only cells, are evaluated by roll-up from the finest cell
    table: the records are counted once, whatever the number of recipes. Recipes with other masks run on the records,
    `draws` times. A table with margins (`eq.table`) is swept with methods and measures of `tables`; a recipe that
    cannot be run on it is left out, and `left_out` of the answer says why.

    Parameters
    ----------
    records
        The original file, or a table made from it.
    recipes, measures
        What to try, and how to score it.
    draws
        Independent draws of each recipe that has a random mask.
    holdout
        Share of records reserved before any mask runs; attacks find them as `original.holdout`.
    progress
        Called with (done, total, what); returning False stops.
    details
        Keep what is behind each score (memory for every trial).
    """
    scales = tuple(measures)
    tried = tuple(recipes)
    if not scales or not tried:
        raise ParameterError("A sweep needs at least one recipe and one measure.")
    if draws < 1:
        raise ParameterError(f"draws must be at least 1, got {draws}.")
    if isinstance(records, Table):
        if holdout:
            raise ParameterError("A table has no records to hold out: reserve them before it is made.")
        return sweep_table(records, tried, scales, draws=draws, progress=progress, details=details)
    refuse_tables(tried)
    _refuse_strangers(tried, records)
    original = reserve(records, holdout) if holdout else records
    bench = _Bench(original, scales)
    trials = []
    for recipe in tracked(tried, "trying recipes", progress):
        trial = (
            bench.from_cells(recipe) if bench.only_cells and recipe.coarsens else _run(original, recipe, scales, draws)
        )
        trials.append(trial if details else trial.brief())
    return Trials(trials)


def _refuse_strangers(recipes: Sequence[Recipe], records: Records) -> None:
    """A mask on a column that is not there would do nothing to cells, and pass as harmless."""
    schema = records.schema()
    for mask in dict.fromkeys(mask for recipe in recipes for mask in recipe.masks):
        column = getattr(mask, "column", None)
        if column is not None and column not in schema:
            raise RolesError.missing(column, list(schema))


def _run(original: Records, recipe: Recipe, measures: Sequence[Measure], draws: int) -> Trial:
    times = 1 if recipe.coarsens else draws
    runs = []
    for draw in range(times):
        released = recipe.run(original, draw)
        runs.append(Scores(m.measure(released, original) for m in measures))
    return over_draws(recipe, runs)


class _Bench:
    """The finest cells, and those of the masks that the last recipe shares with the next one."""

    def __init__(self, original: Records, measures: Sequence[Measure]) -> None:
        self.original = original
        self.only_cells = all(isinstance(m, OnCells) for m in measures)
        self.scales = [(m, m.by(original.roles)) for m in measures if isinstance(m, OnCells)]
        self.stack: list[tuple[Mask | None, dict[By, Cells]]] = []

    def finest(self) -> dict[By, Cells]:
        wanted = {by for _, by in self.scales}
        for columns in sorted(wanted, key=len, reverse=True):
            count(self.original, columns)
        return {columns: count(self.original, columns) for columns in wanted}

    def cells(self, masks: Sequence[Coarsening]) -> dict[By, Cells]:
        if not self.stack:
            self.stack.append((None, self.finest()))
        shared = 0
        while shared < min(len(masks), len(self.stack) - 1) and self.stack[shared + 1][0] == masks[shared]:
            shared += 1
        del self.stack[shared + 1 :]
        for mask in masks[shared:]:
            self.stack.append((mask, {by: mask.roll_up(cells) for by, cells in self.stack[-1][1].items()}))
        return self.stack[-1][1]

    def from_cells(self, recipe: Recipe) -> Trial:
        released = self.cells(cast(tuple[Coarsening, ...], recipe.masks))
        first = self.stack[0][1]
        return Trial(recipe, Scores(m.measure(released[by], first[by]) for m, by in self.scales))


def reserve(records: Records, share: float, seed: int | None = None) -> Records:
    """The records without a random share of them, which stays reachable as `holdout`."""
    if not 0 < share < 1:
        raise ParameterError(f"holdout must be a share between 0 and 1, got {share:g}.")
    if not records.frame.implementation.is_polars():
        raise EngineError("A holdout can be reserved from Polars, pandas, PyArrow or file data only.")
    drawn = Draws(new_seed() if seed is None else seed).child(0).uniform(records.keys_of_rows())
    table = records.collect()
    out = pl.Series(drawn < share)
    if out.all() or not out.any():
        raise ParameterError(f"A holdout of {share:g} leaves no records on one side.")
    held = replace(records, frame=nw.from_native(table.filter(out).lazy()))
    return replace(records, frame=nw.from_native(table.filter(~out).lazy()), holdout=held)
