"""Frontier: the trials nobody beats."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from equipoise.core.errors import ParameterError
from equipoise.flow.display import frontier_html
from equipoise.flow.trial import Trial


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
        return any(trial is kept for kept in self.best)

    def table(self) -> pl.DataFrame:
        """One row per trial: what it does, its scores, and whether it is on the frontier."""
        kept = {id(trial) for trial in self.best}
        rows = [
            {"recipe": t.words(), **{name: s.value for name, s in t.scores.items()}, "frontier": id(t) in kept}
            for t in self.trials
        ]
        return pl.DataFrame(rows)

    def chart(self, risk: str | None = None, utility: str | None = None) -> dict[str, Any]:
        """The risk-utility map as a Vega-Lite specification, drawn where a notebook shows it."""
        from equipoise.flow.charts import risk_utility_map

        return risk_utility_map(self, risk=risk, utility=utility)

    def _repr_html_(self) -> str:
        return frontier_html(self)


def frontier(trials: Iterable[Trial]) -> Frontier:
    """The trials that no other beats.

    Sorted by the first score, each trial is compared with the frontier so far: O(trials x frontier). Where scores have
    errors, "beats" is not transitive, and each is compared with all: O(trials^2).
    """
    tried = tuple(trials)
    if len({trial.scores.keys() for trial in tried}) > 1:
        raise ParameterError("Trials can be compared only when they have the same scores.")
    sign = {"lower": 1.0, "higher": -1.0}
    ranked = sorted(tried, key=lambda t: tuple(sign[s.better] * s.value for s in t.scores))
    kept: list[Trial] = []
    if any(score.error for trial in tried for score in trial.scores):
        kept = [trial for trial in tried if not any(other.beats(trial) for other in tried)]
        ranked = []
    for trial in ranked:
        if not any(other.beats(trial) for other in kept):
            kept = [other for other in kept if not trial.beats(other)]
            kept.append(trial)
    order = {id(trial): place for place, trial in enumerate(tried)}
    return Frontier(tuple(sorted(kept, key=lambda t: order[id(t)])), tried)
