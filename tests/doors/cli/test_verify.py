"""The verb `verify`: what it says, and how it ends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.cli import main
from equipoise.releases.release import release

Run = Callable[..., str]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*args: Any, code: int = 0) -> str:
        assert main(["verify", *map(str, args)]) == code
        seen = capfd.readouterr()
        return seen.out if code != 2 else seen.err

    return call


@pytest.fixture(scope="module")
def folder(
    tmp_path_factory: pytest.TempPathFactory, people: pl.DataFrame, people_roles: eq.Roles, plain_pages: None
) -> Path:
    place = tmp_path_factory.mktemp("verb")
    people.write_csv(place / "people.csv")
    records = eq.read(place / "people.csv", people_roles)
    recipe = eq.Recipe([eq.masks.Recode("age", "10"), eq.masks.Noise("salary", 0.2)], 31415926535)
    limits = eq.Policy({"uniques": "<= 0.9"})
    return release(records, recipe, limits, place / "out").folder


def test_verified(run: Run, folder: Path) -> None:
    text = run(folder)
    assert "✓ Made again from the original, the data is the same byte for byte." in text
    assert "Verified." in text
    told = json.loads(run(folder, "--original", folder.parent / "people.csv", "--json"))
    assert told["outcome"] == "verified"
    assert {"check", "holds", "proof", "words"} == set(told["checks"][0])


def test_unproven_ends_with_1(run: Run, folder: Path) -> None:
    text = run(folder / "public", code=1)
    assert "Cannot be proven from this folder alone" in text
    assert json.loads(run(folder / "public", "--json", code=1))["outcome"] == "unproven"


def test_refused_ends_with_1(run: Run, folder: Path) -> None:
    (folder / "public" / "more.txt").write_text("more")
    text = run(folder, code=1)
    assert "✗ 'more.txt' is not a file of this release." in text
    assert "Refused." in text
    (folder / "public" / "more.txt").unlink()
    assert "A canary is in 'codebook.md'" in run(folder, "--canary", "Codebook", code=1)


def test_bad_input_ends_with_2(run: Run, folder: Path, tmp_path: Path) -> None:
    assert "is not a release" in run(tmp_path, code=2)
    assert "Cannot read an Ed25519 key" in run(folder, "--key", folder / "public" / "data.csv", code=2)
    assert "Missing argument" in run(code=2)


def test_a_policy_that_searches(tmp_path: Path, people: pl.DataFrame, people_roles: eq.Roles, run: Run) -> None:
    """The private policy names all candidates, the recipe the one that was chosen: that one is made again."""
    import tomli_w

    people.write_csv(tmp_path / "people.csv")
    plain = {
        "format": 1,
        "data": {"path": "people.csv"},
        "roles": people_roles.to_plain(),
        "limits": {"uniques": "< 0.3"},
        "waive": {"attack": "a test"},
        "measures": ["entropy"],
        "candidates": [{"masks": [{"use": "recode", "column": "age", "level": ["5", "10"]},
                                  {"use": "noise", "columns": ["salary"], "scale": [0.5, 0.7]}]}],
    }  # fmt: skip
    (tmp_path / "policy.toml").write_text(tomli_w.dumps(plain), encoding="utf-8")
    made = eq.balance(tmp_path / "policy.toml", out=tmp_path / "out")
    told = json.loads(run(made.folder, "--json"))
    assert told["outcome"] == "verified", told["words"]
    assert eq.replay(made.folder, tmp_path / "again").evidence["scores"] == made.evidence["scores"]
