"""kill -9 while a release is written: never a partial folder, never a changed input."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest

from equipoise.releases.verify import verify

TOUCHES = ("open", "os.mkdir", "os.rename", "os.chmod", "os.remove", "os.rmdir", "shutil.copyfile")
RUN = """
import os, signal, sys
import equipoise as eq
from equipoise.presentation.pages import PAGES
from equipoise.releases.balance import protect
from equipoise.releases.report_facts import Report

PAGES["Report"] = lambda facts, public: "page"

folder, at = sys.argv[1], int(sys.argv[2])
seen = [0]

def touched(event, args):
    # The moments at which the disk is about to change: what is opened to be written, made, moved or removed.
    if not armed or event not in {touches} or event == "open" and (len(args) < 3 or not args[2] & os.O_ACCMODE):
        return
    seen[0] += 1
    if seen[0] == at:
        os.kill(os.getpid(), signal.SIGKILL)

armed = False
sys.addaudithook(touched)
records = eq.read(folder + "/people.csv", eq.Roles(["sex", "age"], numeric=["x"], id="id"))
masks = [eq.masks.Noise("x", 0.2), eq.masks.RankSwap(["age"], 0.1)]
armed = True
protect(records, masks, folder + "/out", seed=271828182845904523,
        register=folder + "/register.json", overwrite=True)
print(seen[0])
"""


def run(folder: Path, at: int) -> subprocess.CompletedProcess[str]:
    script = RUN.replace("{touches}", repr(TOUCHES))
    args = [sys.executable, "-c", script, str(folder), str(at)]
    return subprocess.run(
        args, capture_output=True, text=True, check=False, env={**os.environ, "POLARS_MAX_THREADS": "1"}
    )


def write(folder: Path) -> bytes:
    rng = np.random.default_rng(2)
    table = {"id": range(120), "sex": rng.choice(["f", "m"], 120), "age": rng.integers(20, 60, 120)}
    pl.DataFrame(table | {"x": rng.normal(0, 9, 120).round(3)}).write_csv(folder / "people.csv")
    return (folder / "people.csv").read_bytes()


def broken(folder: Path) -> list[str]:
    """What does not hold of a release: only its pages, which the script leaves empty."""
    return [check.name for check in verify(folder).checks if check.holds is False]


@pytest.mark.skipif(os.name != "posix", reason="There is no kill -9 here.")
def test_killed_at_random_moments(tmp_path: Path, full: Any) -> None:
    """A seeded moment (twelve in full) among all at which the disk changes; after each, what stands is whole."""
    before = write(tmp_path)
    fresh, over = run(tmp_path, 0), run(tmp_path, 0)
    assert (fresh.returncode, over.returncode) == (0, 0), fresh.stderr + over.stderr
    known = int(over.stdout)
    moments = Random(20).sample(range(1, known + 1), min(full(1, 12), known))
    made = (tmp_path / "out/public/data.csv").read_bytes()
    for at in moments:
        reached = (tmp_path / "out").exists() or at <= int(fresh.stdout)
        done = run(tmp_path, at)
        assert done.returncode == (-9 if reached else 0), done.stderr
        assert (tmp_path / "people.csv").read_bytes() == before
        if (tmp_path / "out").exists():
            assert broken(tmp_path / "out") == ["report"]
        for left in tmp_path.glob(".out.*.partial"):
            inner = left / "private"
            assert not inner.exists() or inner.stat().st_mode & 0o077 == 0, "what was left is for its owner only"
    assert run(tmp_path, 0).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "out",
        "people.csv",
        "register.json",
        "register.json.tables",
    ]
    assert len(list((tmp_path / "register.json.tables").iterdir())) == 1, "the tokens of the one release"
    assert (tmp_path / "out/public/data.csv").read_bytes() == made, "the register kept the seed through all of it"
    assert broken(tmp_path / "out") == ["report"]
