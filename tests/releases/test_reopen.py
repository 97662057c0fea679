"""A release read again: its data, and the laws its evidence tells."""

import json
from pathlib import Path

import polars as pl
import pytest

import equipoise as eq
from equipoise.releases.reopen import reopen


@pytest.fixture
def folder(people_records: eq.Records, tmp_path: Path, page) -> Path:
    from equipoise.releases.release import release

    masks = [eq.masks.Recode("age", "5"), eq.masks.Noise(["salary"], 0.1)]
    release(people_records, eq.Recipe(masks, 3), eq.Policy(), tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize("inside", ["", "public"])
def test_the_history_is_rebuilt(folder: Path, inside: str) -> None:
    found = reopen(folder / inside)
    assert [(law.mask, law.columns, law.coarsens) for law in found.history] == [
        ("recode", ("age",), True),
        ("noise", ("salary",), False),
    ]
    assert dict(found.history[0].parameters) == {"column": "age", "level": "5"}
    assert "person" not in found.schema()


def test_a_file_has_no_history(tmp_path: Path) -> None:
    pl.DataFrame({"age": [1, 2]}).write_csv(tmp_path / "a.csv")
    assert reopen(tmp_path / "a.csv").history == ()


def test_a_folder_that_is_no_release(tmp_path: Path) -> None:
    with pytest.raises(eq.DataError, match="is not a release"):
        reopen(tmp_path)


NO_EVIDENCE = (
    "",
    "[]",
    "{}",
    '{"output": {"file": "../a.csv"}, "masks": [], "withheld": []}',
    '{"output": 3}',
    '{"output": {"file": "a.csv"}, "masks": [], "withhelde": ["id"]}',
    '{"output": {"file": "a.csv"}, "masks": [], "withheld": [], "input": "x"}',
)


@pytest.mark.parametrize("text", NO_EVIDENCE)
def test_evidence_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "evidence.json").write_text(text)
    with pytest.raises(eq.DataError, match="not the evidence of a release"):
        reopen(tmp_path)


def test_evidence_of_before_names_its_columns_by_parameters(folder: Path) -> None:
    path = folder / "public" / "evidence.json"
    told = json.loads(path.read_text())
    for mask in told["masks"]:
        del mask["columns"], mask["coarsens"]
    path.write_text(json.dumps(told))
    assert reopen(folder).history[0].columns == ("age",)
