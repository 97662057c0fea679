"""ORC (Apache Optimized Row Columnar), as Hive and Spark write it: read whole, written with zstd compression.

ORC has no unsigned integers, durations or times of day, and this library writes no metadata that could name them:
such columns are refused. Categories come back as text, date-times in nanoseconds (those with a time zone in UTC), so
date-times before 1678 or after 2261 are refused.
"""

from datetime import datetime
from pathlib import Path

import polars as pl

from equipoise.data.labels import Labels
from equipoise.files.column_types import SIGNED, TEXTS, ZONED, parts, same, stored_as, words
from equipoise.files.format import Format, Signature
from equipoise.files.memory import refuse_beyond
from equipoise.ground.errors import DataError, import_extra

VALUE_BYTES = 32
"""Bytes of memory a value takes while it is read, on the safe side for short texts."""
FIRST_MOMENT, LAST_MOMENT = datetime(1678, 1, 1), datetime(2261, 12, 31)
"""The reach of nanoseconds since 1970 in 64 bits, in whole years."""
SAVE_ADVICE = "save it as Parquet first, which is read in pieces"


def load(path: Path) -> pl.DataFrame:
    """Read a file, after a look at what it will need."""
    orc = import_extra("pyarrow.orc")
    try:
        file = orc.ORCFile(str(path))
        count, width = file.nrows, len(file.schema.names)
    except Exception:
        raise DataError(_broken_message(path)) from None
    refuse_beyond(path, count * width, f"{count:,} records x {width:,} columns", SAVE_ADVICE, VALUE_BYTES)
    try:
        return pl.DataFrame(pl.from_arrow(file.read()))
    except Exception:
        raise DataError(_broken_message(path)) from None


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


def _broken_message(path: Path) -> str:
    return f"{str(path)!r} is not a whole ORC file: it is damaged, cut off or something else."


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
        extra="arrow",
    ),
)
