"""What the first bytes of a file say it is, whatever its name says."""

from pathlib import Path

from equipoise.ground.errors import DataError

HEAD_BYTES = 512
OLE_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
SIGNS: tuple[tuple[bytes, str, tuple[str, ...]], ...] = (
    (b"PAR1", "a Parquet file", ("parquet",)),
    (b"ARROW1", "an Arrow file", ("arrow",)),
    (b"$FL2@(#)", "an SPSS file", ("sav", "zsav")),
    (b"$FL3@(#)", "a compressed SPSS file", ("zsav", "sav")),
    (b"<stata_dta>", "a Stata file", ("dta",)),
    (b"HEADER RECORD*******LIB", "a SAS transport file", ("xpt",)),
    (b"\x00" * 12 + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf", "a SAS data set", ("sas7bdat",)),
    (b"PK\x03\x04", "a ZIP archive or an Excel workbook, not a text file", ("xlsx", "zip")),
    (b"\x1f\x8b", "compressed by gzip, not a text file", ("gz", "rds", "rda")),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd, not a text file", ("zst",)),
    (b"BZh", "compressed by bzip2, not a text file", ("bz2", "rds", "rda")),
    (b"\xfd7zXZ\x00", "compressed by xz, not a text file", ("xz", "rds", "rda")),
    (b"SQLite format 3\x00", "a SQLite database", ("sqlite",)),
    (b"%PDF", "a PDF document", ()),
)


def refuse_other(path: Path, format: str) -> None:
    """Refuse a file whose first bytes say that it is something else than its name says."""
    if path.name.startswith("~$"):
        raise DataError(f"{str(path)!r} is only the mark that Office has the file open: name {path.name[2:]!r} itself.")
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if head.startswith(OLE_SIGNATURE):
        raise DataError(_ole(path))
    for sign, words, formats in SIGNS:
        if head.startswith(sign) and format not in formats:
            ending = f": rename it to .{formats[0]}" if formats and "not a" not in words else ""
            raise DataError(f"{str(path)!r} is {words}, though its name ends in {path.suffix!r}{ending}.")


def _ole(path: Path) -> str:
    """Encrypted workbooks and old Office files are of one kind outside."""
    with path.open("rb") as file:
        content = file.read(1 << 20)
    if "EncryptedPackage".encode("utf-16-le") in content or "EncryptionInfo".encode("utf-16-le") in content:
        return f"{str(path)!r} is encrypted: save it without a password first."
    return f"{str(path)!r} is an Office file of before 2007 or encrypted: save it as .xlsx without a password."
