"""Attacks through what says where a record came from: its weight, its number, its place in the file.

The intruder has the true weights, numbers or places of everybody. He sorts: released weights in the order of the true
ones are the groups; numbers or rows that keep something of their order would say who is who.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import rankdata

import equipoise as eq

Record = Callable[..., None]
PEOPLE = 200


def by_order(true: np.ndarray, released: np.ndarray) -> np.ndarray:
    """The released weight of each person: the r-th smallest for the r-th smallest true one."""
    guess = np.empty(len(true))
    guess[np.argsort(true, kind="stable")] = np.sort(released)
    return guess


def singled_out(guess: list[object], released: list[object], k: int = 3) -> float:
    """Share of people whose guessed class has their own record and fewer than k."""
    counts = Counter(released)
    return float(np.mean([g == r and counts[r] < k for g, r in zip(guess, released, strict=True)]))


@pytest.mark.parametrize(("groups", "size"), [(20, 10), (100, 3)])
@pytest.mark.parametrize("keep", [(), ("region",)])
def test_weights_by_their_order(
    record: Record, groups: int, size: int, keep: tuple[str, ...], full: Callable[..., int]
) -> None:
    """A weight and one more column: within the areas that the mask kept, if it kept any, as everybody may read."""
    table = eq.demo.survey().head(full(1_500, 20_000)).select("sex", "region", "weight", "age", "rooms")
    _attack_weights(record, table, groups=groups, size=size, keep=keep, others=("age", "rooms"), file="demo survey")


def test_weights_of_testdata(record: Record, data_folder: Path) -> None:
    table = pl.read_csv(data_folder / "sdcmicro" / "testdata.csv").select("sex", "sampling_weight", "age", "roof")
    table = table.rename({"sampling_weight": "weight"})
    _attack_weights(record, table, groups=20, size=10, keep=(), others=("age", "roof"), file="testdata")


def _attack_weights(
    record: Record,
    table: pl.DataFrame,
    *,
    groups: int,
    size: int,
    keep: tuple[str, ...],
    others: tuple[str, ...],
    file: str,
) -> None:
    original = eq.read(table, eq.Roles("sex", weight="weight"))
    released = eq.Recipe([eq.masks.CoarsenWeights(groups, keep, size)], 1).run(original)
    shown, true = released.collect()["weight"].to_numpy(), table["weight"].to_numpy()
    guess = np.empty(len(true))
    strata = table.select(keep).rows() if keep else [()] * len(true)
    for stratum in set(strata):
        rows = np.array([s == stratum for s in strata])
        guess[rows] = by_order(true[rows], shown[rows])
    guess, shown = (np.round(weights, 6) for weights in (guess, shown))
    reached = max(
        singled_out(list(zip(guess, table[c], strict=True)), list(zip(shown, table[c], strict=True))) for c in others
    )
    reported = eq.risk.RevealingColumns().measure(released, original).value
    parameter = f"{groups} groups of {size}" + (f" within {keep[0]}" if keep else "")
    measure = "found by weight and one column"
    record("coarsen_weights", parameter, file=file, measure=measure, reported=reported, reached=reached)


def chance(guesses: list[np.ndarray], truths: list[np.ndarray]) -> tuple[float, float]:
    """Share guessed right over all draws, and the mean rank correlation in units of its standard error."""
    right = np.mean([(g == t).mean() for g, t in zip(guesses, truths, strict=True)])
    ranks = [np.corrcoef(rankdata(g), rankdata(t))[0, 1] for g, t in zip(guesses, truths, strict=True)]
    return float(right), float(np.mean(ranks) * np.sqrt(len(ranks) * (len(guesses[0]) - 1)))


def test_new_numbers_tell_nothing_of_old_ones(record: Record, full: Callable[..., int]) -> None:
    """Guessing that the r-th smallest old number is the r-th smallest new one is right as often as by chance."""
    draws = full(150, 3_000)
    old = np.sort(np.random.default_rng(1).choice(10_000, PEOPLE, replace=False))
    original = eq.read(pl.DataFrame({"age": np.arange(PEOPLE) % 7, "home": old}), eq.Roles("age", household="home"))
    mask = eq.masks.Renumber()
    new = [eq.Recipe([mask], seed).run(original).collect()["home"].to_numpy() for seed in range(draws)]
    reached, correlation = chance([np.arange(1, PEOPLE + 1)] * draws, new)
    assert abs(correlation) < 4
    _record_chance(record, "renumber", reached, draws)


def test_places_tell_nothing_of_old_ones(record: Record, full: Callable[..., int]) -> None:
    """Guessing that a record stands where it stood is right as often as by chance."""
    draws = full(150, 3_000)
    original = eq.read(pl.DataFrame({"place": np.arange(PEOPLE)}), eq.Roles(numeric="place"))
    mask = eq.masks.ShuffleOrder()
    places = [eq.Recipe([mask], seed).run(original).collect()["place"].to_numpy() for seed in range(draws)]
    reached, correlation = chance([np.arange(PEOPLE)] * draws, places)
    assert abs(correlation) < 4
    _record_chance(record, "shuffle_order", reached, draws)


def _record_chance(record: Record, mask: str, reached: float, draws: int) -> None:
    error = 4 / (PEOPLE * np.sqrt(draws))
    measure = "person found by number or place"
    record(mask, "", file="made", measure=measure, reported=1 / PEOPLE, reached=reached, error=error)
