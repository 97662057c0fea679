"""Files and folders written whole: one run at a time, nothing left of dead runs, links followed."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from equipoise.doors.cli import main
from equipoise.ground import file_locks, system
from equipoise.ground.errors import DataError
from equipoise.ground.whole_files import clear_dead, held, refuse_page, staged, watching, write_whole

posix = pytest.mark.skipif(os.name != "posix", reason="Signals and links of POSIX.")
HOLDING = """
import os, signal, sys
from pathlib import Path
from equipoise.ground.whole_files import staged

with staged(Path(sys.argv[1]), True, refuse=lambda *_: None) as stage:
    (stage / "half").write_text("half")
    print("ready", flush=True)
    signal.pause()
"""


def allow(folder: Path, overwrite: bool) -> None:
    """Replace whatever stands there."""


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


@pytest.fixture
def holder(tmp_path: Path) -> Any:
    """A process in the middle of writing the folder `out`."""
    with subprocess.Popen([sys.executable, "-c", HOLDING, str(tmp_path / "out")], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


@posix
def test_a_live_run_is_named_and_a_dead_one_is_cleared_by_any_verb(tmp_path: Path, holder: Any, capfd: Any) -> None:
    with (
        pytest.raises(DataError, match=rf"Another run \(process {holder.pid}\) is writing .*out"),
        held(tmp_path / "out"),
    ):
        pass
    assert clear_dead(tmp_path) == []
    assert len(hidden(tmp_path)) == 2, "what a live run has stays"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert len(hidden(tmp_path)) == 2
    assert main(["verify", str(tmp_path / "out")]) == 2
    assert list(tmp_path.iterdir()) == []


@posix
@pytest.mark.parametrize("verb", [["verify", "out"], ["verify", "none"], ["methods", "."], ["roles", "people.csv"]])
def test_what_a_dead_page_left_is_cleared_by_a_verb_that_is_given_anything_in_its_folder(
    tmp_path: Path, verb: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / ".equipoise" / "runs"
    runs.mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "people.csv").write_text("age\n7\n", encoding="utf-8")
    with subprocess.Popen([sys.executable, "-c", HOLDING, str(runs / "2.json")], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.kill()
    assert len(hidden(runs)) == 2
    monkeypatch.chdir(tmp_path)
    main(verb)
    assert hidden(runs) == []


@posix
def test_a_dead_run_is_cleared_by_a_verb_that_is_given_the_folder_above(tmp_path: Path, holder: Any) -> None:
    (tmp_path / ".mine.lock").touch()
    (tmp_path / ".out.notes.partial").touch()
    holder.kill()
    holder.wait()
    main(["assess", str(tmp_path)])
    assert hidden(tmp_path) == [".mine.lock", ".out.notes.partial"], "what is not ours stays"


def test_what_takes_the_place_of_another_does_so_in_one_step_or_is_ended_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at every move, without an exchange: one of the two stands afterwards, whole, and nothing else."""
    monkeypatch.setattr(system, "exchange", lambda *_: False)
    move, out = system.move, tmp_path / "out"

    def put(text: str) -> None:
        with staged(out, True, refuse=allow) as stage:
            (stage / "data").write_text(text, encoding="utf-8")

    class Killed(BaseException):
        """What ends a run that can do nothing more."""

    for dead_at in range(5):
        put("old")
        moves = iter(range(9))

        def dying(source: Path, target: Path, moves: Any = moves, dead_at: int = dead_at) -> None:
            if next(moves) >= dead_at:
                raise Killed
            move(source, target)

        with monkeypatch.context() as dead, pytest.raises(Killed) if dead_at < 4 else pytest.MonkeyPatch.context():
            dead.setattr(system, "move", dying)
            dead.setattr(system, "remove_folder", lambda path: None)
            put("new")
        (tmp_path / ".out.equipoise-lock").touch()
        assert clear_dead(out) == []
        assert (out / "data").read_text(encoding="utf-8") == ("old" if dead_at < 2 else "new")
        assert [path.name for path in tmp_path.iterdir()] == ["out"]


@posix
def test_a_link_is_followed_and_keeps_its_mode(tmp_path: Path) -> None:
    true = tmp_path / "true"
    true.mkdir(mode=0o750)
    for name in ("out", "page.html"):
        (tmp_path / name).symlink_to(true / name)
    with staged(tmp_path / "out", True, refuse=allow) as stage:
        (stage / "data").touch()
    write_whole(tmp_path / "page.html", "page")
    assert (true / "out" / "data").exists()
    assert (true / "page.html").read_text(encoding="utf-8") == "page"
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "page.html").is_symlink()
    assert true.stat().st_mode & 0o777 == 0o750


@posix
def test_without_locks_nothing_is_cleared_and_the_stage_is_named(
    tmp_path: Path, holder: Any, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    holder.kill()
    holder.wait()

    def no_locks(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(file_locks.fcntl, "flock", no_locks)
    (stage,) = (name for name in hidden(tmp_path) if name.endswith(".partial"))
    for _ in range(2):
        main(["verify", str(tmp_path / "out")])
        assert stage in hidden(tmp_path)
        assert f"{stage}' may be left of a run that was killed" in capfd.readouterr().err
    write_whole(tmp_path / "page.html", "page")


def test_a_folder_that_failed_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), staged(tmp_path / "a" / "b" / "out", False, refuse=allow):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_that_an_engine_tells_names_the_target(tmp_path: Path) -> None:
    """Engines give such an error as one of theirs, with its number in the text and without a path."""
    with pytest.raises(OSError, match="No space left on device") as caught, staged(**_folder(tmp_path / "out")):
        raise pl.exceptions.ComputeError("parquet: underlying IO error: No space left on device (os error 28)")
    assert (caught.value.errno, caught.value.filename) == (28, str(tmp_path / "out"))
    with pytest.raises(pl.exceptions.ComputeError), staged(**_folder(tmp_path / "out")):
        raise pl.exceptions.ComputeError("no error of the disk")
    assert not list(tmp_path.iterdir())


def _folder(place: Path) -> dict[str, Any]:
    return {"folder": place, "overwrite": False, "refuse": lambda *_: None}


def test_whoever_watches_is_told_until_it_ends(tmp_path: Path) -> None:
    """Two watchers who have seen the same are not taken for one another."""
    with watching() as outer:
        with watching() as inner:
            write_whole(tmp_path / "a", "")
        write_whole(tmp_path / "b", "", goal=True)
    assert (outer, inner) == ([tmp_path / "b"], [])


def test_the_root_of_a_drive_is_refused_in_a_sentence(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "p.csv").write_text("sex,age\n" + "f,30\nm,40\n" * 20, encoding="utf-8")
    root = str(Path(tmp_path.anchor))
    assert main(["protect", str(tmp_path / "p.csv"), "--keys", "sex", "--mask", "top-code:age,30", "--out", root]) == 2
    assert "cannot be written: name a folder" in capsys.readouterr().err


PEOPLE = "age,sex,pay\n" + "".join(f"{20 + i % 40},{'fm'[i % 2]},{100 + i}\n" for i in range(60))
PROTECT = ["protect", "people.csv", "--keys", "sex", "--mask", "top-code:pay,150", "--out"]
BALANCE = '[data]\npath = "people.csv"\n[roles]\nkeys = ["sex"]\n[limits]\nuniques = "< 1"\n'


@posix
@pytest.mark.parametrize("out", ["none/..", "none/../kept", "loop", "loop/x", os.fsdecode(b"o\xff"), "x" * 300])
@pytest.mark.parametrize("more", [[], ["--overwrite"]])
def test_odd_places_to_write_are_refused_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any, out: str, more: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(PEOPLE, encoding="utf-8")
    Path("kept").mkdir()
    Path("kept/mine.txt").write_text("mine", encoding="utf-8")
    Path("loop").symlink_to("loop")
    before = sorted(map(str, tmp_path.rglob("*")))
    assert main([*PROTECT, out, *more]) == 2
    message = capfd.readouterr().err
    assert "internal" not in message
    assert len(message) < 250
    assert sorted(map(str, tmp_path.rglob("*"))) == before
    assert Path("people.csv").read_text(encoding="utf-8") == PEOPLE


@pytest.mark.parametrize("out", [".", "", ".."])
def test_the_folder_of_work_is_no_place_for_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any, out: str
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path("people.csv").write_text(PEOPLE, encoding="utf-8")
    Path("policy.toml").write_text(BALANCE, encoding="utf-8")
    assert main(["balance", "policy.toml", "--out", out]) == 2
    assert "exists already" in capfd.readouterr().err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["people.csv", "policy.toml", "work"]


@pytest.mark.parametrize(
    "args",
    [
        ["roles", "people.csv", "--out", "people.csv"],
        ["init", "people.csv", "--out", "link.csv"],
        ["attack", "people.csv", "--against", "people.csv", "--known", "age", "--out", "people.csv"],
        ["coarsen", "people.csv", "--keys", "age", "--k", "1", "--map", "people.csv"],
        [
            "publish",
            "people.csv",
            "--domain",
            "age",
            "--target",
            "sex",
            "--weight",
            "pay",
            "--risk",
            "1",
            "--out",
            "people.csv",
        ],
        ["balance", "policy.toml", "--out", "out", "--report", "people.csv"],
    ],
)
def test_what_is_read_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any, args: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(PEOPLE, encoding="utf-8")
    Path("link.csv").hardlink_to("people.csv")
    Path("policy.toml").write_text(BALANCE, encoding="utf-8")
    assert main([*args, "--overwrite"]) == 2
    assert "is what is read" in capfd.readouterr().err
    assert Path("people.csv").read_text(encoding="utf-8") == PEOPLE


@posix
def test_a_file_whose_name_is_no_text_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"x\xff.csv")
    Path(name).write_text(PEOPLE, encoding="utf-8")
    assert main(["assess", name, "--keys", "sex"]) == 2
    assert "not text in UTF-8" in capfd.readouterr().err


@posix
@pytest.mark.parametrize(
    "args",
    [
        ["check", "pipe"],
        ["assess", "people.csv", "--roles", "pipe"],
        ["assess", "people.csv", "--keys", "sex", "--hierarchy", "sex=csv:pipe"],
        ["assess", "people.csv", "--keys", "sex", "--hierarchy", "sex=hrc:pipe"],
        ["init", "people.csv", "--out", "pipe", "--overwrite"],
        ["roles", "people.csv", "--out", "pipe", "--overwrite"],
        [*PROTECT, "out", "--register", "pipe", "--asset", "people"],
        [*PROTECT, "out", "--register", ".", "--asset", "people"],
    ],
)
def test_devices_and_pipes_are_neither_waited_for_nor_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any, args: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(PEOPLE, encoding="utf-8")
    os.mkfifo("pipe")
    signal.alarm(120)
    try:
        assert main(args) == 2
    finally:
        signal.alarm(0)
    assert "pipe, not a file" in (message := capfd.readouterr().err) or "not a register" in message
    assert Path("pipe").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv", "pipe"]


@posix
@pytest.mark.parametrize("journal", ["people.csv", "policy.toml", "pipe"])
def test_only_a_journal_is_replaced_by_a_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any, journal: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(PEOPLE, encoding="utf-8")
    os.mkfifo("pipe")
    policy = f'assume_unknown = ["age", "pay"]\n{BALANCE}[search]\njournal = "{journal}"\n'
    Path("policy.toml").write_text(policy, encoding="utf-8")
    assert main(["balance", "policy.toml", "--out", "out"]) == 2
    assert "no journal" in (message := capfd.readouterr().err) or "pipe, not a file" in message
    assert Path("people.csv").read_text(encoding="utf-8") == PEOPLE
    assert Path("policy.toml").read_text(encoding="utf-8") == policy
    assert Path("pipe").is_fifo()


@pytest.mark.parametrize("file", ["out/mine.csv", "out/public/data.csv"])
@pytest.mark.parametrize("verb", ["protect", "table", "balance"])
def test_a_release_that_holds_what_is_read_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any, file: str, verb: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(PEOPLE, encoding="utf-8")
    assert main([*PROTECT, "out"]) == 0
    if file == "out/mine.csv":
        Path(file).write_text(PEOPLE, encoding="utf-8")
    before = Path(file).read_bytes()
    Path("policy.toml").write_text(
        f'assume_unknown = ["age", "pay"]\n{BALANCE.replace("people.csv", file)}', encoding="utf-8"
    )
    args = {
        "protect": ["protect", file, *PROTECT[2:], "out"],
        "table": ["table", file, "--by", "sex,age", "--rule", "min-count:3", "--out", "out"],
        "balance": ["balance", "policy.toml", "--out", "out"],
    }
    assert main([*args[verb], "--overwrite"]) == 2
    assert "holds" in capfd.readouterr().err
    assert Path(file).read_bytes() == before


@pytest.mark.parametrize("file", ["private/seed.json", "public/evidence.json"])
def test_files_of_a_release_are_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any, file: str
) -> None:
    """A page of `attack` took the place of the seed."""
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(PEOPLE, encoding="utf-8")
    for folder in ("public", "private"):
        (tmp_path / "release" / folder).mkdir(parents=True)
    for name in ("private/seed.json", "public/evidence.json"):
        (tmp_path / "release" / name).write_text("{}", encoding="utf-8")
    assert main(["init", "people.csv", "--out", f"release/{file}", "--overwrite"]) == 2
    assert "is a file of a release" in capfd.readouterr().err
    assert (tmp_path / "release" / file).read_text(encoding="utf-8") == "{}"


def test_a_page_through_a_missing_folder_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--report none/../data.csv` was refused after the release stood, and the exit was 2."""
    (tmp_path / "data.csv").write_text("age", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="goes back from a folder that does not exist"):
        refuse_page(Path("none/../data.csv"), overwrite=True)
