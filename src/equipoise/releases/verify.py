"""Verify a release folder: hashes, signature, scores, and the data made again from the original."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from equipoise.data.records import Records
from equipoise.ground.errors import DataError, EquipoiseError, ParameterError
from equipoise.provenance.findings import UNSIGNED, Check, Verification, failing
from equipoise.provenance.fingerprint import content_hash, hash_of
from equipoise.releases.content_checks import records_checks, table_checks
from equipoise.releases.evidence import EVIDENCE, KEY, SIGNATURE, hashes, holds, key_name, read_key, sealed
from equipoise.releases.replay import read_secret

MIN_SEED_DIGITS = 9
"""A seed of fewer digits is found in any file by chance."""


def verify(
    folder: str | Path,
    *,
    original: Records | str | Path | None = None,
    key: str | Path | None = None,
    canaries: Iterable[str] = (),
) -> Verification:
    """Check a release folder, or its public part alone, and say what is proven.

    Every file must be there with its hash and no other; no seed and none of the `canaries` may be in what is published
    beside the data; scores that need only the released data are measured again. Two things prove a release, because
    nobody can bring them about by writing hashes anew: the signature of the evidence by the public `key` (a PEM file)
    that the reader knows, and making the release again from private/ and the original, which is the file that
    private/policy.toml names unless `original` says another. Without either the outcome is "unproven".

    Only the signature proves anything to a third party, who has neither private/ nor the original: of an unsigned
    release that is said. Does not guard against whoever holds the private signing key, nor against a wrong original.
    Cost: reading the folder; with the original, what the masks, the measures, the attacks of the report and the writing
    cost.
    """
    if isinstance(original, str | Path) and not set("*?[") & set(str(original)) and not Path(original).exists():
        raise ParameterError(f"No file at {str(original)!r}.")
    place = Path(folder)
    public = _public(place)
    evidence, text = _evidence(public)
    try:
        return _verified(place, public, evidence, text, original, key, tuple(canaries))
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        if isinstance(error, EquipoiseError):
            raise
        raise DataError(
            f"The release {str(place)!r} cannot be checked ({type(error).__name__}): its evidence or its private files "
            "do not have what a release has. They were edited, or another version made them."
        ) from None


def _verified(
    place: Path,
    public: Path,
    evidence: dict[str, Any],
    text: bytes,
    original: Any,
    key: str | Path | None,
    canaries: tuple[str, ...],
) -> Verification:
    private = place / "private" if public != place and (place / "private").is_dir() else None
    checks = [_files(public, evidence), *_secrets(public, private, evidence, canaries)]
    checks.append(_signed(public, text, key))
    checks += [_sealed(private, text, evidence)] if private else []
    more = table_checks if "table" in evidence else records_checks
    intact = bool(checks[0].holds)
    return Verification(place, (*checks, *more(public, private, evidence, original=original, intact=intact)))


def _public(place: Path) -> Path:
    public = next((p for p in (place / "public", place) if (p / EVIDENCE).is_file()), None)
    if public is None:
        raise DataError(f"The folder {str(place)!r} is not a release: it has no public/{EVIDENCE}.")
    return public


def _evidence(public: Path) -> tuple[dict[str, Any], bytes]:
    text = (public / EVIDENCE).read_bytes()
    try:
        evidence = json.loads(text)
        parts = ("files", "output", "versions", "audit" if "table" in evidence else "scores")
        if not all(isinstance(evidence[name], dict | list | str) for name in parts):
            raise ValueError
    except (ValueError, KeyError, TypeError, UnicodeDecodeError):
        raise DataError(f"Cannot read {str(public / EVIDENCE)!r}: it is not the evidence of a release.") from None
    return evidence, text


def _files(public: Path, evidence: dict[str, Any]) -> Check:
    old, new = evidence["files"], hashes(public)
    faults = [f"{name!r} is missing." for name in old if name not in new]
    faults += [f"{name!r} is not a file of this release." for name in new if name not in old]
    faults += [f"{name!r} is not the file that was released." for name in old if new.get(name, old[name]) != old[name]]
    for output in _outputs(evidence):
        path = public / Path(str(output["file"])).name
        if path.exists() and hash_of(path) != output["sha256"]:
            faults.append(f"The hash of {path.name!r} is another one.")
        if "content_sha256" in output and path.exists() and content_hash(path) != output["content_sha256"]:
            faults.append(f"The content of {path.name!r} is another one.")
    return failing("files", dict.fromkeys(faults), "Every public file is there with its hash, and no other.")


def _outputs(evidence: dict[str, Any]) -> list[dict[str, Any]]:
    return evidence["output"] if isinstance(evidence["output"], list) else [evidence["output"]]


def _secrets(
    public: Path, private: Path | None, evidence: dict[str, Any], canaries: tuple[str, ...]
) -> Iterator[Check]:
    """Nothing secret is published: not the seed, not the key of the hashes; no canary beside the data."""
    everything = [path for path in sorted(public.rglob("*")) if path.is_file()]
    if private:
        secret = read_secret(private)
        seed = str(secret["seed"])
        hidden = [seed, f"{int(seed):x}"] if len(seed) >= MIN_SEED_DIGITS else []
        hidden += [str(secret["hash_key"])] if "hash_key" in secret else []
        leaky = [path.name for path in everything if _within(path, hidden)]
        yield failing(
            "secrets", (f"A secret of the release is in {name!r}." for name in leaky), "No seed is published."
        )
    if canaries:
        data = {str(output["file"]) for output in _outputs(evidence)}
        leaky = [path.name for path in everything if path.name not in data and _within(path, canaries)]
        yield failing("canaries", (f"A canary is in {name!r}." for name in leaky), "No canary is published in words.")


def _within(path: Path, texts: Iterable[str]) -> bool:
    """Whether a file holds one of the texts; read in blocks that overlap."""
    targets = [text.encode() for text in texts if text]
    keep, tail = max((len(text) for text in targets), default=1) - 1, b""
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            window = tail + block
            if any(text in window for text in targets):
                return True
            tail = window[-keep:] if keep else b""
    return False


def _signed(public: Path, text: bytes, key: str | Path | None) -> Check:
    """The signature: by the key that is asked for it is proof; by the key beside it alone it is not."""
    public_key = read_key(key) if key is not None else None
    if not (public / SIGNATURE).is_file():
        return Check("signature", None if public_key is None else False, UNSIGNED)
    try:
        pem = public_key or read_key(public / KEY)
        good, name = holds(pem, (public / SIGNATURE).read_bytes(), text), key_name(pem)
    except EquipoiseError:
        return Check("signature", False, "The public key beside the signature cannot be read.")
    if not good:
        return Check("signature", False, "The signature is not one under this evidence by this key.")
    if public_key is None:
        return Check("signature", None, f"Signed by the key {name}, which came with it: give the key that you know.")
    return Check("signature", True, f"The evidence is signed by the key {name}.", proof=True)


def _sealed(private: Path, text: bytes, evidence: dict[str, Any]) -> Check:
    """The evidence and the policy are those that this private folder was written with."""
    secret = read_secret(private)
    if "seal" not in secret or "hash_key" not in secret:
        return Check("seal", None, "The private folder has no seal.")
    key = bytes.fromhex(secret["hash_key"])
    faults = (
        [] if sealed(text, key) == secret["seal"] else ["The evidence is not the one that private/ was written with."]
    )
    policy_hash = evidence.get("policy", {}).get("hmac_sha256")
    if policy_hash is not None and sealed((private / "policy.toml").read_bytes(), key) != policy_hash:
        faults.append("The policy is not the one of the evidence.")
    return failing("seal", faults, "Evidence and policy are those that private/ was written with.")
