"""Release folder, of records or of a table: public and private parts, written whole or not at all."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from equipoise.ground import system
from equipoise.ground.errors import DataError
from equipoise.ground.whole_files import staged
from equipoise.recipe.catalogue import to_plain
from equipoise.releases.evidence import EVIDENCE, EVIDENCE_FORMAT, KEY, SIGNATURE, Signer, evidence_text, finite, sealed
from equipoise.trials.trial import LeftOut, Trial


@dataclass(frozen=True)
class ReleaseFolder:
    """Where a release stands."""

    folder: Path

    @property
    def public(self) -> Path:
        return self.folder / "public"

    @property
    def private(self) -> Path:
        return self.folder / "private"

    @property
    def report(self) -> Path:
        """The internal report, with the map; the one for the public is `public/report.html`."""
        return self.private / "report.html"


class Contents(Protocol):
    """What a release folder is filled with; `key` is the private key of its hashes and its seal."""

    @property
    def seed(self) -> int | None: ...

    @property
    def key(self) -> bytes: ...

    def put_public(self, public: Path) -> None:
        """Write the data and the pages that everybody may read."""

    def evidence(self, public: Path) -> dict[str, Any]:
        """What the public may check of all that is written."""

    def put_private(self, private: Path) -> None:
        """Write what stays inside."""


def write_release(
    contents: Contents,
    folder: Path,
    *,
    overwrite: bool,
    texts: Mapping[str, str],
    sign: str | Path | None = None,
    register: Callable[[Path], None] | None = None,
) -> dict[str, Any]:
    """Fill the folder and give its evidence; `texts` are more private files, `sign` a private key for the evidence.

    `register` is called with the private folder before it is put in place: what is published was registered.
    """
    signer = Signer.load(sign) if sign is not None else None
    with staged(folder, overwrite, refuse=refuse_existing) as stage:
        public, private = stage / "public", stage / "private"
        system.make_folder(public, private=False)
        system.make_folder(private, private=True)
        contents.put_public(public)
        evidence = contents.evidence(public)
        seal = sealed(_put_evidence(public, evidence, signer), contents.key)
        contents.put_private(private)
        secret = {"format": EVIDENCE_FORMAT, "seed": str(contents.seed), "hash_key": contents.key.hex(), "seal": seal}
        for name, text in {**texts, "seed.json": json.dumps(secret)}.items():
            system.write(private / name, text)
        for file in private.iterdir():
            system.restrict(file)
        if register is not None:
            register(private)
    return evidence


def _put_evidence(public: Path, evidence: Mapping[str, Any], signer: Signer | None) -> bytes:
    """Write the evidence and, where there is a key, the signature under its bytes and the public key."""
    text = evidence_text(evidence)
    system.write(public / EVIDENCE, text)
    if signer is not None:
        (public / SIGNATURE).write_bytes(signer.sign(text.encode()))
        system.write(public / KEY, signer.public())
    return text.encode()


def refuse_existing(folder: Path, overwrite: bool, reads: str | Path | None = None) -> None:
    """Refuse to overwrite anything but a release, and that only when asked to; nor one that holds what is read."""
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.exists():
        raise DataError(f"{str(folder)!r} is a link to a folder that does not exist: make that, or name another.")
    if not folder.is_dir():
        raise DataError(f"{str(folder)!r} is a file: name a folder that does not exist yet.")
    if not overwrite and any(folder.iterdir()):
        raise DataError(f"The folder {str(folder)!r} exists already: name another, or ask to overwrite it.")
    if overwrite and any(folder.iterdir()) and not (folder / "public" / "evidence.json").is_file():
        raise DataError(f"The folder {str(folder)!r} is not a release: it is not overwritten.")
    if any(entry.name not in ("public", "private") and entry.name[0] != "." for entry in folder.iterdir()):
        raise DataError(f"The folder {str(folder)!r} holds other files than a release: it is not overwritten.")
    if reads is not None and system.without_links(folder) in system.without_links(reads).parents:
        raise DataError(f"The folder {str(folder)!r} holds what is read: name another.")


def journal_text(trials: Iterable[Trial], chosen: Trial, left_out: Iterable[LeftOut] = ()) -> str:
    """The format, then a line per trial: what was tried and what it scored, or why it was left out."""
    return "".join(line + "\n" for line in _journal(trials, chosen, left_out))


def _journal(trials: Iterable[Trial], chosen: Trial, left_out: Iterable[LeftOut]) -> Iterator[str]:
    yield json.dumps({"format": EVIDENCE_FORMAT, "scores": list(chosen.scores.keys())})
    for trial in trials:
        masks = [to_plain(mask) for mask in trial.recipe.masks]
        yield json.dumps({"masks": masks, "values": [finite(score.value) for score in trial.scores]}, default=str)
    for method in left_out:
        yield json.dumps({"method": method.name, "left_out": method.reason})
