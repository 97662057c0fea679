"""What an officer waits for when a file is opened: counts with missing keys, individual and household risk."""

from collections.abc import Iterator

import numpy as np
import polars as pl

import equipoise as eq
from benchmarks import data
from benchmarks.perturbation import YARDSTICK, grouping
from benchmarks.rows import Row, Scale, Skipped, race

MISSING = 3.2
"""sdcMicro's CPU seconds to count 100,000 records by 7 keys, 1 % of each missing."""
RISK = 20.5
"""sdcMicro's CPU seconds for individual and household risk of a million records."""
PATIENCE = 2.0
"""CPU seconds that an assessment of a million records may take, after reading."""


def microdata(scale: Scale) -> Iterator[Row | Skipped]:
    yardstick = grouping(scale) / YARDSTICK
    small, large = (survey(scale.records(size)) for size in (100_000, 1_000_000))
    runs = {
        "missing": lambda: eq.count(eq.read(gaps(small), roles("any"))).alike[0].min(),
        "risk": lambda: risks(eq.read(large, roles())),
        "assess": lambda: eq.assess(eq.read(large, roles())).records,
    }
    costs = race(scale.repeat(3), runs)
    for name, what, theirs, limit in (
        ("missing", "class counts of 100,000 x 7, 1 % missing match anything", MISSING, 1.0),
        ("risk", "individual and household risk of 1,000,000", RISK, 1 / 10),
    ):
        yield Row(what, costs[name].cpu, theirs * scale.share * yardstick, limit, against="sdcMicro, scaled")
    yield Row(
        "assess 1,000,000 x 7 with households, after reading", costs["assess"].cpu, PATIENCE * scale.share * yardstick,
        1.0, against="2 s, scaled",
    )  # fmt: skip


def survey(records: int) -> pl.DataFrame:
    """Seven keys, weights, and households of one to four."""
    random = np.random.default_rng(7)
    table = data.numbers(records)
    homes = np.repeat(np.arange(records), random.integers(1, 5, records))[:records]
    return table.with_columns(w=pl.Series(random.uniform(2, 9, records)), home=pl.Series(homes))


def gaps(table: pl.DataFrame) -> pl.DataFrame:
    """One value in a hundred of each key gone."""
    random = np.random.default_rng(8)
    gone = {key: pl.Series(random.random(table.height) < 0.01) for key in data.roles().keys}
    return table.with_columns(pl.when(~lost).then(pl.col(key)).alias(key) for key, lost in gone.items())


def roles(missing: str = "category") -> eq.Roles:
    return eq.Roles(data.roles().keys, weight="w", household="home", missing=missing)  # type: ignore[arg-type]


def risks(records: eq.Records) -> float:
    scores = [measure.measure(records, records) for measure in (eq.risk.Individual(), eq.risk.Household())]
    return float(sum(score.number or 0.0 for score in scores))
