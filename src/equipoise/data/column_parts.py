"""What dates, codes and whole numbers tell beside themselves: weekday and month, first characters, how round they are.

A tree or a line in the day of a date does not find what happens on Sundays, nor a mean over equal codes what a whole
branch of a classification has in common, nor either of them who rounds. Whoever reads a calendar, a classification or
digits does.
"""

from collections.abc import Iterator, Sequence

import polars as pl

from equipoise.data.levels import DAY_FIRST, MONTH_FIRST, PLAIN_DATES

MIN_CODES, MAX_PREFIX = 20, 4
"""Different texts beyond which they are read as codes with prefixes, and the characters of the longest prefix."""
DATE_FORMATS = (*PLAIN_DATES, *DAY_FIRST, *MONTH_FIRST)
FIRST_DAY, LAST_DAY = 18_000_101, 21_991_231
"""Whole numbers between these may be days, written as year, month and day."""
MAX_ZEROS = 4
"""Zeros at the end of a whole number that are counted at most."""


def with_parts(table: pl.DataFrame, columns: Sequence[str], like: pl.DataFrame | None = None) -> pl.DataFrame:
    """The table, and beside it the parts of these columns; which prefixes, the table `like` says where one is given."""
    chosen = table if like is None else like
    every = (part for column in columns for part in _parts(chosen[column]))
    return table.with_columns(part for part in every if part.meta.output_name() not in table.columns)


def _parts(column: pl.Series) -> Iterator[pl.Expr]:
    own, name, kind = pl.col(column.name), column.name, column.dtype
    text = isinstance(kind, pl.String | pl.Categorical | pl.Enum)
    dates = text or (kind.is_integer() and column.is_between(FIRST_DAY, LAST_DAY).all())
    date_format = next((format for format in DATE_FORMATS if _has_format(column, format)), None) if dates else None
    if isinstance(kind, pl.Date | pl.Datetime) or date_format:
        days = own.cast(pl.String).str.to_date(date_format, strict=False) if date_format else own
        yield days.dt.month().alias(f"month of {name}")
        yield days.dt.day().alias(f"day of {name}")
        yield days.dt.weekday().alias(f"weekday of {name}")
    if isinstance(kind, pl.Datetime | pl.Time):
        yield own.dt.hour().alias(f"hour of {name}")
    whole = kind.is_integer() or (kind.is_float() and (column == column.round()).all())
    if whole and not date_format and column.n_unique() > MIN_CODES:
        yield pl.sum_horizontal(own % 10**zeros == 0 for zeros in range(1, MAX_ZEROS + 1)).alias(f"zeros of {name}")
    if text and (values := column.n_unique()) > MIN_CODES:
        before = 1
        for size in range(1, MAX_PREFIX + 1):
            prefixes = column.cast(pl.String).str.head(size).n_unique()
            if before < prefixes <= values // 2:
                yield own.cast(pl.String).str.head(size).alias(f"first {size} of {name}")
            before = prefixes


def _has_format(column: pl.Series, format: str) -> bool:
    """Whether every text is a date of this format, the first ones tried first."""
    texts = column.drop_nulls().cast(pl.String)
    some = (texts.head(10), texts)
    return len(texts) > 0 and all(not part.str.to_date(format, strict=False).null_count() for part in some)
