"""An adaptive search of 200 trials on a million records with eight keys, in two processes."""

from collections.abc import Iterator
from time import perf_counter

import numpy as np
import polars as pl

import equipoise as eq
from benchmarks.rows import Row, Scale, Skipped
from equipoise.core.method import Measure
from equipoise.flow.family import described
from equipoise.flow.policy_parts import Candidate
from equipoise.flow.runner import Runner
from equipoise.flow.search import Search
from equipoise.flow.sweep import adaptively

RECORDS, TRIALS, MINUTES = 1_000_000, 200, 10.0
CELLS = (Candidate(coarsenings=True),)
MIXED = (
    Candidate(
        masks=(
            {"use": "recode", "column": "area", "level": ["2", "1"]},
            {"use": "top_code", "column": "age", "at": {"from": 60, "to": 90}},
            {"use": "recode", "column": "age", "level": ["5", "10", "20"]},
            {"use": "noise", "columns": ["pay"], "scale": {"from": 0.02, "to": 1.0}},
        )
    ),
)


def searching(scale: Scale) -> Iterator[Row | Skipped]:
    """Minutes of wall time, against ten; trials are in proportion where records are fewer."""
    records = people(scale.records(RECORDS))
    on_cells: tuple[Measure, ...] = (eq.risk.Uniques(), eq.utility.Entropy())
    on_records: tuple[Measure, ...] = (
        *on_cells,
        eq.attacks.Interval(columns=("pay",)),
        eq.utility.MeanSquare(("pay",)),
    )
    trials = max(20, round(TRIALS * scale.share))
    for name, candidates, measures in (("coarsenings", CELLS, on_cells), ("recodes and noise", MIXED, on_records)):
        begun = perf_counter()
        made = tried(records, candidates, measures, trials)
        minutes = (perf_counter() - begun) / 60
        yield Row(
            f"search, {name}", minutes, MINUTES * scale.share, 1.0, unit="minutes", against="ten minutes",
            note=f"{made} trials on {records.height():,} records, 8 keys, 2 processes",
        )  # fmt: skip


def tried(records: eq.Records, candidates: tuple[Candidate, ...], measures: tuple[Measure, ...], budget: int) -> int:
    """The number of trials of an adaptive search."""
    policy = eq.Policy({"uniques": "< 0.05", **({"interval": "< 0.3"} if len(measures) > 2 else {})})
    families = described(candidates, records, 5)
    assert families is not None
    with Runner(records, measures, processes=2) as runner:
        return len(adaptively(runner, Search(families, policy, budget), draws=1, policy=policy))


def people(size: int) -> eq.Records:
    """Eight keys of very different sizes, a number, and an id."""
    rng = np.random.default_rng(8)
    table = pl.DataFrame(
        {
            "id": np.arange(size),
            "sex": rng.choice(["f", "m"], size),
            "area": pl.Series(rng.integers(1_000, 1_400, size)).cast(pl.String),
            "age": rng.integers(0, 100, size),
            "trade": rng.integers(0, 60, size),
            "school": rng.integers(0, 8, size),
            "rooms": rng.geometric(0.35, size).clip(1, 12),
            "origin": rng.zipf(1.6, size).clip(1, 150),
            "status": rng.choice(["a", "b", "c", "d"], size),
            "pay": rng.lognormal(10, 0.7, size).round(2),
        }
    )
    trees = {
        "area": eq.Hierarchy.prefix(3, 2, 1, root=True),
        "age": eq.Hierarchy.intervals([5, 10, 20]),
        "trade": eq.Hierarchy.intervals([5, 15]),
        "origin": eq.Hierarchy.intervals([10, 50]),
        "rooms": eq.Hierarchy.intervals([2, 4]),
    }
    keys = ["sex", "area", "age", "trade", "school", "rooms", "origin", "status"]
    return eq.read(table, eq.Roles(keys, numeric=["pay"], id="id", hierarchies=trees))
