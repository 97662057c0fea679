"""Journals: found again after any end, not used for other data or another policy, nobody else's to read, no values."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.masks import Noise, Recode, TopCode
from equipoise.provenance.journal import Journal, beside, mask_text

SCORES = eq.Scores(
    [
        eq.Score("uniques", 0.1 + 0.2, "lower", number=3.0, unit="share of records", notes=("a note",)),
        eq.Score("entropy", float("nan"), "higher", interval=(1.0, 2.5), baseline=0.25, side="utility"),
    ]
)
ONE, TWO = eq.Recipe([TopCode("age", 90)], seed=5), eq.Recipe([TopCode("age", 80)], seed=5)


def open_(path: Path, data: str = "data", depends: str = "roles", seed: int | None = None) -> Journal:
    return Journal.resume(path, lambda key: data, depends, seed)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".out.journal"


def test_scores_come_back_as_they_were(path: Path) -> None:
    first = open_(path)
    first.add(ONE, 0, SCORES, 0.5)
    again = open_(path)
    found = again.get(ONE, 0)
    assert found is not None
    assert repr(found) == repr(SCORES)
    assert [(s.interval, s.baseline, s.number, s.unit, s.notes, s.side) for s in found] == [
        (s.interval, s.baseline, s.number, s.unit, s.notes, s.side) for s in SCORES
    ]
    assert again.seconds(ONE, 0) == 0.5
    assert (again.get(ONE, 1), again.get(TWO, 0)) == (None, None)
    assert again.seed == first.seed


@pytest.mark.parametrize("change", [{"data": "other"}, {"depends": "other"}, {"seed": 9}])
def test_of_something_else_it_is_not_used(path: Path, change: dict[str, Any]) -> None:
    open_(path, seed=8).add(ONE, 0, SCORES, 0.1)
    assert open_(path, seed=8).get(ONE, 0) is not None
    assert open_(path, **({"seed": 8} | change)).known == {}
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1


def test_another_seed_is_another_recipe(path: Path) -> None:
    made = open_(path)
    made.add(ONE, 0, SCORES, 0.1)
    assert made.get(eq.Recipe(ONE.masks, seed=6), 0) is None
    assert made.get(eq.Recipe(ONE.masks, seed=5), 0) is not None


def test_cut_off_anywhere_it_goes_on(path: Path) -> None:
    """Whatever number of bytes is left: whole lines count, and what is written next stands on a line of its own."""
    made = open_(path, seed=1)
    head = path.stat().st_size
    made.add(ONE, 0, SCORES, 0.1)
    first = path.stat().st_size
    made.add(TWO, 0, SCORES, 0.1)
    raw = path.read_bytes()
    for size in (*range(0, len(raw), 41), first - 1, first, len(raw) - 1, len(raw)):
        path.write_bytes(raw[:size])
        again = open_(path, seed=1)
        assert len(again.known) == (0 if size < first else 1 if size < len(raw) else 2)
        again.add(TWO, 1, SCORES, 0.1)
        assert open_(path, seed=1).get(TWO, 1) is not None
        assert head <= path.stat().st_size
        path.unlink()


def test_a_spoiled_line_ends_what_is_believed(path: Path) -> None:
    made = open_(path, seed=1)
    made.add(ONE, 0, SCORES, 0.1)
    with path.open("a", encoding="utf-8") as file:
        file.write("{not json}\n")
    made.add(TWO, 0, SCORES, 0.1)
    again = open_(path, seed=1)
    assert (again.get(ONE, 0) is not None, again.get(TWO, 0)) == (True, None)


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX systems")
def test_only_its_owner_may_read_it(path: Path) -> None:
    open_(path).add(ONE, 0, SCORES, 0.1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.name == beside(path.with_name("out")).name


def test_no_parameter_and_no_value_is_in_it(path: Path) -> None:
    """Names of masks and their parameters are hashed under the key; what is written is scores."""
    open_(path, seed=3).add(
        eq.Recipe([Recode("canary", "canary-level"), TopCode("age", 987654)], seed=3), 0, SCORES, 0.1
    )
    text = path.read_text(encoding="utf-8")
    assert "canary" not in text
    assert "987654" not in text
    assert set(json.loads(text.splitlines()[1])) == {"recipe", "draw", "seconds", "scores"}


def test_names_do_not_depend_on_the_process() -> None:
    assert mask_text(Noise(("pay",), 0.1)) == mask_text(Noise(["pay"], 0.1))  # type: ignore[arg-type]
    assert mask_text(Noise(("pay",), 0.1)) != mask_text(Noise(("pay",), 0.1000001))


def test_a_folder_in_its_place_is_refused(path: Path) -> None:
    path.mkdir()
    with pytest.raises(eq.DataError, match="is a folder"):
        open_(path)


def test_it_goes_when_it_has_done_its_work(path: Path) -> None:
    made = open_(path)
    made.remove()
    made.remove()
    assert not path.exists()
