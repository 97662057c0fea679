"""What verbs read: a sheet of a workbook, tau-ARGUS data by its metadata, the answer of a query; and a table back."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from equipoise import files
from equipoise.doors.cli import main

Run = Callable[..., str]
ALL = "SELECT * FROM people"
VERBS = {
    "assess": ["--keys", "sex,area"],
    "protect": ["--keys", "sex,area", "--id", "person", "--allow", "salary", "--out", "release"],
    "roles": [],
    "publish": ["--domain", "area", "--target", "sex", "--weight", "weight", "--risk", "0.5"],
    "table": ["--by", "sex,area", "--rule", "min-count:3"],
}


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command in an empty folder; it must end with the exit code; give its stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)

    def call(*args: str | Path, code: int = 0) -> str:
        capfd.readouterr()
        found = main([str(a) for a in args])
        out, err = capfd.readouterr()
        assert found == code, out + err
        return out if code == 0 else err

    return call


@pytest.fixture(params=["duckdb", "sqlite"])
def held(request: pytest.FixtureRequest, tmp_path: Path, people: pl.DataFrame) -> Path:
    if request.param == "duckdb":
        pytest.importorskip("duckdb")
    place = tmp_path / f"office.{request.param}"
    files.store(people, "people", place)
    files.store(people.head(3), "other", place)
    return place


@pytest.mark.parametrize("verb", VERBS)
def test_the_answer_of_a_query(held: Path, verb: str, run: Run) -> None:
    """With the database as FILE and with --database; both say the same."""
    first = json.loads(run(verb, held, "--query", ALL, *VERBS[verb], "--json"))
    again = [*VERBS[verb], "--json", *(["--overwrite"] if verb == "protect" else [])]
    second = json.loads(run(verb, "--database", held, "--query", ALL, *again))
    assert {k for k in first if first[k] != second[k]} <= {"file"}
    assert second.get("file", "query") == "query"
    assert first.get("records", 400) == 400


def test_an_attack_on_a_query(held: Path, people: pl.DataFrame, run: Run, tmp_path: Path) -> None:
    people.drop("person").write_csv(tmp_path / "released.csv", separator=";")
    told = ["--known", "age,area", "--attack", "nearest", "--json"]
    found = json.loads(run("attack", "released.csv", "--against", held, "--query", ALL, "--delimiter", ";", *told))
    assert found["against"] == str(held)
    assert 350 < found["people"] <= 400  # without rows in order, those who can be paired


def test_a_query_on_files(people: pl.DataFrame, run: Run, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    people.write_parquet(tmp_path / "part-1.parquet")
    people.write_parquet(tmp_path / "part-2.parquet")
    asked = "SELECT sex, area FROM 'part-*.parquet' WHERE age > 30"
    found = json.loads(run("assess", "--query", asked, "--keys", "sex,area", "--json"))
    assert found["records"] == 2 * people.filter(pl.col("age") > 30).height


def test_results_go_back(held: Path, people: pl.DataFrame, run: Run) -> None:
    """The released table stands in the database; nothing else there changed, and it is not replaced unasked."""
    recoded = ["--hierarchy", "age=intervals:10", "--mask", "recode:age,1"]
    told = [held, "--query", ALL, *VERBS["protect"], *recoded, "--keep-order", "--into", "safe"]
    run("protect", *told)
    back = pl.DataFrame(files.query('SELECT * FROM "safe"', held).pl() if held.suffix == ".duckdb" else
                        files.query('SELECT * FROM "safe"', held))  # fmt: skip
    assert back.columns == [c for c in people.columns if c != "person"]
    assert back["age"].to_list() == [f"{a // 10 * 10}-{a // 10 * 10 + 9}" for a in people["age"]]
    del back
    said = run("protect", *[w if w != "release" else "second" for w in map(str, told)], code=2)
    assert said == "equipoise: There is a table 'safe' already: name another, or add --overwrite.\n"
    assert not Path("second").exists()
    run("protect", *told, "--overwrite")
    assert json.loads(run("assess", held, "--query", ALL, "--keys", "sex", "--json"))["records"] == 400


REFUSED: dict[str, tuple[list[str], str]] = {
    "two places": (["assess", "a.csv", "--database", "b.duckdb", "--query", ALL], "name one of them"),
    "no query": (["assess", "--database", "b.duckdb"], "--database is for --query"),
    "nothing": (["assess", "--keys", "a"], "Missing argument 'FILE'"),
    "nothing to attack with": (["attack", "a.csv", "--known", "a"], "Missing option '--against'"),
    "no such database": (["assess", "none.duckdb", "--query", ALL], "No database file at 'none.duckdb'"),
    "into nowhere": (["protect", "a.csv", "--into", "t", "--out", "o"], "--into is for --query"),
    "into files": (["protect", "--query", ALL, "--into", "t", "--out", "o"], "--into is for --query"),
    "a password": (
        ["assess", "--database", "mysql://user:Quetzal@host/db", "--query", ALL],
        "No way to databases of the kind 'mysql'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, run: Run) -> None:
    args, said = REFUSED[name]
    err = run(*args, *(["--keys", "sex"] if args[0] == "assess" else []), code=2)
    assert said in err
    assert err.count("\n") == 1
    assert "Quetzal" not in err


def test_options_of_another_format(people: pl.DataFrame, run: Run, tmp_path: Path) -> None:
    people.write_parquet(tmp_path / "people.parquet")
    err = run("assess", "people.parquet", "--keys", "sex", "--sheet", "Ark1", code=2)
    assert err == "equipoise: sheet is for .xlsx files, not for .parquet files.\n"
    err = run("assess", "--query", ALL, "--sheet", "Ark1", "--keys", "sex", code=2)
    assert err == "equipoise: sheet is for .xlsx files, not for a query.\n"


def test_a_sheet(people: pl.DataFrame, run: Run, tmp_path: Path) -> None:
    xlsxwriter = pytest.importorskip("xlsxwriter")
    pytest.importorskip("fastexcel")
    with xlsxwriter.Workbook(tmp_path / "book.xlsx") as book:
        people.head(5).write_excel(book, worksheet="first")
        people.write_excel(book, worksheet="Ark 2")
    counts = [json.loads(run("assess", "book.xlsx", "--keys", "sex", "--json", *s))["records"]
              for s in ([], ["--sheet", "Ark 2"])]  # fmt: skip
    assert counts == [5, 400]
    assert "Ark 2" in run("assess", "book.xlsx", "--keys", "sex", "--sheet", "Ark 3", code=2)
    people.write_csv(tmp_path / "released.csv")
    told = ["--known", "age,area", "--attack", "nearest", "--json"]
    found = run("attack", "released.csv", "--against", "book.xlsx", "--sheet", "Ark 2", "--delimiter", ",", *told)
    assert json.loads(found)["people"] == 400


def test_metadata(run: Run, tmp_path: Path) -> None:
    """The metadata gives the roles; options override them; a roles file replaces them."""
    rda = "<SEPARATOR> ,\nregion 2\n<RECODEABLE>\nsex 1\n<RECODEABLE>\nw 3\n<WEIGHT>\n"
    (tmp_path / "told.rda").write_text(rda, encoding="utf-8")
    (tmp_path / "other.rda").write_text("x 1 1", encoding="utf-8")
    (tmp_path / "micro.asc").write_text("\n".join(f"{i % 5},{i % 2},1" for i in range(60)), encoding="utf-8")
    assert "name it with" in run("assess", "micro.asc", code=2)
    found = json.loads(run("assess", "micro.asc", "--metadata", "told.rda", "--json"))
    assert (found["records"], found["keys"]) == (60, ["region", "sex"])
    found = json.loads(run("assess", "micro.asc", "--metadata", "told.rda", "--keys", "sex", "--json"))
    assert found["keys"] == ["sex"]
    (tmp_path / "roles.toml").write_text('keys = ["region"]\n', encoding="utf-8")
    told = ["--metadata", "told.rda", "--roles", "roles.toml", "--json"]
    assert json.loads(run("assess", "micro.asc", *told))["keys"] == ["region"]


@pytest.mark.parametrize("verb", [*VERBS, "attack"])
def test_the_help_tells_them(verb: str, run: Run) -> None:
    out = run(verb, "--help")
    assert all(f"--{name}" in out for name in ("sheet", "metadata", "query", "database"))
