"""Reading and writing of SPSS, Stata and SAS files with pyreadstat: codes, labels, dates and missing values."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.data.labels import Code, Column, Labels, split_missing_codes
from equipoise.files.column_types import FLOATS, SIGNED, TEXTS, UNSIGNED, WIDE, same, stored_as
from equipoise.files.format import Format, Loaded
from equipoise.files.memory import refuse_beyond
from equipoise.files.stored_dates import DateUnits
from equipoise.ground.errors import DataError

SAVE_ADVICE = "this format cannot be read in pieces, so use a machine with more, or save it as Parquet or CSV first"
NUMBER_BYTES, TEXT_BYTES = 48, 90
"""Bytes of memory a number and an empty text take while they are read."""
WHOLE_NUMBER_FORMATS = re.compile(r".*\.0|F\d+\.?")
"""Formats that show no decimals."""
MAX_EXACT_INTEGER = 2**53
"""The largest whole number that all of these files hold: their numbers are floating-point."""
COLUMN_TYPES = (
    stored_as("Int64", *SIGNED, *UNSIGNED, *WIDE)
    | stored_as("Float64", "Boolean", *FLOATS, "Decimal")
    | stored_as("String", *TEXTS, "Null")
    | same("Date", "Datetime", "Time")
)
"""The column types that the packages hold, and what each is read back as."""
StatisticalFormat = partial(
    Format, types=COLUMN_TYPES, largest_integer=MAX_EXACT_INTEGER, options=("encoding",), codes=True, extra="files"
)
"""A format with what the packages have in common."""
HEAD_BYTES = 2048
TIME_OF_WRITING = re.compile(
    rb"(?P<spss>\d\d \w{3} \d{4}:\d\d:\d\d)|(?<=<timestamp>\x11)(?P<stata>.{17})|(?P<sas>\d\d[A-Z]{3}\d\d(?::\d\d){3})"
)
NO_TIMES = {"spss": b"01 Jan 7000:00:00", "stata": b"01 Jan 1970 00:00", "sas": b"01JAN70:00:00:00"}
CODE_COLUMN_PREFIX = "\x00missing code of "
"""The columns that carry the missing codes of records to the writer begin like this."""


@dataclass(frozen=True)
class Package:
    """One family of files: its name, its clock, its usual formats of dates, date-times and times, all its own ones."""

    name: str
    clock: DateUnits
    usual: tuple[str, str, str]
    own: re.Pattern[str]

    def format(self, dtype: pl.DataType, previous: str | None) -> str | None:
        """The format a column is shown in here: the one it had, if this package knows it."""
        display = self.clock.format(dtype, previous, self.usual)
        return display if display and self.own.fullmatch(display) else None


def load(
    path: Path, package: Package, reader: Callable[..., Any], *, encoding: str | None = None, **options: Any
) -> Loaded:
    """Read a file whole, after a look at what it will need."""
    arguments = {"output_format": "polars", "encoding": encoding}
    meta = _attempt(lambda: reader(path, metadataonly=True, **arguments), path, package)[1]
    _refuse_large(path, meta)
    table, meta = _attempt(
        lambda: reader(path, disable_datetime_conversion=True, **arguments, **options), path, package
    )
    if meta.number_rows is not None and table.height < meta.number_rows:
        raise DataError(broken_message(path, package))
    labels = _labels(meta)
    table, tags = _split_tags(table)
    table, labels = split_missing_codes(table, labels)
    gaps = [frame for frame in (labels.gaps, tags) if frame is not None]
    labels = replace(labels, gaps=pl.concat(gaps, how="horizontal") if gaps else None)
    return Loaded(_typed(table, labels, package.clock), labels)


def storable_table(
    frame: pl.LazyFrame, labels: Labels, package: Package, *, coded: bool
) -> tuple[pl.DataFrame, dict[str, pl.Series], Labels]:
    """A table of what the package can store, the missing codes of its records, and its labels.

    Dates become numbers with a date format. With `coded`, recoded columns that held numbers become numbers again:
    their categories' own where those are whole numbers, else 1, 2, 3 and so on, each with its value label.
    """
    table = frame.collect()
    gaps = {n.removeprefix(CODE_COLUMN_PREFIX): table[n] for n in table.columns if n.startswith(CODE_COLUMN_PREFIX)}
    table = table.drop(cs for cs in table.columns if cs.startswith(CODE_COLUMN_PREFIX))
    columns = {}
    for name in table.columns:
        values, column = table[name], labels.of(name)
        if values.dtype in (pl.Categorical, pl.Enum, pl.Null):
            values = values.cast(pl.String)
        column = replace(column, format=package.format(values.dtype, column.format))
        if values.dtype.is_temporal():
            values = package.clock.to_numbers(values)
        elif coded and values.dtype == pl.String and column.numeric:
            values, column = _category_codes(values, column)
        elif values.dtype == pl.Boolean or values.dtype.is_decimal():
            values = values.cast(pl.Float64)
        elif values.dtype.is_float():
            values = (values.cast(pl.Float64) if values.dtype == pl.Float16 else values).fill_nan(None)
        elif values.dtype in (pl.Int128, pl.UInt128):
            values = values.cast(pl.Int64)
        table, columns[name] = table.with_columns(values.alias(name)), column
    return table, {n: s for n, s in gaps.items() if n in columns}, Labels(columns, labels.title)


def write_or_explain(write: Callable[[], None], path: Path, package: Package) -> None:
    """Write, or say in one sentence that it cannot be."""
    try:
        write()
        _forget_time(path)
    except Exception as error:
        is_name = " name " in str(error)
        what = "a column name (a space, an accent, a reserved word, or too long)" if is_name else "a text or a label"
        raise DataError(
            f"The data cannot be written as {package.name} ({path.suffix}): {what} is not allowed there: "
            "ask for another format, such as parquet."
        ) from None


def _forget_time(path: Path) -> None:
    """Put the first moment of 1970 for the time of writing, which the formats note in their first bytes."""
    with path.open("r+b") as file:
        head = file.read(HEAD_BYTES)
        file.seek(0)
        file.write(TIME_OF_WRITING.sub(lambda match: NO_TIMES[match.lastgroup or ""], head))


def value_labels(values: tuple[tuple[Code, str], ...], dtype: pl.DataType) -> dict[Code, str]:
    """Value labels as the writer wants them: codes of the type of their column."""
    if dtype == pl.String:
        return {str(code): text for code, text in values}
    kind: type = int if dtype.is_integer() else float
    return {code if isinstance(code, str) else kind(code): text for code, text in values}


def _labels(meta: Any) -> Labels:
    ranges: Mapping[str, Any] = meta.missing_ranges or {}
    tagged: Mapping[str, Any] = meta.missing_user_values or {}
    columns = {}
    for name in meta.column_names:
        values = meta.variable_value_labels.get(name, {})
        pairs = [(r["lo"], r["hi"]) for r in ranges.get(name, ())] + [(tag, tag) for tag in tagged.get(name, ())]
        columns[name] = Column(
            label=meta.column_names_to_labels.get(name) or None,
            values=tuple(values.items()),
            missing=tuple(pairs),
            format=meta.original_variable_types.get(name),
            storage=meta.readstat_variable_types.get(name),
            measure=meta.variable_measure.get(name) if meta.file_format == "sav/zsav" else None,
            width=meta.variable_display_width.get(name) if meta.file_format == "sav/zsav" else None,
        )
    return Labels(columns, meta.file_label or None)


def _split_tags(table: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Stata's and SAS's .a to .z arrive as letters among numbers: take them apart."""
    tags = {}
    for name, dtype in table.schema.items():
        if dtype == pl.Object:
            texts = pl.Series(name, table[name].to_list(), dtype=pl.String, strict=False)
            letter = texts.str.contains("^[a-zA-Z_]$")
            tags[name] = pl.select(pl.when(letter).then(texts).alias(name)).to_series()
            table = table.with_columns(texts.cast(pl.Float64, strict=False).alias(name))
    return table, pl.DataFrame(tags) if tags else None


def _typed(table: pl.DataFrame, labels: Labels, clock: DateUnits) -> pl.DataFrame:
    """Dates as dates, whole codes as integers, empty texts as null: there the formats have no other missing text."""
    columns = []
    for values in table.get_columns():
        column = labels.of(values.name)
        if column.numeric and not values.dtype.is_numeric() and values.null_count() == len(values):
            values = values.cast(pl.Float64)
        if values.dtype == pl.String:
            values = pl.select(pl.when(pl.lit(values) != "").then(pl.lit(values)).alias(values.name)).to_series()
        elif kind := clock.kind(column.format):
            values = clock.read(values.cast(pl.Float64), kind)
        elif values.dtype.is_float() and _whole(values, column):
            values = values.cast(pl.Int64)
        columns.append(values)
    return pl.DataFrame(columns)


def _whole(values: pl.Series, column: Column) -> bool:
    """Codes and columns shown without decimals are integers, if they all are."""
    without_decimals = (
        not column.format or WHOLE_NUMBER_FORMATS.fullmatch(column.format) or (column.storage or "").startswith("int")
    )
    if not (without_decimals or column.values):
        return False
    present = values.drop_nulls()
    return bool(((present % 1 == 0) & (present.abs() < 2**53)).all())


def _category_codes(values: pl.Series, column: Column) -> tuple[pl.Series, Column]:
    """Texts of a recode as numbers, their labels with them; the numbers of missing codes are left alone."""
    labels = {str(code): text for code, text in column.values if not column.is_missing(code)}
    missing_labels = tuple((code, text) for code, text in column.values if column.is_missing(code))
    listed = list(dict.fromkeys([*labels, *values.drop_nulls().unique().sort().to_list()]))
    if all(text.isdecimal() and str(int(text)) == text and not column.is_missing(int(text)) for text in listed):
        codes = [int(text) for text in listed]
    else:
        free = (code for code in range(1, 2 * len(listed) + 2_000_000) if not column.is_missing(code))
        codes = [next(free) for _ in listed]
    new_labels = tuple((code, labels.get(text, text)) for code, text in zip(codes, listed, strict=True))
    numbers = values.replace_strict(listed, codes, default=None, return_dtype=pl.Int64)
    return numbers, replace(column, values=(*new_labels, *missing_labels))


def _refuse_large(path: Path, meta: Any) -> None:
    """Refuse a file that needs too much memory: pyreadstat makes a Python object of each value (measured sizes)."""
    rows = meta.number_rows or path.stat().st_size // max(1, sum(meta.variable_storage_width.values()))
    widths = [
        NUMBER_BYTES if kind != "string" else TEXT_BYTES + 2 * meta.variable_storage_width.get(name, 0)
        for name, kind in meta.readstat_variable_types.items()
    ]
    refuse_beyond(path, rows * sum(widths), f"{rows:,} records x {len(widths):,} columns", SAVE_ADVICE, 1)


def _attempt(read: Callable[[], Any], path: Path, package: Package) -> Any:
    try:
        return read()
    except Exception as error:
        if "encoding" in str(error) or isinstance(error, UnicodeError):
            raise DataError(
                f"{str(path)!r} holds text in another encoding than it says: name its encoding, such as 'cp1252'."
            ) from None
        if isinstance(error, MemoryError):
            raise DataError(f"There is not enough memory to read {str(path)!r}: {SAVE_ADVICE}.") from None
        raise DataError(broken_message(path, package)) from None


def broken_message(path: Path, package: Package) -> str:
    return f"{str(path)!r} is not a whole {package.name} file: it is damaged, cut off or something else."
