"""Verify: what proves a release, what refutes it, and what leaves it open."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.provenance import fingerprint
from equipoise.provenance.findings import Check, Verification
from equipoise.releases.evidence import Signer, hashes, key_name, sealed
from equipoise.releases.release import release
from equipoise.releases.replay import replay
from equipoise.releases.verify import verify

SEED = 314159265358979323846
COARSE = [eq.masks.Recode("age", "10"), eq.masks.Recode("area", "1"), eq.masks.TopCode("salary", 40_000)]
NOISY = [eq.masks.Recode("age", "10"), eq.masks.Noise("salary", 0.2), eq.masks.PramMatrix("sex", diagonal=0.9)]
LIMITS = eq.Policy({"uniques": "<= 0.2"})


def make_key(path: Path) -> Path:
    """A private key in PEM, and the public one beside it."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = Ed25519PrivateKey.generate()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.with_suffix(".pub").write_text(Signer(key).public())
    return path


pytestmark = pytest.mark.usefixtures("plain_pages")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, people: pl.DataFrame) -> Path:
    path = tmp_path_factory.mktemp("original") / "people.csv"
    people.write_csv(path)
    return path


@pytest.fixture(scope="module")
def done(
    source: Path, people_roles: eq.Roles, tmp_path_factory: pytest.TempPathFactory, plain_pages: None
) -> dict[str, eq.Release]:
    """A release without and one with random masks; tests take copies."""
    records, place = eq.read(source, people_roles), tmp_path_factory.mktemp("done")
    key = make_key(place / "key.pem")
    return {
        "coarse": release(records, eq.Recipe(COARSE, SEED), LIMITS, place / "coarse"),
        "random": release(records, eq.Recipe(NOISY, SEED), LIMITS, place / "random"),
        "signed": release(records, eq.Recipe(NOISY, SEED), LIMITS, place / "signed", sign=key),
    }


@pytest.fixture
def take(done: dict[str, eq.Release], tmp_path: Path) -> Callable[..., eq.Release]:
    """A copy of a release that may be spoiled."""

    def copied(name: str = "coarse") -> eq.Release:
        shutil.copytree(done[name].folder, tmp_path / "out")
        return replace(done[name], folder=tmp_path / "out")

    return copied


def check(found: Verification, name: str) -> Check:
    return next(c for c in found.checks if c.name == name)


def change_one_cell(public: Path, name: str = "data.csv", column: str = "salary") -> None:
    """One number becomes that of another record: every margin and every score stays plausible."""
    table = pl.read_csv(public / name, infer_schema_length=None)
    values = table[column].to_list()
    other = next(i for i, value in enumerate(values) if value != values[0])
    values[0] = values[other]
    table.with_columns(pl.Series(column, values)).write_csv(public / name)


def write_hashes_anew(folder: Path) -> None:
    """Whatever somebody can do who may write everywhere, but has neither the original nor the signing key."""
    public, private = folder / "public", folder / "private"
    evidence = json.loads((public / "evidence.json").read_text())
    evidence["files"] = hashes(public)
    if private.is_dir():
        key = bytes.fromhex(json.loads((private / "seed.json").read_text())["hash_key"])
        evidence["policy"]["hmac_sha256"] = sealed((private / "policy.toml").read_bytes(), key)
    data = public / evidence["output"]["file"]
    evidence["output"]["sha256"] = hashlib.sha256(data.read_bytes()).hexdigest()
    evidence["output"]["content_sha256"] = fingerprint.content_hash(data)
    text = json.dumps(evidence, indent=2) + "\n"
    (public / "evidence.json").write_text(text)
    if private.is_dir():
        secret = json.loads((private / "seed.json").read_text())
        secret["seal"] = sealed(text.encode(), bytes.fromhex(secret["hash_key"]))
        (private / "seed.json").write_text(json.dumps(secret))


# --- verified -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("masks", ["coarse", "random", "signed"])
def test_a_release_is_verified_by_making_it_again(take: Callable[..., eq.Release], masks: str) -> None:
    found = verify(take(masks).folder)
    assert found.outcome == "verified", found.words
    assert "byte for byte" in check(found, "again").words
    assert all(c.holds is not False for c in found.checks)
    assert check(found, "limits").holds
    assert check(found, "codebook").holds


def test_a_law_in_the_words_of_version_0_1(source: Path, people_roles: eq.Roles, tmp_path: Path) -> None:
    recipe = eq.Recipe([*COARSE, eq.masks.SuppressRecords(eq.rules.MinCount(3))], SEED)
    made = release(eq.read(source, people_roles), recipe, LIMITS, tmp_path / "out")
    for name in ("evidence.json", "codebook.json", "codebook.md"):
        text = (made.public / name).read_text(encoding="utf-8")
        assert "suppressed for records" in text
        old = text.replace("suppressed for records", "withheld for records")
        (made.public / name).write_text(old, encoding="utf-8", newline="")
    write_hashes_anew(made.folder)
    found = verify(made.folder)
    assert found.outcome == "verified", found.words
    assert check(found, "codebook").holds


def test_local_suppression_before_it_had_a_guard(source: Path, people_roles: eq.Roles, tmp_path: Path) -> None:
    """A recipe and a law that do not name the guard were made with blanks that match anything."""
    mask = eq.masks.LocalSuppress(eq.rules.MinCount(3), guard="wildcard")
    made = release(eq.read(source, people_roles), eq.Recipe([*COARSE, mask], SEED), LIMITS, tmp_path / "out")
    recipe = made.private / "recipe.json"
    plain = json.loads(recipe.read_text())
    assert plain["masks"][-1].pop("guard") == "wildcard"
    recipe.write_text(json.dumps(plain))
    evidence = json.loads((made.public / "evidence.json").read_text())
    assert evidence["masks"][-1]["parameters"].pop("guard") == "wildcard"
    (made.public / "evidence.json").write_text(json.dumps(evidence))
    write_hashes_anew(made.folder)
    found = verify(made.folder)
    assert found.outcome == "verified", found.words
    assert check(found, "codebook").holds


def test_the_original_may_be_somewhere_else(take: Callable[..., eq.Release], source: Path, tmp_path: Path) -> None:
    """Gone, it is unproven; named, it is verified; another file is refused."""
    made = take("random")
    moved = tmp_path / "elsewhere.csv"
    shutil.copy(source, moved)
    policy = made.private / "policy.toml"
    policy.write_text(policy.read_text().replace(source.name, "gone.csv"))
    write_hashes_anew(made.folder)
    assert verify(made.folder).outcome == "unproven"
    assert verify(made.folder, original=moved).outcome == "verified"
    moved.write_text(moved.read_text().replace("f", "m", 1))
    found = verify(made.folder, original=moved)
    assert found.outcome == "refused"
    assert "not the file that was released" in found.words


def test_data_in_memory(people: pl.DataFrame, people_roles: eq.Roles, tmp_path: Path) -> None:
    """Frames have no path: they are handed over again."""
    records = eq.read(people, people_roles)
    made = release(records, eq.Recipe(NOISY, SEED), LIMITS, tmp_path / "out")
    assert verify(made.folder).outcome == "unproven"
    assert verify(made.folder, original=records).outcome == "verified"
    assert verify(made.folder, original=eq.read(people.head(399), people_roles)).outcome == "refused"


def test_a_file_with_a_date_in_it_has_the_same_content(source: Path, people_roles: eq.Roles, tmp_path: Path) -> None:
    """Workbooks hold the time they were written: other bytes, the same content."""
    pytest.importorskip("xlsxwriter")
    pytest.importorskip("fastexcel")
    records, recipe = eq.read(source, people_roles), eq.Recipe(NOISY, SEED)
    found = verify(release(records, recipe, LIMITS, tmp_path / "out", format="xlsx").folder)
    assert found.outcome == "verified", found.words


# --- refused ------------------------------------------------------------------------------------------------------


def test_one_cell_is_caught_by_its_hash(take: Callable[..., eq.Release]) -> None:
    made = take()
    change_one_cell(made.public)
    found = verify(made.folder)
    assert found.outcome == "refused"
    assert check(found, "files").holds is False
    assert "40000" not in found.words


@pytest.mark.parametrize("masks", ["coarse", "random"])
@pytest.mark.parametrize("column", ["salary", "ill"])
def test_one_cell_and_every_hash_anew_is_still_refused(
    take: Callable[..., eq.Release], masks: str, column: str
) -> None:
    """Every hash and the seal fit; the release is made again, and is another one."""
    made = take(masks)
    change_one_cell(made.public, column=column)
    write_hashes_anew(made.folder)
    found = verify(made.folder)
    assert check(found, "files").holds
    assert check(found, "seal").holds
    assert check(found, "again").holds is False
    assert found.outcome == "refused"


def test_one_cell_under_a_signature(
    take: Callable[..., eq.Release], done: dict[str, eq.Release], tmp_path: Path
) -> None:
    """The public part alone: a reader who knows the key needs neither the original nor private/."""
    key, made = done["signed"].folder.parent / "key.pem", take("signed")
    public = tmp_path / "received"
    shutil.copytree(made.public, public)
    signed = verify(public, key=key.with_suffix(".pub"))
    assert signed.outcome == "verified"
    assert signed.to_plain()["proves_to_third_party"] is True
    change_one_cell(public)
    assert verify(public, key=key.with_suffix(".pub")).outcome == "refused"
    evidence = json.loads((public / "evidence.json").read_text())
    evidence |= {"files": hashes(public)}
    evidence["output"] |= {"sha256": fingerprint.hash_of(public / "data.csv")}
    evidence["output"] |= {"content_sha256": fingerprint.content_hash(public / "data.csv")}
    (public / "evidence.json").write_text(json.dumps(evidence, indent=2))
    found = verify(public, key=key.with_suffix(".pub"))
    assert check(found, "files").holds
    assert check(found, "signature").holds is False


def test_somebody_else_s_signature_proves_nothing(take: Callable[..., eq.Release], tmp_path: Path) -> None:
    """Signed anew with another key and that key put beside it: unproven without the key one knows, refused with it."""
    key, public = make_key(tmp_path / "mine.pem"), take("signed").public
    found = verify(public)
    assert found.outcome == "unproven"
    assert key_name((public / "key.pem").read_text()) in check(found, "signature").words
    assert verify(public, key=key.with_suffix(".pub")).outcome == "refused"
    (public / "evidence.sig").unlink()
    (public / "key.pem").unlink()
    assert verify(public, key=key.with_suffix(".pub")).outcome == "refused"


def test_openssl_reads_the_signature(take: Callable[..., eq.Release]) -> None:
    """The signature is under the very bytes of evidence.json: any tool can check it."""
    tool = shutil.which("openssl")
    if tool is None:
        pytest.skip("There is no openssl here.")
    made = take("signed")
    args = ["-verify", "-pubin", "-inkey", "key.pem", "-rawin", "-in", "evidence.json", "-sigfile", "evidence.sig"]
    done = subprocess.run([tool, "pkeyutl", *args], cwd=made.public, capture_output=True, text=True, check=False)
    if "rawin" in done.stderr and "only" in done.stderr:
        pytest.skip("This openssl does not know Ed25519.")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["notes.txt", "seed.json", "sub/journal.jsonl"])
def test_what_does_not_belong_there(take: Callable[..., eq.Release], name: str) -> None:
    made = take()
    (made.public / name).parent.mkdir(exist_ok=True)
    (made.public / name).write_text("{}")
    assert f"'{name}' is not a file of this release" in verify(made.folder).words


@pytest.mark.parametrize("name", ["report.html", "codebook.md", "codebook.json", "data.csv"])
def test_missing_files_and_changed_words(take: Callable[..., eq.Release], name: str) -> None:
    made = take()
    text = (made.public / name).read_bytes()
    (made.public / name).unlink()
    assert verify(made.folder).outcome == "refused"
    (made.public / name).write_bytes(text + b"\n")
    assert verify(made.folder).outcome == "refused"


@pytest.mark.parametrize("name", ["report.html", "codebook.md"])
def test_words_changed_with_their_hash(take: Callable[..., eq.Release], name: str) -> None:
    """By somebody without private/: the seal. Codebook and report are also made again."""
    made = take()
    kept = (made.private / "seed.json").read_text()
    (made.public / name).write_text("everything is fine")
    write_hashes_anew(made.folder)
    (made.private / "seed.json").write_text(kept)
    found = verify(made.folder)
    assert check(found, "seal").holds is False
    assert (check(found, "codebook").holds is False) == name.startswith("codebook")
    assert (check(found, "report").holds is False) == name.startswith("report")


@pytest.mark.parametrize("field", ["scores", "limits", "masks"])
def test_claims_changed_with_every_hash(take: Callable[..., eq.Release], field: str) -> None:
    """A better score, a stricter limit or another mask than was used."""
    made = take()
    evidence = json.loads((made.public / "evidence.json").read_text())
    change: dict[str, Any] = {
        "scores": {"uniques": {"value": 0.123, "unit": "share of records"}},
        "limits": {"uniques": "<= 0.0001"},
        "masks": evidence["masks"][:1],
    }
    (made.public / "evidence.json").write_text(json.dumps(evidence | {field: change[field]}))
    write_hashes_anew(made.folder)
    assert verify(made.folder).outcome == "refused"


def test_the_seed_under_public(take: Callable[..., eq.Release]) -> None:
    made = take()
    path = made.public / "report.html"
    path.write_text(path.read_text() + f"<!-- {SEED:x} -->")
    write_hashes_anew(made.folder)
    found = verify(made.folder)
    assert "A secret of the release is in 'report.html'" in found.words
    assert str(SEED) not in found.words


def test_canaries(take: Callable[..., eq.Release]) -> None:
    made = take()
    assert check(verify(made.folder, canaries=["Quetzalcoatlus"]), "canaries").holds
    found = verify(made.folder, canaries=["Changed"])
    assert "A canary is in 'codebook.md'" in found.words


# --- unproven -----------------------------------------------------------------------------------------------------


def test_the_public_part_alone(take: Callable[..., eq.Release], tmp_path: Path) -> None:
    """Scores that need only the data are measured again; that is no proof, and it is said so."""
    made = take()
    shutil.copytree(made.public, tmp_path / "received")
    found = verify(tmp_path / "received")
    assert found.outcome == "unproven"
    assert not found
    assert check(found, "scores").holds
    assert "Cannot be proven from this folder alone" in found.words
    assert found.reasons


def test_a_change_that_shows_in_the_scores(take: Callable[..., eq.Release], tmp_path: Path) -> None:
    """Public and unsigned, every hash anew: the uniques it makes are seen."""
    made = take()
    folder = tmp_path / "received"
    shutil.copytree(made.public, folder / "public")
    table = pl.read_csv(folder / "public" / "data.csv", infer_schema_length=None)
    ages = [f"9{i}" if i < 8 else age for i, age in enumerate(table["age"].to_list())]
    table.with_columns(pl.Series("age", ages)).write_csv(folder / "public" / "data.csv")
    write_hashes_anew(folder)
    found = verify(folder)
    assert found.outcome == "refused"
    assert "uniques is" in found.words


def test_folders_that_are_no_release(tmp_path: Path) -> None:
    with pytest.raises(eq.DataError, match="is not a release"):
        verify(tmp_path)
    (tmp_path / "evidence.json").write_text("[]")
    with pytest.raises(eq.DataError, match="not the evidence of a release"):
        verify(tmp_path)


def test_keys_that_are_none(take: Callable[..., eq.Release], tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("no key")
    with pytest.raises(eq.ParameterError, match="Cannot read an Ed25519 key"):
        Signer.load(tmp_path / "key.pem")
    made = take()
    with pytest.raises(eq.ParameterError, match="Cannot read an Ed25519 key"):
        verify(made.folder, key=tmp_path / "key.pem")


# --- replay -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("masks", ["coarse", "random"])
def test_replay_makes_the_same_bytes(take: Callable[..., eq.Release], tmp_path: Path, masks: str) -> None:
    made = take(masks)
    second = replay(made.folder, tmp_path / "second")
    for name in ("data.csv", "codebook.md", "codebook.json"):
        assert (made.public / name).read_bytes() == (second.public / name).read_bytes()
    assert second.evidence["scores"] == made.evidence["scores"]
    assert second.evidence["draw"] == made.evidence["draw"]
    assert verify(second.folder).outcome == "verified"


def test_the_script_in_the_private_folder(source: Path, people_roles: eq.Roles, tmp_path: Path) -> None:
    """As an auditor runs it, in a process of its own."""
    made = eq.release(eq.read(source, people_roles), eq.Recipe(NOISY, SEED), LIMITS, tmp_path / "out")
    run = [sys.executable, str(made.private / "replay.py")]
    done = subprocess.run([*run, str(tmp_path / "again")], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again/public/data.csv").read_bytes() == (made.public / "data.csv").read_bytes()
    assert str(SEED) not in (made.private / "replay.py").read_text() + done.stdout
    assert subprocess.run(run, capture_output=True, check=False).returncode == 1


def test_the_private_files_that_are_damaged(take: Callable[..., eq.Release]) -> None:
    made = take()
    (made.private / "recipe.json").write_text("{")
    assert verify(made.folder).outcome == "unproven"
    (made.private / "seed.json").write_text("{}")
    with pytest.raises(eq.DataError, match="not the seed of a release"):
        verify(made.folder)
