"""The workbench on a million records with eight keys: how long an interaction takes, and how much memory it takes."""

import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import numpy as np
import polars as pl

from benchmarks.rows import Row, Scale, Skipped

RECORDS, ASKED = 1_000_000, 40
ANSWER, MEMORY = 200.0, 2.0
"""Milliseconds at the 95th percentile, and GiB of all processes together."""
SIZES = {"sex": 2, "region": 16, "education": 5, "job": 40, "marital": 4, "size": 7, "origin": 30}
POLICY = """format = 1
title = "A million"
[data]
path = "people.parquet"
[roles]
keys = ["age", {keys}]
sensitive = ["illness"]
numeric = ["income"]
weight = "weight"
id = "person"
[[roles.hierarchies.age]]
kind = "intervals"
widths = [5, 10, 20]
[limits]
uniques = "< 0.02"
"""
SERVE = "import sys; from equipoise.doors.cli import main; sys.exit(main(sys.argv[1:]))"


def workbench(scale: Scale) -> Iterator[Row | Skipped]:
    """The 95th percentile of each kind of interaction against 200 ms, the memory against 2 GiB."""
    with tempfile.TemporaryDirectory() as folder:
        place, records = Path(folder), scale.records(RECORDS)
        people(records).write_parquet(place / "people.parquet")
        keys = ", ".join(f'"{name}"' for name in SIZES)
        (place / "policy.toml").write_text(POLICY.format(keys=keys), encoding="utf-8")
        user = User(place)
        try:
            user.post("/open/file", {"name": "policy.toml"})
            for kind, work in walks(user).items():
                taken = asked(work, min(ASKED, 8 * scale.repeat(5)))
                note = f"{records:,} records, 8 keys; median {1000 * float(np.median(taken)):.0f} ms"
                yield Row(
                    f"workbench, {kind}", 1000 * float(np.quantile(taken, 0.95)), ANSWER, 1.0, unit="ms",
                    against="200 ms", note=note,
                )  # fmt: skip
            peak = user.memory()
            yield Row("workbench, memory", peak, MEMORY, 1.0, unit="GiB", against="2 GiB", note="peak, all processes")
        finally:
            user.leave()


def walks(user: "User") -> dict[str, Callable[[], object]]:
    """What a user does on each page; once before it counts, as the first time counts the file."""
    draw = random.Random(7)
    columns = ["person", "weight", "age", *SIZES]
    known = set(range(2, len(columns)))

    def tick() -> object:
        nonlocal known
        known ^= {draw.randrange(2, len(columns))}
        return user.get("/understand/knows", [("known", str(at)) for at in sorted(known)])

    def drag() -> object:
        breaks = sorted(draw.sample(range(1, 99), 8))
        return user.post_json("/shape/preview", {"column": "age", "change": {"kind": "breaks", "breaks": [breaks]}})

    def role() -> object:
        return user.post("/open/role", {"column": "illness", "role": draw.choice(["none", "sensitive"])})

    def level() -> object:
        return user.post("/shape/level", {"column": "age", "level": draw.choice(["5", "10", "20"])})

    return {
        "a role is changed": role,
        "what an intruder knows is ticked": tick,
        "a break is dragged": drag,
        "another level is looked at": level,
        "a table is drawn": lambda: user.get("/tables/body"),
        "a limit is set": lambda: user.get("/balance"),
        "the publication curve is drawn": lambda: user.get("/publish"),
    }


def asked(work: Callable[[], object], times: int) -> list[float]:
    """Seconds of each, after two that do not count."""
    for _ in range(2):
        work()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken


class User:
    """A browser before the workbench of a folder."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", SERVE, "open", "--no-browser", "--folder", str(folder)]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.server.stdout is not None
        address = next(found[0] for line in self.server.stdout if (found := re.search(r"http://\S+", line)))
        self.home = address.partition("/enter")[0]
        self.opener = build_opener(HTTPCookieProcessor(CookieJar()))
        page = self.opener.open(address).read().decode()
        self.csrf = re.findall(r'name="csrf" content="([^"]+)"', page)[0]
        self.version = re.findall(r'data-version="(\d+)"', page)[0]

    def get(self, path: str, query: Any = ()) -> str:
        return self._asked(f"{path}?{urlencode(query)}" if query else path, None, {})

    def post(self, path: str, form: Any) -> str:
        return self._asked(path, urlencode(form).encode(), {})

    def post_json(self, path: str, plain: Any) -> str:
        return self._asked(path, json.dumps(plain).encode(), {"Content-Type": "application/json"})

    def _asked(self, path: str, body: bytes | None, headers: dict[str, str]) -> str:
        own = {"X-CSRF": self.csrf, "X-Version": self.version, "Origin": self.home, "HX-Request": "true"}
        with self.opener.open(Request(self.home + path, body, {**own, **headers})) as answer:
            self.version = answer.headers.get("X-Version", self.version)
            return str(answer.read().decode())

    def memory(self) -> float:
        """GiB at the peak of the server and of the processes it has started."""
        found = 0
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                told = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            except OSError:
                continue
            if str(self.server.pid) in (told["Pid"].strip(), told["PPid"].strip()) and "VmHWM" in told:
                found += int(told["VmHWM"].split()[0])
        return found / 2**20

    def leave(self) -> None:
        self.server.terminate()
        self.server.wait(30)
        assert self.server.stdout is not None
        self.server.stdout.close()


def people(records: int) -> pl.DataFrame:
    """Made-up people: eight keys, something sensitive, an amount, a weight."""
    draw = np.random.default_rng(11)
    keys = {name: draw.zipf(1.6, records) % size for name, size in SIZES.items()}
    return pl.DataFrame(
        {
            "person": np.arange(records),
            "weight": draw.uniform(10, 50, records).round(2),
            "age": draw.integers(0, 100, records),
            **{name: pl.Series(codes).cast(pl.String) for name, codes in keys.items()},
            "illness": pl.Series(draw.integers(0, 12, records)).cast(pl.String),
            "income": draw.lognormal(10, 0.6, records).round(0),
        }
    )
