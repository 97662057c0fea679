"""Attempts in worker processes with a time limit; a worker that hangs or dies is a fault and is replaced."""

import multiprocessing
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

from torture import bad_calls, bad_files, bad_frames, bad_keeping, bad_options, bad_policies, good
from torture.attempt import Attempt, Outcome, judged
from torture.good import stream

PARTS: dict[str, Callable[[Any, Path, Path], Attempt]] = {
    "files": bad_files.attempt,
    "policies": bad_policies.attempt,
    "options": bad_options.attempt,
    "keeping": bad_keeping.attempt,
    "calls": bad_calls.attempt,
    "frames": bad_frames.attempt,
}
SECONDS = 60
"""Nothing here may take longer: the files are small. Where the machine is busy, the worker's own time counts."""
STUCK_SECONDS = 600
"""A worker that waits for something that does not come uses no time of its own."""


@dataclass
class Tally:
    """What came of one part."""

    tried: int = 0
    answered: int = 0
    faults: list[tuple[int, Outcome]] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)

    def add(self, number: int, outcome: Outcome) -> None:
        self.tried += 1
        self.answered += not outcome.faults
        self.answers[outcome.answer.split(maxsplit=1)[0].rstrip(":") if outcome.answer else ""] += 1
        if outcome.faults:
            self.faults.append((number, outcome))


def run_one(seed: str, part: str, number: int, place: Path) -> Outcome:
    """One attempt, here and now."""
    case = Path(tempfile.mkdtemp(prefix=f"{part}-{number}-", dir=place))
    folder = case / "work"
    folder.mkdir()
    try:
        return judged(PARTS[part](stream(seed, part, number), place, folder), folder)
    except Exception as error:
        import traceback

        return Outcome("?", "", (f"the torture itself failed: {''.join(traceback.format_exception(error))[-600:]}",))
    finally:
        shutil.rmtree(case, ignore_errors=True)


class Worker:
    """A process that runs attempts; started again when it must be."""

    def __init__(self, seed: str) -> None:
        self.seed, self.place = seed, Path(tempfile.mkdtemp(prefix="torture-"))
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.seed, str(self.place)), daemon=True)
        self.process.start()
        theirs.close()
        self.since: float | None = None
        self.used = 0.0
        self.task: tuple[str, int] | None = None

    def give(self, part: str, number: int) -> None:
        self.task, self.since = (part, number), None
        self.pipe.send(self.task)

    def answer(self) -> Outcome | None:
        """What came of the task, if it has ended; a hang or the death of the process is its outcome too."""
        try:
            if self.pipe.poll(0.02):
                if (outcome := self.pipe.recv()) is not None:
                    return outcome
                self.since, self.used = time.monotonic(), _cpu_seconds(self.process.pid)
        except EOFError:
            self.process.join()
            return self._again(f"the process died ({self.process.exitcode})")
        waited = time.monotonic() - self.since if self.since else 0.0
        if waited > SECONDS and (waited > STUCK_SECONDS or _cpu_seconds(self.process.pid) - self.used > SECONDS):
            return self._again(f"no answer in {SECONDS} seconds")
        return None

    def _again(self, fault: str) -> Outcome:
        self.stop()
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        self.start()
        return Outcome("?", "", (fault,))

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _cpu_seconds(pid: int | None) -> float:
    """The time that a process has used so far."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _serve(pipe: Connection, seed: str, place: str) -> None:
    os.environ.setdefault("POLARS_MAX_THREADS", "2")
    good.shelf(Path(place))
    while True:
        part, number = pipe.recv()
        pipe.send(None)
        pipe.send(run_one(seed, part, number, Path(place)))


def run(
    seed: str, parts: list[str], deadline: float, count: int | None, workers: int, first: int = 0
) -> Iterator[tuple[str, int, Outcome]]:
    """Attempts of each part in turn, until the time or their number is used up."""
    tasks = ((part, number) for number in range(first, first + (count or 1 << 40)) for part in parts)
    crew = [Worker(seed) for _ in range(workers)]
    try:
        for worker, task in zip(crew, tasks, strict=False):
            worker.give(*task)
        while any(worker.task for worker in crew):
            for worker in crew:
                task = worker.task
                if task is None or (outcome := worker.answer()) is None:
                    continue
                part, number = task
                yield part, number, outcome
                worker.task = None
                if time.monotonic() < deadline and (following := next(tasks, None)):
                    worker.give(*following)
    finally:
        for worker in crew:
            worker.stop()
            shutil.rmtree(worker.place, ignore_errors=True)
