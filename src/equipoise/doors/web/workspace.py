"""Workspace: the folder that the workbench may read and write, with its private subfolder."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from equipoise.data.roles import read_toml
from equipoise.doors.web.path_names import path_names
from equipoise.files import format_of
from equipoise.files.many_files import is_pattern, matching, partitions
from equipoise.ground import system
from equipoise.ground.errors import DataError, EquipoiseError
from equipoise.ground.whole_files import clear_dead, staged_file, write_whole

PRIVATE = ".equipoise"
"""The folder with the session, the runs and their journals; for its owner only."""
UPLOAD_FOLDER, JOURNAL = "uploads", "balance.journal"
CHUNK_BYTES = 1 << 20
POLICY_SUFFIX = ".toml"
PATH_KEYS = {"": ("seed_file", "register"), "data": ("metadata",), "output": ("folder", "sign"), "search": ("journal",)}
"""Fields of a policy that name files, by section."""
OUTSIDE = "The policy names a file outside the working folder: start with --folder there."


@dataclass(frozen=True)
class Workspace:
    """A working folder. Nothing outside it is read or written, wherever a name or a link points."""

    folder: Path

    @classmethod
    def at(cls, folder: str | Path) -> "Workspace":
        """The workspace in an existing folder; its private subfolder is created where it is missing."""
        place = system.without_links(folder)
        if not place.is_dir():
            raise DataError(f"No folder at {str(folder)!r}.")
        workspace = cls(place)
        for corner in (workspace.private, workspace.private / "runs"):
            if not corner.is_dir():
                system.make_folder(corner, private=True)
        clear_dead(place)
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
            path = system.without_links(self.folder / name)
            exists = path.is_file() or path.is_dir()
        except (OSError, ValueError):
            raise DataError("That is not the name of a file.") from None
        if any(self._beyond(part) for part in (path, *(partitions(path) if path.is_dir() else ()))):
            raise DataError("That file is outside the working folder: start with --folder to work elsewhere.")
        if not exists:
            raise DataError(f"No file {name!r} in the working folder.")
        return path

    def refuse_policy(self, plain: Mapping[str, Any], folder: Path | None = None) -> None:
        """Refuse a policy in this folder that names anything outside, and any that it extends.

        What it extends is read as if it stood in its own folder, in that of the policy, or in the working folder.
        """
        home = place = folder or self.folder
        extended = set[str]()
        while True:
            for base in dict.fromkeys((place, home, self.folder)):
                self.refuse_outside(plain, base)
            for name in _written(plain):
                if self._beyond(home / name):
                    raise DataError(OUTSIDE)
            parent = plain.get("extends")
            if not isinstance(parent, str) or not parent.endswith(POLICY_SUFFIX) or parent in extended:
                return
            extended.add(parent)
            self.inside(str(place / parent))
            plain, place = read_toml(place / parent), (place / parent).parent

    def refuse_outside(self, plain: Any, folder: Path | None = None) -> None:
        """Refuse plain data in which any text, key or value, is or holds the path of something outside."""
        base = folder or self.folder
        for name in dict.fromkeys(path_names(plain)):
            if any(self._beyond(path) for path in _existing(base, name)):
                raise DataError(OUTSIDE)

    def _beyond(self, path: Path) -> bool:
        """Whether a path, or the link at it, leads out of the folder, or to its private part."""
        try:
            place = path.resolve()
        except (OSError, ValueError, RuntimeError):
            return False
        return not place.is_relative_to(self.folder) or place.is_relative_to(self.private)

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


def _existing(folder: Path, name: str) -> Iterator[Path]:
    """The files and folders that a name or a pattern stands for, and the parts of a folder of data."""
    with suppress(OSError, ValueError, RuntimeError, EquipoiseError):
        path = folder / Path(name).expanduser()
        path = path.resolve() if ".." in name and not is_pattern(path) else path
        if path.exists():
            yield from (path, *(partitions(path) if path.is_dir() else ()))
        elif is_pattern(path):
            yield from matching(path)


def _written(plain: Mapping[str, Any]) -> Iterator[str]:
    """The paths of a policy at which files are made that need not be there yet."""
    for section, names in PATH_KEYS.items():
        table = plain.get(section) if section else plain
        values = [table.get(name) for name in names] if isinstance(table, Mapping) else []
        yield from (value for value in values if isinstance(value, str))


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
