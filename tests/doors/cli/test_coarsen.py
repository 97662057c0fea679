"""The verb `coarsen`: what it answers, writes and refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.cli import main

Run = Callable[..., str]
TREES = ("--hierarchy", "age=intervals:5,10", "--hierarchy", "area=prefix:2,1")


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*args: str | Path, code: int = 0) -> str:
        assert main([str(a) for a in args]) == code
        out, err = capfd.readouterr()
        assert bool(err) == bool(code), err
        return out if not code else err

    return call


@pytest.fixture
def file(people: pl.DataFrame, tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    people.write_csv(path)
    return path


def test_the_answer_of_python_as_json(run: Run, file: Path) -> None:
    told = json.loads(run("coarsen", file, "--keys", "sex,area,age", *TREES, "--k", "3", "--suppress", "30%", "--json"))
    trees = {"age": eq.Hierarchy.intervals([5, 10]), "area": eq.Hierarchy.prefix(2, 1)}
    records = eq.read(file, eq.Roles(["sex", "area", "age"], hierarchies=trees))
    found = eq.best_coarsening(records, eq.rules.MinCount(3), suppress_at_most=0.3)
    assert told == {"file": str(file), "folder": None, **found.to_plain()}
    assert told["proven"]


def test_a_release_and_a_map(run: Run, file: Path, tmp_path: Path) -> None:
    """The released file satisfies the rules; the map has a row for every node."""
    out, page = tmp_path / "release", tmp_path / "map.csv"
    said = run(
        "coarsen", file, "--keys", "sex,area,age", "--id", "person", *TREES, "--rule", "min-count:3",
        "--rule", "diversity:ill,2", "--suppress", "0.5", "--loss", "class-size", "--out", out, "--map", page,
    )  # fmt: skip
    assert "proven best of 9 coarsenings (9 counted)" in " ".join(said.split())
    data = pl.read_csv(out / "public" / "data.csv", schema_overrides={"area": pl.String}).drop_nulls(["sex", "area"])
    classes = data.group_by("sex", "area", "age").agg(n=pl.len(), kinds=pl.col("ill").n_unique())
    assert classes["n"].min() >= 3  # type: ignore[operator]
    assert classes["kinds"].min() >= 2  # type: ignore[operator]
    table = pl.read_csv(page)
    assert table.height == 9
    assert table["known"].to_list() == ["counted"] * 9
    assert "exists already" in run("coarsen", file, "--keys", "age", *TREES, "--k", "3", "--map", page, code=2)


def test_mean_risk_weights_and_a_population(run: Run, file: Path) -> None:
    """The same as from Python."""
    options = ("--mean-risk", "20%", "--rule", f"k-map:3,{file}", "--suppress", "30%", "--key-weight", "age=0.5")
    answer = json.loads(run("coarsen", file, "--keys", "sex,area,age", *TREES, *options, "--json"))
    trees = {"age": eq.Hierarchy.intervals([5, 10]), "area": eq.Hierarchy.prefix(2, 1)}
    records = eq.read(file, eq.Roles(["sex", "area", "age"], hierarchies=trees))
    loss = eq.losses.Granularity(weights={"age": 0.5})
    best = eq.best_coarsening(records, eq.rules.KMap(3, file), loss, 0.3, mean_risk_at_most=0.2)
    assert answer == {"file": str(file), "folder": None, **best.to_plain()}
    assert answer["mean_risk"] <= 0.2
    assert "mean risk" in answer["words"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "Say what must hold"),
        (("--k", "3", "--suppress", "20"), "Write 20 % as 0.2"),
        (("--k", "3", "--loss", "granularty"), "Did you mean 'granularity'"),
        (("--k", "300", "--suppress", "0"), "No coarsening satisfies"),
        (("--rule", "diversity:iil,2"), "Did you mean 'ill'"),
        (("--mean-risk", "20"), "Write 20 % as 0.2"),
        (("--k", "3", "--key-weight", "age"), "--key-weight age=0.5"),
        (("--k", "3", "--key-weight", "agee=2"), "which is no key"),
        (("--k", "3", "--loss", "class-size", "--key-weight", "age=2"), "takes no weights"),
        (("--rule", "k-map:3,nowhere.csv"), "nowhere.csv"),
    ],
)
def test_refusals(run: Run, file: Path, options: tuple[str, ...], words: str) -> None:
    assert words in run("coarsen", file, "--keys", "sex,area,age", *TREES, *options, code=2)
