"""Scores of recipes that share work are those of the records that each recipe releases."""

import numpy as np
import polars as pl

import equipoise as eq
from equipoise.masks import CoarsenWeights, Recode
from equipoise.trials.scorer import Bench


def test_weights_grouped_within_a_key_count_as_grouped() -> None:
    """Totals kept by region, a key that no mask coarsens: the groups are made though keys are left out of the score."""
    rng = np.random.default_rng(3)
    table = pl.DataFrame(
        {"region": rng.choice(["n", "s"], 200), "age": rng.integers(20, 80, 200), "w": rng.uniform(5, 9, 200)}
    )
    roles = eq.Roles(["region", "age"], weight="w", hierarchies={"age": eq.Hierarchy.intervals([10])})
    original = eq.Records.of(table, roles)
    recipe = eq.Recipe([Recode("age", "10"), CoarsenWeights(groups=2, keep=("region",))], seed=1)
    measures = (eq.risk.Uniques(), eq.risk.RevealingColumns())
    shared = Bench(original, measures).score(recipe)
    released = recipe.run(original)
    assert shared["revealing_columns"].value == measures[1].measure(released, original).value < 0.5
