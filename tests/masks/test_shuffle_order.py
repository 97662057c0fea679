"""A random order: every one equally likely, values and missing codes go with their records."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

import equipoise as eq
from equipoise.data.labels import Column, Labels
from equipoise.ground.randomness import Draws


def test_every_order_is_equally_likely(full: Any) -> None:
    """Within four standard errors over 600 seeds, 3,000 in full."""
    seeds = full(600, 3000)
    records = eq.read(pl.DataFrame({"id": range(3)}), eq.Roles(id="id"))
    found = [tuple(eq.masks.ShuffleOrder().apply(records, Draws(s)).collect()["id"]) for s in range(seeds)]
    _, times = np.unique(found, axis=0, return_counts=True)
    assert len(times) == 6
    assert np.abs(times / seeds - 1 / 6).max() < 4 * np.sqrt((1 / 6) * (5 / 6) / seeds)


def test_missing_codes_stay_with_their_records() -> None:
    table = pl.DataFrame({"id": range(20), "x": [None if i % 3 == 0 else i for i in range(20)]})
    codes = pl.DataFrame({"x": [-i if i % 3 == 0 else None for i in range(20)]})
    records = replace(eq.read(table, eq.Roles(id="id")), labels=Labels({"x": Column("X")}, gaps=codes))
    for mask in (eq.masks.ShuffleOrder(), eq.masks.Sample(0.5)):
        made = mask.apply(records, Draws(1))
        ids, gaps = made.collect()["id"], made.labels.gaps
        assert gaps is not None
        assert gaps["x"].to_list() == [-i if i % 3 == 0 else None for i in ids]
