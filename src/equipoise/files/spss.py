"""SPSS (.sav, .zsav): variable and value labels, user-missing codes, measures, widths and formats are kept."""

import re
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.data.labels import Code, Column, Labels
from equipoise.files import statistical
from equipoise.files.format import Loaded, Signature
from equipoise.files.missing_codes import number_codes
from equipoise.files.stored_dates import DateUnits
from equipoise.ground.errors import import_extra

PACKAGE = statistical.Package(
    "SPSS",
    DateUnits(
        date(1582, 10, 14), 86_400, 1, ("DATE", "ADATE", "EDATE", "JDATE", "SDATE", "QYR", "MOYR", "WKYR"),
        ("DATETIME", "YMDHMS"), ("TIME",), resolution=10,
    ),
    ("DATE11", "DATETIME20", "TIME8"),
    re.compile(
        r"(F|COMMA|DOT|DOLLAR|PCT|E|N|Z|CC[A-E]|WKDAY|MONTH|DTIME|MTIME|[AEJS]?DATE|QYR|MOYR|WKYR|DATETIME|YMDHMS|TIME|A)"
        r"\d+(\.\d+)?"
    ),
)  # fmt: skip


def load(path: Path, *, encoding: str | None = None) -> Loaded:
    """Read an SPSS file; user-missing codes become null and are kept beside."""
    reader = import_extra("pyreadstat").read_sav
    return statistical.load(path, PACKAGE, reader, encoding=encoding, user_missing=True)


def save(frame: pl.LazyFrame, path: Path, labels: Labels, *, compress: bool = False) -> None:
    """Write an SPSS file, missing codes back in their places."""
    stat = import_extra("pyreadstat")
    table, gaps, file_labels = statistical.storable_table(frame, labels, PACKAGE, coded=True)
    columns = {}
    for name, column in file_labels.columns.items():
        values, codes = table[name], gaps.get(name)
        if values.dtype != pl.String:
            column, codes = number_codes(column, codes, values)
        columns[name] = replace(column, values=tuple(pair for pair in column.values if _fits(pair[0], values.dtype)))
        if codes is not None:
            codes = codes if values.dtype == pl.String else codes.cast(pl.Float64)
            table = table.with_columns(pl.coalesce(pl.lit(values), pl.lit(codes)).alias(name))
    arguments: dict[str, Any] = {
        "file_label": file_labels.title or "",
        "column_labels": {n: c.label for n, c in columns.items() if c.label},
        "variable_value_labels": {
            n: statistical.value_labels(c.values, table[n].dtype) for n, c in columns.items() if c.values
        },
        "missing_ranges": {n: ranges for n, c in columns.items() if (ranges := _ranges(c, table[n].dtype))},
        "variable_display_width": {n: c.width for n, c in columns.items() if c.width},
        "variable_measure": {n: c.measure for n, c in columns.items() if c.measure},
        "variable_format": {n: c.format for n, c in columns.items() if c.format and table[n].dtype != pl.String}
        | {n: "F8.0" for n, c in columns.items() if not c.format and table[n].dtype.is_integer() and n not in gaps},
        "compress": compress,
    }
    statistical.write_or_explain(lambda: stat.write_sav(table, path, **arguments), path, PACKAGE)


def _fits(code: Code, dtype: pl.DataType) -> bool:
    """Whether a column of this type can have a code."""
    return dtype == pl.String or not isinstance(code, str)


def _ranges(column: Column, dtype: pl.DataType) -> list[Any]:
    """Missing codes that a column of this type can have."""
    alike = [pair for pair in column.missing if isinstance(pair[0], str) == (dtype == pl.String)]
    return [low if low == high else {"lo": low, "hi": high} for low, high in alike]


PLAIN = statistical.StatisticalFormat(
    name="sav",
    title="SPSS",
    suffixes=(".sav",),
    load=load,
    save=save,
    signatures=(Signature(b"$FL2@(#)", "an SPSS file", (".sav", ".zsav")),),
    resolution="10us",
)
COMPRESSED = replace(
    PLAIN,
    name="zsav",
    title="compressed SPSS",
    suffixes=(".zsav",),
    save=partial(save, compress=True),
    signatures=(Signature(b"$FL3@(#)", "a compressed SPSS file", (".zsav", ".sav")),),
)
FORMATS = (PLAIN, COMPRESSED)
