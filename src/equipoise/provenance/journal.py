"""Journal of a search: the scores of every finished trial, on disk, so that an interrupted search can resume.

A private file of JSON lines beside the release folder. The first line identifies the run: a key, keyed hashes of the
data and of everything scores depend on, versions, and the secret seed. Each other line is one draw of one recipe: a
keyed hash of its masks, and its scores. It holds no value of the data and no parameter of a mask. An incomplete last
line is ignored; a journal of other data, another policy or another version is replaced by a new one.
"""

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from equipoise.ground import system
from equipoise.ground.errors import DataError, EquipoiseError
from equipoise.ground.interrupts import uninterrupted
from equipoise.ground.randomness import new_seed
from equipoise.methods.method import Mask
from equipoise.methods.score import Score, Scores
from equipoise.recipe.catalogue import own, to_plain
from equipoise.recipe.recipe import Recipe

FORMAT = 1
HEAD = b'{"format"'
SCORE_FIELDS = tuple(f.name for f in fields(Score) if f.name not in ("cells", "records"))
PACKAGES = ("equipoise", "polars", "numpy", "narwhals", "scipy")
SYNC_SECONDS = 0.2
"""Seconds between two syncs to disk: quick trials share one. A killed process loses no line."""
Digest = Callable[[bytes], str | None]
"""Maps a secret key to the keyed hash of the data; None where the data stays on an engine."""


@dataclass
class Journal:
    """An open journal: the scores read from it, and the file for new ones."""

    path: Path
    key: bytes = field(repr=False)
    seed: int = field(repr=False)
    known: dict[tuple[str, int], tuple[Scores, float]] = field(default_factory=dict, repr=False)
    synced: float = field(default=0.0, repr=False)

    @classmethod
    def resume(cls, path: Path, data: Digest, depends: str, seed: int | None = None) -> "Journal":
        """The journal at this path if it is of this data and policy, else a new one.

        `depends` is the text of all that scores depend on beside data and recipe; `seed` defaults to the journal's.
        """
        _refuse_other_files(path)
        lines, size = _whole_lines(path)
        with suppress(ValueError, KeyError, TypeError, IndexError, EquipoiseError):
            head = lines[0]
            key = bytes.fromhex(head["key"])
            run_seed = int(head["seed"]) if seed is None else seed
            if head == _head(key, data, depends, run_seed):
                scores = dict(_line(line) for line in lines[1:])
                system.cut(path, size)
                return cls(path, key, run_seed, scores)
        return cls._new(path, data, depends, new_seed() if seed is None else seed)

    @classmethod
    def _new(cls, path: Path, data: Digest, depends: str, seed: int) -> "Journal":
        key = secrets.token_bytes(32)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        system.write(path, _json_line(_head(key, data, depends, seed)), private=True)
        return cls(path, key, seed)

    def get(self, recipe: Recipe, draw: int) -> Scores | None:
        entry = self.known.get((self.name(recipe), draw))
        return entry[0] if entry else None

    def seconds(self, recipe: Recipe, draw: int) -> float:
        """Seconds that a recorded draw took."""
        return self.known[self.name(recipe), draw][1]

    def add(self, recipe: Recipe, draw: int, scores: Scores, seconds: float) -> None:
        """Record one draw; it is flushed to the system when this returns, and synced to disk from time to time."""
        name = self.name(recipe)
        self.known[name, draw] = (scores, seconds)
        plain = [{part: getattr(score, part) for part in SCORE_FIELDS} for score in scores]
        due = time.monotonic() - self.synced > SYNC_SECONDS
        line = {"recipe": name, "draw": draw, "seconds": round(seconds, 6), "scores": plain}
        system.append(self.path, _json_line(line), sync=due)
        self.synced = time.monotonic() if due else self.synced

    def name(self, recipe: Recipe) -> str:
        """The keyed hash of the masks and the seed."""
        text = json.dumps([[mask_text(mask) for mask in recipe.masks], str(recipe.seed)])
        return hmac.new(self.key, text.encode(), hashlib.sha256).hexdigest()[:32]

    def remove(self) -> None:
        """Delete the journal after the release; a request to end waits for it."""
        with uninterrupted():
            self.path.unlink(missing_ok=True)


def mask_text(mask: Mask) -> str:
    """A mask with its parameters as text that is equal in every process."""
    return type(mask).__name__ + json.dumps(to_plain(mask), default=_as_json, sort_keys=True)


def _as_json(value: Any) -> Any:
    """Plain values for types that JSON lacks: mappings, arrays, sets, numbers of NumPy."""
    if isinstance(value, Mapping):
        return {str(k): v for k, v in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return repr(value)


def beside(folder: Path) -> Path:
    """Path of the journal of a release folder during the search."""
    place = folder if folder.name not in ("", "..") else system.without_links(folder)
    return place.with_name(f".{place.name}.journal")


def _head(key: bytes, data: Digest, depends: str, seed: int) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "key": key.hex(),
        "data": data(key),
        "policy": hmac.new(key, depends.encode(), hashlib.sha256).hexdigest(),
        "versions": {name: version(name) for name in PACKAGES}
        | {one.package: one.version for one in own().methods.values()},
        "seed": str(seed),
    }


def _refuse_other_files(path: Path) -> None:
    """Refuse a folder, and a file that is no journal: it would be replaced, and be gone at the end."""
    if path.is_dir():
        raise DataError(f"{str(path)!r} is a folder: the journal of the search cannot be written there.")
    if path.exists() and not (path.is_file() and (path.suffix == ".journal" or _begins_as_journal(path))):
        raise DataError(f"{str(path)!r} is no journal of a search: name another file, or remove it.")


def _begins_as_journal(path: Path) -> bool:
    """Whether a file is a journal by its first bytes, of which a killed run may have left few or none."""
    with path.open("rb") as file:
        begin = file.read(len(HEAD))
    return HEAD.startswith(begin)


def _whole_lines(path: Path) -> tuple[list[Any], int]:
    """The complete lines of a journal, and their size in bytes."""
    try:
        raw = path.read_bytes()
    except OSError:
        return [], 0
    entries, size = [], 0
    for line in (whole for whole in raw.splitlines(keepends=True) if whole.endswith(b"\n")):
        try:
            entries.append(json.loads(line))
        except ValueError:
            break
        size += len(line)
    return entries, size


def _line(line: Any) -> tuple[tuple[str, int], tuple[Scores, float]]:
    return (line["recipe"], line["draw"]), (scores_of(line["scores"]), line["seconds"])


def scores_of(plain: Sequence[Mapping[str, Any]]) -> Scores:
    """Scores from plain data."""
    pairs = [None if one["interval"] is None else tuple(one["interval"]) for one in plain]
    return Scores(
        Score(**{**one, "interval": pair, "notes": tuple(one["notes"])}) for one, pair in zip(plain, pairs, strict=True)
    )


def _json_line(line: Any) -> str:
    return json.dumps(line, default=_as_json) + "\n"
