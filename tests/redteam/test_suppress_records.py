"""Records that were withheld must not stand out as the few without keys: counted by code of its own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import equipoise as eq

KEYS = ("sex", "age", "town")


def file(rng: np.random.Generator, records: int = 40) -> pl.DataFrame:
    columns = {
        "sex": rng.integers(0, 2, records),
        "age": rng.geometric(0.4, records),
        "town": rng.integers(0, 3, records),
    }
    gaps = rng.random(records) < rng.choice([0, 0.03])
    frame = pl.DataFrame({**columns, "ill": rng.integers(0, 3, records)})
    return frame.with_columns(pl.when(~pl.Series(gaps)).then(pl.col(key)).alias(key) for key in KEYS)


def test_those_without_keys_are_a_class_that_satisfies_the_rule(record: Callable[..., None], full: Any) -> None:
    """An intruder who finds no record with the keys of his target looks among those without: at least k of them."""
    rng = np.random.default_rng(5)
    for _ in range(full(40, 1_000, 200)):
        frame, k = file(rng), int(rng.integers(2, 7))
        records = eq.read(frame, eq.Roles(KEYS))
        released = eq.Recipe([eq.masks.SuppressRecords(eq.rules.MinCount(k))], seed=1).run(records)
        rows = released.collect().select(KEYS).rows()
        smallest = min(rows.count(row) for row in rows)
        assert smallest >= k
        reported, measure = eq.risk.Prosecutor().measure(released, records).value, "person found, worst"
        parameter = f"classes of {k}"
        record("suppress_records", parameter, file="made", measure=measure, reported=reported, reached=1 / smallest)


def test_their_sensitive_values_differ_too(full: Any) -> None:
    rng = np.random.default_rng(6)
    rule = eq.rules.MinCount(3) | eq.rules.Diversity("ill", 2)
    for _ in range(full(20, 500, 100)):
        frame = file(rng)
        records = eq.read(frame, eq.Roles(KEYS, sensitive="ill"))
        table = eq.Recipe([eq.masks.SuppressRecords(rule)], seed=1).run(records).collect()
        classes = table.group_by(KEYS).agg(pl.len(), pl.col("ill").n_unique().alias("values"))
        assert classes["len"].min() >= 3  # type: ignore[operator]
        assert classes["values"].min() >= 2  # type: ignore[operator]
