"""Workspace: the folder the workbench may read and write, and its private corner."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from equipoise.files import format_of
from equipoise.ground import system
from equipoise.ground.errors import DataError, EquipoiseError

PRIVATE = ".equipoise"
"""The folder with the session, the runs and their journals; for its owner only."""
UPLOADS = "uploads"
CHUNK = 1 << 20
POLICIES = ".toml"


@dataclass(frozen=True)
class Workspace:
    """A folder. Nothing outside is read or written, wherever a name or a link points."""

    folder: Path

    @classmethod
    def at(cls, folder: str | Path) -> "Workspace":
        """The workspace in a folder that exists; its private corner is made when it is not there."""
        place = Path(folder).resolve()
        if not place.is_dir():
            raise DataError(f"No folder at {str(folder)!r}.")
        made = cls(place)
        for corner in (made.private, made.private / "runs"):
            if not corner.is_dir():
                system.make_folder(corner, private=True)
        return made

    @property
    def private(self) -> Path:
        return self.folder / PRIVATE

    def inside(self, name: str) -> Path:
        """The file of a name, relative to the folder or in full; refused when it is elsewhere or not there."""
        try:
            path = (self.folder / name).resolve()
            found = path.is_file() or path.is_dir()
        except (OSError, ValueError):
            raise DataError("That is not the name of a file.") from None
        if not path.is_relative_to(self.folder) or path.is_relative_to(self.private):
            raise DataError("That file is outside the working folder: start with --folder to work elsewhere.")
        if not found:
            raise DataError(f"No file {name!r} in the working folder.")
        return path

    def relative(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def files(self, most: int = 200) -> list[str]:
        """The data and policy files in the folder and the folders in it, by name."""
        found = sorted(self.relative(path) for path in self._candidates())
        return found[:most]

    def _candidates(self) -> Iterator[Path]:
        for path in (*self.folder.glob("*"), *self.folder.glob("*/*")):
            hidden = any(part.startswith(".") for part in path.relative_to(self.folder).parts)
            if not hidden and "private" not in path.parts and path.is_file() and _readable(path):
                yield path

    def receive(self, name: str, source: BinaryIO) -> Path:
        """Keep an uploaded file under its own name, for its owner only; another of this name is not touched."""
        safe = system.file_name(Path(name.replace("\\", "/")).name).lstrip(".") or "upload"
        format_of(safe)
        folder = self.folder / UPLOADS
        if not folder.is_dir():
            system.make_folder(folder, private=True)
        place = free(folder / safe)
        stage = folder / f".{secrets.token_hex(8)}.partial"
        try:
            system.write(stage, "", private=True)
            with stage.open("wb") as target:
                while part := source.read(CHUNK):
                    target.write(part)
            system.move(stage, place)
        finally:
            stage.unlink(missing_ok=True)
        return place

    def keep(self, name: str, plain: Any) -> None:
        """Write plain data into the private corner, whole or not at all."""
        self.put(self.private / name, json.dumps(plain, ensure_ascii=False))

    def put(self, place: Path, text: str) -> None:
        """Text in a private file, whole or not at all."""
        stage = place.with_name(f".{place.name}.{secrets.token_hex(4)}.partial")
        try:
            system.write(stage, text, private=True)
            system.move(stage, place)
        finally:
            stage.unlink(missing_ok=True)

    def kept(self, name: str) -> Any:
        """Plain data from the private corner; None where there is none that can be read."""
        try:
            return json.loads((self.private / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None


def free(place: Path) -> Path:
    """The place, or the next one with a number that is not taken."""
    stem, ending = place.name.partition(".")[::2]
    number, found = 2, place
    while found.exists():
        found = place.with_name(f"{stem}-{number}{'.' if ending else ''}{ending}")
        number += 1
    return found


def _readable(path: Path) -> bool:
    if path.suffix == POLICIES:
        return True
    try:
        return bool(format_of(path))
    except EquipoiseError:
        return False
