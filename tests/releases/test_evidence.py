"""The public evidence: what it holds, what is keyed, and whose signature is under it."""

import hashlib
import hmac
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.provenance.fingerprint import content_of
from equipoise.releases.evidence import RELEASE_DRAW, Signer, holds, key_name, public_roles, read_key, versions
from equipoise.releases.release import release

Page = Callable[[Any, bool], str]
MASKS = [eq.masks.Recode("age", "10"), eq.masks.Recode("area", "1")]


@pytest.fixture(scope="module")
def made(
    people: pl.DataFrame, people_roles: eq.Roles, tmp_path_factory: pytest.TempPathFactory, plain_pages: None
) -> eq.Release:
    records = eq.read(people, people_roles)
    limits = eq.Policy({"uniques": "<= 0.05", "entropy": "> 1"}, extends="worldbank")
    place = tmp_path_factory.mktemp("evidence") / "out"
    return release(records, eq.Recipe(MASKS), limits, place)


def test_every_public_file_has_its_hash(made: eq.Release) -> None:
    said = made.evidence["files"]
    assert set(said) == {p.name for p in made.public.iterdir()} - {"evidence.json"}
    for name, digest in said.items():
        assert hashlib.sha256((made.public / name).read_bytes()).hexdigest() == digest
    assert made.evidence["output"]["content_sha256"] == content_of(pl.read_parquet(made.public / "data.parquet"))


def test_the_policy_s_hash_is_keyed(made: eq.Release) -> None:
    """Its hierarchies and its path are nobody's business: a plain hash would confirm a guess of them."""
    text = (made.private / "policy.toml").read_bytes()
    key = bytes.fromhex(json.loads((made.private / "seed.json").read_text())["hash_key"])
    assert made.evidence["policy"]["hmac_sha256"] == hmac.new(key, text, hashlib.sha256).hexdigest()
    assert hashlib.sha256(text).hexdigest() not in json.dumps(made.evidence)
    assert made.evidence["policy"]["preset"] == "worldbank"


def test_how_far_inside_each_limit(made: eq.Release) -> None:
    """|bound - rounded score|, in the order of the limits."""
    scores = {name: said["value"] for name, said in made.evidence["scores"].items()}
    assert made.evidence["margins"] == [
        {"limit": "uniques <= 0.05", "margin": pytest.approx(0.05 - scores["uniques"])},
        {"limit": "entropy > 1", "margin": pytest.approx(scores["entropy"] - 1)},
    ]


def test_versions_engine_draw_and_roles(made: eq.Release) -> None:
    assert made.evidence["versions"] == versions()
    assert {"equipoise", "polars", "numpy", "scipy", "narwhals", "python"} == set(versions())
    assert made.evidence["engine"] == "polars"
    assert made.evidence["draw"] == RELEASE_DRAW
    roles = made.evidence["roles"]
    assert roles == {"keys": ["sex", "area", "age"], "sensitive": ["ill"], "numeric": ["salary"], "weight": "weight",
                     "missing": "category"}  # fmt: skip
    assert "person" not in json.dumps(roles)


def test_withheld_columns_have_no_role() -> None:
    roles = eq.Roles(["a", "b"], weight="w", household="h", direct=["n"])
    assert public_roles(roles, ("b", "h")) == {"keys": ["a"], "weight": "w", "missing": "category"}


def test_signatures(tmp_path: Path) -> None:
    """By the bytes, and by one key only."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    one, two = Signer(Ed25519PrivateKey.generate()), Signer(Ed25519PrivateKey.generate())
    signature = one.sign(b"text")
    assert holds(one.public(), signature, b"text")
    assert not holds(one.public(), signature, b"Text")
    assert not holds(two.public(), signature, b"text")
    assert key_name(one.public()) != key_name(two.public())
    (tmp_path / "key.pem").write_text(one.public())
    assert read_key(tmp_path / "key.pem") == one.public()
    assert "BEGIN" not in repr(one)


def test_the_signing_key_of_the_standard() -> None:
    """RFC 8032, section 7.1, test 2: the key, the message and the signature."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    secret = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"
    wanted = (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    signer = Signer(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(secret)))
    assert signer.sign(bytes.fromhex("72")).hex() == wanted
    raw = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
    assert key_name(signer.public()) == hashlib.sha256(raw).hexdigest()


def test_other_keys_are_refused(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = generate_private_key(SECP256R1())
    (tmp_path / "ec.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(eq.ParameterError, match="does not hold a private Ed25519 key"):
        Signer.load(tmp_path / "ec.pem")
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "ec.pub").write_bytes(public)
    with pytest.raises(eq.ParameterError, match="Cannot read an Ed25519 key"):
        read_key(tmp_path / "ec.pub")
    with pytest.raises(eq.ParameterError, match="Cannot read an Ed25519 key"):
        Signer.load(tmp_path / "nowhere.pem")
