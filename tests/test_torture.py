"""A small version of `make torture`: bad input from a fixed seed, in this process; and that the judge sees faults."""

from pathlib import Path

import pytest
from torture.attempt import CANARY, Attempt, _told, judged
from torture.runner import PARTS, run_one

CASES = 8


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("torture")


@pytest.mark.parametrize("part", PARTS)
def test_bad_input_is_answered(part: str, place: Path) -> None:
    outcomes = {number: run_one("suite", part, number, place) for number in range(CASES)}
    assert not {number: (one.words, one.faults) for number, one in outcomes.items() if one.faults}


def _leave(folder: Path) -> None:
    (folder / ".x.partial").write_text("left")


def _change(folder: Path) -> None:
    (folder / "data.csv").write_text("changed")


def _leak(_: Path) -> str:
    return CANARY


def _raw(_: Path) -> None:
    raise KeyError("age")


@pytest.mark.parametrize(
    ("act", "fault"),
    [(_leave, "left behind"), (_change, "input changed"), (_leak, "shows a data value"), (_raw, "raw KeyError")],
)
def test_the_judge_sees_faults(act: object, fault: str, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "data.csv").write_text("age\n1\n")
    outcome = judged(Attempt("a test", call=lambda: act(folder)), folder)  # type: ignore[operator]
    assert fault in " ".join(outcome.faults)


def test_a_journal_that_the_message_names_is_no_fault() -> None:
    assert _told(".out.journal", "What was tried is kept in '.out.journal': run it again to go on.")
    assert not _told(".out.journal", "Stopped.")
    assert not _told(".out.1234abcd.partial", "'.out.1234abcd.partial'")
