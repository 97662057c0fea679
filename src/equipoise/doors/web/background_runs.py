"""Runs: long work, each in a process of its own, with progress; stopped when asked, and known after a restart."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from secrets import token_hex
from threading import Lock, Thread
from typing import Any, Literal

from equipoise.doors.web.worker import ENDED, answered, raised
from equipoise.doors.web.workspace import Workspace
from equipoise.ground.errors import Cancelled, DataError, EquipoiseError
from equipoise.ground.system import Helper

State = Literal["running", "done", "stopped", "failed"]
OFTEN = 0.1
"""Seconds between two reports of a run."""
STOP = "stop"


@dataclass(frozen=True)
class Run:
    """One piece of long work: what it is for, how far it is, and what came of it as plain data.

    `about` is what it was started with, as far as the page must know it again. A run whose server ended is "stopped".
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
        """How much is done, from 0 to 1."""
        return self.done / self.total if self.total else 0.0


class Runs:
    """The runs of a workspace, latest first; at most one of a kind at a time."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace, self._lock, self._closing = workspace, Lock(), False
        self._helpers: dict[str, Helper] = {}
        self._runs: dict[str, Run] = {}
        for plain in sorted(self._read(), key=lambda plain: plain["began"]):
            run = Run(**plain)
            self._runs[run.id] = replace(run, state="stopped") if run.state == "running" else run

    def _read(self) -> list[dict[str, Any]]:
        folder = self._workspace.private / "runs"
        found = [self._workspace.kept(f"runs/{path.name}") for path in folder.glob("*.json")]
        return [plain for plain in found if isinstance(plain, dict) and set(plain) == set(Run.__dataclass_fields__)]

    def start(self, kind: str, work: Callable[..., Any], *given: Any, about: Any = None) -> Run:
        """Begin `work(progress, *given)` in a process; its plain answer becomes the result."""
        with self._lock:
            if any(run.kind == kind and run.state == "running" for run in self._runs.values()):
                raise DataError("This is running already: wait for it, or stop it first.")
            run = Run(token_hex(8), kind, about)
            self._runs[run.id] = run
            self._keep(run)
            helper = self._helpers[run.id] = Helper(labour, work, given)
        Thread(target=self._follow, args=(run.id, helper), daemon=True).start()
        return run

    def get(self, id: str) -> Run:
        try:
            return self._runs[id]
        except KeyError:
            raise DataError("That run is not known here.") from None

    def latest(self, kind: str) -> Run | None:
        """The run of a kind that was started last."""
        return next((run for run in reversed(self._runs.values()) if run.kind == kind), None)

    def stop(self, id: str) -> None:
        """Ask a run to stop; what it has done is kept where it keeps a journal."""
        helper = self._helpers.get(id)
        if helper is not None and self.get(id).state == "running":
            try:
                helper.pipe.send(STOP)
            except OSError:
                return

    def close(self) -> None:
        """End every run; one that was under way is "stopped" and can go on."""
        self._closing = True
        for helper in tuple(self._helpers.values()):
            helper.stop()

    def _follow(self, id: str, helper: Helper) -> None:
        """Hear what a run says until it ends."""
        while self._runs[id].state == "running":
            try:
                word, said = helper.pipe.recv()
            except (EOFError, OSError):
                self._change(id, **({"state": "stopped"} if self._closing else {"state": "failed", "error": ENDED}))
                break
            if word == "progress":
                done, total, what = said
                self._runs[id] = replace(
                    self._runs[id], done=done, total=total, what=what, seconds=time.time() - self._runs[id].began
                )
            else:
                self._end(id, *said)
        helper.process.join(5)
        self._helpers.pop(id, None)

    def _end(self, id: str, fine: bool, answer: Any) -> None:
        if fine:
            self._change(id, state="done", result=answer)
            return
        error: EquipoiseError = raised(answer)
        stopped = isinstance(error, Cancelled)
        self._change(id, state="stopped" if stopped else "failed", error=str(error), refused=error.exit_code == 1)

    def _change(self, id: str, **values: Any) -> None:
        run = self._runs[id] = replace(self._runs[id], seconds=time.time() - self._runs[id].began, **values)
        self._keep(run)

    def _keep(self, run: Run) -> None:
        self._workspace.keep(f"runs/{run.id}.json", dict(vars(run)))


def labour(pipe: Any, work: Callable[..., Any], given: tuple[Any, ...]) -> None:
    """In the run's process: work, saying how far it is, and end."""
    import warnings

    warnings.simplefilter("ignore")
    last = [0.0]

    def progress(done: int, total: int, what: str) -> bool:
        if pipe.poll():
            return False
        now = time.monotonic()
        if now - last[0] >= OFTEN or done == total:
            last[0] = now
            pipe.send(("progress", (done, total, what)))
        return True

    pipe.send(("end", answered(work, progress, *given)))
