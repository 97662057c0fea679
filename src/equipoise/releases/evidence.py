"""Evidence: what the public may check of a release, and the signature under it."""

import hashlib
import hmac
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.data import engines
from equipoise.data.records import Law, Records
from equipoise.data.roles import Roles
from equipoise.files import becomes
from equipoise.ground import system
from equipoise.ground.errors import ParameterError
from equipoise.methods.method import label
from equipoise.policies.policy import scored
from equipoise.provenance.fingerprint import content_hash, hash_of, keyed_hash
from equipoise.recipe.catalogue import own
from equipoise.recipe.own_methods import packages_in
from equipoise.releases.report_facts import Report

EVIDENCE_FORMAT = 1
"""Version of the evidence and journal formats."""
RELEASE_DRAW = 1 << 20
"""The draw that is released: none that a sweep has looked at, so it cannot have been picked for its scores."""
EVIDENCE, SIGNATURE, KEY = "evidence.json", "evidence.sig", "key.pem"
PACKAGES = ("equipoise", "polars", "numpy", "scipy", "narwhals")
SELF_FILES = (EVIDENCE, SIGNATURE, KEY)
"""The files of `public/` that the evidence cannot hold a hash of."""
PUBLIC_ROLES = ("keys", "sensitive", "numeric", "weight", "household", "person", "domain", "sample", "missing")
"""The roles that a reader needs to measure the released data again."""


def evidence(
    records: Records, released: Records, facts: Report, *, public: Path, data: Path, draw: int, key: bytes, policy: str
) -> dict[str, Any]:
    """What the public may check: rounded scores of the chosen release only, limits, versions, hashes.

    The hashes of the input and of the policy are keyed, the `key` private: a plain hash would confirm a guess of what
    is in them. Call it when everything else under `public` is written.
    """
    return {
        "format": EVIDENCE_FORMAT,
        "made": facts.made.isoformat(),
        "versions": versions(*map(label, facts.chosen.recipe.masks), *(score.name for score in facts.chosen.scores)),
        "engine": engines.engine(records.frame),
        "input": {"records": facts.before.records, "hmac_sha256": keyed_hash(records, key)},
        "policy": {"hmac_sha256": sealed(policy.encode(), key)} | _preset(facts),
        "output": {"file": data.name, "sha256": hash_of(data), "content_sha256": content_hash(data)}
        | _converted(records, data),
        "files": hashes(public),
        "draw": draw,
        "roles": public_roles(released.roles, facts.withheld),
        "masks": [public_law(law) for law in facts.laws],
        "withheld": list(facts.withheld),
        "limits": dict(facts.policy.limits),
        "margins": _margins(facts),
        "scores": {s.name: {"value": finite(rounded(s.value, s.unit)), "unit": s.unit} for s in facts.chosen.scores},
        "verdict": "accepted" if facts.verdict else "refused",
        "assumes": [*facts.assumptions, *facts.several],
        "several_releases": list(facts.several),
        "revealing": facts.revealing.with_columns(pl.col("share").round(2)).drop("number").to_dicts(),
        "order": "kept" if facts.policy.keep_order else "shuffled",
    }


def versions(*methods: str) -> dict[str, str]:
    """What the release was made with: the same versions make the same bytes.

    The packages of users' own methods are among them where labels of masks or scores name one.
    """
    python = {"python": ".".join(map(str, sys.version_info[:3]))}
    return {name: version(name) for name in PACKAGES} | packages_in(methods, own()) | python


def same_versions(recorded: Mapping[str, str]) -> bool:
    """Whether what a release was made with is what is installed."""
    others = {name: _installed(name) for name in recorded if name not in (*PACKAGES, "python")}
    return dict(recorded) == versions() | others


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def hashes(public: Path) -> dict[str, str]:
    """SHA-256 of every file under `public` but the evidence and its signature, by its path."""
    files = sorted(path for path in public.rglob("*") if path.is_file())
    paths = {path.relative_to(public).as_posix(): path for path in files}
    return {name: hash_of(path) for name, path in paths.items() if name not in SELF_FILES}


def public_roles(roles: Roles, withheld: tuple[str, ...] = ()) -> dict[str, Any]:
    """The names of the columns that have a role, without those withheld: no hierarchy, no value."""
    plain = {name: value for name, value in roles.to_plain().items() if name in PUBLIC_ROLES}
    public_roles = {n: [c for c in v if c not in withheld] if isinstance(v, list) else v for n, v in plain.items()}
    return {name: value for name, value in public_roles.items() if value not in ([], None, *withheld)}


def public_law(law: Law) -> dict[str, Any]:
    """The public law of a mask."""
    return {
        "mask": law.mask,
        "columns": list(law.columns),
        "words": law.words,
        "parameters": law.public_parameters,
        "coarsens": law.coarsens,
    }


def _margins(facts: Report) -> list[dict[str, Any]]:
    """For each limit how far inside the score lies, rounded as the score is."""
    margins = []
    for limit in facts.policy.parsed:
        score = scored(facts.chosen, limit)
        room = abs(limit.bound - rounded(score.value, score.unit))
        margins.append({"limit": limit.words(), "margin": finite(round(room, 6))})
    return margins


def _preset(facts: Report) -> dict[str, str]:
    """The name of the preset that the policy extends, where it does."""
    name = facts.policy.extends
    return {"preset": Path(name).name} if name else {}


def _converted(records: Records, data: Path) -> dict[str, str]:
    """That the file is not in the format of the input, where it is not."""
    came, went = records.source.format if records.source else "", data.suffix.lstrip(".")
    if not came or came == went:
        return {}
    reason = f", because .{came} files cannot be written" if becomes(came) != came else ""
    return {"note": f"the input was a .{came} file and the release is a .{went} file{reason}"}


def rounded(value: float, unit: str) -> float:
    """A score as the public sees it: shares and probabilities to a thousandth, others to a tenth."""
    return round(value, 3 if unit.startswith(("share", "probability")) else 1)


def finite(value: float) -> float | None:
    """A number as JSON has it: None for what is not one."""
    return value if isfinite(value) else None


def evidence_text(plain: Mapping[str, Any]) -> str:
    """The evidence as the file has it: these bytes are signed."""
    return json.dumps(plain, indent=2, allow_nan=False) + "\n"


def sealed(text: bytes, key: bytes) -> str:
    """HMAC of bytes under the private key of a release."""
    return hmac.new(key, text, hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Signer:
    """An Ed25519 key that signs evidence; made once by `openssl genpkey -algorithm ed25519 -out key.pem`.

    Does not guard against whoever can read the private key: keep it apart from the releases.
    """

    key: Any

    @classmethod
    def load(cls, path: str | Path) -> "Signer":
        """From a PEM file without a password; refused when it holds anything else."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = _loaded(path, lambda text: load_pem_private_key(text, password=None))
        if not isinstance(key, Ed25519PrivateKey):
            raise ParameterError(f"{str(path)!r} does not hold a private Ed25519 key.")
        return cls(key)

    def sign(self, text: bytes) -> bytes:
        return bytes(self.key.sign(text))

    def public(self) -> str:
        """The public key as PEM."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        pem: bytes = self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return pem.decode("ascii")

    def __repr__(self) -> str:
        return f"Signer({key_name(self.public())})"


def key_name(pem: str) -> str:
    """The fingerprint of a public key: SHA-256 of its 32 bytes."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    raw = _public(pem.encode("ascii")).public_bytes(Encoding.Raw, PublicFormat.Raw)
    return hashlib.sha256(raw).hexdigest()


def read_key(path: str | Path) -> str:
    """The public key in a PEM file, as PEM."""
    _loaded(path, _public)
    return Path(path).read_text(encoding="ascii")


def holds(pem: str, signature: bytes, text: bytes) -> bool:
    """Whether the signature under these bytes is that of the key."""
    from cryptography.exceptions import InvalidSignature

    try:
        _public(pem.encode("ascii")).verify(signature, text)
    except InvalidSignature:
        return False
    return True


def _public(text: bytes) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    key = load_pem_public_key(text)
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError
    return key


def _loaded(path: str | Path, load: Any) -> Any:
    try:
        return load(system.stored(path).read_bytes())
    except (OSError, ValueError, TypeError):
        raise ParameterError(f"Cannot read an Ed25519 key from {str(path)!r}: give a PEM file.") from None
