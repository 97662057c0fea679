"""Dataframe engines: Polars, pandas, PyArrow, DuckDB and PySpark behind one interface.

Polars, pandas and PyArrow data run on Polars (pandas and PyArrow are converted to Polars on input and back on
output); DuckDB and PySpark data stay on their engine and only small tables leave it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NoReturn

import narwhals as nw
import polars as pl

from equipoise.ground.errors import DataError, EngineError, EquipoiseError, MissingExtraError, settings_words
from equipoise.ground.quiet_panics import quiet_panics
from equipoise.ground.system import disk_error

Frame = nw.LazyFrame[Any]
Kind = Literal["polars", "polars-lazy", "pandas", "pyarrow", "duckdb", "pyspark"]

MAX_DAYS, MAX_WHOLE = 95_000_000, 2**63 - 1
"""Days from 1970 to the last, or the first, year that engines can write: some 260,000 years either way."""
UNITS_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
COLUMN_AT_FAULT = re.compile(r"failed in column '([^']{1,200})'")
BATCH_RECORDS = 1 << 21
"""Records read at a time from data that is not in memory."""


def adopt(data: Any) -> tuple[Frame, Kind]:
    """Wrap any frame that Narwhals supports; also return its kind."""
    try:
        native = nw.from_native(data)
    except TypeError:
        raise DataError(
            f"Cannot read {type(data).__name__}: give a path, or a Polars, pandas, PyArrow, DuckDB or PySpark frame."
        ) from None
    except Exception as error:
        fail(error, "read this frame")
    kind = _kind(native)
    if kind in ("pandas", "pyarrow"):
        return nw.from_native(_to_polars(native)).lazy(), kind
    return native.lazy(), kind


def _kind(native: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> Kind:
    engine = native.implementation
    if engine.is_polars():
        return "polars" if isinstance(native, nw.DataFrame) else "polars-lazy"
    if engine.is_pandas():
        return "pandas"
    if engine.is_pyarrow():
        return "pyarrow"
    if engine.is_duckdb():
        return "duckdb"
    if engine.is_pyspark() or engine.is_pyspark_connect():
        return "pyspark"
    raise EngineError(f"{engine} frames are not supported: give Polars, pandas, PyArrow, DuckDB or PySpark.")


def _to_polars(native: Any) -> pl.DataFrame:
    try:
        with quiet_panics():
            table: pl.DataFrame = native.to_polars()
    except ModuleNotFoundError as error:
        raise MissingExtraError.for_package(error.name or "pyarrow", "pandas") from None
    except BaseException as error:
        fail(error, "turn this frame into columns of one type each")
    for column, dtype in table.schema.items():
        if isinstance(dtype, pl.BaseExtension):
            raise DataError(f"Column {column!r} is of a type that cannot be counted: turn it into text or dates first.")
    return table


def restore(frame: Frame, kind: Kind) -> Any:
    """The native frame, of the kind that came in."""
    if kind not in ("polars", "pandas", "pyarrow"):
        return frame.to_native()
    table = without_hidden(collect(frame))
    return table.to_pandas() if kind == "pandas" else table.to_arrow() if kind == "pyarrow" else table


def without_hidden(table: pl.DataFrame) -> pl.DataFrame:
    """The same table with nothing beneath missing values: what was blanked is still there, and Arrow files keep it."""
    return table.with_columns(_rebuilt(column) for column in table.iter_columns() if column.null_count())


def _rebuilt(column: pl.Series) -> pl.Series:
    """A column put together anew from the values that are not missing; long texts have a memory that is copied too."""
    present, values = column.is_not_null(), column.drop_nulls()
    if column.dtype == pl.String:
        values = values + ""
    elif column.dtype == pl.Binary:
        values = values.bin.encode("hex").str.decode("hex")
    places = (present.cum_sum() - 1).set(~present, None)
    return values.gather(places) if len(values) else column.clear(len(column))


def collect(frame: Frame) -> pl.DataFrame:
    """Bring a frame into memory as Polars."""
    try:
        with quiet_panics():
            native = frame.to_native()
            table = (
                native.collect() if frame.implementation.is_polars() else frame.collect(backend="polars").to_native()
            )
            _refuse_impossible_dates(table)
            return table
    except EquipoiseError:
        raise
    except BaseException as error:
        fail(error, "read the data")


def _refuse_impossible_dates(table: pl.DataFrame) -> None:
    """Refuse dates that no calendar has: engines panic where they should write them as text."""
    if name := column_of_far_dates(table, -MAX_DAYS, MAX_DAYS):
        raise DataError(f"Column {name!r} has dates that no calendar has: correct them, or give it as text.")


def column_of_far_dates(table: pl.DataFrame, first: int, last: int) -> str | None:
    """The first column with dates before or after these days since 1970, if there is one."""
    for name, dtype in table.schema.items():
        if isinstance(dtype, pl.Date | pl.Datetime):
            a_day = 86_400 * UNITS_PER_SECOND[dtype.time_unit] if isinstance(dtype, pl.Datetime) else 1
            limits = max(first * a_day, -MAX_WHOLE), min((last + 1) * a_day - 1, MAX_WHOLE)
            values = table[name].to_physical()
            if not (values.is_null() | values.is_between(*limits)).all():
                return name
    return None


def batches(frame: Frame, ordered: bool = False) -> Iterator[pl.DataFrame]:
    """A scanned Polars frame in batches of bounded size, at least one; in any order unless `ordered`."""
    native, empty = frame.to_native(), True
    try:
        with quiet_panics():
            pieces = iter(native.collect_batches(chunk_size=BATCH_RECORDS, maintain_order=ordered))
            piece = next(pieces, None)
        while piece is not None:
            yield piece
            empty = False
            with quiet_panics():
                piece = next(pieces, None)
        if empty:
            yield collect(frame)
    except GeneratorExit:
        raise
    except BaseException as error:
        fail(error, "read the data")


def like(frame: Frame, table: pl.DataFrame) -> Frame:
    """A Polars table on the engine of `frame`."""
    copy: Frame
    if frame.implementation.is_polars():
        copy = nw.from_native(table.lazy())
    elif frame.implementation.is_duckdb():
        import duckdb

        copy = nw.from_native(duckdb.from_arrow(without_hidden(table).to_arrow()))
    else:
        copy = nw.from_native(frame.to_native().sparkSession.createDataFrame(table.to_arrow()))
    return copy


def replaced(frame: Frame, column: str, old: pl.Series, new: pl.Series) -> Frame:
    """Replace each value of a column by its new one on the engine, in the same row order. Nulls stay null.

    Cost: one pass; the mapping travels to the engine (as a hash join on Polars and Spark, as a CASE on DuckDB).
    """
    keep = old.is_not_null()
    old, new = old.filter(keep), new.filter(keep)
    kind = nw.from_native(new, series_only=True).dtype
    if frame.implementation.is_polars():
        expression = pl.col(column).replace_strict(old, new, default=None, return_dtype=new.dtype)
        return nw.from_native(frame.to_native().with_columns(expression.alias(column)))
    if frame.implementation.is_duckdb():
        swap = nw.col(column).replace_strict(old.to_list(), new.to_list(), default=None, return_dtype=kind)
        return frame.with_columns(swap.alias(column))
    names = frame.collect_schema().names()
    plan = like(frame, pl.DataFrame({column: old, "__eq_new": new}))
    joined = frame.join(plan, on=column, how="left").with_columns(nw.col("__eq_new").alias(column))
    return joined.select(names)


def mapped(frame: Frame, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Frame:
    """Change a frame in batches with a function of one record at a time that keeps the column types.

    Scanned by Polars: lazily, in batches. Spark: on the cluster. DuckDB: through memory.
    """
    native = frame.to_native()
    if frame.implementation.is_duckdb():
        return like(frame, change(collect(frame)))
    changed: Frame
    if frame.implementation.is_polars():
        changed = nw.from_native(native.map_batches(change, streamable=True))
    else:
        changed = nw.from_native(native.mapInArrow(_ArrowChange(change), native.schema))
    return changed


def shuffled(frame: Frame, seed: int) -> Frame:
    """A Spark frame in random order."""
    from pyspark.sql import functions

    return nw.from_native(frame.to_native().orderBy(functions.rand(seed % (1 << 62))))


class _ArrowChange:
    """A Polars function for Spark's `mapInArrow`."""

    def __init__(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
        self.change = change

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            changed = self.change(pl.DataFrame(pl.from_arrow(batch)))
            yield from changed.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()


def fail(error: BaseException, doing: str) -> NoReturn:
    """Re-raise an engine's error without its text, which may quote data; the column that it names is named."""
    if isinstance(error, KeyboardInterrupt | SystemExit | EquipoiseError):
        raise error
    if isinstance(error, FileNotFoundError):
        raise DataError(f"Could not {doing}: there is no such file.") from None
    if isinstance(error, OSError) and (reason := disk_error(error)) != (None, ""):
        raise OSError(*reason) from None
    if isinstance(error, ModuleNotFoundError):
        raise MissingExtraError.for_package(error.name or "pyarrow", "all") from None
    if isinstance(error, MemoryError):
        raise DataError(f"Could not {doing}: there is not enough memory.") from None
    if column := COLUMN_AT_FAULT.search(str(error)):
        raise DataError(
            f"Could not {doing} ({type(error).__name__}): column {column[1]!r} has values that do not fit its type."
        ) from None
    if isinstance(error, pl.exceptions.SchemaError | pl.exceptions.ColumnNotFoundError):
        raise DataError(f"Could not {doing}: the columns are not of the types they should be.") from None
    other = f"Could not {doing} ({type(error).__name__}): the data may be damaged or of mixed types."
    raise DataError(settings_words(error) or other) from None


def engine(frame: Frame) -> str:
    return str(frame.implementation.name).lower()


def columns(frame: Frame) -> Sequence[str]:
    return frame.collect_schema().names()
