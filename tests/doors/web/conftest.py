"""The workbench in tests: a client that has come in by the door, and a real browser before a real server."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient

from equipoise.doors.web.app import build
from equipoise.doors.web.app_state import Office
from equipoise.doors.web.request_guard import Entry
from equipoise.doors.web.workspace import Workspace

PORT = 8765
HOME = f"http://127.0.0.1:{PORT}"
PATIENCE = 600_000
"""Milliseconds that a page may take on a machine with much else to do."""
SERVE = """
import multiprocessing, os, sys

if "forkserver" in multiprocessing.get_all_start_methods() and not os.environ.get("EQUIPOISE_EVIDENCE"):
    # Its processes are copies of one that has imported the package: a fresh one costs a second of CPU each time.
    fresh = multiprocessing.get_context
    fresh("forkserver").set_forkserver_preload(["equipoise.doors.cli", "equipoise.doors.web.app", "scipy.stats"])
    multiprocessing.get_context = lambda method=None: fresh("forkserver" if method == "spawn" else method)
from equipoise.doors.cli import main

sys.exit(main(sys.argv[1:]))
"""


@dataclass
class Workbench:
    """A client with its cookie, and the office behind it."""

    client: TestClient
    office: Office
    entry: Entry

    @property
    def folder(self) -> Path:
        return self.office.workspace.folder

    @property
    def policy(self) -> Any:
        return self.office.policy

    def headers(self, **more: str) -> dict[str, str]:
        """What the page adds to its requests."""
        version = str(self.office.session.version)
        return {"Origin": HOME, "X-CSRF": self.office.csrf, "X-Version": version, "HX-Request": "true", **more}

    def get(self, path: str, **more: Any) -> Any:
        return self.client.get(path, **more)

    def post(self, path: str, data: Any = None, **more: Any) -> Any:
        """A form as the page sends it."""
        return self.client.post(path, data=data or {}, headers=self.headers(), **more)

    def demo(self) -> "Workbench":
        """Open the demo survey."""
        assert self.post("/open/demo").status_code == 200
        return self

    def finished(self, kind: str, seconds: float = 600) -> Any:
        """The latest run of a kind, when it has ended."""
        import time

        end = time.monotonic() + seconds
        while (run := self.office.runs.latest(kind)) is not None and run.state == "running":
            assert time.monotonic() < end, f"{kind} takes too long: {run.what}"
            time.sleep(0.05)
        assert run is not None
        return run


def come_in(folder: Path) -> Workbench:
    office = Office(Workspace.at(folder))
    entry = Entry(PORT, office.csrf)
    client = TestClient(build(office, entry), base_url=HOME, raise_server_exceptions=False)
    assert client.get(f"/enter?token={entry.token}", follow_redirects=False).status_code == 303
    return Workbench(client, office, entry)


@pytest.fixture
def workbench(tmp_path: Path) -> Iterator[Workbench]:
    """A workbench on an empty folder."""
    found = come_in(tmp_path)
    yield found
    found.office.close()


@pytest.fixture
def workbench_at() -> Iterator[Callable[[Path], Workbench]]:
    """Workbenches on folders of one's own."""
    opened: list[Workbench] = []

    def make(folder: Path) -> Workbench:
        opened.append(come_in(folder))
        return opened[-1]

    yield make
    for found in opened:
        found.office.close()


@pytest.fixture
def surveyed(tmp_path: Path) -> Iterator[Workbench]:
    """A workbench with the demo survey open."""
    found = come_in(tmp_path)
    yield found.demo()
    found.office.close()


@pytest.fixture(scope="session")
def little(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a part of the demo survey and its policy, `survey.toml`, with limits and noise that suit it."""
    import equipoise as eq

    folder = tmp_path_factory.mktemp("little")
    policy = eq.demo.write(folder)
    survey = pl.read_parquet(folder / "survey.parquet").head(4_000)
    survey.write_parquet(folder / "survey.parquet")
    text = policy.read_text(encoding="utf-8").replace("< 0.02", "< 0.1").replace("> 7.5", "> 6")
    text = text.replace("scale = 0.1", "scale = 0.3").replace(
        'revealing_columns = "<= 0.05"', 'revealing_columns = "<= 0.25"'
    )
    policy.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def sampled(tmp_path: Path, little: Path) -> Iterator[Workbench]:
    """A workbench with a part of the demo survey open."""
    found = opened(tmp_path, little)
    yield found
    found.office.close()


@pytest.fixture(scope="module")
def module_sampled(tmp_path_factory: pytest.TempPathFactory, little: Path) -> Iterator[Workbench]:
    """The same, shared by the tests of a module that change nothing."""
    found = opened(tmp_path_factory.mktemp("work"), little)
    yield found
    found.office.close()


@pytest.fixture(scope="module")
def workbench_of(little: Path) -> Iterator[Callable[[Path], Workbench]]:
    """Workbenches with a part of the demo survey open in folders of one's own, for the tests of a module."""
    running: list[Workbench] = []

    def make(folder: Path) -> Workbench:
        running.append(opened(folder, little))
        return running[-1]

    yield make
    for found in running:
        found.office.close()


def opened(folder: Path, little: Path) -> Workbench:
    for file in little.iterdir():
        shutil.copyfile(file, folder / file.name)
    found = come_in(folder)
    assert found.post("/open/file", {"name": "survey.toml"}).status_code == 200
    return found


@dataclass
class Server:
    """`equipoise open` in a process of its own."""

    process: "subprocess.Popen[str]"
    address: str

    @property
    def home(self) -> str:
        return self.address.partition("/enter")[0]


def start(folder: Path, *more: str) -> Server:
    command = [sys.executable, "-c", SERVE, "open", "--no-browser", "--folder", str(folder), *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if found := re.search(r"http://\S+", line):
            return Server(process, found[0])
    process.stdout.close()
    process.wait(120)
    raise AssertionError("".join(seen))


def end(server: Server) -> None:
    server.process.terminate()
    server.process.wait(120)
    if server.process.stdout is not None:
        server.process.stdout.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A real server on an empty folder."""
    found = start(tmp_path)
    yield found
    end(found)


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Real servers on folders of one's own."""
    running: list[Server] = []

    def make(folder: Path, *more: str) -> Server:
        running.append(start(folder, *more))
        return running[-1]

    yield make
    for found in running:
        end(found)


@pytest.fixture
def browser_page(chromium: Any, server: Server) -> Iterator[Any]:
    """A page that has come in; anything it complains of fails the test."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    shown = context.new_page()
    complaints: list[str] = []
    shown.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    shown.on("pageerror", lambda error: complaints.append(str(error)))
    shown.goto(server.address)
    shown.complaints = complaints
    yield shown
    context.close()
    unexpected = [words for words in complaints if "status of 4" not in words]
    assert not unexpected, unexpected


@pytest.fixture
def near(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    """A workbench whose desk and runs work in this process, one after the other: to test pages, not processes."""
    import json

    from equipoise.doors.web.background_runs import Run, Runs
    from equipoise.doors.web.memory import Memory
    from equipoise.doors.web.worker import Desk, answer_of

    held = Memory()

    def start(runs: Any, kind: str, work: Callable[..., Any], *given: Any, about: Any = None) -> Run:
        run = runs._runs[f"{kind}{len(runs._runs)}"] = Run(f"{kind}{len(runs._runs)}", kind, about)
        fine, found = answer_of(work, lambda *told: True, *given)
        runs._end(run.id, fine, json.loads(json.dumps(found)) if fine else found)
        return runs.get(run.id)

    monkeypatch.setattr(Desk, "ask", lambda desk, question, *given: question(held, *given))
    monkeypatch.setattr(Runs, "start", start)
    return workbench
