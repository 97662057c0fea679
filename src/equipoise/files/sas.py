"""SAS: .sas7bdat and .xpt are read, .xpt is written: variable labels, dates and formats are kept.

SAS keeps value labels in catalogues of their own, and a transport file has none: recoded columns stay text there.
Special missing values (.A to .Z and ._) become null and are kept beside.
"""

import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.data.labels import Labels
from equipoise.files import sas_transport, statistical
from equipoise.files.column_types import stored_as
from equipoise.files.format import Format, Loaded, Signature
from equipoise.files.missing_codes import letter_codes
from equipoise.files.stored_dates import DateUnits
from equipoise.ground.errors import DataError, import_extra

DAY_FORMATS = (
    "DATE", "DAY", "DDMMYY", "DDMMYYB", "DDMMYYD", "DDMMYYP", "DDMMYYS", "DDMMYYC", "DDMMYYN", "DOWNAME", "E8601DA",
    "JULDAY", "JULIAN", "MMDDYY", "MMDDYYB", "MMDDYYC", "MMDDYYD", "MMDDYYN", "MMDDYYP", "MMDDYYS", "MMYY", "MONNAME",
    "MONTH", "MONYY", "QTR", "WEEKDATE", "WEEKDATX", "WEEKDAY", "WORDDATE", "WORDDATX", "YEAR", "YYMM", "YYMMDD",
    "YYMMDDB", "YYMMDDC", "YYMMDDD", "YYMMDDN", "YYMMDDP", "YYMMDDS", "YYMON", "YYQ",
)  # fmt: skip
MOMENT_FORMATS = ("DATETIME", "E8601DT", "DATEAMPM", "MDYAMPM", "DTDATE", "DTMONYY", "DTYEAR", "DTYYQC")
LARGEST_DOUBLE = 7.2e75
"""The reach of the numbers of IBM mainframes, which transport files hold."""
PACKAGE = statistical.Package(
    "SAS",
    DateUnits(date(1960, 1, 1), 1, 1, DAY_FORMATS, MOMENT_FORMATS, ("TIME", "TOD", "HHMM", "E8601TM")),
    ("DATE9", "DATETIME20", "TIME8"),
    re.compile("[^%].*"),
)


def load(path: Path, *, encoding: str | None = None) -> Loaded:
    """Read a SAS data set."""
    reader = import_extra("pyreadstat").read_sas7bdat
    return statistical.load(path, PACKAGE, reader, encoding=encoding, user_missing=True)


def load_transport(path: Path, *, encoding: str | None = None) -> Loaded:
    """Read a SAS transport file; truncation shows in its length and in the number of records in its header."""
    if path.stat().st_size % sas_transport.LINE_BYTES:
        raise DataError(statistical.broken_message(path, PACKAGE))
    content = statistical.load(path, PACKAGE, import_extra("pyreadstat").read_xport, encoding=encoding)
    names = content.frame.collect_schema().names()
    height = content.frame.lazy().select(pl.len()).collect().item()
    if height < sas_transport.record_count(path):
        raise DataError(statistical.broken_message(path, PACKAGE))
    codes = sas_transport.special_codes(path, names, height)
    return content if codes is None else Loaded(content.frame, _having(content.labels, codes))


def save_transport(frame: pl.LazyFrame, path: Path, labels: Labels) -> None:
    """Write a SAS transport file (version 8)."""
    stat = import_extra("pyreadstat")
    table, gaps, file_labels = statistical.storable_table(frame, labels, PACKAGE, coded=False)
    formats = {n: c.format for n, c in file_labels.columns.items() if c.format and table[n].dtype != pl.String}
    arguments: dict[str, Any] = {
        "file_label": file_labels.title or "",
        "column_labels": {n: c.label for n, c in file_labels.columns.items() if c.label},
        "variable_format": formats,
    }
    statistical.write_or_explain(lambda: stat.write_xport(table, path, **arguments), path, PACKAGE)
    codes = {
        n: letter_codes(file_labels.of(n), s, upper=True)[1] for n, s in gaps.items() if table[n].dtype != pl.String
    }
    sas_transport.write_special_codes(path, {table.columns.index(n): s for n, s in codes.items() if s is not None})


def _having(labels: Labels, codes: pl.DataFrame) -> Labels:
    """The labels with special missing values."""
    for values in codes.get_columns():
        pairs = tuple((letter, letter) for letter in values.drop_nulls().unique().sort())
        labels = labels.having(values.name, replace(labels.of(values.name), missing=pairs))
    return replace(labels, gaps=codes)


FORMATS = (
    statistical.StatisticalFormat(
        name="xpt",
        title="SAS transport",
        suffixes=(".xpt",),
        load=load_transport,
        save=save_transport,
        signatures=(Signature(b"HEADER RECORD*******LIB", "a SAS transport file", (".xpt",)),),
        types=statistical.COLUMN_TYPES | stored_as("Int64", "Boolean"),
        largest_float=LARGEST_DOUBLE,
        resolution="1us",
    ),
    Format(
        name="sas7bdat",
        title="SAS",
        suffixes=(".sas7bdat",),
        load=load,
        signatures=(Signature(b"\x00" * 12 + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf", "a SAS data set", (".sas7bdat",)),),
        options=("encoding",),
        becomes="xpt",
        extra="files",
    ),
)
