"""`equipoise attack`: the same answers as in Python, plain refusals, no value of the data in any of them."""

import json
import re
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.cli import main
from equipoise.releases.release import release
from equipoise.releases.reopen import reopen

CANARY = "Canary-7731"
ROLES = eq.Roles(["age", "sex", "area"], numeric=["salary"], id="person")
KEYS = {"released", "against", "people", "known", "truth", "estimated", "scenarios", "strongest", "knowledge", "notes"}
Run = Callable[..., str]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command that must end with the exit code; give what it said on stdout, or on stderr where it failed."""

    def call(*args: str | Path, code: int = 0) -> str:
        assert main([str(a) for a in args]) == code
        out, err = capfd.readouterr()
        assert bool(err) == bool(code), err
        return err if code else out

    return call


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, people: pl.DataFrame) -> Path:
    """An original with a canary in it, a noisy copy with ids, a shuffled one without, and a release folder."""
    folder = tmp_path_factory.mktemp("attack")
    people = people.with_columns(
        name=pl.lit(CANARY), area=pl.when(pl.col("person") == 7).then(pl.lit(CANARY)).otherwise("area")
    )
    people.write_csv(folder / "people.csv")
    original = eq.read(people, ROLES)
    for seed in (1, 2):
        noisy = eq.Recipe([eq.masks.Noise(["age", "salary"], 0.3)], seed).run(original)
        noisy.collect().write_csv(folder / f"noisy{seed}.csv")
    noisy.collect().drop("person").sample(fraction=1, shuffle=True, seed=2).write_csv(folder / "mixed.csv")
    release(original, eq.Recipe([eq.masks.TopCode("age", 60)], 1), eq.Policy(keep_order=True), folder / "out")
    return folder


def command(folder: Path, *more: str, released: str = "noisy1.csv") -> list[str]:
    return ["attack", str(folder / released), "--against", str(folder / "people.csv"), *more]


def answer(run: Run, *args: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*args, "--json"))
    return found


def test_it_is_listed(run: Run) -> None:
    assert "attack" in run("--help")
    text = run("attack", "--help")
    assert "RELEASED..." in text
    assert "}" not in text.splitlines()[1]
    assert all(name in text for name in ("nearest", "linkage", "interval"))
    assert "uniques" not in text


def test_help_of_an_attack(run: Run) -> None:
    text = run("attack", "--attack", "nearest", "--help")
    assert "--attack nearest" in text
    assert "--metric" in text


def test_the_screen_says_it_in_sentences(run: Run, made: Path) -> None:
    text = run(*command(made, "--known", "age,sex,area", "--id", "person"))
    flat = " ".join(text.split())
    assert re.search(
        r"Knowing age, sex(,| and) area.*of people are linked correctly \(.*\); guessing would give 0.25%", flat
    )
    assert "to within 10% of the ranks" in flat
    assert flat.index("What an intruder could do") < flat.index("Most dangerous knowledge") < flat.index("Notes")
    assert "All 6 combinations of up to 2 of 3 columns were tried" in flat
    assert CANARY not in text


def test_python_and_the_command_line_agree(run: Run, made: Path) -> None:
    told = answer(run, *command(made, "--known", "age,sex", "--id", "person", "--attack", "nearest", "--exposed", "3"))
    original = eq.read(made / "people.csv", eq.Roles(id="person"))
    found = eq.attack(eq.read(made / "noisy1.csv"), original, known=["age", "sex"], attacks=[eq.attacks.Nearest()])
    assert told["scenarios"][0]["score"]["value"] == found.strongest.score.value
    assert told["scenarios"][0]["words"] == found.strongest.words.replace("\xa0", " ")
    assert told["knowledge"] == found.knowledge.to_dicts()
    assert [row["person"] for row in told["exposed"]] == found.exposed(3)["person"].to_list()


def test_the_shape_of_the_answer(run: Run, made: Path) -> None:
    told = answer(
        run, *command(made, "--known", "age", "--known", "sex", "--attack", "nearest", "--attack", "interval:0.05")
    )
    assert set(told) == KEYS | {"report"}
    assert told["known"] == ["age", "sex"]
    assert told["truth"] == "row"
    assert [s["kind"] for s in told["scenarios"]] == ["link", "interval"]
    assert set(told["scenarios"][0]) == {"kind", "known", "words", "attack", "score", "tried"}
    assert set(told["knowledge"][0]) == {"known", "size", "value", "baseline", "low", "high"}
    assert CANARY not in json.dumps(told)


def test_fields_of_an_attack_follow_it(run: Run, made: Path) -> None:
    told = answer(run, *command(made, "--known", "age,salary", "--attack", "nearest", "--metric", "mahalanobis"))
    assert told["scenarios"][0]["attack"] == "nearest(known=('age', 'salary'), metric='mahalanobis')"


def test_a_shuffled_file_is_estimated(run: Run, made: Path) -> None:
    told = answer(run, *command(made, "--known", "age,sex", "--id", "person", released="mixed.csv"))
    assert told["estimated"]
    assert all(s["words"].startswith("Estimated: ") for s in told["scenarios"])


def test_a_release_folder_tells_its_masks(run: Run, made: Path) -> None:
    """The public evidence tells the intruder of the top code; the folder is found by its name or by public/."""
    told = [
        answer(run, *command(made, "--known", "age,sex", "--attack", "informed", released=r))
        for r in ("out", "out/public")
    ]
    assert told[0]["scenarios"] == told[1]["scenarios"]
    assert reopen(made / "out").history[0].mask == "top_code"
    assert "how the file was masked" in told[0]["scenarios"][0]["words"]


def test_a_release_folder_is_made_again(run: Run, made: Path) -> None:
    """The folder alone is enough: its policy names the original and the keys; the public part alone is said to be."""
    eq.release(
        eq.read(made / "people.csv", replace(ROLES, direct=("name",))),
        eq.Recipe([eq.masks.Noise(["age", "salary"], 0.3)], 4), eq.Policy(), made / "again",
    )  # fmt: skip
    told = answer(run, "attack", str(made / "again"), "--attack", "nearest")
    assert (told["truth"], told["known"], told["against"]) == ("release", list(ROLES.keys), "the original")
    assert told["notes"][0].startswith("The release was made again from its private folder")
    same = answer(run, *command(made, "--known", "age,sex,area", "--attack", "nearest", released="again"))
    assert same["scenarios"] == told["scenarios"]
    bare = answer(run, *command(made, "--known", "sex,area", "--attack", "nearest", released="again/public"))
    assert bare["notes"][0] == "The release was not made again: private/ is not here."


def test_several_copies_are_averaged(run: Run, made: Path) -> None:
    """Two copies with independent noise tell more than one."""
    args = [
        "--against",
        made / "people.csv",
        "--known",
        "age,salary",
        "--id",
        "person",
        "--attack",
        "nearest",
        "--json",
    ]
    one = json.loads(run("attack", made / "noisy1.csv", *args))
    two = json.loads(run("attack", made / "noisy1.csv", made / "noisy2.csv", *args))
    assert two["scenarios"][0]["score"]["value"] > one["scenarios"][0]["score"]["value"]


def test_copies_out_of_step_are_refused(run: Run, made: Path) -> None:
    args = ["attack", made / "noisy1.csv", made / "mixed.csv", "--against", made / "people.csv", "--known", "age"]
    assert "cannot be averaged" in run(*args, code=2)


def test_a_roles_file(run: Run, made: Path) -> None:
    """A register need not have the columns of a survey: weights and others are passed over."""
    roles = made / "roles.toml"
    roles.write_text('keys = ["age", "sex"]\nweight = "gone"\nid = "person"\n')
    told = answer(run, *command(made, "--roles", str(roles), "--attack", "nearest"))
    assert (told["known"], told["truth"]) == (["age", "sex"], "id")


# The page


@pytest.fixture(scope="module")
def page(made: Path) -> str:
    path = made / "pages" / "report.html"
    files = eq.read(made / "noisy1.csv"), eq.read(made / "people.csv", ROLES)
    eq.attack(*files, out=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return path.read_text(encoding="utf-8")


def test_the_page_has_the_section(page: str) -> None:
    assert "<h1>Attack on noisy1.csv</h1>" in page
    assert "What an intruder could do" in page
    assert 'id="knowledge-spec"' in page
    assert "The most dangerous knowledge" in page
    assert CANARY not in page
    assert "Internal report" in page


def test_the_page_is_whole(page: str) -> None:
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"<(link|img|iframe|object|embed|base)\b|url\(|@import", own)
    assert own.count("<table") == own.count("<caption") == 1


def test_the_page_is_written_once(run: Run, made: Path) -> None:
    out = made / "once.html"
    args = command(made, "--known", "age", "--attack", "nearest", "--out", str(out))
    assert "once.html" in run(*args)
    before = out.read_bytes()
    assert "exists already" in run(*args, code=2)
    assert out.read_bytes() == before
    run(*args, "--overwrite")
    assert not list(made.glob(".once*"))


def test_reports_of_a_release(made: Path) -> None:
    inside = (made / "out" / "private" / "report.html").read_text(encoding="utf-8")
    public = (made / "out" / "public" / "report.html").read_text(encoding="utf-8")
    assert 'id="knowledge-spec"' in inside
    assert "of people are linked correctly" in inside
    assert 'id="knowledge-spec"' not in public
    (sentence,) = re.findall(r"<p>(Of people whose .*? at most\.)</p>", public)
    share = float(re.search(r"([\d.]+).%", sentence)[1])  # type: ignore[index]
    assert round(share, 1) == share
    assert "combinations" not in public


# What is refused


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ([], "Nothing is known: say which columns an intruder knows with --known age,sex,region."),
        (["--known", "agee"], "No column 'agee' in the data. Did you mean 'age'?"),
        (["--known", "age", "--id", "nr"], "No column 'nr' in the data."),
        (["--known", "age", "--id", "sex"], "The id column 'sex' has missing or repeated values"),
        (["--known", "age", "--sensitive", "wealth"], "No column 'wealth' in the data."),
        (["--known", "age", "--attack", "uniques"], "'uniques' is no attack. There are: "),
        (["--known", "age", "--attack", "nearst"], "No measure 'nearst'. Did you mean 'nearest'?"),
        (["--known", "age", "--attack", "nearest:nope"], "'nope'"),
        (["--known", "age", "--size", "0"], "--size"),
        (["--known", "age", "--out", "."], "is a folder"),
    ],
)
def test_bad_input_is_one_sentence(run: Run, made: Path, more: list[str], words: str) -> None:
    text = run(*command(made, *more), code=2)
    assert words in text
    assert text.count("\n") == 1
    assert CANARY not in text


@pytest.mark.parametrize(
    ("released", "words"),
    [
        ("none.csv", "No file at"),
        ("empty.csv", "is empty"),
        ("other.csv", "None of the columns with a role is in the first row"),
        ("folder", "is not a release"),
        ("people.xyz", "No format for files ending in"),
        ("lacking.csv", "No column 'age' in the data"),
    ],
)
def test_bad_files(run: Run, made: Path, released: str, words: str) -> None:
    (made / "empty.csv").write_text("")
    (made / "other.csv").write_text(f"{CANARY},b\n1,2\n3,4\n")
    (made / "lacking.csv").write_text("aged,sex\n1,f\n3,m\n")
    (made / "people.xyz").write_text("age\n1\n")
    (made / "folder").mkdir(exist_ok=True)
    text = run(*command(made, "--known", "age,sex", released=released), code=2)
    assert words in text
    assert CANARY not in text


def test_the_intruders_file_is_missing(run: Run, made: Path) -> None:
    args = ["attack", made / "noisy1.csv", "--against", made / "peple.csv", "--known", "age"]
    assert "Did you mean 'people.csv'?" in run(*args, code=2)


def test_a_failure_is_json_too(run: Run, made: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*command(made, "--json")]) == 2
    assert json.loads(capfd.readouterr().out)["exit_code"] == 2


# As limits of a policy


def test_an_attack_may_be_a_limit(run: Run, made: Path) -> None:
    """However it is written, a limit on an attack is on its score; the report names it in words."""
    policy = made / "policy.toml"
    policy.write_text(
        """
        assume_unknown = ["salary", "area"]
        [data]
        path = "people.csv"
        [roles]
        keys = ["age", "sex"]
        numeric = ["salary"]
        id = "person"
        [limits]
        "nearest(known=('age','sex'))" = "< 0.5"
        "interval(0.1,columns=('salary',))" = "< 0.99"
        [[candidates]]
        masks = [{ use = "noise", columns = ["age", "salary"], scale = [0.2, 0.4] }]
        """,
        encoding="utf-8",
    )
    told = json.loads(run("balance", policy, "--out", made / "limited", "--json"))
    assert told["verdict"] == "accepted"
    assert set(told["limits"]) == {"nearest(known=('age', 'sex'))", "interval(columns=('salary',))"}
    page = (made / "limited" / "private" / "report.html").read_text(encoding="utf-8")
    assert "Nearest record (known = age and sex)" in page
    assert "Interval disclosure (columns = salary)" in page
    assert "(known = (" not in page
