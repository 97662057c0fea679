"""The same attacks on the original file."""

import polars as pl
import pytest

import equipoise as eq
from equipoise.intrusion import baseline
from equipoise.intrusion.attack import try_out


@pytest.fixture(scope="module")
def found():
    ages = [20, 20, 21, 30, 31, 40, 40, 50, 61, 70]
    table = pl.DataFrame({"age": ages, "sex": list("mfmfmfmfmf"), "rent": [float(a) for a in ages]})
    file = eq.read(table, eq.Roles(["age", "sex"], sensitive=["rent"]))
    return try_out(eq.masks.TopCode("age", 30).apply(file, None), file), file


def test_uniques_are_found_for_certain_in_the_original(found):
    attack, file = found
    scores = baseline.on_original(attack.scenarios, file)
    assert len(scores) == len(attack.scenarios)
    link = next(i for i, s in enumerate(attack.scenarios) if s.kind == "link")
    cells = file.collect("age", "sex").group_by("age", "sex").len()
    assert scores[link].value == pytest.approx(cells.height / 10)
    assert scores[link].value > attack.scenarios[link].score.value
    assert scores[link].records is None


def test_large_files_and_attacks_that_cannot_be_named_are_left_out(found, monkeypatch):
    attack, file = found
    assert baseline._score("no such attack", file) is None
    monkeypatch.setattr(baseline, "MAX_RECORDS", 5)
    assert set(baseline.on_original(attack.scenarios, file)) == {None}
