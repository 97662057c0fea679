"""Excel (.xlsx): one sheet whose first row holds the column names. Excel has no labels and no missing codes."""

import logging
import re
import zipfile
from datetime import date, datetime, time
from functools import reduce
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.data.labels import Labels
from equipoise.files.column_types import FLOATS, SIGNED, TEXTS, UNSIGNED, WIDE, same, stored_as
from equipoise.files.format import Format, Signature
from equipoise.files.memory import refuse_beyond
from equipoise.files.office_text import heading_rows, joined_names
from equipoise.ground.errors import DataError, ParameterError, hint, import_extra

MAX_SHEET_ROWS, MAX_SHEET_COLUMNS = 1_048_576, 16_384
MAX_EXACT_INTEGER = 2**53
FIRST_EXCEL_DAY, MIDNIGHT, NO_TIME = date(1899, 12, 31), time(), datetime(1970, 1, 1)
ROW_PATTERN, COLUMN_PATTERN = (
    re.compile(p) for p in (rb"row [^<>]{0,60}?\br=[\"'](\d{1,7})", rb" r=[\"']([A-Z]{1,3})\d")
)
REFERENCE_BYTES, CELL_BYTES = 80, 40
"""Bytes of a reference that may lie on the edge of a piece, and of memory for a cell in use or not."""
SAVE_ADVICE = "a workbook cannot be read in pieces, so save the sheet as CSV or Parquet first"


def load(
    path: Path, *, sheet: str | None = None, skip_rows: int | None = None, header_rows: int | None = None
) -> pl.DataFrame:
    """Read a sheet, the first unless named; types from all cells of a column."""
    skip, deep = heading_rows(skip_rows, header_rows)
    reader = _reader(path)
    names = list(reader.sheet_names)
    if sheet is not None and sheet not in names:
        raise ParameterError(f"No sheet {sheet!r} in {str(path)!r}.{hint(sheet, names)}")
    chosen = sheet or names[0]
    try:
        names_read = _heading(reader, chosen, skip, deep) if skip or deep > 1 else {}
        cells = reader.load_sheet(chosen, schema_sample_rows=None, **names_read)
        columns = cells.available_columns()
        table: pl.DataFrame = cells.to_polars()
    except Exception as error:
        if type(error).__name__ == "NoDataError":
            raise DataError(f"The sheet {chosen!r} of {str(path)!r} is empty.") from None
        raise DataError(_broken(path)) from None
    where = f"The sheet {chosen!r} of {str(path)!r}"
    unnamed = [place for place, column in enumerate(columns, start=1) if column.column_name_from == "generated"]
    if unnamed:
        raise DataError(
            f"{where} has no name over column {unnamed[0]:,}: cells are merged, or the names are not in the first row. "
            "The first row must hold one name for each column."
        )
    _refuse_twice(reader, chosen, table.columns, where)
    if header_rows is None:
        _refuse_second_header(table, where)
    if not table.width:
        raise DataError(f"{where} is empty.")
    table = table.filter(~pl.all_horizontal(pl.all().is_null()))
    if table.is_empty():
        raise DataError(f"{where} has column names but no records.")
    return table.select(_narrowed(values) for values in table.get_columns())


def sheet_names(path: Path) -> list[str]:
    """The names of the sheets of a workbook."""
    return list(_reader(path).sheet_names)


def save(frame: pl.LazyFrame, path: Path, labels: Labels) -> None:
    """Write one sheet named data; texts are never taken for formulas or links."""
    xlsxwriter = import_extra("xlsxwriter")
    table = frame.collect()
    if table.height >= MAX_SHEET_ROWS or table.width > MAX_SHEET_COLUMNS:
        raise DataError(
            f"{table.height:,} records and {table.width:,} columns do not fit an Excel sheet, which holds "
            f"{MAX_SHEET_ROWS - 1:,} and {MAX_SHEET_COLUMNS:,}: ask for another format, such as csv or parquet."
        )
    table = table.select(_storable(values) for values in table.get_columns())
    plain = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    number_formats: Any = {name: "General" for name, dtype in table.schema.items() if dtype.is_numeric()}
    with xlsxwriter.Workbook(path, plain) as book:
        book.set_properties({"created": NO_TIME})
        table.write_excel(book, "data", autofilter=False, column_formats=number_formats)


def _reader(path: Path) -> Any:
    fastexcel = import_extra("fastexcel")
    logging.getLogger("fastexcel").setLevel(logging.ERROR)  # a line for each empty column, up to 16,384
    try:
        with zipfile.ZipFile(path) as book:
            parts = book.infolist()
            sheets = [part.file_size for part in parts if part.filename.startswith("xl/worksheets/")]
            refuse_beyond(path, max(sheets, default=0), f"{sum(sheets) / 1e6:,.0f} MB unpacked", SAVE_ADVICE)
            _unfold(path, book, parts)
    except DataError:
        raise
    except Exception:
        raise DataError(_broken(path)) from None
    try:
        return fastexcel.read_excel(path)
    except Exception:
        raise DataError(_broken(path)) from None


def _unfold(path: Path, archive: zipfile.ZipFile, parts: list[zipfile.ZipInfo]) -> None:
    """Unpack every part once, in pieces: its sizes are what a workbook says of itself, and need not be true.

    The reader makes a place for every cell up to the last row and column in use, however few are filled.
    """
    total = 0
    for part in parts:
        rows, columns, piece = 0, set[bytes](), b""
        with archive.open(part) as file:
            while more := file.read(1 << 20):
                total += len(more)
                refuse_beyond(path, total, f"more than {total / 1e6:,.0f} MB unpacked", SAVE_ADVICE, words="more than")
                piece = piece[-REFERENCE_BYTES:] + more
                rows = max(rows, *map(int, ROW_PATTERN.findall(piece)), 0)
                columns.update(COLUMN_PATTERN.findall(piece))
        wide = max(map(_place, columns), default=0)
        refuse_beyond(path, rows * wide, f"{rows:,} rows x {wide:,} columns in use", SAVE_ADVICE, CELL_BYTES)


def _place(letters: bytes) -> int:
    """The number of a column.

    >>> _place(b"C"), _place(b"XFD")
    (3, 16384)
    """
    return reduce(lambda number, letter: 26 * number + letter - ord("A") + 1, letters, 0)


def _heading(reader: Any, sheet: str, skip: int, deep: int) -> dict[str, Any]:
    """How to read a sheet whose names stand in several rows, or below others."""
    rows = reader.load_sheet(sheet, header_row=None, n_rows=skip + deep, dtypes="string").to_polars().rows()[skip:]
    if not rows:
        raise DataError(f"The sheet {sheet!r} has no names below {skip} rows.")
    return {"header_row": None, "skip_rows": skip + deep, "column_names": joined_names(rows)}


def _refuse_twice(reader: Any, sheet: str, names: list[str], where: str) -> None:
    """Refuse duplicate column names: the reader numbers them, so the first row is read again where that may be."""
    if not any(name.rpartition("_")[0] in names and name.rpartition("_")[2].isdecimal() for name in names):
        return
    first = reader.load_sheet(sheet, header_row=None, n_rows=1, dtypes="string").to_polars().row(0)
    for place, name in enumerate(first):
        if name in first[:place]:
            raise DataError(
                f"{where} has a column name twice (columns {first.index(name) + 1:,} and {place + 1:,}): rename one."
            )


def _refuse_second_header(table: pl.DataFrame, where: str) -> None:
    """Texts over numbers in a row of nothing but texts are a second row of names."""
    if table.height < 2 or any(dtype != pl.String for dtype in table.dtypes) or None in table.row(0):
        return
    for values in table.get_columns():
        numbers = values.cast(pl.Float64, strict=False)
        if numbers[0] is None and numbers[1:].null_count() == values[1:].null_count() < table.height - 1:
            raise DataError(f"{where} has names in two rows: say header_rows 2, or 1 where the second is a record.")


def _narrowed(values: pl.Series) -> pl.Series:
    """Whole numbers, days and times of day, by their values: Excel has one type of number and one of date-time."""
    present = values.drop_nulls()
    if values.dtype.is_float() and len(present) and ((present % 1 == 0) & (present.abs() <= MAX_EXACT_INTEGER)).all():
        return values.cast(pl.Int64)
    if not isinstance(values.dtype, pl.Datetime):
        return values
    if len(present) and (present.dt.date() <= FIRST_EXCEL_DAY).all():
        return values.dt.time()
    if (present.dt.time() == MIDNIGHT).all():
        return values.cast(pl.Date)
    return values.cast(pl.Datetime("us"))


def _storable(values: pl.Series) -> pl.Series:
    """Numbers that Excel would round go as text; not-a-number as an empty cell."""
    if values.dtype.is_float():
        return values.fill_nan(None)
    if values.dtype.is_integer() and len(values) and (values.cast(pl.Float64).abs().max() or 0) > MAX_EXACT_INTEGER:  # type: ignore[operator]
        return values.cast(pl.String)
    if values.dtype.is_decimal() and not values.equals(values.cast(pl.Float64).cast(values.dtype, strict=False)):
        return values.cast(pl.String)
    return values


def _broken(path: Path) -> str:
    return f"{str(path)!r} is not a whole Excel workbook: it is damaged, cut off or something else."


FORMATS = (
    Format(
        name="xlsx",
        title="Excel",
        suffixes=(".xlsx", ".xlsm"),
        load=load,
        save=save,
        signatures=(Signature(b"PK\x03\x04", "an Excel workbook", (".xlsx", ".xlsm")),),
        types=same("Boolean", "Date", "Datetime", "Time")
        | stored_as("Int64", *SIGNED, *UNSIGNED, *WIDE)
        | stored_as("Float64", *FLOATS, "Decimal")
        | stored_as("String", *TEXTS, "Null"),
        resolution="1ms",
        options=("sheet", "skip_rows", "header_rows"),
        extra="files",
    ),
)
