"""Fingerprints of files: keyed hashes of inputs, plain hashes of public files."""

import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from equipoise.data import engines
from equipoise.data.records import Records, joined_texts
from equipoise.files import parts, read
from equipoise.ground.errors import EquipoiseError

MAX_HASHED_RECORDS = 20_000_000
"""Most records of which the content is hashed: their texts are sorted in memory."""
SIGNIFICANT_DIGITS = 12
"""Significant digits of a number that enter the hash: the last ones depend on the order of addition."""
CHUNK_ROWS = 1 << 17


def keyed_hash(records: Records, key: bytes) -> str | None:
    """HMAC of the input's bytes: a plain hash would confirm a guess. None where the data stays on an engine."""
    digest = hmac.new(key, digestmod=hashlib.sha256)
    if records.source:
        for block in (block for path in parts(records.source.path) for block in _blocks(path)):
            digest.update(block)
    elif records.frame.implementation.is_polars():
        for piece in engines.batches(records.frame, ordered=True):
            digest.update(piece.write_csv(include_header=False).encode())
    else:
        return None
    return digest.hexdigest()


def hash_of(path: Path) -> str:
    """SHA-256 of a file, or of the files of a folder in order."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        for block in _blocks(file) if file.is_file() else ():
            digest.update(block)
    return digest.hexdigest()


def content_hash(path: Path) -> str | None:
    """SHA-256 of the content of a data file, independent of row order, column order and format.

    Columns go by name, rows by their text; a number is a number, also where a format keeps it as text ("007" is 7), to
    twelve significant digits; an empty text is missing. None where the file cannot be read back, or has more than
    twenty million records. O(n log n) in records.
    """
    try:
        records = read(path)
        return content_of(_with_missing_codes(records)) if records.height() <= MAX_HASHED_RECORDS else None
    except (EquipoiseError, pl.exceptions.PolarsError):
        return None


def _with_missing_codes(records: Records) -> pl.DataFrame:
    """The records in memory, with the missing codes that the file has."""
    table, gaps = records.collect(), records.labels.gaps
    if gaps is None or gaps.height != table.height:
        return table
    texts = [pl.coalesce(table[name].cast(pl.String), gaps[name].cast(pl.String)).alias(name) for name in gaps.columns]
    return table.with_columns(texts)


def content_of(table: pl.DataFrame) -> str:
    """Content hash of a table in memory.

    >>> one = pl.DataFrame({"a": [1, 2], "b": ["x", None]})
    >>> content_of(one) == content_of(pl.DataFrame({"b": ["", "x"], "a": ["2.0", "1"]}))
    True
    """
    names = sorted(table.columns)
    digest = hashlib.sha256("\x1f".join(names).encode())
    texts = canonical_texts(table.select(names))
    rows = joined_texts(table, texts).sort()
    for start in range(0, len(rows), CHUNK_ROWS):
        digest.update(("\x1e" + "\x1e".join(rows[start : start + CHUNK_ROWS].to_list())).encode())
    return digest.hexdigest()


def canonical_texts(table: pl.DataFrame) -> list[pl.Expr]:
    """Each column as text that does not depend on the format a file was read from: 7, 7.0 and "007" are one."""
    return [_canonical_text(pl.col(name), kind).alias(name) for name, kind in table.schema.items()]


def _canonical_text(column: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """Values as canonical text."""
    if kind.is_nested():
        return pl.struct(column).struct.json_encode()
    if kind == pl.Binary or isinstance(kind, pl.Duration):
        return (column.bin.encode("hex") if kind == pl.Binary else column.to_physical().cast(pl.String)).fill_null("")
    if isinstance(kind, pl.Categorical | pl.Enum):
        return _canonical_text(column.cast(pl.String), pl.String())
    if isinstance(kind, pl.Datetime):
        return column.dt.strftime("%Y-%m-%dT%H:%M:%S%.6f").fill_null("")
    if kind.is_temporal() or kind == pl.Boolean or kind.is_integer():
        return column.cast(pl.String).fill_null("")
    text = column.cast(pl.String)
    number = column.cast(pl.Float64, strict=False)
    whole = (number == number.floor()) & (number.abs() < 1e15)
    integer, decimal = number.cast(pl.Int64, strict=False).cast(pl.String), number.round_sig_figs(SIGNIFICANT_DIGITS)
    number_text = pl.when(whole).then(integer).otherwise(decimal.cast(pl.String))
    return pl.when(number.is_null()).then(text).otherwise(number_text).fill_null("")


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            yield block
