"""Files as offices write them: names in several rows, marks between thousands ("1.234,56"), NA among numbers."""

import re
from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from equipoise.files.format import Table
from equipoise.ground.errors import ParameterError

MAX_HEADING_ROWS = 100
"""Rows of a title or of names, at most."""
NUMBER = re.compile(r"[+-]?[\d.,\s]*\d[\d.,\s]*%?")


def heading_rows(skip_rows: int | None, header_rows: int | None) -> tuple[int, int]:
    """Rows to pass over and rows of names, checked."""
    skip, deep = skip_rows or 0, 1 if header_rows is None else header_rows
    for name, value, least in (("skip_rows", skip, 0), ("header_rows", deep, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_HEADING_ROWS:
            raise ParameterError(f"{name} must be a whole number from {least} to {MAX_HEADING_ROWS}.")
    return skip, deep


def joined_names(rows: Sequence[Sequence[str | None]]) -> list[str]:
    """One name for each column from several rows; a name above stands for the blank cells after it.

    >>> joined_names([["", "Income", "", "Age"], ["id", "2023", "2024", "Age"]])
    ['id', 'Income 2023', 'Income 2024', 'Age']
    """
    texts = [[(cell or "").strip() for cell in row] for row in rows]
    upper = [_filled(row) for row in texts[:-1]]
    return [" ".join(dict.fromkeys(filter(None, parts))) for parts in zip(*upper, texts[-1], strict=True)]


def _filled(row: list[str]) -> list[str]:
    last, filled = "", []
    for cell in row:
        last = cell or last
        filled.append(last)
    return filled


def second_header(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Whether the first row below the names holds names too: texts only, one of them over nothing but numbers.

    >>> second_header(["EUR", "region"], [["1", "north"], ["2", "south"], ["", "east"]])
    True
    """
    if len(others) < 3 or not all(cell.strip() and not NUMBER.fullmatch(cell.strip()) for cell in first):
        return False
    below = ([cell.strip() for cell in column if cell.strip()] for column in zip(*others, strict=True))
    return any(len(cells) > 1 and all(map(NUMBER.fullmatch, cells)) for cells in below)


MISSING_MARKS = ("NA", "N/A", "#N/A", "NULL", ".", "..")
"""What stands for a missing number in files of other programs. Among texts these are texts: NA is Namibia. A dash is
not among them: in tables of offices it means nought."""
THOUSANDS_MARKS = (".", ",", " ", "\u00a0", "\u202f", "'", "’")


def number_columns(
    header: Sequence[str], columns: Iterable[Sequence[str]], decimal: str, thousands: str | None, missing: Sequence[str]
) -> dict[str, str]:
    """Columns whose first fields are all numbers, with the mark between thousands ('' where there is none).

    A point or a comma is found without being told; blanks and apostrophes are not, for telephone numbers have them.

    >>> number_columns(["pay", "place"], [["1.234,56", "NA", "7"], ["NA", "a", "b"]], ",", None, [])
    {'pay': '.'}
    """
    if thousands is not None and (thousands not in THOUSANDS_MARKS or thousands == decimal):
        raise ParameterError("thousands must be a point, a comma, a blank or an apostrophe, and not the decimal mark.")
    mark = thousands or ("." if decimal == "," else ",")
    plain, grouped = re.compile(_plain(decimal)), re.compile(_grouped(decimal, mark))
    marks: dict[str, str] = {}
    for name, column in zip(header, columns, strict=True):
        fields = {field.strip() for field in column} - {"", *MISSING_MARKS, *missing}
        others = {field for field in fields if not plain.fullmatch(field)}
        if fields and all(map(grouped.fullmatch, others)):
            marks[name] = mark if others else ""
    return marks


def with_numbers(table: Table, marks: Mapping[str, str], decimal: str, missing: Sequence[str]) -> Table:
    """The table with columns of text that are numbers as numbers; a column with any other text stays as it is."""
    texts = [name for name, dtype in table.lazy().collect_schema().items() if dtype == pl.String and name in marks]
    if not texts or isinstance(table, pl.LazyFrame):
        return table
    return table.with_columns(_numbers(table.get_column(name), marks[name], decimal, missing) for name in texts)


def _numbers(values: pl.Series, mark: str, decimal: str, missing: Sequence[str]) -> pl.Series:
    texts = values.str.strip_chars()
    texts = texts.set(texts.is_in(["", *MISSING_MARKS, *missing]), None)
    pattern = f"^(?:{_plain(decimal)}|{_grouped(decimal, mark)})$" if mark else f"^{_plain(decimal)}$"
    if not texts.str.contains(pattern).all() or texts.null_count() == len(texts):
        return values
    plain = (texts.str.replace_all(mark, "", literal=True) if mark else texts).str.replace(decimal, ".", literal=True)
    whole = plain.str.strip_prefix("+").cast(pl.Int64, strict=False)
    return whole if whole.null_count() == plain.null_count() else plain.cast(pl.Float64)


def without_codes(table: Table, codes: Sequence[str]) -> Table:
    """The table with null for every value that is one of the codes: the same text, or the same number.

    >>> without_codes(pl.DataFrame({"a": [1, -9], "b": ["x", "-9"]}), ["-9"]).rows()
    [(1, 'x'), (None, None)]
    """
    numbers = [float(code) for code in codes if re.fullmatch(_plain("."), code)]
    schema = table.lazy().collect_schema()
    texts = [name for name, dtype in schema.items() if dtype == pl.String]
    figures = [name for name, dtype in schema.items() if dtype.is_numeric()] if numbers else []
    return table.with_columns(
        *(pl.when(~pl.col(n).str.strip_chars().is_in(codes)).then(pl.col(n)) for n in texts),
        *(pl.when(~pl.col(n).cast(pl.Float64).is_in(numbers)).then(pl.col(n)) for n in figures),
    )


def checked_codes(codes: object) -> tuple[str, ...]:
    """The codes for what is missing, as texts."""
    listed = codes.split(",") if isinstance(codes, str) else codes
    if not isinstance(listed, list | tuple) or not all(isinstance(c, str | int | float) for c in listed):
        raise ParameterError("missing_codes must be a list of texts or numbers.")
    return tuple(str(code).strip() for code in listed if str(code).strip())


def _plain(decimal: str) -> str:
    return rf"[+-]?(?:\d+(?:{re.escape(decimal)}\d*)?|{re.escape(decimal)}\d+)(?:[eE][+-]?\d+)?"


def _grouped(decimal: str, mark: str) -> str:
    return rf"[+-]?(?:0|[1-9]\d{{0,2}})(?:{re.escape(mark)}\d{{3}})+(?:{re.escape(decimal)}\d+)?"
