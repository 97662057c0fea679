"""Files and folders written whole: one run at a time, nothing left of dead runs, links followed."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from equipoise.doors.cli import main
from equipoise.ground import file_locks, system
from equipoise.ground.errors import DataError
from equipoise.ground.whole_files import clear_dead, held, staged, watching, write_whole

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


def test_whoever_watches_is_told_until_it_ends(tmp_path: Path) -> None:
    """Two watchers who have seen the same are not taken for one another."""
    with watching() as outer:
        with watching() as inner:
            write_whole(tmp_path / "a", "")
        write_whole(tmp_path / "b", "", goal=True)
    assert (outer, inner) == ([tmp_path / "b"], [])
