"""Registers edited by hand: refused with the part that is wrong, before anything is made of it."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.cli import main


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = tmp_path_factory.mktemp("register")
    records = eq.read(pl.DataFrame({"id": range(20), "sex": ["f", "m"] * 10}), eq.Roles("sex", id="id"))
    eq.protect(records, [], place / "out", register=place / "register.json")
    return json.loads((place / "register.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("asset", None), ("asset", 5), ("made", "yesterday"), ("bases", []), ("people", 7), ("records", "20"),
        ("records", 10**60), ("records", -1),
        ("keys", 5), ("masks", [1]), ("columns", [float("nan")]),
    ],
)  # fmt: skip
def test_a_wrong_entry(book: dict[str, Any], part: str, value: Any, tmp_path: Path, capfd: Any) -> None:
    first = {**book["releases"][0], part: value}
    if value is None:
        del first[part]
    (tmp_path / "register.json").write_text(json.dumps({**book, "releases": [first]}), encoding="utf-8")
    assert main(["register", str(tmp_path / "register.json")]) == 2
    assert "register" in capfd.readouterr().err


@pytest.mark.parametrize("releases", [5, "x", [5], {"a": 1}])
def test_a_wrong_book(book: dict[str, Any], releases: Any, tmp_path: Path, capfd: Any) -> None:
    (tmp_path / "register.json").write_text(json.dumps({**book, "releases": releases}), encoding="utf-8")
    assert main(["register", str(tmp_path / "register.json")]) == 2
    assert "was edited" in capfd.readouterr().err


def test_a_key_of_half_a_byte_and_a_register_that_is_no_file(book: dict[str, Any], tmp_path: Path) -> None:
    records = eq.read(pl.DataFrame({"id": range(20), "sex": ["f", "m"] * 10}), eq.Roles("sex", id="id"))
    (tmp_path / "register.json").write_text(json.dumps({**book, "key": "0"}), encoding="utf-8")
    for register, words in ((tmp_path / "register.json", "its key is none"), (Path("/"), "name the register to write")):
        with pytest.raises(eq.EquipoiseError, match=words):
            eq.protect(records, [], tmp_path / "out", register=register)
