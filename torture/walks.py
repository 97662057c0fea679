"""Two verbs as the kills run them, in one process: the page on a small file, and `demo` with a kit that is small.

The desk and the runs of the page are processes of their own; here they work in that of the server, one after the other,
so that a kill ends all of them at one file operation, as a power cut does.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

KIT = """
format = 1
assume_unknown = ["pay", "weight", "region"]
[data]
path = "people.parquet"
[roles]
keys = ["sex", "age"]
numeric = ["pay"]
hierarchies = { age = { kind = "intervals", widths = [5, 10] } }
[limits]
uniques = "<= 1"
[[candidates]]
coarsenings = true
[output]
folder = "release"
"""
PORT = 8765
HOME = f"http://127.0.0.1:{PORT}"
FAILED = 500


def demo(args: list[str]) -> int:
    """`demo` of a kit with ninety people."""
    import polars as pl

    from equipoise.demo import folder
    from equipoise.doors.cli import main

    place = Path("kit").resolve()
    people = pl.read_csv("people.csv")
    folder.KITS = {"people": folder.Kit("people", "ninety people", lambda: people, ("people.toml",))}
    folder.files = lambda _: place  # type: ignore[assignment]
    return main(["demo", "people", *args])


def page(_: list[str]) -> int:
    """The page, in the guard of the command line. The exit code."""
    from equipoise.doors.cli.exit_codes import guarded

    return guarded(lambda: sys.exit(_walked()))


def _walked() -> int:
    """Upload a file to the page, open a policy, try its candidates, and release it. The exit code."""
    from starlette.testclient import TestClient

    from equipoise.doors.web.app import build
    from equipoise.doors.web.app_state import Office
    from equipoise.doors.web.request_guard import Entry
    from equipoise.doors.web.workspace import Workspace
    from equipoise.ground.whole_files import watching

    _in_this_process()
    office = Office(Workspace.at(Path()))
    entry = Entry(PORT, office.csrf)
    client = TestClient(build(office, entry), base_url=HOME, raise_server_exceptions=False)
    client.get(f"/enter?token={entry.token}", follow_redirects=False)

    def post(path: str, data: dict[str, str], **more: Any) -> int:
        version = str(office.session.version)
        headers = {"Origin": HOME, "X-CSRF": office.csrf, "X-Version": version, "HX-Request": "true"}
        return int(client.post(path, data=data, headers=headers, **more).status_code)

    with watching() as standing, Path("people.csv").open("rb") as file:
        codes = [
            post("/open/upload", {}, files={"file": ("more.csv", file)}),
            post("/open/file", {"name": "policy.toml"}),
            post("/balance/try", {}),
            post("/release/run", {"folder": "out", "overwrite": "true"}),
        ]
    states = [run.state for run in office.runs._runs.values()]
    if max(codes) >= FAILED:
        return 3
    return 0 if any(place.name == "out" for place in standing) else 2 if max(codes) >= 400 or "failed" in states else 4


def _in_this_process() -> None:
    import json

    from equipoise.doors.web.background_runs import Run, Runs
    from equipoise.doors.web.memory import Memory
    from equipoise.doors.web.worker import Desk, answer_of, error_of

    memory = Memory()

    def ask(_: Desk, question: Callable[..., Any], *arguments: Any) -> Any:
        fine, answer = answer_of(question, memory, *arguments)
        if not fine:
            raise error_of(answer)
        return answer

    def start(runs: Runs, kind: str, work: Callable[..., Any], *arguments: Any, about: Any = None) -> Run:
        run = runs._runs[f"{len(runs._runs)}"] = Run(f"{len(runs._runs)}", kind, about)
        runs._keep(run)
        fine, answer = answer_of(work, lambda *_: True, *arguments)
        runs._end(run.id, fine, json.loads(json.dumps(answer)) if fine else answer)
        return runs.get(run.id)

    Desk.ask = ask  # type: ignore[method-assign]
    Runs.start = start  # type: ignore[method-assign]


WALKS: dict[str, Callable[[list[str]], int]] = {"demo": demo, "page": page}
