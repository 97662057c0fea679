"""Amounts told by the weekday of a date, by the branch of a code, by who rounds, or by three columns together.

The snooper has the values of everybody else and takes the mean of those alike; of synthetic files, that of the records.
"""

from collections.abc import Callable
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.methods.method import Mask

Record = Callable[..., None]
LEARNT = "variance of a value learnt"
KINDS = {
    "weekday": pl.col("day").dt.weekday(),
    "weekday of a text": pl.col("day").str.to_date("%d.%m.%Y").dt.weekday(),
    "weekday of a whole number": pl.col("day").cast(pl.String).str.to_date("%Y%m%d").dt.weekday(),
    "round numbers": (pl.col("hours") % 10 == 0) + (pl.col("hours") % 100 == 0).cast(pl.Int8),
    "branch": pl.col("job").str.head(2),
    "three columns": pl.concat_str("area", "sex", "group"),
}


def made(kind: str, n: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(77)
    if kind == "weekday of a text":
        return made("weekday").with_columns(pl.col("day").dt.strftime("%d.%m.%Y"))
    if kind == "weekday of a whole number":
        return made("weekday").with_columns(pl.col("day").dt.strftime("%Y%m%d").cast(pl.Int64))
    if kind == "round numbers":
        step, hours = rng.choice([1, 10, 100], n), rng.integers(100, 3000, n)
        hours = hours // step * step
        rounds = (hours % 10 == 0).astype(int) + (hours % 100 == 0)
        return pl.DataFrame({"hours": hours, "pay": np.array([0, 9, 2])[rounds] + rng.normal(size=n)})
    if kind == "weekday":
        days = [date(2020, 1, 1) + timedelta(int(after)) for after in rng.integers(0, 1500, n)]
        steps = 5 * rng.normal(size=7)[[day.weekday() for day in days]]
        return pl.DataFrame({"day": days, "size": rng.integers(1, 6, n), "pay": steps + rng.normal(size=n)})
    if kind == "branch":
        branch, job = rng.integers(10, 22, n), rng.integers(100, 160, n)
        jobs = [f"{one}{two}" for one, two in zip(branch, job, strict=True)]
        return pl.DataFrame({"job": jobs, "pay": 10 * rng.normal(size=12)[branch - 10] + rng.normal(size=n)})
    area, sex, group = rng.integers(0, 10, n), rng.integers(0, 3, n), rng.integers(0, 4, n)
    columns = {name: [f"c{code}" for code in codes] for name, codes in zip(KEYS, (area, sex, group), strict=True)}
    return pl.DataFrame({**columns, "pay": rng.normal(size=(10, 3, 4))[area, sex, group] + 0.1 * rng.normal(size=n)})


KEYS = ("area", "sex", "group")


def explained(truth: np.ndarray, guess: np.ndarray) -> float:
    return float(1 - ((truth - guess) ** 2).mean() / truth.var())


def by_others_alike(table: pl.DataFrame, alike: pl.Expr) -> float:
    """The mean of everybody else alike; of those without one, that of all."""
    pay = pl.col("pay")
    others = pl.len().over(alike) - 1
    guess = pl.when(others > 0).then((pay.sum().over(alike) - pay) / others).otherwise(pay.mean())
    return explained(table["pay"].to_numpy(), table.select(guess).to_series().to_numpy())


def by_synthetic_alike(synthetic: pl.DataFrame, people: pl.DataFrame, alike: pl.Expr) -> float:
    means = synthetic.group_by(alike.alias("alike")).agg(pl.mean("pay").alias("guess"))
    both = people.select(alike.alias("alike"), "pay").join(means, on="alike", how="left", maintain_order="left")
    return explained(both["pay"].to_numpy(), both["guess"].fill_null(synthetic["pay"].mean()).to_numpy())


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize(
    "mask", [eq.masks.Noise("pay", 1.0), eq.masks.RankSwap("pay", 0.3), eq.masks.Shuffle("pay", given=())], ids=repr
)
def test_changed_amounts(record: Record, kind: str, mask: Mask) -> None:
    """By weekday 0.95 was reached where 0.57, 0.66 and 0.08 were reported; by three columns 0.86 where 0.66 was."""
    table = made(kind)
    original = eq.read(table, eq.Roles([c for c in table.columns if c != "pay"], numeric="pay"))
    released = eq.Recipe([mask], 5).run(original)
    reported = eq.risk.ValueDisclosure().measure(released, original).value
    reached = by_others_alike(table, KINDS[kind])
    name = {"Noise": "noise", "RankSwap": "rank_swap", "Shuffle": "shuffle"}[type(mask).__name__]
    record(name, f"amount by {kind}", file="made", measure=LEARNT, reported=reported, reached=reached)
    assert reached > 0.8


@pytest.mark.parametrize("kind", ["weekday", "three columns"])
@pytest.mark.parametrize("samples", [1, 3])
def test_synthetic_amounts(record: Record, kind: str, samples: int) -> None:
    table = made(kind)
    original = eq.read(table, eq.Roles([c for c in table.columns if c != "pay"], numeric="pay"))
    released = eq.Recipe([eq.masks.Synthesize("bootstrap", samples)], 5).run(original)
    reported = eq.risk.ValueDisclosure().measure(released, original).value
    reached = by_synthetic_alike(released.collect(), table, KINDS[kind])
    parameter = f"bootstrap, {samples} samples, amount by {kind}"
    record("synthesize", parameter, file="made", measure=LEARNT, reported=reported, reached=reached)
