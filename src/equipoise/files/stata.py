"""Stata (.dta): variable and value labels, extended missing values .a to .z and formats are kept."""

import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.data.labels import Column, Labels
from equipoise.files import statistical
from equipoise.files.format import Loaded, Signature
from equipoise.files.missing_codes import letter_codes
from equipoise.files.stored_dates import DateUnits
from equipoise.ground.errors import DataError, import_extra

PACKAGE = statistical.Package(
    "Stata",
    DateUnits(date(1960, 1, 1), 1, 1000, ("%TD", "%D"), ("%TC",)),
    ("%td", "%tc", "%tcHH:MM:SS"),
    re.compile("%.*"),
)
OPENING_TAG, CLOSING_TAG = b"<stata_dta>", b"</stata_dta>"
LARGEST_DOUBLE = 8.98e307
"""Numbers above stand for missing values in Stata."""
MAX_LABEL_CHARACTERS = 80
"""The longest label of a variable or file, in characters."""
INTEGER_RANGES = {"int8": (-127, 100), "int16": (-32_767, 32_740), "int32": (-2_147_483_647, 2_147_483_620)}
INTEGER_TYPES: dict[str, Any] = {"int8": pl.Int8, "int16": pl.Int16, "int32": pl.Int32}


def load(path: Path, *, encoding: str | None = None) -> Loaded:
    """Read a Stata file; .a to .z become null and are kept beside."""
    reader = import_extra("pyreadstat").read_dta
    if not _ends(path):
        raise DataError(statistical.broken_message(path, PACKAGE))
    return statistical.load(path, PACKAGE, reader, encoding=encoding, user_missing=True)


def save(frame: pl.LazyFrame, path: Path, labels: Labels) -> None:
    """Write a Stata file (version 15), extended missing values back in their places."""
    stat = import_extra("pyreadstat")
    table, gaps, file_labels = statistical.storable_table(frame, labels, PACKAGE, coded=True)
    table = table.with_columns(_narrow(table[n], file_labels.of(n)) for n in table.columns)
    columns, tags = {}, {}
    for name, column in file_labels.columns.items():
        number = table[name].dtype != pl.String
        columns[name], codes = letter_codes(column, gaps.get(name)) if number else (column, None)
        if codes is not None:
            tags[name] = codes
    arguments: dict[str, Any] = {
        "file_label": (file_labels.title or "")[:MAX_LABEL_CHARACTERS],
        "column_labels": {n: c.label[:MAX_LABEL_CHARACTERS] for n, c in columns.items() if c.label},
        "variable_value_labels": {
            n: statistical.value_labels(_whole(c).values, table[n].dtype)
            for n, c in columns.items()
            if _whole(c).values and table[n].dtype.is_integer()
        },
        "missing_user_values": {n: sorted(codes.drop_nulls().unique()) for n, codes in tags.items()},
        "variable_format": {n: c.format for n, c in columns.items() if c.format and table[n].dtype != pl.String},
    }
    table = table.with_columns(_tagged(table[name], codes) for name, codes in tags.items())
    statistical.write_or_explain(lambda: stat.write_dta(table, path, **arguments), path, PACKAGE)


def _ends(path: Path) -> bool:
    """Whether a file ends as files of its version do; older versions have no end mark."""
    with path.open("rb") as file:
        if not file.read(len(OPENING_TAG)).startswith(OPENING_TAG):
            return True
        file.seek(-min(path.stat().st_size, 2 * len(CLOSING_TAG)), 2)
        return file.read().rstrip().endswith(CLOSING_TAG)


def _whole(column: Column) -> Column:
    """The value labels Stata can hold: those of whole numbers and letters."""
    return replace(column, values=tuple(pair for pair in column.values if isinstance(pair[0], str) or pair[0] % 1 == 0))


def _narrow(values: pl.Series, column: Column) -> pl.Series:
    """Integers in the type they came in while they fit; labelled codes need one of Stata's integers."""
    storage, present = column.storage, values.drop_nulls()
    if (
        values.dtype.is_float()
        and column.values
        and (present % 1 == 0).all()
        and (present.abs() < INTEGER_RANGES["int32"][1]).all()
    ):
        values = values.cast(pl.Int64)
    if not values.dtype.is_integer():
        return values
    numbers = values.drop_nulls().to_numpy()
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    kinds = list(INTEGER_RANGES)
    for kind in kinds[kinds.index(storage) if storage in INTEGER_RANGES else 2 :]:
        if INTEGER_RANGES[kind][0] <= low and high <= INTEGER_RANGES[kind][1]:
            return values.cast(INTEGER_TYPES[kind])
    return values.cast(pl.Float64)


def _tagged(values: pl.Series, codes: pl.Series) -> pl.Series:
    """Numbers with letters among them, as the writer wants them."""
    pairs = zip(values.to_list(), codes.to_list(), strict=True)
    return pl.Series(values.name, [value if code is None else code for value, code in pairs], dtype=pl.Object)


FORMATS = (
    statistical.StatisticalFormat(
        name="dta",
        title="Stata",
        suffixes=(".dta",),
        load=load,
        save=save,
        signatures=(Signature(OPENING_TAG, "a Stata file", (".dta",)),),
        largest_float=LARGEST_DOUBLE,
        resolution="1us",
    ),
)
