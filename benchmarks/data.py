"""Records to count: 7 keys of 2 to 80 values and a weight, drawn evenly, so that nearly every cell is occupied."""

from itertools import repeat
from pathlib import Path

import numpy as np
import polars as pl

import equipoise as eq

SIZES = (2, 2, 5, 8, 10, 18, 80)
KEYS = tuple(f"key{size}_{place}" for place, size in enumerate(SIZES))
WEIGHTS = 1_000
GROUP = 1 << 20
"""Records in a row group of the Parquet file, and held at a time while it is written."""


def roles(**more: object) -> eq.Roles:
    return eq.Roles(KEYS, weight="weight", **more)  # type: ignore[arg-type]


def numbers(records: int, seed: int = 1) -> pl.DataFrame:
    """Keys as small integers."""
    draw = np.random.default_rng(seed)
    keys = {key: draw.integers(0, size, records, dtype=np.uint8) for key, size in zip(KEYS, SIZES, strict=True)}
    return pl.DataFrame({**keys, "weight": 1 + draw.integers(0, WEIGHTS, records) / 20})


def texts(table: pl.DataFrame) -> pl.DataFrame:
    """The same keys as text."""
    labels = (
        pl.col(key).replace_strict(range(size), _labels(key, size)) for key, size in zip(KEYS, SIZES, strict=True)
    )
    return table.with_columns(*labels)


def _labels(key: str, size: int) -> pl.Series:
    return pl.Series([f"{key}:{value}" for value in range(size)])


def hierarchies() -> dict[str, eq.Hierarchy]:
    """Nested intervals for four keys: 2 x 3 x 4 x 5 = 120 combinations of levels."""
    widths = {KEYS[3]: [4], KEYS[4]: [5, 10], KEYS[5]: [3, 6, 18], KEYS[6]: [5, 10, 20, 40]}
    return {key: eq.Hierarchy.intervals(found) for key, found in widths.items()}


def parquet(path: Path, records: int) -> None:
    """Text keys and a weight, dictionary-encoded, written a row group at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    labels = [pa.array(_labels(key, size).to_list()) for key, size in zip(KEYS, SIZES, strict=True)]
    schema = pa.schema([*zip(KEYS, repeat(pa.dictionary(pa.int8(), pa.string()))), ("weight", pa.float64())])
    with pq.ParquetWriter(path, schema, compression="zstd", store_schema=False) as file:
        for start in range(0, records, GROUP):
            piece = numbers(min(GROUP, records - start), seed=1 + start)
            keys = [
                pa.DictionaryArray.from_arrays(pa.array(piece[key].to_numpy().astype(np.int8)), values)
                for key, values in zip(KEYS, labels, strict=True)
            ]
            batch = pa.record_batch([*keys, pa.array(piece["weight"].to_numpy())], schema=schema)
            file.write_batch(batch, row_group_size=GROUP)
