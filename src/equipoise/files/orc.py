"""ORC (Apache Optimized Row Columnar), as Hive and Spark write it: read whole, written with zstd compression.

ORC has no unsigned integers, durations or times of day, and this library writes no metadata that could name them:
such columns are refused. Categories come back as text, date-times in nanoseconds (those with a time zone in UTC), so
date-times before 1678 or after 2261 are refused.
"""

import sys
from datetime import datetime
from pathlib import Path

import polars as pl

from equipoise.data.labels import Labels
from equipoise.files.column_types import SIGNED, TEXTS, ZONED, parts, same, stored_as, words
from equipoise.files.format import Format, Signature
from equipoise.files.memory import refuse_beyond
from equipoise.ground import system
from equipoise.ground.errors import DataError, import_extra

VALUE_BYTES = 32
"""Bytes of memory a value takes while it is read, on the safe side for short texts."""
FIRST_MOMENT, LAST_MOMENT = datetime(1678, 1, 1), datetime(2261, 12, 31)
"""The reach of nanoseconds since 1970 in 64 bits, in whole years."""
SAVE_ADVICE = "save it as Parquet first, which is read in pieces"
READER = """
import sys
path, sys.path[:] = sys.argv[1], sys.argv[2:]
import os, threading
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
from pyarrow import ipc, orc
file = orc.ORCFile(path)
print(file.nrows, len(file.schema.names), flush=True)
with ipc.new_stream(sys.stdout.buffer, file.schema) as stream:
    for number in range(file.nstripes):
        batch = file.read_stripe(number)
        batch.validate(full=True)
        stream.write(batch)
"""
"""The program that reads a file: its size in a line, then its records as an Arrow stream. It ends with its parent."""


def load(path: Path) -> pl.DataFrame:
    """Read a file, after a look at what it will need, in a process of its own: damage can end the reader's process."""
    import_extra("pyarrow.orc")
    from pyarrow import ipc

    with system.own_process(READER, str(path), *sys.path) as reader:
        try:
            count, width = map(int, reader.stdout.readline().split())
            refuse_beyond(path, count * width, f"{count:,} records x {width:,} columns", SAVE_ADVICE, VALUE_BYTES)
            table = pl.DataFrame(pl.from_arrow(ipc.open_stream(reader.stdout).read_all()))
            if reader.wait():
                raise ValueError("the reader failed")
        except DataError:
            raise
        except Exception:
            message = f"{str(path)!r} is not a whole ORC file: it is damaged, cut off or something else."
            raise DataError(message) from None
    return table


def save(frame: pl.LazyFrame, path: Path, labels: Labels) -> None:
    """Write a file; ORC as written here has no place for labels."""
    orc = import_extra("pyarrow.orc")
    table = frame.with_columns(pl.col(pl.Categorical, pl.Enum, pl.Null).cast(pl.String)).collect()
    for values in table.get_columns():
        _refuse_far_moments(values)
    orc.write_table(table.to_arrow(compat_level=pl.CompatLevel.oldest()), str(path), compression="zstd")


def _refuse_far_moments(values: pl.Series) -> None:
    """Refuse date-times that may not come back: ORC readers count in nanoseconds. Inside lists none is looked at."""
    coarse = [
        one for one in (values.dtype, *parts(values.dtype)) if isinstance(one, pl.Datetime) and one.time_unit != "ns"
    ]
    if not coarse:
        return
    if values.dtype in coarse and values.dt.replace_time_zone(None).is_between(FIRST_MOMENT, LAST_MOMENT).all():
        return
    raise DataError(
        f"Column {values.name!r} is {words(values.dtype)} and may have moments before 1678 or after 2261, which ORC "
        "files cannot hold: change its type, or ask for parquet."
    )


FORMATS = (
    Format(
        name="orc",
        title="ORC",
        suffixes=(".orc",),
        load=load,
        save=save,
        signatures=(Signature(b"ORC", "an ORC file", (".orc",)),),
        types=same("Boolean", *SIGNED, "Float32", "Float64", "Decimal", "Date", "Datetime", ZONED, "Binary")
        | stored_as("String", *TEXTS, "Null")
        | same("List", "Struct", "Map"),
        any_date=True,
        extra="arrow",
    ),
)
