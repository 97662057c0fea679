"""The verb `register`, and --register and --asset on the command line."""

import json
from pathlib import Path

import polars as pl
import pytest

from equipoise.doors.cli import main

CANARY = "zanzibar"


def test_it_lists_the_releases(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """By asset, with their keys and masks; neither seeds nor values."""
    people, book = tmp_path / "people.csv", tmp_path / "register.json"
    pl.DataFrame({"nr": range(40), "town": [CANARY, "b"] * 20, "age": [*range(20, 40)] * 2}).write_csv(people)
    roles = ["--keys", "town,age", "--id", "nr", "--hierarchy", "age=intervals:2,4"]
    for name, level in (("first", "2"), ("second", "4")):
        out = ["--out", str(tmp_path / name), "--register", str(book), "--asset", "panel"]
        assert main(["protect", str(people), *roles, "--mask", f"recode:age,{level}", *out]) == 0
    capfd.readouterr()
    assert main(["register", str(book), "--asset", "panel"]) == 0
    screen = capfd.readouterr().out
    assert "2 releases" in screen
    assert "40 records by town, age" in screen
    assert CANARY not in screen + book.read_text()
    assert main(["register", str(book), "--json"]) == 0
    answer = json.loads(capfd.readouterr().out)
    assert [one["kind"] for one in answer["releases"]] == ["records", "records"]
    assert not {"seed", "people", "asset"} & set(answer["releases"][0])
    assert main(["register", str(book), "--forget", "3"]) == 2
    assert main(["register", str(book), "--forget", "1", "--json"]) == 0
    (rest,) = json.loads(capfd.readouterr().out)["releases"]
    assert rest["masks"] == answer["releases"][1]["masks"]
    assert main(["register", str(book), "--asset", "another"]) == 0
    assert "0 releases" in capfd.readouterr().out


def test_what_works_together_ends_with_1(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Bands of 4 and of 6 years, each with pairs of people or more."""
    people, book = tmp_path / "people.csv", tmp_path / "register.json"
    pl.DataFrame({"nr": range(24), "age": range(24, 48)}).write_csv(people)
    args = ["protect", str(people), "--keys", "age", "--id", "nr", "--mask", "recode:age,1", "--register", str(book)]
    args += ["--limit", "k_anonymity:3 <= 0"]
    assert main([*args, "--hierarchy", "age=intervals:4", "--out", str(tmp_path / "one")]) == 0
    assert main([*args, "--hierarchy", "age=intervals:6", "--out", str(tmp_path / "two")]) == 1
    assert "together with the earlier release 'people.csv'" in capfd.readouterr().err
    assert not (tmp_path / "two").exists()
    assert (
        main([*args, "--hierarchy", "age=intervals:6", "--out", str(tmp_path / "two"), "--asset", "other people"]) == 0
    )


def test_no_register(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["register", str(tmp_path / "none.json")]) == 2
    (tmp_path / "none.json").write_text("{}")
    assert main(["register", str(tmp_path / "none.json")]) == 2
    assert "not a register" in capfd.readouterr().err
