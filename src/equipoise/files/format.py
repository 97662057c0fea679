"""File format: its endings, first bytes, reader, writer, and the column types it holds, declared in one place.

The first bytes of a file say what it is, whatever its name says.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.data.labels import Labels
from equipoise.data.roles import Roles
from equipoise.files.column_types import kind, parts
from equipoise.ground.errors import DataError

Table = pl.DataFrame | pl.LazyFrame


@dataclass(frozen=True)
class Loaded:
    """A frame with the labels that came with it, and the roles its metadata gives."""

    frame: Table
    labels: Labels = field(default_factory=Labels)
    roles: Roles | None = None


@dataclass(frozen=True)
class Signature:
    """The first bytes of a file, what it is when it has them at `offset`, and the endings such a file may have."""

    head: bytes
    words: str
    suffixes: tuple[str, ...]
    offset: int = 0

    def begins(self, content: bytes) -> bool:
        """Whether a file with this content has the signature."""
        return content.startswith(self.head, self.offset)


@dataclass(frozen=True, kw_only=True)
class Format:
    """One file format. Whoever reads, writes, lists or recognises files asks this, and nothing else.

    Parameters
    ----------
    name
        The name in policies and on the command line, and the ending of a released file.
    title
        What messages and documentation call it.
    suffixes
        The endings of its files.
    load, save
        The reader; the writer, or None where files can only be read.
    load_many
        Reads several files as one, where that is possible.
    signatures
        The first bytes of its files; none where files are plain text.
    types
        For each kind of Polars column that can be written, the kind it is read back as: other kinds are refused.
    largest_integer
        The largest whole number that is stored exactly; None where types have no such limit.
    largest_float
        The largest floating-point number, where that is less than the largest there is.
    resolution
        The finest part of a second that times keep, as a Polars duration.
    any_date
        Whether dates outside the years 1 to 9999 come back as they were.
    options
        The options of `load`.
    codes
        Whether it can hold user-missing codes.
    becomes
        The format that a release is written in, where this one can only be read.
    extra
        The optional dependency that it needs.
    alone
        Whether one file is enough: the workbench takes only such files as uploads.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    load: Callable[..., Table | Loaded]
    save: Callable[[pl.LazyFrame, Path, Labels], None] | None = None
    load_many: Callable[..., Table | Loaded] | None = None
    signatures: tuple[Signature, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict, hash=False)
    largest_integer: int | None = None
    largest_float: float | None = None
    resolution: str = "1ns"
    any_date: bool = False
    options: tuple[str, ...] = ()
    codes: bool = False
    becomes: str | None = None
    extra: str | None = None
    alone: bool = True

    def open(self, path: Path, **options: Any) -> Loaded:
        """Read a file, with labels where it has them."""
        content = self.load(path, **options)
        return content if isinstance(content, Loaded) else Loaded(content)

    def open_many(self, paths: list[Path], **options: Any) -> Loaded:
        """Read several files as one; only formats with `load_many` can."""
        content = self.load_many(paths, **options) if self.load_many else self.load(paths[0], **options)
        return content if isinstance(content, Loaded) else Loaded(content)

    def keeps(self, dtype: pl.DataType) -> bool:
        """Whether a column comes back as the kind it was."""
        return self.types.get(kind(dtype)) == kind(dtype)

    def holds(self, dtype: pl.DataType) -> bool:
        """Whether a column of this type can be written; what is inside lists and structs must stay as it is."""
        return kind(dtype) in self.types and all(self.keeps(part) for part in parts(dtype))


HEAD_BYTES = 512
OLE_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
OTHER_SIGNATURES = (Signature(b"%PDF", "a PDF document", ()),)
"""Files that are no data, and often named as if they were."""


def refuse_other(path: Path, formats: Iterable[Format]) -> None:
    """Refuse a file whose first bytes say that it is something else than its name says."""
    if path.name.startswith("~$"):
        raise DataError(f"{str(path)!r} is only the mark that Office has the file open: name {path.name[2:]!r} itself.")
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if head.startswith(OLE_SIGNATURE):
        raise DataError(_ole(path))
    signatures = [sign for format in formats for sign in format.signatures]
    matches = [sign for sign in (*signatures, *OTHER_SIGNATURES) if sign.begins(head)]
    suffixes = [suffix for sign in matches for suffix in sign.suffixes]
    if matches and path.suffix.lower() not in suffixes:
        words = matches[0].words
        ending = f": rename it to {suffixes[0]}" if suffixes and "not a" not in words else ""
        raise DataError(f"{str(path)!r} is {words}, though its name ends in {path.suffix!r}{ending}.")


def _ole(path: Path) -> str:
    """Encrypted workbooks and old Office files are of one kind outside."""
    with path.open("rb") as file:
        content = file.read(1 << 20)
    if "EncryptedPackage".encode("utf-16-le") in content or "EncryptionInfo".encode("utf-16-le") in content:
        return f"{str(path)!r} is encrypted: save it without a password first."
    return f"{str(path)!r} is an Office file of before 2007 or encrypted: save it as .xlsx without a password."
