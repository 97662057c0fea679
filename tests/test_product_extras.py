"""What each extra brings: without it one sentence names it, with it alone the work is done, and much needs none."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from equipoise import files

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "arrow": ("pyarrow",),
    "pandas": ("pandas", "pyarrow"),
    "duckdb": ("duckdb", "pyarrow"),
    "learn": ("sklearn", "joblib", "threadpoolctl"),
    "strings": ("rapidfuzz",),
    "spark": ("pyspark", "py4j", "pandas", "pyarrow"),
    "files": ("pyreadstat", "fastexcel", "xlsxwriter"),
    "r": ("rdata", "xarray", "pandas", "pyarrow"),
}
OPTIONAL = {name for names in PACKAGES.values() for name in names}

SCRIPT = """
import contextlib, importlib.machinery, io, json, sys
allowed, optional = set(json.loads(sys.argv[1])), set(json.loads(sys.argv[2]))

class Without(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.partition(".")[0] in optional - allowed
        return None if hidden else super().find_spec(name, path, target)

sys.meta_path[:] = [Without if finder is importlib.machinery.PathFinder else finder for finder in sys.meta_path]

import polars as pl
import equipoise as eq
from equipoise import files
from equipoise.doors.cli import main

def people(*more):
    return eq.read("people.parquet", eq.Roles(["sex", "area", *more], ["ill"], numeric=["salary"], id="person"))

def saved(kind):
    files.save(pl.scan_parquet("people.parquet"), f"out.{kind}", kind, overwrite=True)

def linked():
    return eq.attacks.Linkage(near=("town:0.8",)).measure(people("town"), people("town"))

def moved():
    mixed = eq.Recipe([eq.masks.Pram(0.6)], seed=1).run(people("age"))
    return eq.risk.Recognisable().measure(mixed, people("age"))

CASES = {
    "read xlsx": lambda: eq.read("people.xlsx").height(),
    "read sav": lambda: eq.read("people.sav").height(),
    "read dta": lambda: eq.read("people.dta").height(),
    "read xpt": lambda: eq.read("people.xpt").height(),
    "read rds": lambda: eq.read("people.rds").height(),
    "read zst": lambda: eq.read("people.csv.zst").height(),
    "read duckdb": lambda: eq.read("people.duckdb").height(),
    "query": lambda: eq.read("SELECT * FROM 'people.parquet'", database=":memory:").height(),
    **{f"write {kind}": (lambda kind=kind: saved(kind)) for kind in ("xlsx", "sav", "dta", "xpt", "duckdb")},
    "linkage by text": linked,
    "recognisable": moved,
    "propensity": lambda: eq.utility.Propensity().measure(people(), people()),
    "synthesize": lambda: eq.Recipe([eq.masks.Synthesize()], seed=1).run(people()).collect(),
    "cli xlsx": lambda: cli("assess", "people.xlsx", "--keys", "sex"),
    "cli sav": lambda: cli("assess", "people.sav", "--keys", "sex"),
    "cli rds": lambda: cli("roles", "people.rds"),
    "cli zst": lambda: cli("assess", "people.csv.zst", "--keys", "sex"),
    "cli duckdb": lambda: cli("assess", "--query", "SELECT * FROM 'people.parquet'", "--keys", "sex"),
    "cli write xlsx": lambda: cli("protect", *MASKED, "--format", "xlsx", "--out", "to-xlsx"),
    "cli synthesize": lambda: cli("protect", *MASKED, "--mask", "synthesize", "--out", "made"),
    "plain assess": lambda: cli("assess", "people.csv", "--keys", "sex,area"),
    "plain protect": lambda: cli("protect", *MASKED, "--mask", "pram", "--xi", "0.8", "--out", "moved"),
    "plain attack": lambda: cli("attack", "people.csv", "--against", "people.csv", "--known", "sex,area"),
    "plain table": lambda: cli("table", "people.csv", "--by", "sex,area", "--rule", "min-count:3"),
    "plain sqlite": lambda: cli("assess", "people.sqlite", "--query", "SELECT * FROM people", "--keys", "sex"),
    "plain arrow": lambda: (saved("arrow"), eq.read("out.arrow").height()),
}
MASKED = ["people.csv", "--keys", "sex,area", "--id", "person", "--allow", "salary,town", "--overwrite"]

def cli(*args):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(args))
    if code:
        raise SystemExit(json.dumps([code, err.getvalue()]))

def tried(case):
    try:
        case()
    except SystemExit as error:
        return json.loads(str(error))
    except Exception as error:
        return [type(error).__name__, str(error)]
    return [0, ""]

print(json.dumps({name: tried(CASES[name]) for name in json.loads(sys.argv[3]) or CASES}))
"""

NEEDS = {
    "read xlsx": "files", "read sav": "files", "read dta": "files", "read xpt": "files", "read rds": "r",
    "read zst": "arrow", "read duckdb": "duckdb", "query": "duckdb", "write xlsx": "files", "write sav": "files",
    "write dta": "files", "write xpt": "files", "write duckdb": "duckdb", "linkage by text": "strings",
    "recognisable": "learn", "propensity": "learn", "synthesize": "learn", "cli xlsx": "files", "cli sav": "files",
    "cli rds": "r", "cli zst": "arrow", "cli duckdb": "duckdb", "cli write xlsx": "files", "cli synthesize": "learn",
}  # fmt: skip
"""The extra that each case needs; the others need none."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, people: pl.DataFrame) -> Path:
    """The same people in every format, written while all extras are there."""
    place = tmp_path_factory.mktemp("extras")
    table = people.with_columns(pl.Series("town", ["Oslo", "Olso", "Bergen", "Bergne"] * (people.height // 4)))
    for kind in ("csv", "parquet", "xlsx", "sav", "dta", "xpt", "duckdb"):
        files.save(table.lazy(), place / f"people.{kind}", kind)
    files.store(table, "people", place / "people.sqlite")
    pa = pytest.importorskip("pyarrow")
    with pa.CompressedOutputStream(str(place / "people.csv.zst"), "zstd") as stream:
        stream.write((place / "people.csv").read_bytes())
    pytest.importorskip("rdata").write_rds(place / "people.rds", table.to_pandas())
    return place


def told(folder: Path, allowed: tuple[str, ...], cases: tuple[str, ...] = ()) -> dict[str, list[Any]]:
    """What becomes of each case in a process in which only these optional packages are."""
    arguments = [json.dumps(part) for part in (list(allowed), sorted(OPTIONAL), list(cases))]
    clean = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_extras_are_those_of_the_project() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(PACKAGES) <= set(extras)


def test_without_extras(folder: Path) -> None:
    """One sentence with the command that helps, in Python and on the command line; what needs none just works."""
    found = told(folder, ())
    for name, (code, words) in found.items():
        if name not in NEEDS:
            assert (code, words) == (0, ""), name
            continue
        assert code in ("MissingExtraError", 3), (name, words)
        assert words.strip().endswith(f'Install it: pip install "equipoise[{NEEDS[name]}]".'), name
        assert words.strip().count("\n") == 0, name
        assert words.startswith("equipoise: This needs the package" if code == 3 else "This needs the package"), name
    assert not (folder / "made").exists()
    assert not (folder / "to-xlsx").exists()


@pytest.mark.parametrize("extras", [("files", "learn", "strings"), ("duckdb", "r")])
def test_an_extra_is_enough(folder: Path, extras: tuple[str, ...]) -> None:
    """With the packages of an extra, and those alone, everything that names it works."""
    allowed = tuple(name for extra in extras for name in PACKAGES[extra])
    cases = tuple(
        name for name, extra in NEEDS.items() if extra in extras or (extra == "arrow" and "pyarrow" in allowed)
    )
    found = told(folder, allowed, cases)
    assert {name: words for name, (_, words) in found.items() if words} == {}
