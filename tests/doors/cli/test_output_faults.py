"""Exit codes where standard output is full or closed, or the place to write is taken: they say what stands."""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

RUN = "import sys; from equipoise.doors.cli import main; sys.exit(main(sys.argv[1:]))"
CELLS = "area,n,N,y\n" + "".join(f"a{i},10,40,{i}\n" for i in range(8))
PEOPLE = "sex,age\n" + "f,30\nm,40\n" * 20
POLICY = 'format = 1\n[data]\npath = "p.csv"\n[roles]\nkeys = ["sex"]\n[limits]\nuniques = "<= 0.5"\n'
WRITERS = {
    "publish": ["publish", "c.csv", "--cutoff", "1", "--out", "out"],
    "coarsen": ["coarsen", "p.csv", "--keys", "age", "--hierarchy", "age=intervals:20", "--k", "3", "--out", "out"],
    "attack": ["attack", "p.csv", "--against", "p.csv", "--known", "sex,age", "--out", "out.html"],
}
CANDIDATE = '[[candidates]]\nmasks = [{use = "top-code", column = "age", at = 40}]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"c.csv": CELLS, "p.csv": PEOPLE, "p.toml": POLICY + CANDIDATE}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(folder: Path, args: list[str], stdout: int) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", RUN, *args], cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="There is no full device here.")
@pytest.mark.parametrize("verb", WRITERS)
def test_what_was_written_stands_where_standard_output_is_full(folder: Path, verb: str) -> None:
    device = os.open("/dev/full", os.O_WRONLY)
    done = run(folder, WRITERS[verb], device)
    os.close(device)
    place = WRITERS[verb][-1]
    assert done.returncode == 0, done.stderr
    assert f"{place!r} was written and is whole" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert (folder / place).exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="There is no full device here.")
def test_an_answer_that_cannot_be_written_is_no_answer(folder: Path) -> None:
    device = os.open("/dev/full", os.O_WRONLY)
    done = run(folder, ["check", "p.toml"], device)
    os.close(device)
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["equipoise: Standard output cannot be written: no space left on device."]


def test_closed_streams_are_no_fault(folder: Path) -> None:
    """Before, a file that took the number of a closed standard error while Python began ended the run with exit 3."""
    command = 'exec "$0" -c "$1" assess p.csv --keys sex 2>&- <&-'
    taken = f"import os, sys; os.open(os.devnull, os.O_RDONLY); os.open(os.devnull, os.O_RDONLY); {RUN}"
    for code in (RUN, taken):
        done = subprocess.run(["sh", "-c", command, sys.executable, code], cwd=folder, capture_output=True, check=False)
        assert (done.returncode, b"Risk" in done.stdout) == (0, True)
    command = command.replace("assess p.csv --keys sex", "publish c.csv --cutoff 1 --out out") + " >&-"
    done = subprocess.run(["sh", "-c", command, sys.executable, taken], cwd=folder, capture_output=True, check=False)
    assert (done.returncode, (folder / "out").exists()) == (0, True)


def test_what_an_engine_writes_of_a_panic_is_not_shown(folder: Path) -> None:
    """Before, panics outside of reading and queries were shown, here that of a date no calendar has."""
    days = pl.Series("day", [2**31 - 1, 3] * 20, dtype=pl.Int32).cast(pl.Date)
    pl.DataFrame({"day": days, "sex": ["f", "m"] * 20}).write_parquet(folder / "d.parquet")
    done = run(folder, ["assess", "d.parquet", "--keys", "day,sex"], subprocess.PIPE)
    assert done.returncode in (0, 2)
    assert "panicked" not in done.stderr
    assert len(done.stderr.splitlines()) <= 1


@pytest.mark.parametrize("verb", ["publish"])
def test_a_reader_that_stops_is_no_fault(folder: Path, verb: str) -> None:
    """As `| head -1`: the other end of the pipe is closed."""
    reading, writing = os.pipe()
    os.close(reading)
    done = run(folder, WRITERS[verb], writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / WRITERS[verb][-1]).exists()


@pytest.mark.parametrize("verb", ["coarsen"])
def test_what_is_in_the_way_is_left_alone(folder: Path, verb: str) -> None:
    place = folder / WRITERS[verb][-1]
    place.write_text("mine", encoding="utf-8")
    before = sorted(folder.iterdir())
    done = run(folder, WRITERS[verb], subprocess.DEVNULL)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert place.read_text(encoding="utf-8") == "mine"
    assert sorted(folder.iterdir()) == before
