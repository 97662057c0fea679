"""The public report is made again, and only a signature convinces a third party."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import equipoise as eq
from equipoise.provenance.findings import Check, Verification
from equipoise.releases.evidence import hashes, sealed
from equipoise.releases.release import release
from equipoise.releases.verify import verify


def check(verification: Verification, name: str) -> Check:
    return next(c for c in verification.checks if c.name == name)


def write_hashes_anew(folder: Path) -> None:
    """Whatever somebody can do who may write everywhere, but has neither the original nor the signing key."""
    public, private = folder / "public", folder / "private"
    evidence = json.loads((public / "evidence.json").read_text())
    text = json.dumps(evidence | {"files": hashes(public)}, indent=2) + "\n"
    (public / "evidence.json").write_text(text)
    secret = json.loads((private / "seed.json").read_text())
    secret["seal"] = sealed(text.encode(), bytes.fromhex(secret["hash_key"]))
    (private / "seed.json").write_text(json.dumps(secret))


def made_records(people: pl.DataFrame, roles: eq.Roles, folder: Path) -> None:
    people.write_csv(folder / "people.csv")
    records = eq.read(folder / "people.csv", roles)
    recipe = eq.Recipe([eq.masks.Recode("age", "10"), eq.masks.Noise(["salary"], 0.3)], 123456789)
    release(records, recipe, eq.Policy({"uniques": "< 0.5"}), folder / "out")


def made_table(people: pl.DataFrame, roles: eq.Roles, folder: Path) -> None:
    people.write_csv(folder / "people.csv")
    eq.tabulate(eq.read(folder / "people.csv"), ["sex", "area"], method=eq.tables.Round(5), out=folder / "out")


@pytest.mark.parametrize("make", [made_records, made_table])
def test_a_report_with_other_words_is_refused(
    people: pl.DataFrame, people_roles: eq.Roles, tmp_path: Path, make: Callable[..., None]
) -> None:
    """With every hash and the seal written anew; before, the words of the report were believed."""
    make(people, people_roles, tmp_path)
    folder = tmp_path / "out"
    first = verify(folder)
    assert first.outcome == "verified"
    assert check(first, "report").holds
    assert check(first, "report").words == "The public report is as made again."
    path = folder / "public" / "report.html"
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text(path.read_text(encoding="utf-8").replace("</main>", "<p>No risk.</p></main>"), encoding="utf-8")
    assert hashlib.sha256(path.read_bytes()).hexdigest() != before
    write_hashes_anew(folder)
    second = verify(folder)
    assert [c.name for c in second.checks if c.holds is False] == ["report"]
    assert second.words == "Refused. The public report is another one."


@pytest.mark.parametrize("make", [made_records, made_table])
def test_an_unsigned_release_proves_nothing_to_a_third_party(
    people: pl.DataFrame, people_roles: eq.Roles, tmp_path: Path, make: Callable[..., None]
) -> None:
    """Said in words, in JSON and on the public page."""
    make(people, people_roles, tmp_path)
    own, other = verify(tmp_path / "out"), verify(tmp_path / "out" / "public")
    assert own.outcome == "verified"
    assert "to a third party only a signature by a known key does" in own.words
    for verification in (own, other):
        assert verification.to_plain()["proves_to_third_party"] is False
        assert "to a third party this release proves nothing" in check(verification, "signature").words
    assert "To a third party it proves nothing" in (tmp_path / "out" / "public" / "report.html").read_text("utf-8")
