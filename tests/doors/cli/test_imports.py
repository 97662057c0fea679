"""What the command line imports: a verb no more than it needs. Modules are counted, never time."""

import inspect
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import polars as pl
import pytest

from equipoise.doors.cli.command import VERBS, command

COUNT = """
import contextlib, io, json, sys
from equipoise.doors.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    code = main(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]))
"""
HEAVY = {"polars", "numpy", "scipy", "pydantic", "narwhals", "jinja2", "cryptography", "highspy", "rich.console"}
FAR = (
    "attacks.", "rules.", "tables.", "losses.", "theory.", "masks._", "intrusion.attack", "publishing", "search",
    "releases.release", "releases.balance", "doors.report", "doors.web", "doors.api", "provenance",
    "policies.policy_file",
)  # fmt: skip
"""Rooms that `assess` does not enter."""


def imported(*args: str | Path) -> set[str]:
    """The modules that a command imports, in an interpreter of its own."""
    process = subprocess.run([sys.executable, "-c", COUNT, *map(str, args)], capture_output=True, text=True, check=True)
    code, modules = json.loads(process.stdout.splitlines()[-1])
    assert code == 0, process.stderr
    return set(modules)


def ours(modules: set[str]) -> list[str]:
    return sorted(name.removeprefix("equipoise.") for name in modules if name.startswith("equipoise."))


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    pl.DataFrame({"age": [i % 7 for i in range(50)], "sex": ["f", "m"] * 25}).write_csv(path)
    return path


@pytest.mark.parametrize("args", [(), ("--help",)])
def test_help_imports_no_method_and_no_data(args: tuple[str, ...]) -> None:
    modules = imported(*args)
    assert not modules & HEAVY
    assert len(ours(modules)) <= 12, ours(modules)


@pytest.mark.parametrize("args", [(), ("--measure", "uniques:3")])
def test_assess_imports_what_it_measures(people: Path, args: tuple[str, ...]) -> None:
    """383 modules of ours before; now those of the usual measures, of reading a file and of the screen."""
    modules = imported("assess", people, "--keys", "age,sex", *args)
    far = [name for name in ours(modules) if name.startswith(FAR)]
    assert far == ["theory.response_error"], "the steps to which people round are read in the columns"
    assert len(ours(modules)) <= 140, len(ours(modules))
    assert not modules & {"scipy", "jinja2", "highspy"}


def test_help_of_assess_imports_measures_only() -> None:
    """It lists every measure with its first sentence."""
    modules = imported("assess", "--help")
    rooms = ("search", "publishing", "releases.release", "doors.report", "doors.api", "masks._", "rules.any_subset")
    assert [name for name in ours(modules) if name.startswith(rooms)] == []
    assert not modules & {"scipy", "jinja2"}


@pytest.mark.parametrize("name", VERBS)
def test_what_is_known_of_a_verb_without_importing_it(name: str) -> None:
    """The table of verbs says what the verbs say themselves."""
    module, _, function = VERBS[name].place.partition(":")
    verb = getattr(import_module(f"equipoise.doors.cli.{module}"), function)
    assert (inspect.getdoc(verb) or "").splitlines()[0] == VERBS[name].words
    assert command().commands[name].name == name


def test_a_method_is_imported_alone() -> None:
    code = "import sys, equipoise as eq; eq.masks.Recode; print(*(m for m in sys.modules if 'equipoise.masks.' in m))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.split() == ["equipoise.masks.recode"]
