"""Microaggregation attacked by ranks, by means and one-to-one: reported links and values are never below."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import equipoise as eq

Record = Callable[..., None]


def made(n: int = 200, seed: int = 2) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(np.exp(rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, 4))), schema=list("abcd"))


def arrays(*files: eq.Records) -> list[np.ndarray]:
    return [file.collect().to_numpy().astype(float) for file in files]


def ranks(values: np.ndarray) -> np.ndarray:
    return np.stack([pl.Series(column).rank().to_numpy() for column in values.T], axis=1) / len(values)


def links(x: np.ndarray, z: np.ndarray, records: np.ndarray) -> float:
    """Share linked right by the cheapest assignment; equal records are told apart by luck alone."""
    _, chosen = linear_sum_assignment(cdist(x, z))
    _, group, size = np.unique(records, axis=0, return_inverse=True, return_counts=True)
    group = group.ravel()
    return float(((group[chosen] == group) / size[group]).mean())


def explained(x: np.ndarray, z: np.ndarray) -> float:
    """The best line in each released value, in the column where it fits best."""
    return max(np.corrcoef(one, two)[0, 1] ** 2 for one, two in zip(x.T, z.T, strict=True))


def check(record: Record, table: pl.DataFrame, *masks: object, parameter: str, file: str = "made") -> None:
    original = eq.read(table, eq.Roles(numeric=table.columns))
    released = eq.Recipe(masks, 1).run(original)  # type: ignore[arg-type]
    z, x = arrays(released, original)
    reached = max(links(x / x.std(axis=0), z / x.std(axis=0), z), links(ranks(x), ranks(z), z))
    reported = eq.attack(released, original, size=1).strongest.score.value
    record("microaggregate", parameter, file=file, measure="person linked", reported=reported, reached=reached)
    values, measure = eq.risk.ValueDisclosure().measure(released, original).value, "variance of a value learnt"
    record("microaggregate", parameter, file=file, measure=measure, reported=values, reached=explained(x, z))


@pytest.mark.parametrize("size", [3, 10])
def test_groups_of_all_columns(record: Record, size: int) -> None:
    check(record, made(), eq.masks.Microaggregate(list("abcd"), size), parameter=f"groups of {size}")


def test_each_column_by_itself(record: Record) -> None:
    masks = [eq.masks.Microaggregate([column], 5, "univariate-optimal") for column in "abcd"]
    check(record, made(), *masks, parameter="single columns, groups of 5")


def test_the_companies(record: Record, data_folder: Path) -> None:
    """Tarragona, a third of it, seven amounts, groups of five."""
    table = pl.read_csv(data_folder / "sdcmicro" / "Tarragona.csv").gather_every(3)
    columns = table.columns[:7]
    mask = eq.masks.Microaggregate(columns, 5)
    check(record, table.select(columns), mask, parameter="groups of 5", file="Tarragona")


def test_a_file_too_large_for_all_pairs(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond 2,000 records the search goes among the nearest only; tried here with lower bounds."""
    for name, most in (("MAX_EXACT_RECORDS", 50), ("MAX_DENSE_RECORDS", 60)):
        monkeypatch.setattr(f"equipoise.attacks._nearest.one_to_one.{name}", most)
    check(record, made(300), eq.masks.Microaggregate(list("abcd"), 3), parameter="groups of 3, large file")


def test_groups_made_again_beside_a_swap(record: Record) -> None:
    """Groups are not drawn: whoever has everybody's values makes them again, and links within them by the window."""
    rng = np.random.default_rng(11)
    pay = np.round(np.exp(rng.normal(7.5, 0.6, 240)), -2)
    columns = {"pay": pay, "rent": np.round(pay * rng.uniform(0.2, 0.5, 240), -1), "hours": rng.permutation(240) // 8}
    known = eq.read(pl.DataFrame(columns), eq.Roles(numeric=tuple(columns)))
    masks = [eq.masks.Microaggregate(("pay", "rent"), 4), eq.masks.RankSwap(("hours",), 0.1)]
    released, again = (eq.Recipe(masks, seed).run(known) for seed in (1, 2))
    (shown, own, true), order = arrays(released, again, known), rng.permutation(240)
    pairs = (own[:, None, :2] == shown[order, :2]).all(axis=2) / (1.0 + np.abs(true[:, None, 2] - shown[order, 2]))
    for _ in range(50):
        pairs /= np.maximum(pairs.sum(axis=0), 1e-12)
        pairs /= np.maximum(pairs.sum(axis=1, keepdims=True), 1e-12)
    reached = float((order[pairs.argmax(axis=1)] == np.arange(240)).mean())
    score = eq.attacks.Informed(tuple(columns)).measure(released, known)
    record("microaggregate", "groups of 4, rank swap 0.1 beside", file="made", measure="person linked",
           reported=score.interval[1], reached=reached)  # type: ignore[index]  # fmt: skip
    assert score.value > 0.9 * reached > 0.3
