"""`equipoise roles` and `equipoise demo NAME`: screens of 80 columns, JSON, files, exit codes."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.cli import main

Run = Callable[..., str]
CANARY = "Quetzalcoatlus"


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on 80 columns that must end with the exit code; give its stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*args: str | Path, code: int = 0) -> str:
        assert main([str(a) for a in args]) == code
        out, err = capfd.readouterr()
        return out + err

    return call


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    size = 200
    pl.DataFrame(
        {
            "Geschlecht": ["w", "m"] * (size // 2),
            "edad": [i % 70 for i in range(size)],
            "comune": [CANARY] + [f"{c}" for i in range(size - 1) for c in "abc"[i % 3]],
            "reddito": [1000.5 * i for i in range(size)],
            "mail": [f"{CANARY}{i}@example.org" for i in range(size)],
        }
    ).write_csv(path)
    return path


def test_the_screen(people: Path, run: Run) -> None:
    out = run("roles", people)
    assert max(len(line.rstrip()) for line in out.splitlines() if str(people) not in line) <= 80
    assert "people.csv: 200 records, 5 columns" in out
    assert "named like sex (German)" in out
    assert "named like an age (Spanish)" in out
    assert "withheld from a release or refused in it: mail" in " ".join(out.split())
    assert CANARY not in out


def test_json(people: Path, run: Run) -> None:
    answer = json.loads(run("roles", people, "--json"))
    assert [c["role"] for c in answer["columns"]] == ["key", "key", "key", "numeric", "direct"]
    assert answer["direct"] == ["mail"]
    assert answer["columns"][1]["levels"] == ["5", "10", "20"]
    assert (answer["records"], answer["looked_at"], answer["roles_file"]) == (200, 200, None)
    assert CANARY not in json.dumps(answer)


def test_the_file_is_written_once_and_used(people: Path, run: Run) -> None:
    roles, release = people.with_name("roles.toml"), people.with_name("release")
    out = run("roles", people, "--out", roles)
    assert f"equipoise assess {people} --roles {roles}" in out
    assert eq.Roles.from_toml(roles) == eq.suggest_roles(people).roles
    before = roles.read_text(encoding="utf-8")
    assert CANARY not in before
    assert "exists already" in run("roles", people, "--out", roles, code=2)
    assert roles.read_text(encoding="utf-8") == before
    run("roles", people, "--out", roles, "--overwrite")
    told = run("protect", people, "--roles", roles, "--mask", "recode:edad,10", "--out", release)
    assert "mail withheld: it says who it is" in told
    assert "mail" not in pl.read_csv(release / "public" / "data.csv").columns


def test_a_release_with_an_identifier_is_refused(people: Path, run: Run) -> None:
    options = (
        "protect",
        people,
        "--keys",
        "Geschlecht,edad",
        "--mask",
        "recode:edad,10",
        "--hierarchy",
        "edad=intervals:10",
    )
    told = run(*options, "--out", people.with_name("no"), code=1)
    assert "column 'mail' looks like a direct identifier (e-mail addresses)" in told
    assert "--allow" in told
    assert CANARY not in told
    assert not people.with_name("no").exists()
    run(*options, "--direct", "mail", "--out", people.with_name("without"))
    assert "mail" not in pl.read_csv(people.with_name("without") / "public" / "data.csv").columns
    run(*options, "--allow", "mail", "--out", people.with_name("yes"))
    assert "mail" in pl.read_csv(people.with_name("yes") / "public" / "data.csv").columns


@pytest.mark.parametrize("args", [("nothing.csv",), (".",)])
def test_bad_input(args: tuple[str, ...], run: Run) -> None:
    assert run("roles", *args, code=2).startswith("equipoise: ")


def test_demo_hospital(tmp_path: Path, run: Run) -> None:
    out = run("demo", "hospital", "--out", tmp_path / "demo")
    assert "best of" in out
    assert "admission given by month only" in out
    assert "Compare six methods" not in out
    assert {p.name for p in (tmp_path / "demo").iterdir()} == {
        "hospital.parquet", "hospital.toml", "hospital-roles.toml", "hospital-release",
    }  # fmt: skip
    assert "holds a demo already" in run("demo", "hospital", "--out", tmp_path / "demo", code=2)


def test_an_unknown_demo(tmp_path: Path, run: Run) -> None:
    assert "Did you mean 'business'?" in run("demo", "buisness", "--out", tmp_path / "demo", code=2)
    assert not list(tmp_path.iterdir())


def test_names_with_line_breaks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before, such a name in --keys, or in a comment of a first policy, was an internal error."""
    table = pl.DataFrame({"age": [20, 30] * 20, "a\nb\x1b[2J": ["f", "m"] * 20, "area": ["n", "s", "e", "w"] * 10})
    table.write_csv(tmp_path / "d.csv")
    assert main(["assess", str(tmp_path / "d.csv"), "--keys", "age,a\nb\x1b[2J"]) == 0
    assert main(["init", str(tmp_path / "d.csv"), "--out", str(tmp_path / "p.toml")]) == 0
    assert "\x1b" not in (tmp_path / "p.toml").read_text(encoding="utf-8") + capsys.readouterr().out
    (tmp_path / "h.csv").write_text("f;" + "x" * 200_000 + "\n", encoding="utf-8")
    with pytest.raises(eq.DataError, match=r"h\.csv.*too long"):
        eq.Hierarchy.csv(tmp_path / "h.csv")
