"""File signatures: what the first bytes of a file say it is, whatever its name says."""

from collections.abc import Iterable
from pathlib import Path

from equipoise.files.format import Format, Signature
from equipoise.ground.errors import DataError

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
