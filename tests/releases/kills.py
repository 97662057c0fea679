"""Kill a balance at random moments and look at what is left: `python tests/releases/kills.py FOLDER NUMBER SEED`.

Children are forked from one process that has imported everything and computed nothing. Goes on until so many runs were
hit before they ended by themselves. Prints a line of JSON: moments at which each was killed, whether a release stood
there whole, and what went wrong, which must be nothing.
"""

import hashlib
import json
import os
import random
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np

from equipoise.presentation.pages import PAGES
from equipoise.releases.balance import balance

POLICY = """
format = 1
draws = 2
seed_file = "seed.json"
measures = ["mean_square(columns=('pay',))"]
[data]
path = "people.csv"
[roles]
keys = ["sex", "age"]
numeric = ["pay"]
id = "person"
hierarchies = { age = { kind = "intervals", widths = [5, 10] } }
[limits]
"nearest(variables=('pay', 'age'))" = "< 0.2"
[search]
search = "adaptive"
budget = 10
[[candidates]]
masks = [
    { use = "recode", column = "age", level = ["5", "10"] },
    { use = "noise", columns = ["pay"], scale = { from = 0.05, to = 1.5, steps = 30 } },
]
[output]
format = "parquet"
"""


def prepare(folder: Path, size: int = 120) -> Path:
    rng = np.random.default_rng(3)
    people = {
        "person": np.arange(size),
        "sex": rng.choice(["f", "m"], size),
        "age": rng.integers(20, 60, size),
        "pay": rng.lognormal(8, 0.6, size).round(),
    }
    lines = [",".join(people), *(",".join(map(str, row)) for row in zip(*people.values(), strict=True))]
    (folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "seed.json").write_text('{"seed": "12345"}', encoding="utf-8")
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    return folder / "policy.toml"


def start(policy: Path, out: Path) -> int:
    """The process that balances."""
    child = os.fork()
    if child == 0:
        try:
            PAGES["Report"] = lambda facts, public: f"<title>{facts.title}</title>" * 1000
            balance(policy, out=out)
        except BaseException as problem:
            (out.parent / f"{out.name}.problem").write_text(repr(problem), encoding="utf-8")
            os._exit(1)
        (out.parent / "modules").write_text("\n".join(sys.modules), encoding="utf-8")
        os._exit(0)
    return child


def import_all(names: list[str]) -> None:
    """What a run imports on its way, so that the next ones need not."""
    for name in names:
        with suppress(Exception):
            import_module(name)


def wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def marks(folder: Path) -> dict[str, str]:
    """What a release must have the same: its data, and the evidence without what is drawn anew."""
    told = json.loads((folder / "public" / "evidence.json").read_text(encoding="utf-8"))
    same = {name: told.get(name) for name in ("masks", "scores", "verdict", "limits", "withheld")}
    data = hashlib.sha256((folder / "public" / "data.parquet").read_bytes()).hexdigest()
    seed = json.loads((folder / "private" / "seed.json").read_text(encoding="utf-8"))["seed"]
    return {"data": data, "evidence": json.dumps(same, sort_keys=True), "seed": seed}


def kill_one(policy: Path, out: Path, moments: list[float], whole: dict[str, str]) -> dict[str, object]:
    """Kill at these moments, one run after the other, then let it end."""
    inputs = {name: (policy.parent / name).read_bytes() for name in ("people.csv", "policy.toml", "seed.json")}
    wrong: list[str] = []
    hit = 0
    for moment in moments:
        child, until = start(policy, out), time.monotonic() + moment
        while time.monotonic() < until and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            time.sleep(0.002)
        os.kill(child, signal.SIGKILL)
        hit += wait(child) == -signal.SIGKILL
        if out.exists() and marks(out) != whole:
            wrong.append("a folder that is not the release")
    ended = out.exists()
    kept = out.with_name(f".{out.name}.journal")
    lines = len(kept.read_bytes().splitlines()) - 1 if kept.exists() else 0
    if (not ended or kept.exists()) and wait(start(policy, out)):
        wrong.append((out.parent / f"{out.name}.problem").read_text(encoding="utf-8"))
    if not out.exists() or marks(out) != whole:
        wrong.append("another release")
    left = [path.name for path in out.parent.iterdir() if path.name.startswith(f".{out.name}.")]
    wrong += [f"left: {name}" for name in left]
    wrong += [f"changed: {name}" for name, was in inputs.items() if (policy.parent / name).read_bytes() != was]
    return {"moments": moments, "hit": hit, "ended": ended, "kept": lines, "wrong": wrong}


def main(folder: Path, number: int, seed: int) -> list[dict[str, object]]:
    policy, rng = prepare(folder), random.Random(seed)
    for name in ("whole", "again"):
        begun = time.monotonic()
        assert wait(start(policy, folder / name)) == 0, (folder / f"{name}.problem").read_text(encoding="utf-8")
        took = time.monotonic() - begun
        import_all((folder / "modules").read_text(encoding="utf-8").splitlines())
    whole = marks(folder / "whole")
    assert marks(folder / "again") == whole
    found: list[dict[str, object]] = []
    while sum(bool(one["hit"]) for one in found) < number and len(found) < 20 * number:
        moments = [rng.uniform(0.0, took) for _ in range(rng.choice([1, 1, 2]))]
        found.append(kill_one(policy, folder / f"out{len(found)}", moments, whole))
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
