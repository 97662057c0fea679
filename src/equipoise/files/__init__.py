"""Formats in and out, labels kept. A format is one module that describes itself as a `Format`, listed here."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from equipoise.data.engines import Frame, collect, column_of_far_dates, fail
from equipoise.data.labels import Labels
from equipoise.data.records import Records, Source
from equipoise.data.roles import Roles
from equipoise.files import argus, arrow, arx, delimited, excel, many_files, orc, parquet, rdata, sas, spss, stata
from equipoise.files import database as database_file
from equipoise.files.argus import metadata_files as metadata_files
from equipoise.files.argus_batch import batch_commands
from equipoise.files.column_types import words
from equipoise.files.database import query as query
from equipoise.files.database import quoted as quoted
from equipoise.files.database import store as store
from equipoise.files.delimited import CsvFormulas as CsvFormulas
from equipoise.files.delimited import csv_formulas as csv_formulas
from equipoise.files.delimited import read_table_csv as read_table_csv
from equipoise.files.delimited import table_csv as table_csv
from equipoise.files.delimited import without_formulas as without_formulas
from equipoise.files.format import Format, Loaded, refuse_other
from equipoise.files.office_text import checked_codes, without_codes
from equipoise.files.statistical import CODE_COLUMN_PREFIX
from equipoise.files.stored_dates import FIRST_DAY, LAST_DAY
from equipoise.ground import system
from equipoise.ground.errors import DataError, EquipoiseError, MissingExtraError, RolesError, hint, settings_words
from equipoise.ground.quiet_panics import quiet_panics
from equipoise.ground.whole_files import staged_with_companions

MODULES = (delimited, parquet, arrow, orc, excel, spss, stata, sas, argus, arx, database_file, rdata)
"""The modules that declare formats: a new format is a new module, named here."""
KNOWN: dict[str, Format] = {format.name: format for module in MODULES for format in module.FORMATS}
"""Every format that is read, by name; whatever lists formats (help, uploads, documentation, signatures) asks here."""
FORMATS: dict[str, Format] = {name: format for name, format in KNOWN.items() if format.save}
"""The formats that are read and written; a file of each is named data.csv, data.parquet and so on."""

SMALL = (pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32)
"""The integers that every format stores exactly."""


def format_of(path: str | Path) -> str:
    """The format of a file, by the ending of its name.

    >>> format_of("survey.parquet"), format_of("survey.csv.gz"), format_of("SURVEY.SAV")
    ('parquet', 'csv', 'sav')
    """
    name = Path(path).name.lower()
    for format, candidate in KNOWN.items():
        if name.endswith(candidate.suffixes):
            return format
    if name.endswith(".arb"):
        raise DataError(f"A batch file of tau-ARGUS is not data; its job is done by: {'; '.join(batch_commands(path))}")
    listed = ", ".join(s for candidate in KNOWN.values() for s in candidate.suffixes if s.count(".") == 1)
    raise DataError(f"No format for files ending in {Path(path).suffix!r}. There are: {listed}.")


def becomes(format: str) -> str:
    """The format a file of this format is released in.

    >>> becomes("sav"), becomes("sas7bdat")
    ('sav', 'xpt')
    """
    return KNOWN[format].becomes or format


def upload_suffixes() -> tuple[str, ...]:
    """The endings of files that can be opened by themselves, as a browser asks for them: the last part of each.

    >>> ".gz" in upload_suffixes(), ".asc" in upload_suffixes()
    (True, False)
    """
    endings = (suffix for format in KNOWN.values() if format.alone for suffix in format.suffixes)
    return tuple(dict.fromkeys(Path(f"data{ending}").suffix for ending in endings))


def read(
    source: Any,
    roles: Roles | str | Path | None = None,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    missing_codes: Sequence[str | float] | str | None = None,
    skip_rows: int | None = None,
    header_rows: int | None = None,
    sheet: str | None = None,
    metadata: str | Path | None = None,
    database: str | Path | None = None,
) -> Records:
    """Read a file, or adopt a frame, with the roles of its columns.

    Parameters
    ----------
    source
        A path, a pattern (`part-*.parquet`), a folder of Parquet partitions, or a Polars, pandas, PyArrow, DuckDB or
        PySpark frame; with `database`, a SELECT statement. Parquet, Arrow and large CSV files are scanned, not loaded;
        frames are never changed. Labels of SPSS, Stata and SAS files are kept; user-missing codes become null, and are
        written back on release (see `Labels`).
    roles
        `Roles`, or the path of a TOML file with them. Else tau-ARGUS metadata and ARX projects give them.
    delimiter, decimal
        For CSV files; detected when not given.
    thousands
        The mark between thousands in a CSV file (1.234,56); a point or a comma is detected, a blank is not.
    missing_codes
        Values that mean missing wherever they stand, such as -9 or "not stated". NA among numbers is found.
    skip_rows, header_rows
        For CSV and Excel files: rows above the column names, and rows that hold them (joined, "Income 2024").
    encoding
        For CSV, SPSS, Stata and SAS files; detected when not given.
    sheet
        The sheet of an Excel workbook, the first when not given.
    metadata
        The .rda file of tau-ARGUS microdata, when it is not the one beside it.
    database
        A DuckDB or SQLite file, `sqlite:///file`, `postgres://...`, or ':memory:' for a query on files.
    """
    chosen_roles = Roles.from_toml(roles) if isinstance(roles, str | Path) else roles
    if not isinstance(chosen_roles, Roles | None):
        raise RolesError(f"roles must be Roles or the path of a roles file, got {type(roles).__name__}.")
    codes = checked_codes(missing_codes) if missing_codes else None
    options = {
        "delimiter": delimiter, "encoding": encoding, "decimal": decimal, "thousands": thousands, "sheet": sheet,
        "metadata": metadata, "skip_rows": skip_rows, "header_rows": header_rows, "missing_codes": codes,
    }  # fmt: skip
    options = {name: value for name, value in options.items() if value is not None and value != ""}
    if database is not None:
        _refuse_options(options, "a query", ())
        return Records.of(query(str(source), database), chosen_roles or Roles())
    if not isinstance(source, str | Path):
        _refuse_options(options, "a frame", ())
        return Records.of(source, chosen_roles or Roles())
    loaded, format = _loaded(Path(source), options)
    chosen = chosen_roles or loaded.roles or Roles()
    if format == "csv":
        _refuse_headless(loaded.frame.collect_schema().names(), chosen, source)
    frame = without_codes(loaded.frame, codes) if codes else loaded.frame
    return Records.of(frame, chosen, Source(str(source), format), loaded.labels)


def load(path: str | Path, **options: Any) -> pl.DataFrame | pl.LazyFrame:
    """Read or scan a file; every error is one sentence without data."""
    return _loaded(Path(path), {name: value for name, value in options.items() if value is not None})[0].frame


def parts(path: str | Path) -> list[Path]:
    """The files behind a path: itself, those a pattern names, or the Parquet files of a folder."""
    place = Path(path)
    if place.is_dir():
        return many_files.partitions(place)
    return many_files.matching(place) if many_files.is_pattern(place) else [place]


def save(
    frame: pl.LazyFrame, path: str | Path, format: str, labels: Labels | None = None, *, overwrite: bool = False
) -> None:
    """Write a frame in one of the formats, with its labels where the format has them, whole or not at all.

    A column that the format cannot hold is refused by name and type, before anything is written; a file that exists is
    replaced only with `overwrite`.
    """
    target = FORMATS.get(format)
    if target is None or target.save is None:
        raise DataError(f"No format {format!r}.{hint(format, list(FORMATS))}")
    place, schema = Path(path), frame.collect_schema()
    _refuse_types(schema, target)
    _refuse_far_dates(frame, schema, target)
    frame = _without_rounding(frame, schema, target)
    if place.exists() and not overwrite:
        raise DataError(f"There is a file {str(path)!r} already: name another, or ask to overwrite it.")
    if not place.parent.is_dir():
        raise DataError(f"No folder at {str(place.parent)!r}.")
    try:
        with staged_with_companions(place) as stage, quiet_panics():
            target.save(frame, stage, (labels or Labels()).only(schema.names()))
    except OSError:
        raise
    except BaseException as error:
        fail(error, f"write the {target.title} file")


def with_codes(records: Records, format: str) -> Frame:
    """The frame as it is handed to `save`: with the missing codes of its records, where the format can hold them."""
    gaps, frame = records.labels.gaps, records.frame
    if gaps is None or not gaps.width or format not in FORMATS or not FORMATS[format].codes:
        return frame
    if not frame.implementation.is_polars() or records.height() != gaps.height:
        return frame
    code_columns = gaps.lazy().rename({name: CODE_COLUMN_PREFIX + name for name in gaps.columns})
    return nw.from_native(pl.concat([frame.to_native(), code_columns], how="horizontal"))


def _loaded(path: Path, options: Mapping[str, Any]) -> tuple[Loaded, str]:
    """The content of a file, a pattern or a folder, and its format."""
    try:
        with quiet_panics():
            return _opened(path, options)
    except EquipoiseError:
        raise
    except MemoryError:
        raise DataError(f"There is not enough memory to read {str(path)!r}.") from None
    except OSError as error:
        raise DataError(f"Cannot open {str(path)!r}: {(error.strerror or 'it is out of reach').lower()}.") from None
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
            raise
        if isinstance(error, ModuleNotFoundError):
            raise MissingExtraError.for_package(error.name or "pyarrow", "all") from None
        title = KNOWN[format_of(path)].title if not path.is_dir() else "Parquet"
        raise DataError(
            settings_words(error)
            or f"{str(path)!r} is not a whole {title} file ({type(error).__name__}): it is damaged, cut off or "
            "something else."
        ) from None


def _opened(path: Path, options: Mapping[str, Any]) -> tuple[Loaded, str]:
    if many_files.is_pattern(path) or path.is_dir():
        return _many(path, options)
    if not path.exists():
        near = hint(path.name, [p.name for p in path.parent.glob("*") if p.is_file()]) if path.parent.is_dir() else ""
        raise DataError(f"No file at {str(path)!r}.{near if 'mean' in near else ''}")
    format = format_of(path)
    if not path.is_file():
        raise DataError(f"{str(path)!r} is a device or a pipe, not a file.")
    if not system.is_text(path):
        raise DataError(f"The name of {str(path)!r} is not text in UTF-8, and engines cannot open it: rename the file.")
    if path.stat().st_size == 0:
        raise DataError(f"The file {str(path)!r} is empty.")
    options = _fitting(options, format)
    refuse_other(path, KNOWN.values())
    return KNOWN[format].open(path, **options), format


def _many(path: Path, options: Mapping[str, Any]) -> tuple[Loaded, str]:
    paths = many_files.partitions(path) if path.is_dir() else many_files.matching(path)
    if not paths:
        raise DataError(f"{str(path)!r} is a folder without Parquet files, not a file.")
    formats = sorted({format_of(one) for one in paths})
    if len(formats) > 1:
        raise DataError(f"{str(path)!r} names files of several formats: {', '.join(formats)}.")
    options = _fitting(options, formats[0])
    if empty := [one for one in paths if one.stat().st_size == 0]:
        raise DataError(f"The file {str(empty[0])!r} is empty.")
    if not KNOWN[formats[0]].load_many:
        titles = " and ".join(format.title for format in KNOWN.values() if format.load_many)
        raise DataError(f"{str(path)!r} names many files: only {titles} files are read as one.")
    return KNOWN[formats[0]].open_many(paths, **options), formats[0]


def _refuse_types(schema: pl.Schema, format: Format) -> None:
    """Refuse the first column of a type that a format does not hold."""
    for name, dtype in schema.items():
        if not format.holds(dtype):
            others = (other.name for other in FORMATS.values() if other.holds(dtype) and other.keeps(dtype))
            other = next(others, None)
            advice = f"change its type, or ask for {other}" if other else "change its type first"
            raise DataError(f"Column {name!r} is {words(dtype)}, which {format.title} files cannot hold: {advice}.")


def _refuse_far_dates(frame: pl.LazyFrame, schema: pl.Schema, format: Format) -> None:
    """Refuse the first column with dates that a format, or whoever reads it, has no year for. Cost: one pass."""
    dates = [name for name, dtype in schema.items() if isinstance(dtype, pl.Date | pl.Datetime)]
    if dates and not format.any_date:
        name = column_of_far_dates(collect(nw.from_native(frame.select(dates))), FIRST_DAY, LAST_DAY)
        if name is not None:
            raise DataError(
                f"Column {name!r} has dates outside the years 1 to 9999, which {format.title} files cannot hold: "
                "correct them, or ask for parquet."
            )


def _without_rounding(frame: pl.LazyFrame, schema: pl.Schema, format: Format) -> pl.LazyFrame:
    """The frame, unless it has numbers that a format would round or lose: those are refused."""
    limits = {name: limit for name, dtype in schema.items() if (limit := _largest(dtype, format)) is not None}
    if not limits:
        return frame
    table = collect(nw.from_native(frame))
    for name, limit in limits.items():
        low, high = table.select(low=pl.col(name).min(), high=pl.col(name).max()).row(0)
        if low is not None and max(-low, high) > limit:
            raise DataError(
                f"Column {name!r} is {words(schema[name])} and has numbers that {format.title} files would round or "
                "lose: change its type to text, or ask for parquet."
            )
    return table.lazy()


def _largest(dtype: pl.DataType, format: Format) -> int | float | Decimal | None:
    """The largest number of a type that a format stores exactly; None where all are."""
    if dtype.is_float():
        return format.largest_float
    if isinstance(dtype, pl.Decimal) and format.largest_integer is not None:
        return Decimal(format.largest_integer).scaleb(-dtype.scale)
    return format.largest_integer if dtype.is_integer() and dtype not in SMALL else None


def _fitting(options: Mapping[str, Any], format: str) -> dict[str, Any]:
    """The options of a format; codes for what is missing are for every format, and looked for after reading."""
    valid = KNOWN[format].options
    _refuse_options(options, f".{format} files", (*valid, "missing_codes"))
    return {name: value for name, value in options.items() if name in valid}


def _refuse_options(options: Mapping[str, Any], kind: str, valid_names: tuple[str, ...]) -> None:
    """Refuse an option that means nothing here, and say what it is for."""
    for name in options:
        if name not in valid_names:
            takers = [f".{format}" for format, one in KNOWN.items() if name in one.options]
            kinds = "CSV files" if takers == [".csv"] else f"{', '.join(takers)} files"
            raise DataError(f"{name} is for {kinds}, not for {kind}.")


def _refuse_headless(header: list[str], roles: Roles, path: str | Path) -> None:
    """Refuse a CSV file whose first row has none of the columns with a role: it may be a record, and is not shown."""
    role_columns = roles.named()
    if role_columns and not set(role_columns) & set(header) and "mean" not in hint(role_columns[0], header):
        raise DataError(
            f"None of the columns with a role is in the first row of {str(path)!r} ({len(header)} fields): "
            "it must hold the column names."
        )
