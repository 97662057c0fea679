"""The command line: what it answers to people and to machines, and how it ends."""

import json
import os
import pty
import re
import shlex
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.data.records import Law
from equipoise.doors.cli import main
from equipoise.doors.cli.method_options import fold
from equipoise.methods.score import Score
from equipoise.presentation.pages import PAGES

SCORE = {"value", "number", "unit", "better", "interval", "baseline", "notes"}
COMMAND = [sys.executable, "-c", "import sys; from equipoise.doors.cli import main; sys.exit(main())"]
Run = Callable[..., str]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command that must end with the exit code, without a word on stderr when that is 0; give its stdout."""

    def call(*args: str | Path, code: int = 0) -> str:
        assert main([str(a) for a in args]) == code
        out, err = capfd.readouterr()
        assert bool(err) == bool(code), err
        return out

    return call


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Two hundred people in a file whose path has a space and an accent."""
    path = tmp_path / "les élèves 1" / "people.csv"
    path.parent.mkdir()
    table = {
        "age": [20 + i * 7 % 50 for i in range(200)],
        "sex": ["f" if i % 3 else "m" for i in range(200)],
        "salary": [1000 * (i * 13 % 90) for i in range(200)],
        "ill": ["no" if i % 5 else "yes" for i in range(200)],
        "w": [1.5 + i % 2 for i in range(200)],
        "nr": list(range(200)),
    }
    pl.DataFrame(table).write_csv(path)
    return path


@pytest.fixture
def policy(people: Path) -> Path:
    path = people.parent / "policy.toml"
    path.write_text(
        """
        assume_unknown = ["salary", "nr"]
        [data]
        path = "people.csv"
        [roles]
        keys = ["age", "sex"]
        [roles.hierarchies.age]
        kind = "intervals"
        widths = [5, 10]
        [limits]
        uniques = "< 0.9"
        """,
        encoding="utf-8",
    )
    return path


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# Version and help


def test_version(run: Run) -> None:
    assert run("--version") == f"equipoise {eq.__version__}\n"


def test_version_as_a_process_loads_no_terminal_library() -> None:
    code = "import sys; from equipoise.doors.cli import main; main(['--version']); print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"equipoise {eq.__version__}", "False"]
    assert done.stderr == ""


def test_the_installed_script_runs() -> None:
    script = Path(sys.executable).with_name("equipoise")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"equipoise {eq.__version__}"


@pytest.mark.parametrize("args", [(), ("--help",)])
def test_help_lists_the_verbs(run: Run, args: tuple[str, ...]) -> None:
    out = run(*args)
    assert all(verb in out for verb in ("demo", "assess", "protect", "balance", "methods"))


@pytest.mark.parametrize("verb", ["demo", "assess", "protect", "balance"])
def test_every_data_verb_has_json(run: Run, verb: str) -> None:
    assert "--json" in run(verb, "--help")


def test_help_lists_the_methods(run: Run) -> None:
    masks, measures = run("protect", "--help"), run("assess", "--help")
    assert all(name in masks for name in ("recode", "top-code", "bottom-code"))
    assert all(name in measures for name in ("uniques", "population-uniques", "attribute-disclosure", "entropy"))


@pytest.mark.parametrize(
    "args", [("protect", "--mask", "top-code", "--help"), ("protect", "--mask", "top-code:age", "-h")]
)
def test_help_of_a_mask_has_its_fields_and_source(run: Run, args: tuple[str, ...]) -> None:
    out = run(*args)
    assert re.search(r"--at +number +required", out)
    assert re.search(r"--replace-by +'mean' \| 'median' \| 'threshold' +default 'mean'", out)
    assert "Source: Willenborg" in out
    assert ">>>" not in out


def test_help_of_a_measure(run: Run) -> None:
    assert re.search(r"--k +whole number +default 1", run("assess", "--measure", "uniques", "--help"))


def test_methods_lists_all_and_tells_one(run: Run) -> None:
    listed = run("methods")
    assert all(name in listed for name in ("min-count", "recode", "uniques", "entropy"))
    assert "Massell (1999)" in run("methods", "entropy")
    assert run("methods", "top_code") == run("methods", "top-code")


# Demo


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One demo as a process, and what it said."""
    folder = tmp_path_factory.mktemp("demo") / "demo"
    done = subprocess.run([*COMMAND, "demo", "survey", "--out", folder], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return folder, done.stdout


def test_demo_ends_with_release_report_and_next_steps(demo: tuple[Path, str]) -> None:
    folder, out = demo
    assert "best of" in out
    assert "salary grouped into intervals" in out
    assert str(folder / "survey-release" / "private" / "report.html") in out
    assert f"equipoise balance {folder / 'survey.toml'} --overwrite" in out
    assert max(len(line.rstrip()) for line in out.splitlines() if str(folder) not in line) <= 80


def test_demo_writes_a_complete_release(demo: tuple[Path, str]) -> None:
    release = demo[0] / "survey-release"
    public = {"codebook.json", "codebook.md", "data.parquet", "evidence.json", "report.html"}
    private = {"journal.jsonl", "policy.toml", "recipe.json", "replay.py", "report.html", "seed.json"}
    assert {p.name for p in (release / "public").iterdir()} == public
    assert {p.name for p in (release / "private").iterdir()} == private
    assert stat.S_IMODE((release / "private").stat().st_mode) == 0o700
    assert sorted(p.name for p in demo[0].iterdir()) == [
        "methods.toml",
        "survey-release",
        "survey-roles.toml",
        "survey.parquet",
        "survey.toml",
    ]


def test_demo_twice_needs_overwrite(demo: tuple[Path, str], run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time a part of the survey is balanced, with limits and noise that suit it."""
    folder, balance = demo[0], eq.balance
    before = files(folder)
    run("demo", "--out", folder, code=2)
    assert files(folder) == before

    def in_part(policy: Path, **options: Any) -> Any:
        assert {name: data for name, data in files(folder).items() if "release" not in name} == {
            name: data for name, data in before.items() if "release" not in name
        }
        pl.read_parquet(folder / "survey.parquet").head(4_000).write_parquet(folder / "survey.parquet")
        text = policy.read_text(encoding="utf-8").replace("< 0.02", "< 0.1").replace("> 7.5", "> 6")
        text = text.replace("scale = 0.1", "scale = 0.3").replace("<= 0.05", "<= 0.25")
        policy.write_text(text, encoding="utf-8")
        return balance(policy, **options)

    monkeypatch.setattr(eq, "balance", in_part)
    answer = json.loads(run("demo", "--out", folder, "--overwrite", "--json"))
    assert answer["verdict"] == "accepted"
    assert answer["candidates"]["tried"] == 32
    assert Path(answer["report"]).is_file()
    assert pl.read_parquet(folder / "survey-release/public/data.parquet").height == 4_000


def test_demo_that_fails_leaves_nothing(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **options: Any) -> None:
        raise eq.DataError("No.")

    monkeypatch.setattr(eq, "balance", broken)
    run("demo", "--out", tmp_path / "a" / "demo", code=2)
    assert not list(tmp_path.iterdir())


# Assess


def test_assess_gives_the_numbers_of_eq_assess(people: Path, run: Run) -> None:
    options = ("--keys", "age,sex", "--sensitive", "ill", "--weight", "w", "--json")
    answer = json.loads(run("assess", people, *options))
    same = eq.assess(eq.read(people, eq.Roles(["age", "sex"], ["ill"], weight="w")))
    assert list(answer["scores"]) == list(same.scores.keys())
    for score in same.scores:
        told = answer["scores"][score.name]
        assert set(told) == SCORE
        assert (told["value"], told["number"], told["better"]) == (score.value, score.number, score.better)
    assert answer["records"] == 200
    assert answer["by_key"] == same.keys.to_dicts()
    assert "categories" not in answer


def test_assess_shows_values_only_when_asked(people: Path, run: Run) -> None:
    args = ("assess", people, "--keys", "salary,age")
    assert "age = " not in run(*args)
    assert "age = " in run(*args, "--show-values")
    assert json.loads(run(*args, "--show-values", "--json"))["categories"]


def test_assess_takes_measures_short_and_long(people: Path, run: Run) -> None:
    args = ("assess", people, "--keys", "age", "--keys", "sex", "--json")
    short = json.loads(run(*args, "--measure", "uniques:3", "--measure", "entropy"))
    long = json.loads(run(*args, "--measure", "uniques", "--k", "3", "--measure", "entropy"))
    assert short == long
    assert list(short["scores"]) == ["uniques(k=3)", "entropy"]


def test_notes_are_shown_and_warnings_are_not(people: Path, run: Run) -> None:
    args = ("assess", people, "--keys", "age", "--measure", "population-uniques:0.001,zayatz")
    assert "1,000 times the sample" in " ".join(run(*args).split())
    assert json.loads(run(*args, "--json"))["scores"]["population_uniques(fraction=0.001, model='zayatz')"]["notes"]


def test_markup_in_names_is_shown_as_it_is(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "[bold]x.csv"
    pl.DataFrame({"[red]age": [1, 2, 2], ":smile:": ["a", "b", "b"]}).write_csv(path)
    out = run("assess", path, "--keys", "[red]age,:smile:")
    assert "[red]age" in out
    assert ":smile:" in out
    assert "[bold]x.csv" in out
    mask = ("--mask", "top-code", "--column", "[red]age", "--at", "1")
    assert "[red]age above 1" in run("protect", path, "--keys", "[red]age", *mask, "--out", tmp_path / "[x]*")


def test_control_characters_in_names_are_not_sent_to_the_terminal(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "x.csv"
    pl.DataFrame({"a\x1b[2J": [1, 2, 2]}).write_csv(path)
    assert "\x1b" not in run("assess", path, "--keys", "a\x1b[2J")


def test_a_name_with_a_comma_is_quoted(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "x.csv"
    pl.DataFrame({"income, net": [1, 2, 2], "sex": ["f", "m", "m"]}).write_csv(path)
    answer = json.loads(run("assess", path, "--keys", '"income, net",sex', "--json"))
    assert answer["keys"] == ["income, net", "sex"]


def test_roles_file_and_options_over_it(people: Path, run: Run) -> None:
    roles = people.parent / "roles.toml"
    roles.write_text('[roles]\nkeys = ["age", "sex"]\nweight = "w"\n', encoding="utf-8")
    assert json.loads(run("assess", people, "--roles", roles, "--json"))["keys"] == ["age", "sex"]
    assert json.loads(run("assess", people, "--roles", roles, "--keys", "age", "--json"))["keys"] == ["age"]


# Protect


def test_short_and_long_masks_give_the_same_data(people: Path, tmp_path: Path, run: Run) -> None:
    common = ("protect", people, "--keys", "age,sex", "--hierarchy", "age=intervals:5,10", "--keep-order", "--out")
    run(*common, tmp_path / "a", "--mask", "recode:age,10", "--mask", "top-code:salary,at=50000,replace_by=median")
    run(
        *(*common, tmp_path / "b", "--mask", "recode", "--level", "10", "--column=age"),
        *("--mask", "top-code", "--column", "salary", "--at", "50000", "--replace-by", "median"),
    )
    first, second = (tmp_path / name / "public" / "data.csv" for name in "ab")
    assert first.read_bytes() == second.read_bytes()
    roles = eq.Roles(["age", "sex"], hierarchies={"age": eq.Hierarchy.intervals([5, 10])})
    masks = [eq.masks.Recode("age", "10"), eq.masks.TopCode("salary", 50000, "median")]
    same = eq.Recipe(masks).run(eq.read(people, roles)).collect()
    assert pl.read_csv(first).equals(pl.read_csv(same.write_csv().encode()))


def test_protect_tells_what_it_did(people: Path, tmp_path: Path, run: Run) -> None:
    args = ("protect", people, "--keys", "age,sex", "--id", "nr", "--mask", "top-code:age,50", "--out", tmp_path / "a")
    out = run(*args, "--limit", "uniques:1 < 99%", "--limit", "entropy >= 0.1")
    assert "inside every limit" in out
    assert "age above 50 replaced by their mean" in out
    assert "nr withheld" in out
    assert re.search(r"uniques +\S+ +\S+ +\d+ +< 0.99", out)
    assert str(tmp_path / "a" / "private" / "report.html") in out


def test_protect_as_json(people: Path, tmp_path: Path, run: Run) -> None:
    args = ("protect", people, "--keys", "age,sex", "--mask", "top-code:age,50", "--out", tmp_path / "a", "--json")
    answer = json.loads(run(*args, "--format", "parquet"))
    assert answer["masks"] == [{"use": "top_code", "column": "age", "at": 50.0, "replace_by": "mean"}]
    assert answer["data"].endswith("data.parquet")
    assert Path(answer["data"]).is_file()
    assert all(set(score) == SCORE for score in answer["scores"].values())
    assert "seed" not in json.dumps(answer)


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("age=intervals:5,10", "recode:age,10"),
        ("age=breaks:30,50", "recode:age,1"),
        ("nr=prefix:3,2", "recode:nr,3"),
        ("born=dates:month,year", "recode:born,year"),
        ("sex=csv:sex.csv", "recode:sex,1"),
    ],
)
def test_hierarchies_in_short(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, text: str, mask: str) -> None:
    monkeypatch.chdir(tmp_path)
    column = text.partition("=")[0]
    numbers = range(60)
    table = {"age": [20 + i for i in numbers], "nr": [f"1{i:03}" for i in numbers], "sex": ["f", "m"] * 30}
    table["born"] = [f"2001-{1 + i % 12:02}-03" for i in numbers]
    pl.DataFrame(table).write_csv("x.csv")
    Path("sex.csv").write_text("f;any\nm;any\n")
    run("protect", "x.csv", "--keys", column, "--hierarchy", text, "--mask", mask, "--out", "out")
    assert pl.read_csv("out/public/data.csv")[column].n_unique() < pl.read_csv("x.csv")[column].n_unique()


def test_two_hierarchies_of_a_column_are_branches(people: Path, tmp_path: Path, run: Run) -> None:
    trees = ("--hierarchy", "age=intervals:3", "--hierarchy", "age=intervals:5")
    run("protect", people, "--keys", "age", *trees, "--mask", "recode:age,3", "--out", tmp_path / "a")
    run("protect", people, "--keys", "age", *trees, "--mask", "recode:age,5", "--out", tmp_path / "b")


# Fields of methods as options


@dataclass(frozen=True)
class Jitter:
    """Add noise to columns. Source: nobody."""

    columns: tuple[str, ...]
    scale: float = 0.1
    weight: str | None = None
    whole: bool = False
    within: tuple[str, ...] | str | None = None

    def apply(self, data: Any, draws: Any) -> Any:
        return data.with_frame(data.frame, Law("jitter", self.columns, f"jitter {self.columns} by {self.scale}"))


@pytest.fixture
def jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eq.masks, "Jitter", Jitter, raising=False)
    monkeypatch.setattr(eq.masks, "__all__", [*eq.masks.__all__, "Jitter"])


@pytest.mark.usefixtures("jitter")
@pytest.mark.parametrize(
    ("given", "folded"),
    [
        ("--mask jitter --scale 0.2 --columns a,b", "--mask jitter(scale='0.2',columns=['a','b'])"),
        ("--mask jitter --columns=a --columns b --out o", "--mask jitter(columns=['a','b']) --out o"),
        ("--mask jitter --columns a --weight w", "--mask jitter(columns=['a'],weight='w')"),
        ("--mask jitter --columns a --out o --weight w", "--mask jitter(columns=['a']) --out o --weight w"),
        ("--mask jitter --columns a --out o --scale -1", "--mask jitter(columns=['a'],scale='-1') --out o"),
        ("--mask jitter --within auto --columns a", "--mask jitter(within='auto',columns=['a'])"),
        ("--mask jitter --within a --within b,c", "--mask jitter(within=['a','b','c'])"),
        ("--mask jitter --whole --columns a", "--mask jitter(whole=True,columns=['a'])"),
        ("--mask jitter --no-whole f.csv", "--mask jitter(whole=False) f.csv"),
        ("--weight w --mask recode:a,1 --weight v", "--weight w --mask recode:a,1 --weight v"),
        ("--mask recode --level 1 --mask jitter --columns a", "--mask recode(level='1') --mask jitter(columns=['a'])"),
    ],
)
def test_fields_after_a_mask_belong_to_it(given: str, folded: str) -> None:
    done = fold(given.split(), "--mask", "mask", {"--mask", "--out", "--weight"})
    assert [part.replace(", ", ",") for part in done] == folded.split()


@pytest.mark.usefixtures("jitter")
def test_a_mask_listed_later_works_without_touching_the_cli(people: Path, tmp_path: Path, run: Run) -> None:
    args = ("protect", people, "--keys", "age", "--out", tmp_path / "a", "--mask", "jitter", "--columns", "age,salary")
    assert "jitter ('age', 'salary') by 0.3" in run(*args, "--scale", "0.3")
    assert re.search(r"--columns +names +required", run("protect", "--mask", "jitter", "--help"))


# Balance


def test_balance_twice_needs_overwrite(policy: Path, run: Run) -> None:
    out = run("balance", policy)
    release = policy.parent / "policy-release"
    assert str(release / "private" / "report.html") in out
    before = files(release)
    run("balance", policy, code=2)
    assert files(release) == before
    assert json.loads(run("balance", policy, "--overwrite", "--json"))["folder"] == str(release)
    assert files(release) != before


def test_balance_answers_as_json(policy: Path, tmp_path: Path, run: Run) -> None:
    answer = json.loads(run("balance", policy, "--out", tmp_path / "r", "--json"))
    assert answer["candidates"]["tried"] == answer["candidates"]["inside"] == 3
    assert answer["limits"] == {"uniques": "< 0.9"}
    assert answer["scores"]["uniques"]["value"] < 0.9
    assert answer["folder"] == str(tmp_path / "r")


@pytest.mark.parametrize("code", [1, 2])
def test_errors_as_json(policy: Path, code: int, capfd: pytest.CaptureFixture[str]) -> None:
    bound = '< 0.9"\nprosecutor = "< 1e-9' if code == 1 else "few"
    policy.write_text(policy.read_text(encoding="utf-8").replace("< 0.9", bound), encoding="utf-8")
    assert main(["balance", str(policy), "--json"]) == code
    out, err = capfd.readouterr()
    told = json.loads(out)
    assert told["exit_code"] == code
    assert err == f"equipoise: {told['error']}\n"


# A measure that is listed later


@dataclass(frozen=True)
class Dummy:
    """Half of something. Source: nobody.

    Misleads when believed.
    """

    half: float = 0.5

    def by(self, roles: Any) -> tuple[str, ...]:
        return tuple(roles.keys)

    def measure(self, released: Any, original: Any) -> Score:
        return Score("dummy", self.half, "lower", unit="halves")


def test_a_dummy_measure_appears_everywhere(policy: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eq.risk, "Dummy", Dummy, raising=False)
    monkeypatch.setattr(eq.risk, "__all__", [*eq.risk.__all__, "Dummy"])
    assert re.search(r"dummy +Half of something\.", run("methods"))
    assert re.search(r"dummy +Half of something\.", run("assess", "--help"))
    assert "--half" in run("methods", "dummy")
    data = policy.with_name("people.csv")
    assert json.loads(run("assess", data, "--keys", "age", "--measure", "dummy", "--json"))["scores"]["dummy"]
    policy.write_text(policy.read_text(encoding="utf-8") + 'dummy = "< 0.6"\n')
    assert re.search(r"dummy +.*0\.5000 .*< 0\.6", run("balance", policy))
    report = policy.parent / "policy-release" / "private" / "report.html"
    assert "dummy" in report.read_text(encoding="utf-8").lower()


# How it ends


def test_an_internal_error_tells_its_name_only(people: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    def broken(*args: Any, **options: Any) -> None:
        raise TypeError("CANARY7731")

    monkeypatch.setattr("equipoise.doors.cli.assess.measure_file", broken)
    told = json.loads(run("assess", people, "--keys", "age", "--json", code=3))
    assert told["error"].startswith("internal error (TypeError);")
    assert "CANARY7731" not in told["error"]


def test_a_panic_of_an_engine_is_told_without_its_words(
    people: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    def panic(*args: Any, **options: Any) -> None:
        raise pl.exceptions.PanicException("CANARY7731")

    monkeypatch.setattr("equipoise.doors.cli.assess.measure_file", panic)
    assert "PanicException" in run("assess", people, "--keys", "age", "--json", code=2)


def test_debugging_shows_where(
    people: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*args: Any, **options: Any) -> None:
        raise TypeError("where")

    monkeypatch.setattr("equipoise.doors.cli.assess.measure_file", broken)
    monkeypatch.setenv("EQUIPOISE_DEBUG", "1")
    assert main(["assess", str(people), "--keys", "age"]) == 3
    assert "Traceback" in capfd.readouterr().err


def test_a_missing_extra_ends_with_3(people: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    def lacking(*args: Any, **options: Any) -> None:
        raise eq.MissingExtraError.for_package("pyspark", "spark")

    monkeypatch.setattr("equipoise.doors.cli.assess.measure_file", lacking)
    assert "pip install" in run("assess", people, "--keys", "age", "--json", code=3)


def test_interrupt_in_the_middle_writes_nothing(
    policy: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def stop(*args: Any, **options: Any) -> str:
        raise KeyboardInterrupt

    before = files(policy.parent)
    monkeypatch.setitem(PAGES, "Report", stop)
    assert main(["balance", str(policy)]) == 130
    said = capfd.readouterr().err
    assert said.startswith("equipoise: Stopped. Nothing was released. What was tried is kept in ")
    assert ".policy-release.journal" in said
    left = {name: held for name, held in files(policy.parent).items() if not name.endswith(".journal")}
    assert left == before, "what was tried is kept in a private journal, so that the next run goes on from there"
    assert len(list(policy.parent.iterdir())) == 3


def test_interrupt_of_a_process(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "demo", "--out", tmp_path / "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and not (tmp_path / "demo").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert (out, err) == ("", "equipoise: Stopped. Nothing was released.\n")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written(people: Path, run: Run) -> None:
    place = people / "inside a file" / "out"
    told = run("protect", people, "--keys", "age", "--mask", "top-code:age,50", "--out", place, "--json", code=2)
    assert "Not a directory" in json.loads(told)["error"]


def test_a_reader_that_left_is_no_error(people: Path) -> None:
    command = shlex.join([*COMMAND, "assess", str(people), "--keys", "age,sex"])
    script = f"{command} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
    assert done.stderr == ""


# On a terminal


def on_a_terminal(args: list[str], **variables: str) -> str:
    """Run a command with stderr on a pseudo-terminal; give what it wrote there."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", **variables}
    process = subprocess.Popen([*COMMAND, *args], stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    seen = b""
    try:
        while block := os.read(leader, 1 << 16):
            seen += block
    except OSError:
        pass
    assert process.wait(timeout=300) == 0
    os.close(leader)
    return seen.decode()


def test_progress_and_colour_on_a_terminal(policy: Path) -> None:
    seen = on_a_terminal(["balance", str(policy)])
    assert "reading" in seen
    assert "\x1b[1;32mReleased" in seen


def test_no_colour_when_told(policy: Path) -> None:
    seen = on_a_terminal(["balance", str(policy)], NO_COLOR="1")
    assert "\x1b[1;32m" not in seen
    assert "Released" in seen
