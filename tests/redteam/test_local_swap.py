"""Who knows everybody's keys and the method still finds nobody more surely than with blanks."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.masks import LocalSwap, Recode
from equipoise.rules import MinCount

DRAWS = 8


def made(seed: int, n: int = 150) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {"sex": rng.integers(0, 2, n), "age": rng.integers(20, 60, n), "area": rng.geometric(0.4, n).clip(1, 6)}
    )


def right_links(released: np.ndarray, truth: np.ndarray) -> float:
    """The best of two intruders: nearest record, equal ones by lot; and rare agreement first."""
    agree = truth[:, None, :] == released[None, :, :]
    rarity = np.stack([-np.log([(truth[:, j] == v).mean() for v in truth[:, j]]) for j in range(truth.shape[1])], 1)
    shares = []
    for score in (agree.sum(axis=2).astype(float), (agree * rarity[:, None, :]).sum(axis=2)):
        best = score >= score.max(axis=1, keepdims=True) - 1e-9
        shares.append(float((np.diag(best) / best.sum(axis=1)).mean()))
    return max(shares)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("seed", [1, 2])
def test_nobody_is_linked_more_often_than_classes_say(record: Callable[..., None], k: int, seed: int) -> None:
    table = made(seed)
    roles = eq.Roles(["sex", "age", "area"], hierarchies={"age": eq.Hierarchy.intervals([10])})
    original = eq.Records.of(table, roles)
    reported, reached = [], []
    for draw in range(DRAWS):
        released = eq.Recipe([Recode("age", "10"), LocalSwap(MinCount(k))], seed=draw).run(original)
        codes = [
            np.unique(np.r_[released.collect()[c].cast(pl.String), truth.cast(pl.String)], return_inverse=True)[1]
            for c, truth in zip(roles.keys, (table["sex"], _bands(table["age"]), table["area"]), strict=True)
        ]
        both = np.stack(codes, axis=1)
        reported.append(eq.risk.Prosecutor("mean").measure(released, original).value)
        reached.append(right_links(both[: len(table)], both[len(table) :]))
    record(
        "local_swap", f"classes of {k}", file="made", measure="person linked", reported=float(np.mean(reported)),
        reached=float(np.mean(reached)), error=3 * float(np.std(reached)) / DRAWS**0.5,
    )  # fmt: skip


def _bands(ages: pl.Series) -> pl.Series:
    return (ages // 10 * 10).cast(pl.String) + "-" + (ages // 10 * 10 + 9).cast(pl.String)


def test_an_exact_match_is_right_at_most_as_often_as_k_says() -> None:
    """Among people whom exactly one released record fits, that record is theirs in at most 1/k of the cases."""
    hits, unique_hits = 0, 0
    for seed in range(30):
        table = made(100 + seed)
        original = eq.Records.of(table, eq.Roles(["sex", "age", "area"]))
        released = eq.Recipe([LocalSwap(MinCount(2))], seed=seed).run(original).collect()
        fits = (table.to_numpy()[:, None, :] == released.to_numpy()[None, :, :]).all(axis=2)
        one = fits.sum(axis=1) == 1
        hits += int(one.sum())
        unique_hits += int(np.diag(fits)[one].sum())
    assert unique_hits / hits <= 0.5 + 3 * 0.5 / hits**0.5
