"""Local suppression with many records in small classes, against another package's figures and against Polars."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
import polars as pl

import equipoise as eq
from benchmarks.lattice import adult
from benchmarks.perturbation import YARDSTICK, grouping
from benchmarks.rows import Row, Scale, Skipped, race
from equipoise.ground.randomness import Draws

SIZES = (2, 20, 5, 7, 16, 8, 14)
PEER = 59.8
"""sdcMicro's CPU seconds for 10,000 records of a file of its own at k = 3; 100,000 it did not finish."""
LIMITS = {10_000: 1 / 10, 100_000: 1.0}
NAME = "local suppression of adult, 9 keys"


def local_suppression(scale: Scale) -> Iterator[Row | Skipped]:
    """From a frame to the released records, hidden by wildcards as the other package does it, and by identical rows."""
    yield from _million(scale)
    yardstick = grouping(scale) / YARDSTICK
    for full, limit in LIMITS.items():
        records = eq.read(skewed(scale.records(full)), eq.Roles(tuple(f"key{place}" for place in range(len(SIZES)))))
        found = race(scale.repeat(3), {"ours": lambda records=records: suppressed(records, 3)})  # type: ignore[misc]
        yield Row(
            f"local suppression of {full:,} x 7", found["ours"].cpu, PEER * scale.share * yardstick, limit,
            against="sdcMicro on 10,000 records, scaled", note=f"{suppressed(records, 3):,} values; another file",
        )  # fmt: skip
    folder = Path(os.environ.get("EQUIPOISE_DATA", "")) / "arx"
    if not (folder / "adult.csv").exists():
        yield Skipped(NAME, "EQUIPOISE_DATA does not name a folder with arx/adult.csv")
        return
    records = adult(folder)
    found = race(scale.repeat(3), {"ours": lambda: suppressed(records, 5)})
    yield Row(NAME, found["ours"].cpu, 1.0, against="one second", note=f"{suppressed(records, 5):,} values at k = 5")


def _million(scale: Scale) -> Iterator[Row]:
    """From a file to a file with identical rows, beside reading, recoding and writing that file, in two formats.

    The files differ in how many records are in small cells: few, an eighth, nearly all.
    """
    files: dict[str, Callable[[int], pl.DataFrame]] = {
        "skewed": skewed, "like adult": like_adult, "uniform": uniform
    }  # fmt: skip
    for name, file in files.items():
        table = file(scale.records(1_000_000))
        for kind in ("csv", "parquet"):
            yield _file_to_file(table, name, kind, scale.repeat(3))


def _file_to_file(table: pl.DataFrame, name: str, kind: str, times: int) -> Row:
    """Reading, the mask and writing, by Polars' own readers and writers with their defaults on both sides."""
    roles, mask = eq.Roles(tuple(table.columns)), eq.masks.LocalSuppress(eq.rules.MinCount(3))
    with TemporaryDirectory() as folder:
        path, out = Path(folder) / f"people.{kind}", Path(folder) / f"released.{kind}"

        def write(frame: pl.DataFrame, to: Path = out) -> None:
            frame.write_csv(to) if kind == "csv" else frame.write_parquet(to)

        write(table, path)
        read = pl.read_csv if kind == "csv" else pl.read_parquet
        cost = race(times, {
            "ours": lambda: write(mask.apply(eq.read(path, roles), Draws(1)).collect()),
            "polars": lambda: write(read(path).with_columns(pl.col("key1") // 5)),
        })  # fmt: skip
        return Row(
            f"identical rows of 1,000,000 x 7, {name}, {kind} to {kind}", cost["ours"].cpu, cost["polars"].cpu, 3.0,
            against="Polars: read, recode, write",
            note=f"{suppressed(eq.read(path, roles), 3, 'identical'):,} values",
        )  # fmt: skip


def uniform(records: int, seed: int = 1) -> pl.DataFrame:
    """Seven keys with eight equally frequent values: of a million records 92 % are in small classes."""
    draw = np.random.default_rng(seed)
    return pl.DataFrame({f"key{place}": draw.integers(0, 8, records) for place in range(7)})


def like_adult(records: int, seed: int = 2) -> pl.DataFrame:
    """Seven keys as wide as those of adult, each depending on the one before; most values are texts."""
    draw = np.random.default_rng(seed)
    codes, keys = np.zeros(records, dtype=np.int64), {}
    for place, size in enumerate((2, 72, 5, 7, 16, 41, 7)):
        own = np.minimum(draw.geometric(min(0.9, 4 / size + 0.05), records) - 1, size - 1)
        codes = np.where(draw.random(records) < 0.3, codes % size, own)
        keys[f"key{place}"] = codes
    return pl.DataFrame(keys).with_columns(pl.format("value {}", name).alias(name) for name in keys if name != "key1")


def skewed(records: int, seed: int = 0) -> pl.DataFrame:
    """Seven keys whose values are the rarer the larger: half of 10,000 records, a fifth of 100,000 in small classes."""
    draw = np.random.default_rng(seed)
    steep = {size: min(0.9, 4 / size + 0.05) for size in SIZES}
    keys = [np.minimum(draw.geometric(steep[size], records), size) for size in SIZES]
    keys[1] = draw.binomial(SIZES[1], 0.3, records)
    return pl.DataFrame({f"key{place}": values for place, values in enumerate(keys)})


def suppressed(records: eq.Records, k: int, guard: Literal["identical", "wildcard"] = "wildcard") -> int:
    """How many values were blanked."""
    done = eq.masks.LocalSuppress(eq.rules.MinCount(k), guard=guard).apply(records, Draws(1))
    keys = records.roles.keys
    before, after = (table.collect(*keys).null_count().sum_horizontal()[0] for table in (records, done))
    return int(after - before)
