"""A million records x 20 columns read from each format, against the library that reads it, in a process of its own."""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import equipoise as eq
from benchmarks.rows import Row, Scale, Skipped, cost, fresh, peak
from equipoise import files

RECORDS = 1_000_000
SHEET = 200_000
"""Records in the workbook: a million x 20 takes minutes to write."""
LIMIT = 1.5
RESULTS = Path("bench-results")
NEEDS = {"xlsx": "fastexcel", "sav": "pyreadstat", "zsav": "pyreadstat", "dta": "pyreadstat", "xpt": "pyreadstat"}
FORMATS = ("csv", "parquet", "arrow", "sav", "zsav", "dta", "xpt", "xlsx")


def reading(scale: Scale) -> Iterator[Row | Skipped]:
    """CPU of reading into memory, and the peak of the process."""
    RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
        for format in FORMATS:
            if format in NEEDS and find_spec(NEEDS[format]) is None:
                yield Skipped(f"reading .{format}", f"{NEEDS[format]} is not installed")
                continue
            yield _race(format, Path(folder) / f"records.{format}", scale)


def _race(format: str, path: Path, scale: Scale) -> Row:
    size = scale.records(SHEET if format == "xlsx" else RECORDS)
    files.save(table(size).lazy(), path, format)
    who = ("ours", "theirs")
    runs = [{w: fresh("-m", "benchmarks.reading", w, str(path)) for w in who} for _ in range(scale.repeat(2))]
    path.unlink()
    if len({run[w]["rows"] for run in runs for w in who}) > 1:
        raise AssertionError(f"The two readers of .{format} found different numbers of records.")
    ours, theirs = (min(run[w]["cpu"] for run in runs) for w in who)
    most, least = (max(run[w]["peak"] for run in runs) for w in who)
    return Row(
        f"{size / 1e6:g} M x 20 read from .{format}", ours, theirs, LIMIT, against=NEEDS.get(format, "polars"),
        note=f"peak memory {most:.2f} GiB, {NEEDS.get(format, 'polars')} {least:.2f} GiB",
    )  # fmt: skip


def table(size: int) -> pl.DataFrame:
    """Twelve codes, four numbers, two texts and two dates, some of them missing."""
    rng = np.random.default_rng(20)
    columns: dict[str, Any] = {f"code{i}": rng.integers(1, 40, size) for i in range(12)}
    columns |= {f"number{i}": rng.normal(size=size) for i in range(4)}
    towns = pl.Series(["Oslo", "Ål", "Bø i Telemark", "Tromsø"])
    columns |= {f"text{i}": towns.gather(rng.integers(0, 4, size)) for i in range(2)}
    columns |= {f"day{i}": pl.Series(rng.integers(0, 20_000, size)).cast(pl.Int32).cast(pl.Date) for i in range(2)}
    gaps = pl.Series(rng.random(size) < 0.05)
    return pl.DataFrame(columns).with_columns(pl.when(~gaps).then(pl.col("code0", "text0", "day0")))


def _theirs(path: str) -> pl.DataFrame:
    kind = Path(path).suffix[1:]
    if kind in ("parquet", "arrow"):
        return pl.read_parquet(path) if kind == "parquet" else pl.read_ipc(path)
    if kind == "csv":
        return pl.read_csv(path, infer_schema_length=10_000)
    if kind == "xlsx":
        return pl.read_excel(path, infer_schema_length=None)
    import pyreadstat

    reader = {"dta": pyreadstat.read_dta, "xpt": pyreadstat.read_xport}.get(kind, pyreadstat.read_sav)
    found: pl.DataFrame = reader(path, output_format="polars")[0]
    return found


def _ours(path: str) -> pl.DataFrame:
    return eq.read(path).collect()


WAYS: dict[str, Callable[[str], pl.DataFrame]] = {"ours": _ours, "theirs": _theirs}


def run(who: str, path: str) -> dict[str, float]:
    """One reader, in this process."""
    rows: list[int] = []
    spent = cost(lambda: rows.append(WAYS[who](path).height))
    return {"cpu": spent.cpu, "wall": spent.wall, "peak": peak(), "rows": rows[0]}


if __name__ == "__main__":
    print(json.dumps(run(*sys.argv[1:])))
