"""`equipoise init`, `check` and `presets`: screens, JSON, files, exit codes."""

import json
from pathlib import Path

import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.cli import main

CANARY = "canary7319"
BAD = """format = 1
[data]
path = "people.csv"
[roles]
kyes = ["sex"]
[limits]
uniques = "< 2"
[[candidates]]
masks = [{ use = "noise", columns = ["sex"], scale = 0.3 }]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    eq.demo.survey().head(400).with_columns(note=pl.lit(CANARY)).write_csv(tmp_path / "people.csv")
    return tmp_path


def test_init_then_check(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "people.csv", "--out", "sub/first.toml"]) == 0
    assert "equipoise check sub/first.toml" in capsys.readouterr().out
    assert 'path = "../people.csv"' in (here / "sub/first.toml").read_text(encoding="utf-8")
    assert main(["check", "sub/first.toml"]) == 0
    said = capsys.readouterr().out
    for heading in ("What is read", "What must hold", "What is tried", "How much work it is"):
        assert heading in said
    assert CANARY not in said


def test_init_never_writes_over_a_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "policy.toml").write_text("mine")
    assert main(["init", "people.csv"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert (here / "policy.toml").read_text() == "mine"
    assert main(["init", "people.csv", "--overwrite", "--preset", "hdx", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["preset"] == "hdx"


def test_check_lists_every_problem_with_its_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "bad.toml").write_text(BAD)
    assert main(["check", "bad.toml"]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("equipoise: The policy 'bad.toml' cannot be used.\n  line 5, roles.kyes: No role 'kyes'.")
    assert "\n  line 7, limits.uniques: " in err
    assert "\n  line 9, candidates[1].masks[1].columns: noise is for numbers" in err
    assert CANARY not in err
    assert main(["check", "bad.toml", "--json"]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert [problem["line"] for problem in answer["problems"]] == [5, 7, 9]
    assert answer["problems"][0]["place"] == "roles.kyes"
    assert main(["balance", "bad.toml"]) == 2
    assert "line 7" in capsys.readouterr().err


def test_check_names_files_that_are_missing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "bad.toml").write_text('[data]\npath = "gone.csv"\n[roles]\nkeys = ["sex"]\n[limits]\nuniques = "< 2%"\n')
    assert main(["check", "bad.toml"]) == 2
    assert "line 2, data.path: No file at 'gone.csv'" in capsys.readouterr().err


def test_check_looks_at_the_columns_of_a_table(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "table.toml").write_text(
        'extends = "cms"\n[data]\npath = "people.csv"\n[table]\nby = ["sex", "regin"]\nvalue = "pay"\n'
    )
    assert main(["check", "table.toml"]) == 2
    err = capsys.readouterr().err
    assert "line 5, table.by: No column 'regin' in the data. Did you mean 'region'?" in err
    assert "line 6, table.value: No column 'pay'" in err


def test_check_as_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "people.csv"]) == 0
    capsys.readouterr()
    assert main(["check", "policy.toml", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["recipes"] >= 1
    assert set(answer) >= {"policy", "data", "limits", "candidates", "work", "warnings"}


def test_the_schema_is_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--schema", "policy.schema.json"]) == 0
    assert json.loads((here / "policy.schema.json").read_text(encoding="utf-8"))["title"] == "Equipoise policy"
    assert main(["check", "--schema", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["required"] == ["data"]
    assert main(["check"]) == 2


def test_presets_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets"]) == 0
    said = capsys.readouterr().out
    for name in ("worldbank", "ema", "hipaa-safe-harbor", "cell-key"):
        assert f"\n{name} (" in f"\n{said}"
    assert main(["presets", "ema"]) == 0
    assert 'prosecutor = { limit = "<= 0.09"' in capsys.readouterr().out
    assert main(["presets", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["presets"]) == 13
    assert main(["presets", "emma"]) == 2
    assert "Did you mean 'ema'" in capsys.readouterr().err


TABLE = """[data]
path = "people.csv"
[roles]
hierarchies = { age = { kind = "intervals", widths = [5, 10] } }
[table]
by = ["sex", "regin", "age"]
value = "note"
holding = "famly"
weight = "wieght"
request = "sex"
key = "region"
[table.coarsen]
age = "7"
[table.hierarchies]
sex = ["sx", "race"]
age = "ages.xls"
[limits]
"exposed(rule='p-percent:10%')" = "<= 0"
[[candidates]]
masks = [{ use = "suppress", rule = "p-percent:10%" }]
"""


@pytest.mark.parametrize("verb", ["check", "balance"])
def test_every_misfit_of_a_table_at_once(here: Path, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    """What is not in the file, of the wrong type, or no hierarchy: each with its line, whichever verb reads it."""
    (here / "table.toml").write_text(TABLE, encoding="utf-8")
    assert main([verb, "table.toml", "--json"]) == 2
    answer = json.loads(capsys.readouterr().out)
    found = {(problem["line"], problem["place"]): problem["problem"] for problem in answer["problems"]}
    assert sorted(found) == [
        (6, "table.by"),
        (7, "table.value"),
        (8, "table.holding"),
        (9, "table.weight"),
        (10, "table.request"),
        (11, "table.key"),
        (13, "table.coarsen.age"),
        (15, "table.hierarchies.sex"),
        (16, "table.hierarchies.age"),
    ]
    assert found[7, "table.value"] == "must be a number, and the column 'note' is String."
    assert found[8, "table.holding"].startswith("No column 'famly'")
    assert "is a .csv or .hrc file" in found[16, "table.hierarchies.age"]
    assert CANARY not in json.dumps(answer)
    assert sorted(path.name for path in here.iterdir()) == ["people.csv", "table.toml"]


def test_misfits_of_a_table_beside_other_problems(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = TABLE.replace('"<= 0"', '"<= zero"').replace('key = "region"', 'ready = { n = "many" }')
    (here / "table.toml").write_text(text.replace('[table.coarsen]\nage = "7"\n', ""), encoding="utf-8")
    assert main(["balance", "table.toml"]) == 2
    err = capsys.readouterr().err
    assert "line 16, limits.exposed(rule='p-percent:10%'): " in err
    assert "line 6, table.by: No column 'regin'" in err
    assert "line 11, table.ready.n: No column 'many'" in err
