"""Many files as one: a pattern such as part-*.parquet, or a folder of Parquet partitions."""

from collections.abc import Iterator
from pathlib import Path

from equipoise.files import parquet
from equipoise.ground.errors import DataError

WILDCARDS = "*?["
MAX_PATHS = 100_000
"""Files and folders that are looked at."""


def is_pattern(path: Path) -> bool:
    """Whether a path names many files: it has wildcards and no file is called so."""
    return any(mark in str(path) for mark in WILDCARDS) and not path.exists()


def matching(pattern: Path) -> list[Path]:
    """The files a pattern names, in order; ** stands for any folders."""
    fixed = [part for part in pattern.parts if not any(mark in part for mark in WILDCARDS)]
    depth = next(i for i, part in enumerate(pattern.parts) if i >= len(fixed) or part != fixed[i])
    inside = Path(*pattern.parts[:depth]).glob(str(Path(*pattern.parts[depth:])))
    paths = sorted(path for path in _bounded(inside, pattern) if path.is_file())
    if not paths:
        raise DataError(f"No file fits {str(pattern)!r}.")
    return paths


def _bounded(paths: Iterator[Path], place: Path) -> Iterator[Path]:
    """Paths, unless there are more than anybody keeps in partitions: then a whole disk was named by mistake."""
    for number, path in enumerate(paths):
        if number >= MAX_PATHS:
            raise DataError(
                f"{str(place)!r} holds more than {MAX_PATHS:,} files and folders: name the folder of the data."
            )
        yield path


def partitions(folder: Path) -> list[Path]:
    """The Parquet files of a folder and of the folders in it, in order; hidden ones and markers left out."""
    inside = sorted(p for p in _bounded(folder.rglob("*"), folder) if p.suffix.lower() in parquet.FORMATS[0].suffixes)
    return [p for p in inside if not any(part.startswith((".", "_")) for part in p.relative_to(folder).parts)]
