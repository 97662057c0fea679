"""Background runs: long work in separate processes, with progress; they can be stopped and are kept after a restart."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from secrets import token_hex
from threading import Lock, Thread
from typing import Any, Literal

from equipoise.doors.web.full_paths import without_folders
from equipoise.doors.web.worker import LOST_TEXT, answer_of, error_of
from equipoise.doors.web.workspace import Workspace
from equipoise.ground.errors import Cancelled, DataError, EquipoiseError
from equipoise.ground.system import Helper

State = Literal["running", "done", "stopped", "failed"]
REPORT_SECONDS = 0.1
"""Seconds between two progress reports of a run."""
STOP_MESSAGE = "stop"


@dataclass(frozen=True)
class Run:
    """One background run: its kind, its progress, and its result as plain data.

    `about` holds the settings that the page needs again. A run whose server ended is "stopped".
    """

    id: str
    kind: str
    about: Any
    state: State = "running"
    done: int = 0
    total: int = 0
    what: str = "starting"
    began: float = field(default_factory=time.time)
    seconds: float = 0.0
    result: Any = None
    error: str = ""
    refused: bool = False

    @property
    def share(self) -> float:
        """The share of the work done, from 0 to 1."""
        return self.done / self.total if self.total else 0.0


class Runs:
    """The runs of a workspace; at most one of a kind at a time."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace, self._lock, self._closing = workspace, Lock(), False
        self._helpers: dict[str, Helper] = {}
        self._runs: dict[str, Run] = {}
        for plain in sorted(self._read(), key=lambda plain: plain["began"]):
            run = Run(**plain)
            self._runs[run.id] = replace(run, state="stopped") if run.state == "running" else run

    def _read(self) -> list[dict[str, Any]]:
        folder = self._workspace.private / "runs"
        contents = [self._workspace.kept(f"runs/{path.name}") for path in folder.glob("*.json")]
        return [plain for plain in contents if isinstance(plain, dict) and set(plain) == set(Run.__dataclass_fields__)]

    def start(self, kind: str, work: Callable[..., Any], *arguments: Any, about: Any = None) -> Run:
        """Start `work(progress, *arguments)` in a process; its plain answer becomes the result."""
        self._workspace.refuse_outside(arguments)
        with self._lock:
            if any(run.kind == kind and run.state == "running" for run in self._runs.values()):
                raise DataError("This is running already: wait for it, or stop it first.")
            run = Run(token_hex(8), kind, about)
            self._runs[run.id] = run
            self._keep(run)
            helper = self._helpers[run.id] = Helper(run_work, work, arguments)
        Thread(target=self._follow, args=(run.id, helper), daemon=True).start()
        return run

    def get(self, id: str) -> Run:
        try:
            return self._runs[id]
        except KeyError:
            raise DataError("That run is not known here.") from None

    def latest(self, kind: str) -> Run | None:
        """The latest run of a kind."""
        return next((run for run in reversed(self._runs.values()) if run.kind == kind), None)

    def stop(self, id: str) -> None:
        """Ask a run to stop; trials in its journal are kept."""
        helper = self._helpers.get(id)
        if helper is not None and self.get(id).state == "running":
            try:
                helper.pipe.send(STOP_MESSAGE)
            except OSError:
                return

    def stop_latest(self, kind: str) -> None:
        """Ask the latest run of a kind to stop, where there is one."""
        if run := self.latest(kind):
            self.stop(run.id)

    def close(self) -> None:
        """End every run; one under way becomes "stopped" and can be resumed."""
        self._closing = True
        for helper in tuple(self._helpers.values()):
            helper.stop()

    def _follow(self, id: str, helper: Helper) -> None:
        """Receive the messages of a run until it ends."""
        while self._runs[id].state == "running":
            try:
                word, message = helper.pipe.recv()
            except (EOFError, OSError):
                self._change(id, **({"state": "stopped"} if self._closing else {"state": "failed", "error": LOST_TEXT}))
                break
            if word == "progress":
                count, total, what = message
                self._runs[id] = replace(
                    self._runs[id], done=count, total=total, what=what, seconds=time.time() - self._runs[id].began
                )
            else:
                self._end(id, *message)
        helper.process.join(5)
        self._helpers.pop(id, None)

    def _end(self, id: str, fine: bool, answer: Any) -> None:
        if fine:
            self._change(id, state="done", result=answer)
            return
        error: EquipoiseError = error_of(answer)
        stopped = isinstance(error, Cancelled)
        self._change(
            id,
            state="stopped" if stopped else "failed",
            error=without_folders(str(error)),
            refused=error.exit_code == 1,
        )

    def _change(self, id: str, **values: Any) -> None:
        run = self._runs[id] = replace(self._runs[id], seconds=time.time() - self._runs[id].began, **values)
        self._keep(run)

    def _keep(self, run: Run) -> None:
        self._workspace.keep(f"runs/{run.id}.json", dict(vars(run)))


def run_work(pipe: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Do the work in the process of the run, and send progress and the result."""
    import warnings

    warnings.simplefilter("ignore")
    last = [0.0]

    def progress(count: int, total: int, what: str) -> bool:
        if pipe.poll():
            return False
        now = time.monotonic()
        if now - last[0] >= REPORT_SECONDS or count == total:
            last[0] = now
            pipe.send(("progress", (count, total, what)))
        return True

    pipe.send(("end", answer_of(work, progress, *arguments)))
