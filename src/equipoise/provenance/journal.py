"""Journal: what a search has done so far, on the disk after every trial, so that a killed one goes on where it was.

A private file of JSON lines beside the release folder. The first line says what it is of: a key, keyed hashes of the
data and of everything scores depend on, versions, and the secret seed of the run. Each other line is one draw of one
recipe: a keyed hash of its masks, and its scores. No value of the data and no parameter of a mask is in it. A last line
that was cut off by the end of the process is left out; a journal of other data, another policy or another version is
not used, and a new one takes its place.
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
from equipoise.ground.randomness import new_seed
from equipoise.methods.method import Mask
from equipoise.methods.score import Score, Scores
from equipoise.recipe.catalogue import own, to_plain
from equipoise.recipe.recipe import Recipe

FORMAT = 1
TOLD = tuple(f.name for f in fields(Score) if f.name not in ("cells", "records"))
PACKAGES = ("equipoise", "polars", "numpy", "narwhals", "scipy")
EVERY = 0.2
"""Seconds between two times that lines are forced to the disk: quick trials share one. A killed process loses none."""
Digest = Callable[[bytes], str | None]
"""From a secret key to the keyed hash of the data; None where the data stays on an engine."""


@dataclass
class Journal:
    """An open journal: scores already known, and where new ones go."""

    path: Path
    key: bytes = field(repr=False)
    seed: int = field(repr=False)
    known: dict[tuple[str, int], tuple[Scores, float]] = field(default_factory=dict, repr=False)
    synced: float = field(default=0.0, repr=False)

    @classmethod
    def resumed(cls, path: Path, data: Digest, depends: str, seed: int | None = None) -> "Journal":
        """The journal at this place if it is of this data and policy, else a new one.

        `depends` is the text of all that scores depend on beside data and recipe; `seed` that of the run, if one was
        given: without one, that of the journal goes on.
        """
        lines, size = _whole_lines(path)
        with suppress(ValueError, KeyError, TypeError, IndexError, EquipoiseError):
            head = lines[0]
            key = bytes.fromhex(head["key"])
            said = int(head["seed"]) if seed is None else seed
            if head == _head(key, data, depends, said):
                known = dict(_line(line) for line in lines[1:])
                system.cut(path, size)
                return cls(path, key, said, known)
        return cls._new(path, data, depends, new_seed() if seed is None else seed)

    @classmethod
    def _new(cls, path: Path, data: Digest, depends: str, seed: int) -> "Journal":
        key = secrets.token_bytes(32)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise DataError(f"{str(path)!r} is a folder: the journal of the search cannot be written there.")
        path.unlink(missing_ok=True)
        system.write(path, _dumped(_head(key, data, depends, seed)), private=True)
        return cls(path, key, seed)

    def get(self, recipe: Recipe, draw: int) -> Scores | None:
        found = self.known.get((self.name(recipe), draw))
        return found[0] if found else None

    def seconds(self, recipe: Recipe, draw: int) -> float:
        """What a known draw took when it was made."""
        return self.known[self.name(recipe), draw][1]

    def put(self, recipe: Recipe, draw: int, scores: Scores, seconds: float) -> None:
        """Write one draw down; it is on the disk, or in the hands of the system, when this returns."""
        name = self.name(recipe)
        self.known[name, draw] = (scores, seconds)
        told = [{part: getattr(score, part) for part in TOLD} for score in scores]
        due = time.monotonic() - self.synced > EVERY
        line = {"recipe": name, "draw": draw, "seconds": round(seconds, 6), "scores": told}
        system.append(self.path, _dumped(line), sync=due)
        self.synced = time.monotonic() if due else self.synced

    def name(self, recipe: Recipe) -> str:
        """The keyed hash of the masks and the seed."""
        text = json.dumps([[masked(mask) for mask in recipe.masks], str(recipe.seed)])
        return hmac.new(self.key, text.encode(), hashlib.sha256).hexdigest()[:32]

    def remove(self) -> None:
        """It has done its work."""
        self.path.unlink(missing_ok=True)


def masked(mask: Mask) -> str:
    """A mask by value, as text that is the same in every process."""
    return type(mask).__name__ + json.dumps(to_plain(mask), default=_told, sort_keys=True)


def _told(value: Any) -> Any:
    """What JSON does not have: tuples of arrays, sets, numbers of NumPy."""
    if isinstance(value, Mapping):
        return {str(k): v for k, v in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return repr(value)


def beside(folder: Path) -> Path:
    """Where the journal of a release folder is until the release is made."""
    return folder.with_name(f".{folder.name}.journal")


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


def _whole_lines(path: Path) -> tuple[list[Any], int]:
    """The lines that were written whole, and the bytes they take."""
    try:
        raw = path.read_bytes()
    except OSError:
        return [], 0
    found, size = [], 0
    for line in (whole for whole in raw.splitlines(keepends=True) if whole.endswith(b"\n")):
        try:
            found.append(json.loads(line))
        except ValueError:
            break
        size += len(line)
    return found, size


def _line(line: Any) -> tuple[tuple[str, int], tuple[Scores, float]]:
    return (line["recipe"], line["draw"]), (_scores(line["scores"]), line["seconds"])


def _scores(told: Sequence[Mapping[str, Any]]) -> Scores:
    return Scores(Score(**{**one, "interval": _pair(one["interval"]), "notes": tuple(one["notes"])}) for one in told)


def _pair(found: Sequence[float] | None) -> tuple[float, float] | None:
    return None if found is None else (found[0], found[1])


def _dumped(line: Any) -> str:
    return json.dumps(line, default=_told) + "\n"
