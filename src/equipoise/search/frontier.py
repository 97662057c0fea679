"""Frontier: the undominated trials."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from equipoise.ground.arrays import Booleans, Floats
from equipoise.ground.errors import ParameterError
from equipoise.presentation.notebook import frontier_html
from equipoise.trials.trial import Trial

BLOCK_TRIALS = 64
"""Trials that are held against all others at a time."""


@dataclass(frozen=True)
class Frontier:
    """The undominated trials, and all that were tried."""

    best: tuple[Trial, ...]
    trials: tuple[Trial, ...] = field(repr=False)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.best)

    def __len__(self) -> int:
        return len(self.best)

    def __contains__(self, trial: object) -> bool:
        return any(trial is best for best in self.best)

    def table(self) -> pl.DataFrame:
        """One row per trial: what it does, its scores, and whether it is on the frontier."""
        best_ids = {id(trial) for trial in self.best}
        rows = [
            {"recipe": t.words(), **{name: s.value for name, s in t.scores.items()}, "frontier": id(t) in best_ids}
            for t in self.trials
        ]
        return pl.DataFrame(rows)

    def chart(self, risk: str | None = None, utility: str | None = None) -> dict[str, Any]:
        """The risk-utility map as a Vega-Lite specification, drawn where a notebook shows it."""
        from equipoise.search.risk_utility_map import risk_utility_map

        return risk_utility_map(self, risk=risk, utility=utility)

    def _repr_html_(self) -> str:
        return frontier_html(self)


def frontier(trials: Iterable[Trial]) -> Frontier:
    """The trials that no other beats.

    Each trial is held against those still standing, the most promising first, so that most fall at once: O(trials x
    frontier). Where scores have errors "beats" is not transitive, and one that has fallen may still beat another.
    """
    all_trials = tuple(trials)
    if len({trial.scores.keys() for trial in all_trials}) > 1:
        raise ParameterError("Trials can be compared only when they have the same scores.")
    if len(all_trials) < 2:
        return Frontier(all_trials, all_trials)
    losses, errors = _table(all_trials)
    standing, falls = np.arange(len(all_trials)), np.zeros(len(all_trials), dtype=np.bool_)
    order = np.argsort(losses.argsort(axis=0).argsort(axis=0).sum(axis=1), kind="stable")
    for start in range(0, len(order), BLOCK_TRIALS):
        block = order[start : start + BLOCK_TRIALS]
        block = block if errors.any() else block[~falls[block]]
        falls[standing] = _beaten(losses[standing], errors[standing], losses[block], errors[block])
        standing = standing[~falls[standing]]
    return Frontier(tuple(all_trials[place] for place in standing), all_trials)


def _table(trials: Sequence[Trial]) -> tuple[Floats, Floats]:
    """A row for each trial: its scores as losses, and their errors."""
    sign = {"lower": 1.0, "higher": -1.0}
    shape = (len(trials), len(trials[0].scores))
    losses = np.array([[sign[s.better] * s.value for s in trial.scores] for trial in trials], np.float64)
    errors = np.array([[s.error for s in trial.scores] for trial in trials], np.float64)
    return losses.reshape(shape), errors.reshape(shape)


def _beaten(losses: Floats, errors: Floats, others: Floats, theirs: Floats) -> Booleans:
    """Which trials one of the others beats, as `Trial.beats` has it: within error is a tie, NaN is no match."""
    worse = np.ones((len(others), len(losses)), dtype=np.bool_)
    better = np.zeros_like(worse)
    with np.errstate(invalid="ignore"):
        for place in range(losses.shape[1]):
            gap = others[:, place, None] - losses[None, :, place]
            tied = np.abs(gap) <= theirs[:, place, None] + errors[None, :, place]
            worse &= tied | (gap < 0)
            better |= ~tied & (gap < 0)
    return np.asarray((worse & better).any(axis=0))
