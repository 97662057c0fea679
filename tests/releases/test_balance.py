"""Balance: adaptive or grid, stopped and gone on, in the same release; refusals that help."""

import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w

import equipoise as eq
from equipoise.provenance.journal import beside
from equipoise.releases.balance import balance
from equipoise.releases.release import Release

NEAREST = "nearest(variables=('salary', 'age'))"


@pytest.fixture
def policy(tmp_path: Path, people: pl.DataFrame) -> Path:
    people.select("person", "sex", "age", "salary").write_csv(tmp_path / "people.csv")
    return written(tmp_path)


def written(folder: Path, **changes: Any) -> Path:
    plain: dict[str, Any] = {
        "format": 1,
        "data": {"path": "people.csv"},
        "roles": {
            "keys": ["sex", "age"],
            "numeric": ["salary"],
            "id": "person",
            "hierarchies": {"age": {"kind": "intervals", "widths": [5, 10]}},
        },
        "limits": {NEAREST: "< 0.2"},
        "measures": ["mean_square(columns=('salary',))"],
        "candidates": [
            {
                "masks": [
                    {"use": "recode", "column": "age", "level": ["5", "10"]},
                    {"use": "noise", "columns": ["salary"], "scale": {"from": 0.05, "to": 1.5, "steps": 30}},
                ]
            }
        ],
        "draws": 3,
        "search": {"search": "adaptive", "budget": 8},
    }
    path = folder / "policy.toml"
    path.write_text(tomli_w.dumps(plain | changes), encoding="utf-8")
    return path


def data_of(made: Release) -> bytes:
    return (made.public / "data.csv").read_bytes()


def test_adaptive_and_stopped_twice(policy: Path, tmp_path: Path, page: Any) -> None:
    """A run that is stopped goes on with its own seed, tries nothing again, and ends as if it had not been."""
    folder, seen = tmp_path / "out", []
    for stop in (2, 5):
        with pytest.raises(eq.Cancelled, match="run it again to go on"):
            balance(policy, out=folder, progress=lambda done, total, what, stop=stop: done < stop)
        seen.append(beside(folder).read_text(encoding="utf-8").splitlines())
        assert not folder.exists()
    assert seen[1][: len(seen[0])] == seen[0]
    made = balance(policy, out=folder)
    assert not beside(folder).exists()
    assert len(made.frontier.trials) == 8
    seed = json.loads(seen[0][0])["seed"]
    assert str(made.trial.recipe.seed) == seed
    (tmp_path / "seed.json").write_text(json.dumps({"seed": seed}), encoding="utf-8")
    whole = balance(written(tmp_path, seed_file="seed.json"), out=tmp_path / "whole")
    assert data_of(whole) == data_of(made)
    assert whole.evidence["scores"] == made.evidence["scores"]


def test_other_data_are_searched_anew(policy: Path, tmp_path: Path, people: pl.DataFrame, page: Any) -> None:
    with pytest.raises(eq.Cancelled):
        balance(policy, out=tmp_path / "out", progress=lambda done, total, what: done < 3)
    before = json.loads(beside(tmp_path / "out").read_text(encoding="utf-8").splitlines()[0])
    people.select("person", "sex", "age", "salary").tail(300).write_csv(tmp_path / "people.csv")
    with pytest.raises(eq.Cancelled):
        balance(policy, out=tmp_path / "out", progress=lambda done, total, what: done < 1)
    lines = beside(tmp_path / "out").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0])["key"] != before["key"]


def test_limits_may_move_without_trying_again(policy: Path, tmp_path: Path, page: Any) -> None:
    """Scores do not depend on limits: what was tried before they were moved counts."""
    with pytest.raises(eq.Cancelled):
        balance(policy, out=tmp_path / "out", progress=lambda done, total, what: done < 4)
    tried = len(beside(tmp_path / "out").read_text(encoding="utf-8").splitlines())
    moved = written(tmp_path, limits={NEAREST: "< 0.25"})
    with pytest.raises(eq.Cancelled):
        balance(moved, out=tmp_path / "out", progress=lambda done, total, what: done < 1)
    assert len(beside(tmp_path / "out").read_text(encoding="utf-8").splitlines()) >= tried


def test_a_refusal_says_what_would_pass(tmp_path: Path, policy: Path, page: Any) -> None:
    strict = written(tmp_path, limits={NEAREST: "< 0.0001"})
    before = sorted(tmp_path.iterdir())
    with pytest.raises(
        eq.RefusedError, match=r"None of 8 candidates meets .* the limit of .* instead of .* would pass"
    ):
        balance(strict, out=tmp_path / "out")
    assert sorted(tmp_path.iterdir()) == before


def test_the_grid_is_all_of_it(policy: Path, tmp_path: Path, page: Any) -> None:
    masks = [{"use": "noise", "columns": ["salary"], "scale": [0.4, 0.8, 1.2]}]
    made = balance(written(tmp_path, candidates=[{"masks": masks}], search={"search": "grid"}), out=tmp_path / "out")
    assert len(made.frontier.trials) == 3
    assert len({trial.recipe.seed for trial in made.frontier.trials}) == 1


def test_a_run_killed_after_its_release_ends_when_run_again(policy: Path, tmp_path: Path, page: Any) -> None:
    """The journal is left, with the seed of the release and older than it: the same release, and the journal gone."""
    folder, journal = tmp_path / "out", beside(tmp_path / "out")
    kept: list[bytes] = []
    made = balance(
        policy,
        out=folder,
        progress=lambda *_: kept.append(journal.read_bytes()) if journal.exists() else None,
    )
    data = data_of(made)
    with pytest.raises(eq.DataError, match="exists already"):
        balance(policy, out=folder)
    journal.write_bytes(kept[-1])
    with pytest.raises(eq.DataError, match="exists already"):
        balance(policy, out=folder)
    assert journal.exists(), "a journal younger than the release is of another run"
    before = (folder / "public" / "evidence.json").stat().st_mtime_ns
    os.utime(journal, ns=(before - 1, before - 1))
    again = balance(policy, out=folder)
    assert data_of(again) == data
    assert not journal.exists()
