"""Fingerprints of files: keyed for inputs, plain for what is public anyway."""

import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path

from equipoise.core import frames
from equipoise.core.records import Records
from equipoise.files import parts


def keyed_hash(records: Records, key: bytes) -> str | None:
    """HMAC of the input's bytes: a plain hash would confirm a guess. None where the data stays on an engine."""
    digest = hmac.new(key, digestmod=hashlib.sha256)
    if records.source:
        for block in (block for path in parts(records.source.path) for block in _blocks(path)):
            digest.update(block)
    elif records.frame.implementation.is_polars():
        for piece in frames.batches(records.frame, ordered=True):
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


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            yield block
