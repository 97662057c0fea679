"""Aggregate: many scores of one side as one number, with the weights open."""

from collections.abc import Mapping, Sequence

import polars as pl

from equipoise.ground.errors import ParameterError, hint
from equipoise.methods.score import Side
from equipoise.search.ranking import loss
from equipoise.trials.trial import Trial


def aggregates(trials: Sequence[Trial], side: Side, weights: Mapping[str, float] | None = None) -> pl.DataFrame:
    """One row per trial: the scores of a side from 0 (best tried) to 1 (worst tried), and three ways to join them.

    `mean` is their weighted mean; `worst` the largest of them, those without weight aside; `rank` the weighted mean of
    their ranks among the trials, from 0 to 1, ties at the mean of theirs. Scores that no trial changes count as 0.
    Weights are shares of what is given, equal when not given. They agree on trials that are best on everything, and
    only there: where they differ, weights decide, and somebody must answer for them.

    Misleads when a few extreme trials stretch the range: the mean then hardly tells the others apart; ranks do.

    >>> from equipoise.methods.score import Score
    >>> from equipoise.recipe.recipe import Recipe
    >>> def trial(a, b):
    ...     return Trial(Recipe(), [Score("uniques", a, "lower"), Score("nearest", b, "lower")])
    >>> joined = aggregates([trial(0.25, 0.5), trial(0.5, 0.25)], "risk", {"uniques": 3, "nearest": 1})
    >>> joined.select("mean", "worst", "rank").rows()
    [(0.25, 1.0, 0.25), (0.75, 1.0, 0.75)]
    """
    if not trials:
        raise ParameterError("There are no trials to join scores of.")
    names = [score.name for score in trials[0].scores if score.side == side]
    given = dict.fromkeys(names, 1.0) if weights is None else dict(weights)
    for name, weight in given.items():
        if name not in names:
            raise ParameterError(f"No {side} score {name!r} to weigh.{hint(name, names)}")
        if not weight >= 0:
            raise ParameterError(f"The weight of {name!r} must be 0 or more, got {weight:g}.")
    total = sum(given.values())
    if not total:
        raise ParameterError(f"Weigh at least one {side} score.")
    shares = {name: given.get(name, 0.0) / total for name in names}
    table = pl.DataFrame({name: [loss(trial.scores[name]) for trial in trials] for name in names})
    scaled = table.select(_scaled(name) for name in names)
    ranked = table.select(_ranked(name, len(trials)) for name in names)
    return scaled.with_columns(
        pl.sum_horizontal(pl.col(name) * share for name, share in shares.items()).alias("mean"),
        pl.max_horizontal(name for name, share in shares.items() if share).alias("worst"),
        ranked.select(pl.sum_horizontal(pl.col(n) * share for n, share in shares.items())).to_series().alias("rank"),
    )


def _scaled(name: str) -> pl.Expr:
    low, high = pl.col(name).min(), pl.col(name).max()
    return pl.when(high > low).then((pl.col(name) - low) / (high - low)).otherwise(0.0).alias(name)


def _ranked(name: str, size: int) -> pl.Expr:
    same = pl.col(name).n_unique() == 1
    return pl.when(same).then(0.0).otherwise((pl.col(name).rank("average") - 1) / max(size - 1, 1)).alias(name)
