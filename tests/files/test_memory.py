"""Work that does not fit in memory is refused before it starts; what fits easily is not."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import psutil
import pytest

import equipoise as eq
from equipoise.doors.cli import main
from equipoise.files.memory import RELEASE_BYTES, memory_of
from equipoise.ground import system

MEASURED = {
    "numbers": (100_000, lambda n, draw: {f"x{i}": draw.lognormal(7, 1, n) for i in range(37)}, 450e6),
    "texts": (100_000, lambda n, draw: {f"t{i}": draw.choice(["agree", "disagree", "no opinion at all", "x"], n)
                                        for i in range(17)}, 250e6),
    "rows": (1_000_000, lambda n, draw: {"x0": draw.lognormal(7, 1, n).round(2)}, 430e6),
    "long": (30_000, lambda n, draw: {"x0": draw.lognormal(7, 1, n), "note": ["lorem ipsum dolor " * 55] * n}, 350e6),
}  # fmt: skip
"""Records, columns beside three keys, and the peak of `equipoise protect` above what was in use when it began to work.

Measured by ru_maxrss on Linux, two cores, Parquet and CSV (within a tenth of each other).
"""


@pytest.mark.parametrize("shape", MEASURED)
def test_the_estimate_is_within_a_factor_of_two_of_what_was_measured(shape: str) -> None:
    size, columns, peak = MEASURED[shape]
    draw, few = np.random.default_rng(1), 2_000
    keys = {
        "sex": draw.choice(["f", "m"], few),
        "age": draw.integers(18, 90, few),
        "area": draw.choice(["a1", "a2"], few),
    }
    some = pl.DataFrame({**keys, **columns(few, draw)})
    records = eq.read(pl.concat([some] * (size // few), rechunk=False))
    assert peak / 2 < memory_of(records, "release") < 2 * peak


OTHER_MEASURED = {
    "assess": ((), {"small": 55e6, "rows": 158e6, "texts": 96e6, "numbers": 100e6}),
    "propose a policy for": ((), {"small": 124e6, "rows": 300e6, "texts": 140e6}),
    "attack": ((), {"small": 109e6, "rows": 1_067e6, "texts": 175e6}),
    "coarsen": ((["sex", "age"],), {"small": 41e6, "rows": 58e6, "texts": 43e6, "numbers": 43e6}),
    "tabulate": ((["sex", "area"], "x0"), {"small": 63e6, "rows": 128e6, "texts": 67e6, "numbers": 65e6}),
    "decide on": (("area", "sex"), {"small": 49e6, "rows": 79e6, "texts": 52e6, "numbers": 52e6}),
}
"""The columns that are looked at, and peaks of other verbs, measured alike with half the records of these shapes."""
SMALL = (40_000, lambda n, draw: {f"x{i}": draw.lognormal(7, 1, n) for i in range(12)}, 0.0)


@pytest.mark.parametrize("work", OTHER_MEASURED)
def test_the_estimates_of_other_verbs_are_within_a_factor_of_two(work: str) -> None:
    columns, peaks = OTHER_MEASURED[work]
    draw, few = np.random.default_rng(1), 2_000
    for shape, peak in peaks.items():
        size, make, _ = {**MEASURED, "small": SMALL}[shape]
        keys = {"sex": draw.choice(["f", "m"], few), "age": draw.integers(18, 90, few), "w": draw.integers(1, 9, few)}
        some = pl.DataFrame({**keys, "area": draw.choice(["a1", "a2"], few), "x0": 1.5, **make(few, draw)})
        records = eq.read(pl.concat([some] * (size // few // 2), rechunk=False))
        assert peak / 2 < memory_of(records, work, *columns) < 2 * peak, shape


VERBS = {
    "assess": lambda records: eq.assess(records),
    "attack": lambda records: eq.attack(records, records),
    "coarsen": lambda records: eq.best_coarsening(records, eq.rules.MinCount(2)),
    "tabulate": lambda records: eq.tabulate(records, by="a", rule="min-count:3"),
    "decide on": lambda records: eq.publish(records, domain="a", target="a", publish_share=0.5),
}


@pytest.mark.parametrize("work", VERBS)
def test_other_verbs_refuse_before_they_begin(work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.files.memory.available", lambda: 4_000_000)
    with pytest.raises(eq.DataError, match=rf"To {work} 1,000 records x 1 columns takes about .* and 4\.0 MB are free"):
        VERBS[work](eq.read(pl.DataFrame({"a": ["x", "y"] * 500}), eq.Roles("a")))


def control_groups(folder: Path, own: str, files: dict[str, int | str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Control groups as Linux shows them: which one this process is in, and the files with limits and use."""
    (folder / "own").write_text(own, encoding="ascii")
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{content}\n", encoding="ascii")
    monkeypatch.setattr(system, "CONTROL_GROUPS", folder)
    monkeypatch.setattr(system, "OWN_CONTROL_GROUPS", folder / "own")


OTHERS = "5:cpu,cpuacct:/elsewhere\n1:name=systemd:/init.scope\n"
LARGE, LIMIT, USED, FILES = 9_223_372_036_854_771_712, 3_000_000_000, 2_000_000_000, 900_000_000
STAT = "anon 5\ninactive_file 700000000\nactive_file 200000000\nfile 1"
OLD_STAT = "inactive_file 1\nactive_file 1\ntotal_inactive_file 700000000\ntotal_active_file 200000000"


@pytest.mark.parametrize(
    ("own", "files", "free"),
    [
        ("0::/a/b\n", {"a/b/memory.max": LIMIT, "a/b/memory.current": USED}, LIMIT - USED),
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": LIMIT, "a/memory.current": USED}, LIMIT - USED),
        ("0::/a\n", {"a/memory.high": LIMIT, "a/memory.current": USED, "a/memory.stat": STAT}, LIMIT - USED + FILES),
        ("0::/../a\n", {"memory.max": LIMIT, "memory.current": USED}, LIMIT - USED),
        (OTHERS + "4:memory:/p/q\n0::/\n", {
          "memory/p/q/memory.limit_in_bytes": LIMIT, "memory/memory.limit_in_bytes": LARGE,
          "memory/p/q/memory.usage_in_bytes": USED, "memory/p/q/memory.stat": OLD_STAT}, LIMIT - USED + FILES),
        (OTHERS + "0::/c\n", {"unified/c/memory.max": LIMIT, "unified/c/memory.current": USED}, LIMIT - USED),
        (OTHERS + "0::/\n", {"elsewhere/memory.max": 1, "memory/elsewhere/memory.limit_in_bytes": 1}, 7_000_000_000),
        ("what\n", {"memory.max": 1}, 7_000_000_000),
    ],
)  # fmt: skip
def test_the_limits_of_the_control_groups_of_this_process_are_heard(
    own: str, files: dict[str, int | str], free: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, only the group at the root was looked at, which a service or a nested container is not in."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=7_000_000_000))
    small = SimpleNamespace(memory_info=lambda: SimpleNamespace(rss=1, vms=1))  # a worker of the suite may be large
    monkeypatch.setattr(psutil, "Process", lambda: small)
    monkeypatch.setattr(system, "_address_limit", lambda: None)
    control_groups(tmp_path, own, files, monkeypatch)
    assert system.free_memory() == free


@pytest.mark.parametrize("verb", ["init", "assess"])
def test_the_limit_of_a_small_container_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    limit = tmp_path / "memory.max"
    small = psutil.Process().memory_info().rss + 30_000_000
    control_groups(tmp_path, "0::/\n", {"memory.max": small}, monkeypatch)
    pl.DataFrame({"a": ["x", "y"] * 50, "b": range(100)}).write_csv(tmp_path / "d.csv")
    out = ["--out", str(tmp_path / "out.toml")] if verb == "init" else ["--keys", "a"]
    assert main([verb, str(tmp_path / "d.csv"), *out]) == 2
    assert "of memory and" in capsys.readouterr().err
    limit.write_text("max\n", encoding="ascii")
    assert main([verb, str(tmp_path / "d.csv"), *out]) == 0


def test_work_beyond_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.files.memory.available", lambda: 4_000_000)
    records = eq.read(pl.DataFrame({"a": range(1_000_000)}), eq.Roles("a"))
    with pytest.raises(eq.EquipoiseError, match=r"about \d+\.\d MB of memory and 4\.0 MB are free: leave out columns"):
        eq.protect(records, [], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_small_work_is_never_refused_for_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.files.memory.available", lambda: int(1.5 * RELEASE_BYTES))
    eq.protect(eq.read(pl.DataFrame({"a": ["x", "y"] * 50}), eq.Roles("a")), [], tmp_path / "out")


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v")
@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        ("2_000_000_000", "GB of addresses (ulimit -v) and needs 2.5 GB to start"),
        (
            "max(psutil.Process().memory_info().vms, 1_600_000_000) + 1_000_000_000",
            "To release 1,000,000 records x 20 columns takes about",
        ),
    ],
)
def test_a_limit_on_the_memory_of_the_process_is_heard(tmp_path: Path, limit: str, sentence: str) -> None:
    """Before, the run died in the middle, or waited for ever: engines abort where they find no addresses."""
    some = pl.DataFrame(np.random.default_rng(1).lognormal(7, 1, (2_000, 20)), schema=[f"x{i}" for i in range(20)])
    pl.concat([some] * 500).write_parquet(tmp_path / "d.parquet")
    code = (
        "import resource, sys, psutil, polars, numpy, scipy.stats; from equipoise.doors.cli import main, command\n"
        f"limit = {limit}\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit)); sys.exit(main(sys.argv[1:]))"
    )
    words = [str(tmp_path / "d.parquet"), "--keys", "x0", "--mask", "noise:x1,0.1", "--out", str(tmp_path / "out")]
    run = subprocess.run([sys.executable, "-c", code, "protect", *words], capture_output=True, text=True, check=False)
    words_of_ours = [line for line in run.stderr.splitlines() if not line.startswith("<jemalloc>")]
    assert (run.returncode, len(words_of_ours)) == (2, 1), run.stderr
    assert sentence in words_of_ours[0]
    assert not (tmp_path / "out").exists()
