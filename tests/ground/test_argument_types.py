"""Wrong calls of Python: refused by the name of the parameter and what it takes, before any work."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.data.cells import count
from equipoise.ground.argument_types import fits

FRAME = pl.DataFrame({"age": [20, 30, 40], "sex": ["f", "m", "CANARY"]})
RECORDS = eq.read(FRAME, eq.Roles(["age", "sex"]))
any_eq: Any = eq

WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a frame for records": (lambda: any_eq.count(FRAME), r"count: records must be Records, got DataFrame: .* eq.read"),
    "one mask for a list": (lambda: any_eq.protect(RECORDS, eq.masks.TopCode("age", 9), "o"), "masks must be a list"),
    "a frame as population": (lambda: any_eq.risk.Journalist(FRAME), "population must be .* Records"),
    "a misspelt score": (lambda: eq.Policy({"entrpy": "> 1"}), "No measure 'entrpy'. Did you mean 'entropy'?"),
    "a method of a mask": (lambda: any_eq.masks.Renumber().apply(3, None), "apply: data must be Records"),
    "a method of a measure": (lambda: any_eq.utility.Moments().measure(FRAME, RECORDS), "released must be Records"),
    "a rule on a frame": (lambda: any_eq.rules.MinCount(3).flag(FRAME), "cells must be"),
    "a switch": (lambda: any_eq.protect(RECORDS, [], "o", overwrite="no"), "overwrite must be True or False"),
    "a class for an object": (lambda: any_eq.assess(RECORDS, [eq.risk.Uniques]), "measures must be a list"),
    "a number in words": (lambda: any_eq.rules.MinCount("three"), "n must be a whole number"),
    "a frame for a number": (lambda: any_eq.rules.AnySubset(n=FRAME), "n must be"),
    "scores": (lambda: any_eq.Scores(["age"]), "scores must be"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_names_the_parameter(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call, words = WRONG[name]
    with pytest.raises((eq.EquipoiseError, TypeError), match=words) as caught:
        call()
    assert "CANARY" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_what_fits_still_passes() -> None:
    assert eq.count(RECORDS).records == 3
    assert eq.Recipe(eq.masks.TopCode("age", 9)).masks == (eq.masks.TopCode("age", 9),)  # type: ignore[arg-type]
    assert eq.Policy({"my_own": "< 1"}).limits == {"my_own": "< 1"}
    assert pickle.loads(pickle.dumps(eq.risk.Uniques(k=3))) == eq.risk.Uniques(k=3)
    assert eq.count.__doc__ == count.__doc__


@pytest.mark.parametrize(
    ("value", "kind", "fit"),
    [
        (3, int, True), (True, int, False), (3, float, True), ("3", float, False), (None, str | None, True),
        ("a", Path, True), (("a",), tuple[str, ...], True), ("a", tuple[str, ...], True),
        (FRAME, tuple[str, ...], False),
        ({"a": 1}, dict[str, int], True), ({1: 1}, dict[str, int], False), ([1, "a"], list[int], False),
    ],
)  # fmt: skip
def test_fits(value: Any, kind: Any, fit: bool) -> None:
    assert fits(value, kind) is fit


def test_a_roles_file_is_not_overwritten_unasked(tmp_path: Path) -> None:
    path = tmp_path / "roles.toml"
    roles = eq.Roles("age")
    roles.to_toml(path)
    for write in (roles.to_toml, eq.suggest_roles(FRAME).toml):
        before = path.read_bytes()
        with pytest.raises(eq.ParameterError, match="exists already"):
            write(path)
        assert path.read_bytes() == before
        write(path, overwrite=True)
