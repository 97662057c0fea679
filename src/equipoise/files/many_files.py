"""Many files as one: a pattern such as part-*.parquet, or a folder of Parquet partitions."""

from pathlib import Path

from equipoise.files import parquet
from equipoise.ground.errors import DataError

WILDCARDS = "*?["


def is_pattern(path: Path) -> bool:
    """Whether a path names many files: it has wildcards and no file is called so."""
    return any(mark in str(path) for mark in WILDCARDS) and not path.exists()


def matching(pattern: Path) -> list[Path]:
    """The files a pattern names, in order; ** stands for any folders."""
    fixed = [part for part in pattern.parts if not any(mark in part for mark in WILDCARDS)]
    depth = next(i for i, part in enumerate(pattern.parts) if i >= len(fixed) or part != fixed[i])
    inside = Path(*pattern.parts[:depth]).glob(str(Path(*pattern.parts[depth:])))
    paths = sorted(path for path in inside if path.is_file())
    if not paths:
        raise DataError(f"No file fits {str(pattern)!r}.")
    return paths


def partitions(folder: Path) -> list[Path]:
    """The Parquet files of a folder and of the folders in it, in order; hidden ones and markers left out."""
    inside = sorted(p for p in folder.rglob("*") if p.suffix.lower() in parquet.FORMATS[0].suffixes)
    return [p for p in inside if not any(part.startswith((".", "_")) for part in p.relative_to(folder).parts)]
