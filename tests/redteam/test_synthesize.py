"""Synthetic files attacked through what they teach and what they repeat: nothing is 0 by construction."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq

Record = Callable[..., None]
LEARNT = "variance of a value learnt"


def made(n: int = 400, seed: int = 4) -> pl.DataFrame:
    """Parts and their total, and a group that tells their size."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 4, n)
    parts = np.exp(group[:, None] / 2 + 0.4 * rng.normal(size=(n, 3)))
    table = pl.DataFrame(parts, schema=list("abc")).with_columns(total=pl.sum_horizontal("a", "b", "c"))
    return table.with_columns(group=pl.Series(group).cast(pl.String))


def explained(truth: np.ndarray, guess: np.ndarray) -> float:
    return float(1 - ((truth - guess) ** 2).mean() / truth.var())


def by_regression(synthetic: pl.DataFrame, people: pl.DataFrame, target: str, known: list[str]) -> float:
    """Least squares on the synthetic file, used on the people."""
    one, two = (np.column_stack([np.ones(t.height), t.select(known).to_numpy()]) for t in (synthetic, people))
    rule = np.linalg.lstsq(one, synthetic[target].to_numpy().astype(float), rcond=None)[0]
    return explained(people[target].to_numpy().astype(float), two @ rule)


def by_mean(synthetic: pl.DataFrame, people: pl.DataFrame, target: str, group: str) -> float:
    """The mean of the synthetic records of the same group."""
    means = synthetic.group_by(group).agg(pl.col(target).cast(pl.Float64).mean().alias("guess"))
    both = people.join(means, on=group, how="inner", maintain_order="left")
    return explained(both[target].to_numpy().astype(float), both["guess"].to_numpy())


def unique_copies(synthetic: pl.Series, people: pl.Series) -> float:
    """Share of synthetic values that exactly one person has."""
    owners: dict[float, int] = {}
    for value in people:
        owners[value] = owners.get(value, 0) + 1
    return float(np.mean([owners.get(value) == 1 for value in synthetic]))


@pytest.mark.parametrize("model", ["sequential-cart", "bootstrap", "hierarchical-normal"])
def test_values_of_a_made_file(record: Record, model: str) -> None:
    table = made()
    original = eq.read(table, eq.Roles(["group"], numeric=["a", "b", "c", "total"]))
    released = eq.Recipe([eq.masks.Synthesize(model)], 1).run(original)  # type: ignore[arg-type]
    synthetic = released.collect()
    numbers = ["a", "b", "c", "total"]
    reached = [by_regression(synthetic, table, c, [o for o in numbers if o != c]) for c in numbers]
    reached += [by_mean(synthetic, table, c, "group") for c in numbers]
    reported = eq.risk.ValueDisclosure().measure(released, original).value
    record("synthesize", model, file="made", measure=LEARNT, reported=reported, reached=max(reached))
    by_group = eq.risk.ValueDisclosure(known="group").measure(released, original).value
    assert by_group >= max(reached[4:]) - 1e-3


@pytest.mark.parametrize("model", ["sequential-cart", "hierarchical-normal"])
def test_copies_in_a_made_file(record: Record, model: str) -> None:
    """Trees deal out people's own amounts, a normal model draws none."""
    table = made()
    original = eq.read(table, eq.Roles(["group"], numeric=["a", "b", "c", "total"]))
    released = eq.Recipe([eq.masks.Synthesize(model)], 1).run(original)  # type: ignore[arg-type]
    reached = max(unique_copies(released.collect()[c], table[c]) for c in ("a", "b", "c", "total"))
    reported = eq.risk.Copies().measure(released, original).value
    record("synthesize", model, file="made", measure="unique values copied", reported=reported, reached=reached)
    assert reported == pytest.approx(reached)
    assert (reached > 0.9) == (model == "sequential-cart")


def test_values_drawn_in_part(record: Record) -> None:
    """One column drawn again given the others: the released row is the person's own, and a regression shows it."""
    table = made()
    original = eq.read(table, eq.Roles(["group"], numeric=["total"]))
    released = eq.Recipe([eq.masks.Synthesize(columns=["total"], samples=3)], 1).run(original)
    copies = released.collect().partition_by("sample", maintain_order=True)
    mean = np.mean([copy["total"].to_numpy() for copy in copies], axis=0)
    truth = table["total"].to_numpy()
    reached = max(explained(truth, mean), explained(truth, table.select("a", "b", "c").to_numpy().sum(axis=1)))
    reported = eq.risk.ValueDisclosure().measure(released, original).value
    record("synthesize", "one column, 3 samples", file="made", measure=LEARNT, reported=reported, reached=reached)


def test_the_utilities(record: Record, data_folder: Path) -> None:
    """EIA: 0.99 of the variance is learnt, and every amount is somebody's; both were reported as 0."""
    table = pl.read_csv(data_folder / "sdcmicro" / "EIA.csv").drop("UTILITYID", "UTILNAME")
    numbers = table.columns[3:]
    original = eq.read(table, eq.Roles(["STATE", "MONTH"], numeric=numbers))
    released = eq.Recipe([eq.masks.Synthesize()], 1).run(original)
    synthetic = released.collect()
    reached = [by_regression(synthetic, table, c, [o for o in numbers if o != c]) for c in numbers]
    reported = eq.risk.ValueDisclosure().measure(released, original).value
    assert max(reached) > 0.98
    record("synthesize", "sequential-cart", file="EIA", measure=LEARNT, reported=reported, reached=max(reached))
    copies = eq.risk.Copies().measure(released, original)
    assert copies.value == pytest.approx(max(unique_copies(synthetic[c], table[c]) for c in numbers))
    assert copies.value > 0.9
    shares = copies.detail.filter(pl.col("column").is_in(numbers))["equal"]
    assert float(shares.min()) == pytest.approx(1.0)  # type: ignore[arg-type]


def test_an_amount_that_a_code_tells(record: Record) -> None:
    """An amount that goes with the number of the region: no line in the number has it, the mean of the region does."""
    rng = np.random.default_rng(9)
    region = rng.integers(0, 15, 400)
    table = pl.DataFrame({"region": region, "age": rng.integers(20, 80, 400)})
    table = table.with_columns(money=pl.Series(rng.permutation(15)[region] * 100.0 + rng.normal(size=400)))
    original = eq.read(table, eq.Roles(["region", "age"], numeric=["money"]))
    released = eq.Recipe([eq.masks.Synthesize()], 1).run(original)
    reached = by_mean(released.collect(), table, "money", "region")
    reported = eq.risk.ValueDisclosure().measure(released, original).value
    assert reported > 0.9
    record(
        "synthesize", "amount by a code", file="made", measure=LEARNT, reported=reported, reached=reached, error=0.05
    )
