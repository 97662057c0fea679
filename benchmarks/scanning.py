"""A hundred million records counted from a Parquet file, within 8 GiB."""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

import equipoise as eq
from benchmarks import data
from benchmarks.rows import Row, Scale, Skipped, cost, fresh, peak

RECORDS = 100_000_000
MEMORY = 8.0
RESULTS = Path("bench-results")


def scanning(scale: Scale) -> Iterator[Row | Skipped]:
    """Each run is a new process, so that its memory is its own."""
    RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
        path = Path(folder) / "records.parquet"
        data.parquet(path, scale.records(RECORDS))
        runs = [
            {who: fresh("-m", "benchmarks.scanning", who, str(path)) for who in WAYS} for _ in range(scale.repeat(2))
        ]
    best = {who: min(run[who]["cpu"] for run in runs) for who in WAYS}
    most = {who: max(run[who]["peak"] for run in runs) for who in WAYS}
    if len({run[who]["cells"] for run in runs for who in WAYS}) > 1:
        raise AssertionError("The two ways of counting found different numbers of cells.")
    what = f"{scale.records(RECORDS) / 1e6:g} M records from Parquet"
    yield Row(
        f"{what}, peak memory", most["equipoise"], MEMORY, 1.0, unit="GiB", against="the memory allowed",
        note=f"Polars streaming {most['polars']:.2f} GiB",
    )  # fmt: skip
    wall = min(run["equipoise"]["wall"] for run in runs) / min(run["polars"]["wall"] for run in runs)
    yield Row(
        f"{what}, CPU",
        best["equipoise"],
        best["polars"],
        1.2,
        against="Polars streaming group-by",
        note=f"wall {wall:.2f}",
    )


def by_equipoise(path: str) -> int:
    return len(eq.count(eq.read(path, data.roles())))


def by_polars(path: str) -> int:
    groups = pl.scan_parquet(path).group_by(data.KEYS).agg(pl.len().alias("n"), pl.col("weight").sum())
    return groups.collect(engine="streaming").height


WAYS = {"equipoise": by_equipoise, "polars": by_polars}


def run(who: str, path: str) -> dict[str, float]:
    """One way of counting, in this process."""
    cells: list[int] = []
    spent = cost(lambda: cells.append(WAYS[who](path)))
    return {"cpu": spent.cpu, "wall": spent.wall, "peak": peak(), "cells": cells[0]}


if __name__ == "__main__":
    print(json.dumps(run(*sys.argv[1:])))
