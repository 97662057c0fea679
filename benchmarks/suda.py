"""All minimal sample uniques of seven keys, their scores and DIS, against another package's figures."""

from collections.abc import Iterator

import equipoise as eq
from benchmarks import data
from benchmarks.perturbation import YARDSTICK, grouping
from benchmarks.rows import Row, Scale, Skipped, race

FIGURES = {10_000: 0.07, 100_000: 0.80, 1_000_000: 24.7}
"""sdcMicro's CPU seconds by records; at a million its DIS is not a number."""
LIMITS = {10_000: 1.0, 100_000: 1.0, 1_000_000: 1 / 10}


def suda(scale: Scale) -> Iterator[Row | Skipped]:
    """From coded frames to `score` and `dis` of every cell, counting included."""
    yardstick = grouping(scale) / YARDSTICK
    for full, theirs in FIGURES.items():
        table = data.numbers(scale.records(full))
        costs = race(scale.repeat(3), {"ours": lambda table=table: scored(table)})  # type: ignore[misc]
        yield Row(
            f"special uniques of {full:,} x 7", costs["ours"].cpu, theirs * scale.share * yardstick, LIMITS[full],
            against="sdcMicro, scaled",
        )  # fmt: skip


def scored(table: object) -> float:
    """The largest DIS-SUDA score; refused where one is not a number."""
    records = eq.read(table, data.roles())
    dis = eq.risk.SpecialUniques().measure(records, records).detail["dis"]
    if not dis.is_finite().all():
        raise AssertionError("A DIS score is not a number.")
    return float(dis.max())  # type: ignore[arg-type]
