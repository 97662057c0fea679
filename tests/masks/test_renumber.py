"""New numbers for groups: every order equally likely, groups as they were, counts untouched."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws


def test_every_numbering_is_equally_likely(full: Any) -> None:
    """Within four standard errors over 600 seeds, 3,000 in full."""
    seeds = full(600, 3000)
    records = eq.read(pl.DataFrame({"id": range(3), "home": [70, 15, 40]}), eq.Roles(id="id", household="home"))
    found = [tuple(eq.masks.Renumber().apply(records, Draws(s)).collect()["home"]) for s in range(seeds)]
    _, times = np.unique(found, axis=0, return_counts=True)
    assert len(times) == 6
    assert np.abs(times / seeds - 1 / 6).max() < 4 * np.sqrt((1 / 6) * (5 / 6) / seeds)


def test_groups_stay_together_and_gaps_stay() -> None:
    frame = pl.DataFrame({"home": ["b", "a", None, "b"], "firm": [9.5, 9.5, 1.0, None], "age": [1, 2, 3, 4]})
    made = eq.masks.Renumber(("home", "firm")).apply(eq.read(frame, eq.Roles("age")), Draws(3)).collect()
    assert made["home"][0] == made["home"][3]
    assert made["home"].dtype == pl.String
    assert sorted(made["home"].drop_nulls().unique()) == ["1", "2"]
    assert made["firm"].to_list() in ([1, 1, 2, None], [2, 2, 1, None])
    assert made["home"][2] is None
    assert made["age"].to_list() == [1, 2, 3, 4]


def test_the_two_columns_are_drawn_apart() -> None:
    frame = pl.DataFrame({"one": range(200), "two": range(200), "age": 1})
    made = eq.masks.Renumber(("one", "two")).apply(eq.read(frame, eq.Roles("age")), Draws(3)).collect()
    assert (made["one"] == made["two"]).sum() < 10


def test_columns_that_mean_something_are_refused(people_records: eq.Records) -> None:
    with pytest.raises(eq.RolesError, match="name a household"):
        eq.masks.Renumber().apply(people_records, Draws(1))
    with pytest.raises(eq.RolesError, match="'age' has another role"):
        eq.masks.Renumber("age").apply(people_records, Draws(1))
    with pytest.raises(eq.RolesError, match="No column"):
        eq.masks.Renumber("house").apply(people_records, Draws(1))


def test_the_sweep_stays_on_cells() -> None:
    assert eq.Recipe([eq.masks.Renumber(), eq.masks.ShuffleOrder()]).coarsens
    assert eq.Recipe([eq.masks.Recode("age", 1), eq.masks.Renumber(), eq.masks.ShuffleOrder()]).family == "recode"
    assert eq.Recipe([eq.masks.Renumber()]).family == "original"
