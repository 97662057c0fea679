"""Thirty thousand released records linked to their originals by nine keys, against splink and recordlinkage.

The peers are in the dependency group `bench`, which `make setup` leaves out. They are looked for in this environment,
or in that of the Python that `EQUIPOISE_PEERS` names. The file is adult where `EQUIPOISE_DATA` has it, else one made
here with as many values per key; 15 % of the values of each key are replaced by a draw from the column.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

import equipoise as eq
from benchmarks import peers
from benchmarks.perturbation import YARDSTICK, grouping
from benchmarks.rows import Row, Scale, Skipped, fresh, measured

RECORDS = 30_000
CHANGED = 0.15
LIMIT = 1 / 10
SIZES = (2, 72, 5, 7, 16, 41, 7, 14, 2)
PUBLISHED = {"splink": (20.2, 1.75), "recordlinkage": (5.2, 0.548)}
"""CPU seconds and GB at 30,000 x 30,000 with nine keys, on another masked file and machine."""
INSTALL = "uv pip install --group bench"
LAZY = ("equipoise.attacks", "scipy.optimize", "scipy.sparse.csgraph")
"""What the attack imports when it needs it, imported before it is measured, as the peers' packages are."""


def linking(scale: Scale) -> Iterator[Row | Skipped]:
    """CPU and memory beyond the imports and in all, and the people who are not linked right."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        people = files(folder, scale.records(RECORDS))
        ours = fresh("-m", "benchmarks.linking", str(folder))
        for peer, (package, _) in peers.WAYS.items():
            if has(package):
                yield from _compared(peer, ours, _peer(peer, folder), people)
            elif peer == package:
                yield from _published(peer, ours, people, scale)
                yield Skipped(f"linkage, side by side with {peer}", f"peer not installed: {INSTALL}")


def _compared(peer: str, ours: dict[str, float], theirs: dict[str, float], people: int) -> Iterator[Row]:
    """The narrower blocks of a peer are cheaper and find less: reported, not judged."""
    limit = None if "narrow" in peer else LIMIT
    what, grown, grew = f"linkage of {people:,} x 9", ours["peak"] - ours["start"], theirs["peak"] - theirs["start"]
    whole = f"with imports {ours['whole']:.2f} and {theirs['whole']:.2f}, {ours['whole'] / theirs['whole']:.3f}"
    yield Row(f"{what}, CPU", ours["cpu"], theirs["cpu"], limit, against=peer, note=whole)
    whole = f"with imports {ours['peak']:.3f} and {theirs['peak']:.3f}, {ours['peak'] / theirs['peak']:.3f}"
    yield Row(f"{what}, memory", grown, grew, limit, unit="GiB", against=peer, note=whole)
    right = f"right {ours['found']:,.0f} and {theirs['found']:,.0f}"
    missed = people - ours["found"], people - theirs["found"]
    yield Row(f"{what}, not linked right", *missed, limit and 1.0, unit="people", against=peer, note=right)


def _published(peer: str, ours: dict[str, float], people: int, scale: Scale) -> Iterator[Row]:
    """Figures of another mask and machine, the CPU scaled by the yardstick: reported, not judged."""
    cpu, memory = PUBLISHED[peer]
    what, against = f"linkage of {people:,} x 9", f"{peer}'s published figure, another mask"
    theirs = cpu * scale.share * grouping(scale) / YARDSTICK
    yield Row(f"{what}, CPU with imports", ours["whole"], theirs, against=against, note="scaled")
    yield Row(f"{what}, memory with imports", ours["peak"], memory * 1e9 / 2**30, unit="GiB", against=against)


def files(folder: Path, records: int) -> int:
    """Write the original and the released file, rows shuffled, `person` the truth; how many people there are."""
    draw = np.random.default_rng(1)
    table = keys(records, draw)
    changed = table.with_columns(_changed(column, draw) for column in table)
    for name, each in (("original", table), ("released", changed)):
        numbered = each.with_columns(pl.int_range(pl.len()).alias(peers.TRUTH))
        numbered[draw.permutation(table.height)].write_csv(folder / f"{name}.csv")
    return table.height


def keys(records: int, draw: np.random.Generator) -> pl.DataFrame:
    """Nine keys: adult's, or made with as many values, skewed and leaning on one common cause."""
    path = Path(os.environ.get("EQUIPOISE_DATA", "")) / "arx" / "adult.csv"
    if path.exists():
        table = pl.read_csv(path, separator=";")
        table = table if records >= RECORDS else table.head(records)
    else:
        cause = draw.normal(size=records)
        table = pl.DataFrame([_made(size, cause, draw) for size in SIZES])
    return table.rename(dict(zip(table.columns, (f"key{place}" for place in range(1, 10)), strict=True)))


def _made(size: int, cause: NDArray[np.float64], draw: np.random.Generator) -> NDArray[np.int64]:
    """A key of `size` values, the first ones frequent."""
    leaning = np.abs(0.5 * cause + draw.normal(size=len(cause)))
    return np.minimum(size - 1, leaning * size / 4).astype(np.int64)


def _changed(column: pl.Series, draw: np.random.Generator) -> pl.Series:
    rows = np.arange(len(column))
    rows = np.where(draw.random(len(rows)) < CHANGED, draw.integers(0, len(rows), len(rows)), rows)
    return column.gather(pl.Series(rows))


def has(package: str) -> bool:
    """Whether the peers' Python can import it."""
    try:
        return not subprocess.run([_python(), "-c", f"import {package}"], capture_output=True).returncode
    except OSError:
        return False


def _python() -> str:
    return os.environ.get("EQUIPOISE_PEERS", sys.executable)


def _peer(name: str, folder: Path) -> dict[str, float]:
    told = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [_python(), "-m", "benchmarks.peers", name, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=told, cwd=folder)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def link(folder: Path) -> float:
    """The expected number of right pairs: t candidates that look the same count 1/t."""
    tables = [pl.read_csv(folder / f"{name}.csv") for name in ("released", "original")]
    roles = eq.Roles([f"key{place}" for place in range(1, 10)], id=peers.TRUTH)
    return eq.attacks.Linkage(knows="values").measure(*(eq.read(table, roles) for table in tables)).number or 0.0


def run(folder: Path) -> dict[str, float]:
    for module in LAZY:
        import_module(module)
    return measured(lambda: link(folder))


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]))))
