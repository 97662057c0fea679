"""Parquet: scanned, never loaded whole; one file, many by a pattern, or a folder of partitions.

Labels are kept in the file's own metadata under the name `equipoise.labels`, as JSON.
"""

import json
from pathlib import Path

import polars as pl

from equipoise.data.labels import Labels
from equipoise.files.column_types import STORABLE, same
from equipoise.files.format import Format, Loaded, Signature
from equipoise.ground.errors import DataError

LABELS_KEY = "equipoise.labels"


def load(path: Path) -> Loaded:
    """Scan a file."""
    return Loaded(_scan([path]), _labels(path))


def load_many(paths: list[Path]) -> Loaded:
    """Scan many files as one; folders named column=value add columns."""
    partitioned = any("=" in path.parent.name for path in paths)
    return Loaded(_scan(paths, partitioned), _labels(paths[0]))


def save(frame: pl.LazyFrame, path: Path, labels: Labels) -> None:
    """Write a file, piece by piece."""
    metadata = {LABELS_KEY: json.dumps(labels.to_plain(), ensure_ascii=False)} if labels else None
    frame.sink_parquet(path, compression="zstd", maintain_order=True, metadata=metadata)


def _scan(paths: list[Path], partitioned: bool = False) -> pl.LazyFrame:
    """All files as one frame; each is looked at, so that a damaged one is named."""
    first = _columns(paths[0])
    for path in paths[1:]:
        if _columns(path) != first:
            raise DataError(f"The columns of {str(path)!r} are not those of {str(paths[0])!r}, in name or type.")
    return pl.scan_parquet(paths, glob=False, hive_partitioning=partitioned)


def _columns(path: Path) -> dict[str, pl.DataType]:
    try:
        return dict(pl.scan_parquet(path, glob=False, hive_partitioning=False).collect_schema())
    except Exception:
        raise DataError(
            f"{str(path)!r} is not a whole Parquet file: it is damaged, cut off or something else."
        ) from None


def _labels(path: Path) -> Labels:
    try:
        return Labels.from_plain(json.loads(pl.read_parquet_metadata(path)[LABELS_KEY]))
    except (KeyError, ValueError, TypeError, AttributeError):
        return Labels()


FORMATS = (
    Format(
        name="parquet",
        title="Parquet",
        suffixes=(".parquet", ".pq"),
        load=load,
        save=save,
        load_many=load_many,
        signatures=(Signature(b"PAR1", "a Parquet file", (".parquet", ".pq")),),
        types=same(*STORABLE),
        any_date=True,
    ),
)
