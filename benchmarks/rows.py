"""One row of the table, and the races that fill it."""

import gc
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """A claim: our cost, the yardstick's, and how large their ratio may be (None: reported, not judged)."""

    name: str
    ours: float
    yardstick: float
    limit: float | None = None
    unit: str = "CPU s"
    against: str = ""
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.ours / self.yardstick

    @property
    def passed(self) -> bool | None:
        return None if self.limit is None else self.ratio <= self.limit

    def to_plain(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio, "passed": self.passed}


@dataclass(frozen=True)
class Skipped:
    """A claim that could not be checked here, and why."""

    name: str
    why: str

    def to_plain(self) -> dict[str, Any]:
        return {"name": self.name, "skipped": self.why}


@dataclass(frozen=True)
class Scale:
    """How much data, and how often each contestant runs."""

    share: float = 1.0
    times: int = 5

    def records(self, full: int) -> int:
        return max(1_000, round(full * self.share))

    def repeat(self, full: int) -> int:
        return min(full, self.times)


QUICK = Scale(share=1 / 50, times=1)


@dataclass(frozen=True)
class Cost:
    cpu: float
    wall: float

    def best(self, other: "Cost") -> "Cost":
        return Cost(min(self.cpu, other.cpu), min(self.wall, other.wall))


def cost(work: Callable[[], object]) -> Cost:
    """CPU of all threads, and wall time, of one call."""
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


def race(times: int, contestants: Mapping[str, Callable[[], object]]) -> dict[str, Cost]:
    """The best cost of each contestant over rounds in which all take their turn."""
    best: dict[str, Cost] = {}
    for _ in range(times):
        for name, work in contestants.items():
            found = cost(work)
            best[name] = best[name].best(found) if name in best else found
    return best


def cheapest(costs: Mapping[str, Cost], names: Iterable[str]) -> str:
    return min(names, key=lambda name: costs[name].cpu)


def fresh(*arguments: str) -> dict[str, float]:
    """What a new interpreter prints as JSON."""
    told = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, env=told)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def peak() -> float:
    """The most memory this process has held, in GiB.

    From the process itself where the system says it: `ru_maxrss` of a child begins with the size of its parent.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return int(lines["VmHWM"].split()[0]) / 2**20
    unit = 2**30 if sys.platform == "darwin" else 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def measured(work: Callable[[], float]) -> dict[str, float]:
    """What one call finds and costs.

    Its CPU, that of the whole process with its children and imports, and the peak memory before it and after, in GiB.
    """
    found: list[float] = []
    start = peak()
    spent = cost(lambda: found.append(work()))
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    whole = sum(one.ru_utime + one.ru_stime for one in used)
    return {"found": found[0], "cpu": spent.cpu, "whole": whole, "start": start, "peak": peak()}


def table(rows: Sequence[Row | Skipped]) -> str:
    """The rows as text."""
    width = max((len(row.name) for row in rows), default=0)
    head = f"{'':{width}}  {'ours':>9} {'yardstick':>9} {'unit':<7} {'ratio':>7} {'limit':>6}  verdict"
    return "\n".join([head, *(line(row, width) for row in rows)])


def line(row: Row | Skipped, width: int = 0) -> str:
    if isinstance(row, Skipped):
        return f"{row.name:{width}}  skipped: {row.why}"
    limit = "" if row.limit is None else f"{row.limit:.3g}"
    verdict = {True: "pass", False: "MISSED", None: "reported"}[row.passed]
    numbers = f"{row.ours:9.3f} {row.yardstick:9.3f} {row.unit:<7} {row.ratio:7.3f} {limit:>6}"
    return f"{row.name:{width}}  {numbers}  {verdict:<8}  vs {row.against}{'; ' + row.note if row.note else ''}"
