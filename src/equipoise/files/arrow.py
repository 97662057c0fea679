"""Arrow IPC files (Feather)."""

from pathlib import Path

import polars as pl

from equipoise.core.errors import DataError

suffixes = (".arrow", ".feather", ".ipc")


def load(path: Path) -> pl.LazyFrame:
    try:
        frame = pl.scan_ipc(path, glob=False)
        frame.collect_schema()
    except Exception:
        raise DataError(f"{str(path)!r} is not a whole Arrow file: it is damaged, cut off or something else.") from None
    return frame


def save(frame: pl.LazyFrame, path: Path) -> None:
    frame.sink_ipc(path, compression="zstd", maintain_order=True)
