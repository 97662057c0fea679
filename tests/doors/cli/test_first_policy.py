"""`eq.init` and `eq.check`: the same as on the command line."""

from pathlib import Path

import pytest

import equipoise as eq
from equipoise.doors.cli import main
from equipoise.policies.limits import Limit


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    eq.demo.survey().head(300).write_csv("people.csv")
    return tmp_path


def test_a_first_policy_from_python(here: Path) -> None:
    text = eq.init("people.csv", "sub/first.toml")
    assert (here / "sub/first.toml").read_text(encoding="utf-8") == text
    assert 'path = "../people.csv"' in text
    assert main(["init", "people.csv", "--out", "sub/second.toml"]) == 0
    assert (here / "sub/second.toml").read_text(encoding="utf-8") == text
    with pytest.raises(eq.DataError, match="exists already"):
        eq.init("people.csv", "sub/first.toml")
    assert eq.init("people.csv", "sub/first.toml", preset="hdx", overwrite=True) != text
    with pytest.raises(eq.DataError, match=r"is a folder: name the file to write, such as policy\.toml"):
        eq.init("people.csv", "sub")


def test_nothing_is_written_unless_asked(here: Path) -> None:
    before = sorted(here.iterdir())
    text = eq.init("people.csv", preset="worldbank")
    assert 'path = "people.csv"' in text
    assert 'extends = "worldbank"' in text
    assert sorted(here.iterdir()) == before


def test_a_policy_is_explained_or_refused(here: Path) -> None:
    eq.init("people.csv", "first.toml")
    found = eq.check("first.toml")
    assert {"data", "limits", "candidates", "work"} <= set(found.parts)
    assert found.recipes >= 1
    Path("bad.toml").write_text('[data]\npath = "gone.csv"\n[roles]\nkeys = "sex"\n[limits]\nuniques = "< 2%"\n')
    with pytest.raises(eq.ParameterError, match=r"line 2, data\.path: No file at 'gone\.csv'") as caught:
        eq.check("bad.toml")
    assert [problem.line for problem in caught.value.problems] == [2]


@pytest.mark.parametrize(
    ("written", "words", "hinted"),
    [
        ("< 185%", "the limit < 185% lies outside 0 to 100 %.", False),
        ("< 2", "lies outside 0 to 1. Write 2 % as 0.02, or as '< 2%'.", True),
        ("< 1.85", "Write 1.85 % as 0.0185", True),
        ("< 185", "the limit < 185 lies outside 0 to 1.", False),
    ],
)
def test_a_hint_is_about_what_was_written(written: str, words: str, hinted: bool) -> None:
    limit = Limit.of("uniques", written)
    with pytest.raises(eq.ParameterError) as caught:
        limit.holds(eq.Score("uniques", 0.1, "lower", unit="share of records"))
    assert words in str(caught.value)
    assert ("Write" in str(caught.value)) == hinted
