"""`equipoise open`: the address, the folder, and what cannot be opened, in one sentence."""

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from equipoise.doors.cli import main
from equipoise.ground import system

SERVE = "import sys; from equipoise.doors.cli import main; sys.exit(main(sys.argv[1:]))"


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["open", str(tmp_path / "no.csv"), "--no-browser"]) == 2
    assert capsys.readouterr().err.startswith("equipoise: No file at")


def test_a_folder_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["open", "--folder", str(tmp_path / "no"), "--no-browser"]) == 2
    assert "No folder" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_told_before_the_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"CANARY")
    assert main(["open", str(tmp_path / "bad.parquet"), "--no-browser"]) == 2
    said = capsys.readouterr()
    assert "CANARY" not in said.err + said.out
    assert len(said.err.strip().splitlines()) == 1


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        assert main(["open", "--folder", str(tmp_path), "--port", str(port), "--no-browser"]) == 2
    assert f"Port {port} is taken" in capsys.readouterr().err
    assert main(["open", "--folder", str(tmp_path), "--port", "70000", "--no-browser"]) == 2


def test_it_listens_here_only_and_stops_with_ctrl_c(tmp_path: Path) -> None:
    pl.DataFrame({"sex": ["f", "m"] * 20, "age": range(40)}).write_csv(tmp_path / "people.csv")
    command = [sys.executable, "-c", SERVE, "open", str(tmp_path / "people.csv"), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        lines = [running.stdout.readline() for _ in range(3)]
        found = re.search(r"http://127\.0\.0\.1:(\d+)/enter\?token=[\w-]{40,}\s", "".join(lines))
        assert found, lines
        with socket.create_connection(("127.0.0.1", int(found[1])), 5):
            pass
        running.send_signal(signal.SIGINT)
        said, complained = running.communicate(timeout=300)
        assert "the session is kept" in said
        assert complained == ""
        assert running.returncode == 0
    assert (tmp_path / ".equipoise" / "session.json").is_file()


def test_no_browser_is_opened_where_there_is_no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    if system.WINDOWS or sys.platform == "darwin":
        pytest.skip("There is always a screen here.")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert system.show_page("http://127.0.0.1:1/") is False
    import webbrowser

    shown: list[str] = []
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.setattr(webbrowser, "open", lambda address: bool(shown.append(address)) or True)
    assert system.show_page("http://127.0.0.1:1/") is True
    assert shown == ["http://127.0.0.1:1/"]
