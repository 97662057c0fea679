"""The benchmarks run, say what they should, and the package stays light to import."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks import __main__ as bench
from benchmarks import importing, linking, reading, scanning
from benchmarks.rows import Row, Scale, Skipped, table

from equipoise import files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(scanning, "RESULTS", tmp_path)
    monkeypatch.delenv("EQUIPOISE_DATA", raising=False)
    monkeypatch.setenv("EQUIPOISE_PEERS", str(tmp_path / "no-python"))
    return tmp_path


def only(folder: Path) -> dict[str, object]:
    (path,) = folder.glob("*.json")
    found: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_quick_run_states_every_ratio(folder: Path, capsys: pytest.CaptureFixture[str], full: Any) -> None:
    """The cheap ones here; in full those too that search, serve, attack, scan and suppress."""
    dear = ("searching", "workbench", "attacking", "scanning", "suppression", "coarsening")
    elsewhere = ("importing", "reading", *full(dear, ()))
    names = [name for name in bench.BENCHMARKS if name not in elsewhere]
    assert bench.main([*names, "--quick", "--out", str(folder)]) == 0
    told = only(folder)
    assert told["quick"] is True
    assert {"when", "python", "machine", "packages", "rows"} <= set(told)
    rows = told["rows"]
    assert isinstance(rows, list)
    measured = [row for row in rows if "skipped" not in row]
    assert len(measured) == full(38, 65)
    for row in measured:
        assert row["ratio"] == pytest.approx(row["ours"] / row["yardstick"])
        assert row["ratio"] > 0
        assert row["passed"] is None
    skipped = {row["name"]: row["skipped"] for row in rows if "skipped" in row}
    beside = [f"linkage, side by side with {peer}" for peer in ("splink", "recordlinkage")]
    real = ["best coarsening", "local suppression of adult, 9 keys", "local recoding of adult"]
    assert list(skipped) == ["lattice of adult", *beside, *real]
    assert all(skipped[name] == "peer not installed: uv pip install --group bench" for name in beside)
    shown = capsys.readouterr().out
    assert all(row["name"] in shown for row in rows)
    assert list(folder.glob("**/*.parquet")) == []


@pytest.mark.parametrize(("ours", "code", "said"), [(1.0, 0, "pass"), (3.0, 1, "MISSED")])
def test_a_missed_limit_is_an_exit_code(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, ours: float, code: int, said: str
) -> None:
    def sham(scale: Scale) -> Iterator[Row | Skipped]:
        yield Row("sham", ours, 2.0, 1.0)

    monkeypatch.setitem(bench.BENCHMARKS, "sham", sham)
    assert bench.main(["sham", "--out", str(folder)]) == code
    assert said in capsys.readouterr().out


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["speed"])
    assert "no benchmark 'speed'" in capsys.readouterr().err


def test_what_is_skipped_says_why() -> None:
    assert "skipped: no data" in table([Skipped("lattice", "no data")])


def test_the_lattice_runs_where_its_data_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On a small file in the place of the public one."""
    trees = tmp_path / "arx" / "hierarchies"
    trees.mkdir(parents=True)
    rows = [f"{sex};{age}" for sex in ("m", "f") for age in range(20, 40)]
    (tmp_path / "arx" / "adult.csv").write_text("\n".join(["sex;age", *rows]), encoding="utf-8")
    (trees / "adult_hierarchy_sex.csv").write_text("m;*\nf;*\n", encoding="utf-8")
    ages = "\n".join(f"{age};{age // 5};{age // 10};*" for age in range(20, 40))
    (trees / "adult_hierarchy_age.csv").write_text(ages, encoding="utf-8")
    monkeypatch.setenv("EQUIPOISE_DATA", str(tmp_path))
    monkeypatch.setattr("benchmarks.lattice.RECOUNTS", 2)
    (row,) = bench.BENCHMARKS["lattice"](Scale(times=1))
    assert isinstance(row, Row)
    assert "8 of 8 nodes" in row.note


def test_peers_are_compared_where_they_are_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in that needs ten times of everything and finds half."""
    ours: dict[str, float] = {"found": 800.0, "cpu": 1.0, "whole": 2.0, "start": 0.1, "peak": 0.2}
    theirs = {"found": 400.0, "cpu": 10.0, "whole": 12.0, "start": 0.1, "peak": 1.1}
    monkeypatch.setattr(linking, "has", lambda package: True)
    monkeypatch.setattr(linking, "fresh", lambda *arguments: ours)
    monkeypatch.setattr(linking, "_peer", lambda name, folder: theirs)
    found = list(linking.linking(Scale(share=1 / 30)))
    assert len(found) == 3 * len(linking.peers.WAYS)
    cpu, memory, missed = (row for row in found[:3] if isinstance(row, Row))
    assert (cpu.ratio, cpu.passed) == (0.1, True)
    assert memory.ratio == pytest.approx(0.1)
    assert (missed.ratio, missed.passed) == (200 / 600, True)
    assert "right 800 and 400" in missed.note


def test_reading_is_raced_with_the_library_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "RESULTS", folder)
    monkeypatch.setattr(reading, "FORMATS", ("csv", "sav"))
    found = list(reading.reading(Scale(share=1 / 500, times=1)))
    assert [row.name for row in found] == ["0.002 M x 20 read from .csv", "0.002 M x 20 read from .sav"]
    for row in found:
        assert isinstance(row, Row)
        assert (row.limit, row.ratio > 0) == (1.5, True)
        assert "peak memory" in row.note
    assert list(folder.iterdir()) == []


def test_every_reader_finds_the_same(folder: Path) -> None:
    for kind in reading.FORMATS:
        path = folder / f"records.{kind}"
        files.save(reading.table(300).lazy(), path, kind)
        ours, theirs = (way(str(path)) for way in reading.WAYS.values())
        assert (ours.columns, ours.height) == (theirs.columns, theirs.height)


def test_slow_packages_come_when_used() -> None:
    assert importing.brought() == []
