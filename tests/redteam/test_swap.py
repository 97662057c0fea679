"""Somebody knows who was swapped, and at what rate: the areas of people who stood out are exchanged back.

The intruder is written here. Tables of keys and area are kept, so that whoever is alone in an area with these keys is a
candidate: with probability `rate` the record now shows the area of one of the K others with the same keys.
"""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.releases.assumptions import assumptions

KEYS = ("area", "age", "sex")


def people(rng: np.random.Generator, size: int = 400) -> pl.DataFrame:
    columns = {"area": rng.integers(0, 6, size), "age": rng.integers(20, 90, size), "sex": rng.integers(0, 2, size)}
    return pl.DataFrame({"id": np.arange(size), **columns, "pay": np.round(np.exp(rng.normal(8, 1, size)))})


def found(truth: pl.DataFrame, released: pl.DataFrame, rate: float) -> float:
    """Share of the people found by the likelier of two guesses: the record in their area, or any with their keys."""
    area, shown = truth["area"].to_numpy(), released["area"].to_numpy()
    total = 0.0
    for rows in truth.with_row_index("row").group_by("age", "sex").agg("row")["row"]:
        alike = rows.to_numpy()
        for person in alike:
            here, there = alike[shown[alike] == area[person]], alike[shown[alike] != area[person]]
            swapped = len(here) == 1 and len(there) > 0 and rate / len(there) > 1 - rate
            guess = there if swapped else here
            total += float(person in guess) / len(guess)
    return total / len(truth)


@pytest.mark.parametrize("rate", [0.3, 0.9, 1.0])
def test_who_undoes_the_swap_finds_no_more_than_informed_says(rate: float, record: Callable[..., None]) -> None:
    truth = people(np.random.default_rng(1))
    records = eq.read(truth, eq.Roles(KEYS, id="id"))
    released = eq.Recipe([eq.masks.Swap(("age", "sex"), "area", (), rate)], seed=2).run(records)
    reached = found(truth, released.collect().sort("id"), rate)
    reported = eq.attacks.Informed(KEYS).measure(released, records).value
    record("swap", f"area, {rate:g}", file="made", measure="links", reported=reported, reached=reached,
           error=3 * (reached * (1 - reached) / truth.height) ** 0.5)  # fmt: skip
    correct = eq.risk.CorrectMatches().measure(released, records).value
    words = "Assumes that nobody knows how keys were changed at random: no limit binds the probability of a match."
    assert words in assumptions(released, eq.Policy({"correct_matches": "< 0.9"}))
    assert words not in assumptions(released, eq.Policy({"informed": "< 0.9"}))
    assert rate < 0.9 or reached > correct, "the sentence is needed"
