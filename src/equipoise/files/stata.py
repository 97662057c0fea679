"""Stata (.dta): variable and value labels, extended missing values .a to .z and formats are kept."""

import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.data.labels import Column, Labels
from equipoise.files import statistical
from equipoise.files.format import Format, Loaded
from equipoise.files.missing_codes import lettered
from equipoise.files.stored_dates import DateUnits
from equipoise.ground.errors import DataError

PACKAGE = statistical.Package(
    "Stata",
    DateUnits(date(1960, 1, 1), 1, 1000, ("%TD", "%D"), ("%TC",)),
    ("%td", "%tc", "%tcHH:MM:SS"),
    re.compile("%.*"),
)
BEGINS, ENDS = b"<stata_dta>", b"</stata_dta>"
LABEL = 80
"""The longest label of a variable or file, in characters."""
REACH = {"int8": (-127, 100), "int16": (-32_767, 32_740), "int32": (-2_147_483_647, 2_147_483_620)}
KINDS: dict[str, Any] = {"int8": pl.Int8, "int16": pl.Int16, "int32": pl.Int32}


def load(path: Path, *, encoding: str | None = None) -> Loaded:
    """Read a Stata file; .a to .z become null and are kept beside."""
    reader = statistical.pyreadstat().read_dta
    if not _ends(path):
        raise DataError(statistical.broken(path, PACKAGE))
    return statistical.load(path, PACKAGE, reader, encoding=encoding, user_missing=True)


def save(frame: pl.LazyFrame, path: Path, labels: Labels) -> None:
    """Write a Stata file (version 15), extended missing values back in their places."""
    stat = statistical.pyreadstat()
    table, gaps, told = statistical.prepared(frame, labels, PACKAGE, coded=True)
    table = table.with_columns(_narrow(table[n], told.of(n)) for n in table.columns)
    columns, tags = {}, {}
    for name, column in told.columns.items():
        number = table[name].dtype != pl.String
        columns[name], codes = lettered(column, gaps.get(name)) if number else (column, None)
        if codes is not None:
            tags[name] = codes
    given: dict[str, Any] = {
        "file_label": (told.title or "")[:LABEL],
        "column_labels": {n: c.label[:LABEL] for n, c in columns.items() if c.label},
        "variable_value_labels": {
            n: statistical.keyed(_whole(c).values, table[n].dtype)
            for n, c in columns.items()
            if _whole(c).values and table[n].dtype.is_integer()
        },
        "missing_user_values": {n: sorted(codes.drop_nulls().unique()) for n, codes in tags.items()},
        "variable_format": {n: c.format for n, c in columns.items() if c.format and table[n].dtype != pl.String},
    }
    table = table.with_columns(_tagged(table[name], codes) for name, codes in tags.items())
    statistical.written(lambda: stat.write_dta(table, path, **given), path, PACKAGE)


def _ends(path: Path) -> bool:
    """Whether a file ends as files of its version do; older versions have no end mark."""
    with path.open("rb") as file:
        if not file.read(len(BEGINS)).startswith(BEGINS):
            return True
        file.seek(-min(path.stat().st_size, 2 * len(ENDS)), 2)
        return file.read().rstrip().endswith(ENDS)


def _whole(told: Column) -> Column:
    """The value labels Stata can hold: those of whole numbers and letters."""
    return replace(told, values=tuple(pair for pair in told.values if isinstance(pair[0], str) or pair[0] % 1 == 0))


def _narrow(values: pl.Series, told: Column) -> pl.Series:
    """Integers in the type they came in while they fit; labelled codes need one of Stata's integers."""
    storage, there = told.storage, values.drop_nulls()
    if values.dtype.is_float() and told.values and (there % 1 == 0).all() and (there.abs() < REACH["int32"][1]).all():
        values = values.cast(pl.Int64)
    if not values.dtype.is_integer():
        return values
    known = values.drop_nulls().to_numpy()
    low, high = (int(known.min()), int(known.max())) if len(known) else (0, 0)
    kinds = list(REACH)
    for kind in kinds[kinds.index(storage) if storage in REACH else 2 :]:
        if REACH[kind][0] <= low and high <= REACH[kind][1]:
            return values.cast(KINDS[kind])
    return values.cast(pl.Float64)


def _tagged(values: pl.Series, codes: pl.Series) -> pl.Series:
    """Numbers with letters among them, as the writer wants them."""
    pairs = zip(values.to_list(), codes.to_list(), strict=True)
    return pl.Series(values.name, [value if code is None else code for value, code in pairs], dtype=pl.Object)


FORMAT = Format((".dta",), load, save, ("encoding",), codes=True)
