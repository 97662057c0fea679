"""Arrow IPC files (Feather): scanned."""

from pathlib import Path

import polars as pl

from equipoise.data.labels import Labels
from equipoise.files.column_types import STORABLE, same
from equipoise.files.format import Format, Signature
from equipoise.ground.errors import DataError


def load(path: Path) -> pl.LazyFrame:
    """Scan a file."""
    try:
        frame = pl.scan_ipc(path, glob=False)
        frame.collect_schema()
    except Exception:
        raise DataError(f"{str(path)!r} is not a whole Arrow file: it is damaged, cut off or something else.") from None
    return frame


def save(frame: pl.LazyFrame, path: Path, labels: Labels) -> None:
    """Write a file, piece by piece."""
    frame.sink_ipc(path, compression="zstd", maintain_order=True)


FORMATS = (
    Format(
        name="arrow",
        title="Arrow",
        suffixes=(".arrow", ".feather", ".ipc"),
        load=load,
        save=save,
        signatures=(Signature(b"ARROW1", "an Arrow file", (".arrow", ".feather", ".ipc")),),
        types=same(*STORABLE),
    ),
)
