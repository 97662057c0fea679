"""A million records by three columns: noise, rank swap, shuffle and swap against another package's figures."""

from collections.abc import Iterator

import numpy as np
import polars as pl

import equipoise as eq
from benchmarks import data
from benchmarks.rows import Row, Scale, Skipped, cost, race
from equipoise.ground.randomness import Draws
from equipoise.methods.method import Mask

RECORDS = 1_000_000
YARDSTICK = 3.9
"""CPU seconds of the yardstick, a Polars group-by of ten million records by seven keys, when the figures were taken."""
FIGURES = {"rank swap": 135.0, "shuffle": 47.5, "post-randomization": 27.4}
"""sdcMicro's CPU seconds at a million records x 3 (post-randomization: 2 columns); rank swap was stopped there."""
MDAV = 66.6
"""The same for MDAV of a hundred thousand records x 3, groups of 3."""
LIMIT = 1 / 10


def masks() -> dict[str, Mask]:
    columns = ("income", "wealth", "hours")
    return {
        "independent noise": eq.masks.Noise(columns, 0.1),
        "correlated noise": eq.masks.Noise(columns, 0.1, "correlated"),
        "noise, moments restored": eq.masks.Noise(columns, 0.1, preserve="moments"),
        "rank swap": eq.masks.RankSwap(columns, 0.05),
        "shuffle": eq.masks.Shuffle(columns, given=("age", "size")),
        "post-randomization": eq.masks.Pram(0.8, keys=("age", "area")),
        "tree microaggregation": eq.masks.Microaggregate(columns, 3, method="tree"),
        "swap": eq.masks.Swap(("age", "size", "job"), "area", columns, 0.5),
    }


def perturbation(scale: Scale) -> Iterator[Row | Skipped]:
    """Where there is no figure of another package, the yardstick itself stands in and nothing is judged."""
    records = eq.read(table(scale.records(RECORDS)), eq.Roles(["age", "area"], id="id"))
    yardstick = grouping(scale)
    costs = race(
        scale.repeat(2),
        {name: lambda mask=mask: mask.apply(records, Draws(1)).collect() for name, mask in masks().items()},  # type: ignore[misc]
    )
    for name, found in costs.items():
        known = name in FIGURES
        theirs = FIGURES[name] * scale.share * yardstick / YARDSTICK if known else yardstick
        against = "sdcMicro, scaled" if known else "Polars group-by of 10 M x 7"
        yield Row(f"{name} of 1 M x 3", found.cpu, theirs, LIMIT if known else None, against=against)


def mdav(scale: Scale) -> Iterator[Row | Skipped]:
    """Exact MDAV of a hundred thousand records."""
    records = eq.read(table(scale.records(RECORDS // 10)), eq.Roles(["age", "area"], id="id"))
    mask = eq.masks.Microaggregate(("income", "wealth", "hours"), 3)
    found = cost(lambda: mask.apply(records, Draws(1)).collect())
    theirs = MDAV * scale.share * grouping(scale) / YARDSTICK
    yield Row("MDAV of 100,000 x 3, groups of 3", found.cpu, theirs, LIMIT, against="sdcMicro, scaled")


def growth(scale: Scale) -> Iterator[Row | Skipped]:
    """Post-randomization of ten million records, counting included, against ten times that of one million: linear."""
    one, ten = (zipf(scale.records(RECORDS * times)) for times in (1, 10))
    costs = race(scale.repeat(3), {"one": lambda: _pram(one), "ten": lambda: _pram(ten)})
    name, against = "post-randomization of 10 M records", "10 x that of 1 M"
    yield Row(name, costs["ten"].cpu, 10 * costs["one"].cpu, 1.5, against=against)


def _pram(table: pl.DataFrame) -> pl.DataFrame:
    return eq.masks.Pram(0.8).apply(eq.read(table, eq.Roles(["k"], id="id")), Draws(1)).collect()


def zipf(records: int, seed: int = 2) -> pl.DataFrame:
    """A heavy-tailed key with many small cells."""
    keys = np.random.default_rng(seed).zipf(1.3, records) % (records // 5)
    return pl.DataFrame({"k": keys, "id": np.arange(records)})


def table(records: int, seed: int = 1) -> pl.DataFrame:
    """Three correlated columns, one of whole numbers with ties, beside what goes with them."""
    draw = np.random.default_rng(seed)
    age, size = draw.integers(18, 90, records), draw.integers(1, 7, records)
    income = np.exp(8 + 0.01 * age + draw.normal(0, 0.6, records))
    return pl.DataFrame(
        {
            "id": np.arange(records),
            "age": age,
            "size": size,
            "job": draw.integers(0, 40, records),
            "area": draw.integers(0, 300, records),
            "income": income,
            "wealth": income * draw.lognormal(0, 1, records),
            "hours": draw.integers(0, 60, records),
        }
    )


def grouping(scale: Scale) -> float:
    """The yardstick, rerun here."""
    from benchmarks.counting import RECORDS as MANY

    numbers = data.numbers(scale.records(MANY))
    return cost(lambda: numbers.group_by(data.KEYS).len()).cpu / scale.share
