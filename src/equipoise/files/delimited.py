"""CSV, plain or compressed (.gz, .bz2, .xz, .zst, .zip): delimiter, encoding and decimal comma detected or set."""

import codecs
import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from equipoise.data.labels import Labels
from equipoise.files.column_types import FLOATS, SIGNED, TEXTS, UNSIGNED, WIDE, ZONED, same, stored_as
from equipoise.files.compressed import ARCHIVE_SIGNATURES, ARCHIVE_SUFFIXES, unpack
from equipoise.files.format import Format, Table
from equipoise.files.memory import refuse_beyond
from equipoise.files.office_text import heading_rows, joined_names, number_columns, second_header, with_numbers
from equipoise.ground.errors import DataError, ParameterError
from equipoise.ground.options import option

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")

FORMULA = r"^'*[=+\-@\t\r]"
HARMLESS = r"^[+\-]?[\d\s().,/\-]*([eE][+\-]?\d+)?%?$|^[=@]$"
"""Text that begins like a formula and is a number, a lone sign or a telephone number."""
CsvFormulas = Literal["escape", "keep"]
SAMPLE_BYTES = 1 << 18
MAX_FIRST_LINE_BYTES = 1 << 26
"""The longest first line there may be, in bytes."""
MAX_EAGER_BYTES = 1 << 30
"""Files up to this many bytes are read into memory at once; larger UTF-8 files are scanned."""
DELIMITERS = ",;\t|"
LEADING_ZERO = re.compile(r"^\s*0\d+\s*$", re.MULTILINE)
COMMA_NUMBER = re.compile(r"^[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+$")


@dataclass(frozen=True)
class Content:
    """A text file, on disk or unpacked in memory."""

    path: Path
    data: bytes | None = None

    @classmethod
    def of(cls, path: Path) -> "Content":
        return cls(path, unpack(path)) if path.suffix.lower() in ARCHIVE_SUFFIXES else cls(path)

    def size(self) -> int:
        return self.path.stat().st_size if self.data is None else len(self.data)

    def head(self, length: int) -> bytes:
        if self.data is not None:
            return self.data[:length]
        with self.path.open("rb") as file:
            return file.read(length)

    def whole(self) -> bytes:
        return self.path.read_bytes() if self.data is None else self.data


def load(
    path: Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    missing_codes: Sequence[str] = (),
    skip_rows: int | None = None,
    header_rows: int | None = None,
) -> Table:
    """Read a CSV file with a header row.

    Codes with leading zeros stay text. Without options: UTF-8 (or what the byte-order mark says), else Windows-1252;
    the delimiter that splits the first rows most evenly; decimal commas where numbers have them; numbers with marks
    between thousands, or with NA among them, are numbers (files that are scanned: text).
    """
    if decimal not in (None, ".", ","):
        raise ParameterError("decimal must be '.' or ','.")
    content = Content.of(path)
    head = _head(content)
    charset = encoding or _encoding(head, path)
    text = _decode(head, charset, path, partial=True)
    if "\r" in text and "\n" not in text:
        content = Content(path, _decode(content.whole(), charset, path).replace("\r", "\n").encode(charset))
        text = text.replace("\r", "\n")
    skip, deep = heading_rows(skip_rows, header_rows)
    mark = delimiter or _delimiter(text.split("\n", skip)[-1])
    if len(mark) != 1:
        raise ParameterError("delimiter must be one character.")
    if skip or deep > 1:
        content = _with_one_heading(content, charset, mark, skip, deep)
        charset, text, head = "utf-8", _decode(content.head(SAMPLE_BYTES), "utf-8", path, partial=True), b""
    rows = _rows(text, mark, path, whole=content.size() <= max(len(head), SAMPLE_BYTES if not head else 0))
    header = rows[0]
    _refuse_duplicates([_plain(name) for name in header], path)
    if header_rows is None and len(rows) > 1 and second_header(rows[1], rows[2:]):
        raise DataError(f"{str(path)!r} has names in two rows: say header_rows 2, or 1 where the second is a record.")
    comma = decimal == "," if decimal else mark != "," and _has_decimal_comma(rows[1:])
    point = "," if comma else "."
    columns = list(zip(*rows[1:], strict=True)) if len(rows) > 1 else [()] * len(header)
    overrides = {_raw(name): pl.String for name, column in zip(header, columns, strict=True) if _is_code(column)}
    frame = _parse(content, charset, mark, comma, overrides)
    frame = frame.rename({_raw(name): name for name in header if '"' in name})
    numbers = number_columns(header, columns, point, thousands, missing_codes)
    numbers = {name: mark for name, mark in numbers.items() if _raw(name) not in overrides}
    return _with_formulas(with_numbers(frame, numbers, point, missing_codes))


def _with_one_heading(content: Content, charset: str, mark: str, skip: int, deep: int) -> Content:
    """The file with one row of names, and nothing above it."""
    lines = _decode(content.whole(), charset, content.path).removeprefix("\ufeff").split("\n", skip + deep)
    if len(lines) <= skip + deep:
        raise DataError(f"{str(content.path)!r} has no records below {skip + deep} rows of heading.")
    *heading, body = lines
    try:
        rows = list(csv.reader(heading[skip:], delimiter=mark))
    except csv.Error:
        raise DataError(f"The rows of names in {str(content.path)!r} cannot be read.") from None
    if len(set(map(len, rows))) != 1:
        raise DataError(f"The rows of names in {str(content.path)!r} have different numbers of fields.")
    first = io.StringIO()
    csv.writer(first, delimiter=mark, lineterminator="\n").writerow(joined_names(rows))
    return Content(content.path, (first.getvalue() + body).encode())


def _raw(name: str) -> str:
    """A name as Polars reads it from a header, where a quote inside quotes stays doubled."""
    return name.replace('"', '""')


def load_many(paths: list[Path], **options: Any) -> Table:
    """Several files with the same columns, one after the other."""
    frames = [load(path, **options).lazy() for path in paths]
    first = frames[0].collect_schema().names()
    for path, frame in zip(paths, frames, strict=True):
        if frame.collect_schema().names() != first:
            raise DataError(f"The columns of {str(path)!r} are not those of {str(paths[0])!r}.")
    return pl.concat(frames, how="vertical_relaxed")


def save(frame: pl.LazyFrame, path: Path, labels: Labels) -> None:
    """Write a file, piece by piece."""
    frame.sink_csv(path, maintain_order=True)


def without_formulas(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Text that a spreadsheet would run as a formula, with an apostrophe before it, which `load` takes away again.

    Names of columns are marked alike. Numbers, lone signs and telephone numbers stay as they are. One more is put
    before text that has apostrophes and then such a sign, so that every text comes back as it was. Cost: one pass over
    the columns of text.
    """
    texts = [name for name, dtype in frame.collect_schema().items() if dtype in (pl.String, pl.Categorical, pl.Enum)]
    columns = [pl.col(name).cast(pl.String) for name in texts]
    risky = [column.str.contains(FORMULA) & ~column.str.contains(HARMLESS) for column in columns]
    marked = [pl.when(run).then("'" + column).otherwise(column) for run, column in zip(risky, columns, strict=True)]
    frame = frame.with_columns(expression.alias(name) for name, expression in zip(texts, marked, strict=True))
    return frame.rename({name: _marked(name) for name in frame.collect_schema().names()})


def csv_formulas() -> Any:
    """The option of every verb that writes CSV."""
    words = "Text in CSV that begins like a formula: escape it with an apostrophe, or keep it as it is."
    return option("escape", words, cli="text", metavar="escape|keep")


def table_csv(frame: pl.DataFrame, formulas: CsvFormulas = "escape") -> str:
    """A small table as CSV, marked by `without_formulas` unless formulas are kept."""
    return (without_formulas(frame.lazy()).collect() if formulas == "escape" else frame).write_csv()


def read_table_csv(path: Path, *, typed: bool = True) -> pl.DataFrame:
    """A table as `table_csv` wrote it, with types from all rows or as text."""
    frame = pl.read_csv(path, infer_schema=typed, infer_schema_length=None, glob=False)
    return _with_formulas(frame).lazy().collect()


def _marked(name: str) -> str:
    return f"'{name}" if re.search(FORMULA, name) and not re.search(HARMLESS, name) else name


def _plain(name: str) -> str:
    return name[1:] if name.startswith("'") and re.search(FORMULA, name) else name


def _with_formulas(frame: Table) -> Table:
    """Text and names of columns as they were before `without_formulas`."""
    frame = frame.rename({name: _plain(name) for name in frame.collect_schema().names()})
    texts = [name for name, dtype in frame.lazy().collect_schema().items() if dtype == pl.String]
    marks = pl.col(texts).str.starts_with("'") & pl.col(texts).str.contains(FORMULA)
    return (
        frame.with_columns(pl.when(marks).then(pl.col(texts).str.slice(1)).otherwise(pl.col(texts))) if texts else frame
    )


def _head(content: Content) -> bytes:
    """The first rows; a longer piece where two rows do not fit."""
    head, length = content.head(SAMPLE_BYTES), SAMPLE_BYTES
    while _lines(head) < 2 and b"\x00" not in head and length < min(content.size(), MAX_FIRST_LINE_BYTES):
        length *= 4
        head = content.head(length)
    if content.size() > SAMPLE_BYTES and b"\x00" not in head and not _lines(head):
        raise DataError(
            f"{str(content.path)!r} has no end of line in its first {len(head):,} bytes: it is no CSV file."
        )
    return head


def _lines(data: bytes) -> int:
    return data.count(b"\n") + data.count(b"\r")


def _encoding(head: bytes, path: Path) -> str:
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if head.startswith(mark):
            return name
    if b"\x00" in head:
        raise DataError(f"{str(path)!r} is not a text file: it cannot be read as CSV.")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _decode(data: bytes, encoding: str, path: Path, partial: bool = False) -> str:
    try:
        if "\x00" in encoding or not codecs.lookup(encoding)._is_text_encoding:
            raise LookupError
        if partial:
            return codecs.getincrementaldecoder(encoding)().decode(data)
        return data.decode(encoding)
    except LookupError:
        raise ParameterError(f"No encoding is called {encoding!r}.") from None
    except UnicodeError:
        raise DataError(f"{str(path)!r} is not text in the encoding {encoding}: name its encoding.") from None


def _delimiter(text: str) -> str:
    """The mark that splits all of the first rows alike; else the one that splits the header most."""
    lines = [line for line in text.splitlines()[:50] if line]

    def quality(mark: str) -> tuple[bool, int, bool]:
        counts = [len(row) for row in csv.reader(lines, delimiter=mark)]
        first, alike = counts[0] if counts else 0, len(set(counts)) == 1
        return alike and first > 1, first, alike

    try:
        return max(DELIMITERS, key=quality)
    except csv.Error:
        return DELIMITERS[0]


def _rows(text: str, mark: str, path: Path, whole: bool) -> list[list[str]]:
    try:
        rows = list(filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=mark)))
    except csv.Error:
        raise DataError(f"{str(path)!r} is not a CSV file.") from None
    rows = rows if whole or len(rows) < 2 else rows[:-1]
    if not rows:
        raise DataError(f"The file {str(path)!r} is empty.")
    if set(map(len, rows)) != {len(rows[0])}:
        bad = next(i for i, row in enumerate(rows, start=1) if len(row) != len(rows[0]))
        raise DataError(
            f"{str(path)!r} is not a regular CSV file: row {bad:,} has another number of fields than the header."
        )
    if len(rows) == 1 and whole:
        raise DataError(f"The file {str(path)!r} has a header but no records.")
    return rows


def _refuse_duplicates(header: list[str], path: Path) -> None:
    """Say where, not which: a file without a header has data in its first row."""
    if len(set(header)) == len(header):
        return
    first: dict[str, int] = {}
    place = next(i for i, name in enumerate(header) if first.setdefault(name, i) != i)
    raise DataError(
        f"A column name stands twice in the first row of {str(path)!r} "
        f"(columns {first[header[place]] + 1} and {place + 1}): rename one of them, or set header_rows "
        "(--header-rows 2) if names stand in several rows."
    )


def _has_decimal_comma(rows: list[list[str]]) -> bool:
    return any(COMMA_NUMBER.match(field.strip()) for row in rows[:1000] for field in row)


def _is_code(fields: Sequence[str]) -> bool:
    """Whether a field is a number with a leading zero; all fields are searched at once before one by one."""
    return bool(LEADING_ZERO.search("\n".join(fields))) and any(LEADING_ZERO.fullmatch(field) for field in fields)


def _parse(content: Content, encoding: str, mark: str, comma: bool, overrides: dict[str, type[pl.String]]) -> Table:
    """Types from the first 10,000 rows; from all rows when a later one does not fit."""
    path, utf8 = content.path, encoding in ("utf-8", "utf-8-sig", "utf8")
    if utf8 and content.data is None and content.size() > MAX_EAGER_BYTES:
        return pl.scan_csv(
            path, separator=mark, decimal_comma=comma, schema_overrides=overrides, infer_schema_length=100_000,
            glob=False,
        )  # fmt: skip
    refuse_beyond(path, content.size(), f"{content.size() / 1e6:,.0f} MB", "save it as UTF-8, which is read in pieces")
    source = _source(content, encoding, utf8)
    for length in (10_000, None):
        try:
            frame = pl.read_csv(
                source, separator=mark, decimal_comma=comma, schema_overrides=overrides, infer_schema_length=length,
                truncate_ragged_lines=False, glob=False,
            )  # fmt: skip
            return _drop_blank_lines(frame, source, mark, path)
        except DataError:
            raise
        except Exception:
            if length is None:
                _decode(content.whole(), encoding, path)
                raise DataError(f"{str(path)!r} is not a regular CSV file: some row does not fit the header.") from None
    raise AssertionError


def _source(content: Content, encoding: str, utf8: bool) -> Path | bytes:
    """What the parser reads: the file itself, or its bytes as UTF-8."""
    if utf8:
        return content.path if content.data is None else content.data
    return _decode(content.whole(), encoding, content.path).removeprefix("\ufeff").encode()


def _drop_blank_lines(frame: pl.DataFrame, source: Path | bytes, mark: str, path: Path) -> pl.DataFrame:
    """Polars fills up rows that are too short and takes blank lines for records: refuse the ones, drop the others.

    Both leave a null in the last column, so other files are not looked at twice.
    """
    full = frame.width - 1
    if not full or not frame.to_series(full).null_count():
        return frame
    data = source if isinstance(source, bytes) else source.read_bytes()
    bare = re.sub(rb'"[^"]*"', b'""', data) if b'"' in data else data
    if bare.count(mark.encode()) == full * (frame.height + 1):
        return frame
    lines = [line.rstrip(b"\r") for line in bare.removesuffix(b"\n").split(b"\n")[1:]]
    if len(lines) != frame.height:
        return frame
    for place, line in enumerate(lines, start=2):
        if line and line.count(mark.encode()) < full:
            raise DataError(f"{str(path)!r} is not a regular CSV file: row {place:,} has fewer fields than the header.")
    return frame.filter(pl.Series([bool(line) for line in lines]))


FORMATS = (
    Format(
        name="csv",
        title="CSV",
        suffixes=(*TEXT_SUFFIXES, *(plain + packed for plain in TEXT_SUFFIXES for packed in ARCHIVE_SUFFIXES), ".zip"),
        load=load,
        save=save,
        load_many=load_many,
        signatures=ARCHIVE_SIGNATURES,
        types=same("Boolean")
        | stored_as("Int64", *SIGNED, *UNSIGNED, *WIDE)
        | stored_as("Float64", *FLOATS, "Decimal")
        | stored_as("String", *TEXTS, "Date", "Datetime", ZONED, "Time", "Null"),
        options=("delimiter", "encoding", "decimal", "thousands", "missing_codes", "skip_rows", "header_rows"),
    ),
)
