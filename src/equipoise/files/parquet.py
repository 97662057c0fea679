"""Parquet: scanned, never loaded whole."""

from pathlib import Path

import polars as pl

from equipoise.core.errors import DataError

suffixes = (".parquet", ".pq")


def load(path: Path) -> pl.LazyFrame:
    try:
        frame = pl.scan_parquet(path, glob=False)
        frame.collect_schema()
    except Exception:
        raise DataError(
            f"{str(path)!r} is not a whole Parquet file: it is damaged, cut off or something else."
        ) from None
    return frame


def save(frame: pl.LazyFrame, path: Path) -> None:
    frame.sink_parquet(path, compression="zstd", maintain_order=True)
