"""An adaptive search of 200 trials on a million records with eight keys, in two processes."""

import json
import sys
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

import equipoise as eq
from benchmarks.rows import Row, Scale, Skipped, fresh, measured
from equipoise.methods.method import Measure
from equipoise.policies.sections import Candidate
from equipoise.search.adaptive_search import AdaptiveSearch
from equipoise.search.recipe_space import described
from equipoise.search.sweep import adaptively
from equipoise.trials.runner import Runner

RECORDS, TRIALS, MINUTES, CORES = 1_000_000, 200, 10.0, 2
KNOWN = ("sex", "area", "age", "trade", "origin")
AREA = {"use": "recode", "column": "area", "level": ["3", "2", "1"]}
AGE = {"use": "recode", "column": "age", "level": ["5", "10", "20"]}
TOP = {"use": "top_code", "column": "age", "at": {"from": 60, "to": 90}}
NOISE = {"use": "noise", "columns": ["pay"], "scale": {"from": 0.02, "to": 1.0}}
PRAM = {"use": "pram", "keys": list(KNOWN), "xi": {"from": 0.05, "to": 0.6}}
COUNTED: tuple[Measure, ...] = (eq.risk.Uniques(), eq.utility.Entropy())
Case = tuple[Candidate, tuple[Measure, ...], dict[str, Any]]
CASES: dict[str, Case] = {
    "coarsenings": (Candidate(coarsenings=True), COUNTED, {"uniques": "< 0.05"}),
    "recodes, then noise": (
        Candidate(masks=(AREA, TOP, AGE, NOISE)),
        (*COUNTED, eq.attacks.Interval(columns=("pay",)), eq.utility.MeanSquare(("pay",))),
        {"uniques": "< 0.7", "interval": "< 0.3"},
    ),
    "recodes, then pram": (
        Candidate(masks=(AREA, AGE, PRAM)),
        (*COUNTED, eq.attacks.Linkage(KNOWN), eq.utility.Marginals(("trade", "origin"))),
        {"uniques": "< 0.7", "linkage": "< 0.003"},
    ),
}


def searching(scale: Scale) -> Iterator[Row | Skipped]:
    """Minutes of two cores at work, against ten; trials are in proportion where records are fewer."""
    for name in CASES:
        found = fresh("-m", "benchmarks.searching", name, str(scale.share))
        yield Row(
            f"search, {name}", found["whole"] / 60 / CORES, MINUTES * scale.share, 1.0, unit="minutes",
            against="ten minutes",
            note=f"{found['found']:.0f} trials, {scale.records(RECORDS):,} records, 8 keys, 2 processes; "
            f"{found['wall'] / 60:.1f} minutes by the clock, {found['peak']:.1f} GiB in the first",
        )  # fmt: skip


def tried(case: Case, records: eq.Records, budget: int) -> int:
    """The number of trials of an adaptive search."""
    candidate, measures, limits = case
    policy = eq.Policy(limits)
    families = described([candidate], records, 5)
    assert families is not None
    with Runner(records, measures, processes=CORES) as runner:
        return len(adaptively(runner, AdaptiveSearch(families, policy, budget), draws=1, policy=policy))


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


def main(name: str, share: float) -> dict[str, float]:
    """What one search costs, in a process of its own."""
    records, budget = people(Scale(share).records(RECORDS)), max(20, round(TRIALS * share))
    begun = perf_counter()
    found = measured(lambda: float(tried(CASES[name], records, budget)))
    return {**found, "wall": perf_counter() - begun}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], float(sys.argv[2]))))
