"""What a format is: the endings of its files, how they are read and, where that is possible, how they are written."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.data.labels import Labels
from equipoise.data.roles import Roles

Table = pl.DataFrame | pl.LazyFrame


@dataclass(frozen=True)
class Loaded:
    """A frame with the labels that came with it, and the roles its metadata gives."""

    frame: Table
    labels: Labels = field(default_factory=Labels)
    roles: Roles | None = None


@dataclass(frozen=True)
class Format:
    """One format. `options` are those its `load` takes; `codes` says that it can hold user-missing codes."""

    suffixes: tuple[str, ...]
    load: Callable[..., Table | Loaded]
    save: Callable[[pl.LazyFrame, Path, Labels], None] | None = None
    options: tuple[str, ...] = ()
    codes: bool = False
    becomes: str | None = None

    def open(self, path: Path, **options: Any) -> Loaded:
        content = self.load(path, **options)
        return content if isinstance(content, Loaded) else Loaded(content)
