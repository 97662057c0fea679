"""Local recoding of a public file of nine keys: what a record loses, against another package's figures."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import equipoise as eq
from benchmarks.lattice import adult
from benchmarks.rows import Row, Scale, Skipped, cost
from equipoise.data.levels import Lookup, as_text
from equipoise.ground.randomness import Draws

NAME = "local recoding of adult"
FIGURES = {2: 0.034, 5: 0.068, 10: 0.095}
"""1 - the granularity that ARX's local recoding keeps, by k; nothing suppressed."""


def local_recoding(scale: Scale) -> Iterator[Row | Skipped]:
    """The mean loss over nine keys, on the released labels, and the CPU seconds in the note."""
    folder = Path(os.environ.get("EQUIPOISE_DATA", "")) / "arx"
    if not (folder / "adult.csv").exists():
        yield Skipped(NAME, "EQUIPOISE_DATA does not name a folder with arx/adult.csv")
        return
    records = adult(folder)
    for k, theirs in FIGURES.items():
        mask, done = eq.masks.LocalRecode(eq.rules.MinCount(k), rounds=round(30 * scale.share)), []
        spent = cost(lambda mask=mask, done=done: done.append(mask.apply(records, Draws(1))))  # type: ignore[misc]
        released = done[0].collect()
        if released.group_by(released.columns).len()["len"].min() < k:
            raise AssertionError(f"A class has fewer than {k} records.")
        yield Row(
            f"{NAME}, k = {k}", loss(records, released), theirs, 1.0, unit="mean loss", against="ARX",
            note=f"{spent.cpu:.1f} CPU s, {records.height():,} records, nothing suppressed",
        )  # fmt: skip


def loss(records: eq.Records, released: pl.DataFrame) -> float:
    """Mean over keys of (A - n/D) / (n - n/D)."""
    return float(np.mean([_loss(records, key, as_text(released[key])) for key in records.roles.keys]))


def _loss(records: eq.Records, key: str, labels: pl.Series) -> float:
    levels = [level for level in records.roles.hierarchies[key].levels if isinstance(level, Lookup)]
    covered: dict[str, int] = dict.fromkeys(levels[0].leaves, 1)
    for level in levels:
        groups = pl.Series([row[level.place] for row in level.leaves.values()]).value_counts(name="n")
        covered |= dict(groups.iter_rows())
    d = len(levels[0].leaves)
    share = labels.replace_strict(covered, return_dtype=pl.Float64) / d
    return float((share.mean() - 1 / d) / (1 - 1 / d))  # type: ignore[operator]
