"""Workspace: the folder that the workbench may read and write, with its private subfolder."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from equipoise.files import format_of
from equipoise.ground import system
from equipoise.ground.errors import DataError, EquipoiseError
from equipoise.ground.whole_files import staged_file, write_whole

PRIVATE = ".equipoise"
"""The folder with the session, the runs and their journals; for its owner only."""
UPLOAD_FOLDER, JOURNAL = "uploads", "balance.journal"
CHUNK_BYTES = 1 << 20
POLICY_SUFFIX = ".toml"
PATH_WORD = re.compile(r"[^\s'\"(),=|&]+")
"""What may be a path inside the text of a method: population='people.csv'."""


@dataclass(frozen=True)
class Workspace:
    """A working folder. Nothing outside it is read or written, wherever a name or a link points."""

    folder: Path

    @classmethod
    def at(cls, folder: str | Path) -> "Workspace":
        """The workspace in an existing folder; its private subfolder is created where it is missing."""
        place = Path(folder).resolve()
        if not place.is_dir():
            raise DataError(f"No folder at {str(folder)!r}.")
        workspace = cls(place)
        for corner in (workspace.private, workspace.private / "runs"):
            if not corner.is_dir():
                system.make_folder(corner, private=True)
        return workspace

    @property
    def private(self) -> Path:
        return self.folder / PRIVATE

    @property
    def journal(self) -> Path:
        """The private journal of trials."""
        return self.private / JOURNAL

    def inside(self, name: str) -> Path:
        """The path of a file by its name, relative or absolute; refused when it is outside or does not exist."""
        try:
            path = (self.folder / name).resolve()
            exists = path.is_file() or path.is_dir()
        except (OSError, ValueError):
            raise DataError("That is not the name of a file.") from None
        if not path.is_relative_to(self.folder) or path.is_relative_to(self.private):
            raise DataError("That file is outside the working folder: start with --folder to work elsewhere.")
        if not exists:
            raise DataError(f"No file {name!r} in the working folder.")
        return path

    def refuse_outside(self, plain: Any, folder: Path | None = None) -> None:
        """Refuse a policy in which any text, key or value, is or holds the path of something outside.

        Texts are looked at wherever they stand, so that no field has to be known to name a file: data, hierarchies,
        registers, populations inside the fields of a method, and whatever is added later.
        """
        for text in _texts(plain):
            for word in {text, *PATH_WORD.findall(text)}:
                fixed = re.split(r"[*?\[]", word)[0]
                if self._outside((folder or self.folder) / fixed):
                    raise DataError("The policy names a file outside the working folder: start with --folder there.")

    def _outside(self, path: Path) -> bool:
        try:
            place = path.resolve()
            return place.exists() and not place.is_relative_to(self.folder)
        except (OSError, ValueError, RuntimeError):
            return False

    def relative(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def files(self, most: int = 200) -> list[str]:
        """The names of data and policy files in the folder and its subfolders."""
        names = sorted(self.relative(path) for path in self._candidates())
        return names[:most]

    def _candidates(self) -> Iterator[Path]:
        for path in (*self.folder.glob("*"), *self.folder.glob("*/*")):
            hidden = any(part.startswith(".") for part in path.relative_to(self.folder).parts)
            if not hidden and "private" not in path.parts and path.is_file() and _readable(path):
                yield path

    def receive(self, name: str, source: BinaryIO) -> Path:
        """Save an uploaded file under its own name, for its owner only; a file of the same name is not overwritten."""
        safe = system.file_name(Path(name.replace("\\", "/")).name).lstrip(".") or "upload"
        format_of(safe)
        folder = self.folder / UPLOAD_FOLDER
        if not folder.is_dir():
            system.make_folder(folder, private=True)
        place = free(folder / safe)
        with staged_file(place) as stage:
            system.write(stage, "", private=True)
            with stage.open("wb") as target:
                while part := source.read(CHUNK_BYTES):
                    target.write(part)
        return place

    def keep(self, name: str, plain: Any) -> None:
        """Write plain data to the private subfolder atomically."""
        write_whole(self.private / name, json.dumps(plain, ensure_ascii=False))

    def kept(self, name: str) -> Any:
        """Plain data from the private subfolder; None where it cannot be read."""
        try:
            return json.loads((self.private / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None


def _texts(plain: Any) -> Iterator[str]:
    """Every text in nested data, keys too."""
    if isinstance(plain, str):
        yield plain
    elif isinstance(plain, Mapping):
        for key, value in plain.items():
            yield from (*_texts(key), *_texts(value))
    elif isinstance(plain, list | tuple):
        for value in plain:
            yield from _texts(value)


def free(place: Path) -> Path:
    """The path, or the next numbered one that does not exist."""
    stem, ending = place.name.partition(".")[::2]
    number, path = 2, place
    while path.exists():
        path = place.with_name(f"{stem}-{number}{'.' if ending else ''}{ending}")
        number += 1
    return path


def digest(plain: Any) -> str:
    """SHA-256 digest of plain data, to see whether it has changed."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


def _readable(path: Path) -> bool:
    if path.suffix == POLICY_SUFFIX:
        return True
    try:
        return bool(format_of(path))
    except EquipoiseError:
        return False
