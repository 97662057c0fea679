"""`equipoise publish`: from a file to the decision and its report, the same numbers as in Python, plain refusals."""

import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.cli import main
from equipoise.methods.method import label
from equipoise.presentation.pages import PAGES
from equipoise.publishing import decision_files
from equipoise.recipe.catalogue import build, parse

CANARY = "Canary-7731"
TABLE = pl.DataFrame(
    {
        "area": [*"abcdefghijk", CANARY],
        "n": [10, 10, 10, 20, 20, 20, 5, 5, 40, 40, 8, 8],
        "N": [50, 50, 200, 30, 30, 30, 500, 500, 90, 90, 12, 12],
        "y": [1, 4, 2, 1, 7, 12, 1, 2, 3, 9, 1, 5],
    }
)
KEYS = {
    "file", "decision", "risk", "withheld", "realised", "cutoff", "cells", "domain", "disclosure", "nonpublication",
    "alternatives", "misfit", "residuals", "answers", "notes", "out",
}  # fmt: skip
Run = Callable[..., str]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command that must end with the exit code; give what it said on stdout, or on stderr where it failed."""

    def call(*args: str | Path, code: int = 0) -> str:
        assert main(["publish", *(str(a) for a in args)]) == code
        out, err = capfd.readouterr()
        assert bool(err) == bool(code), err
        return err if code else out

    return call


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A survey of twelve areas and four jobs, one of them a canary, and the table of cells."""
    folder = tmp_path_factory.mktemp("publish")
    rng = np.random.default_rng(4)
    area = rng.choice([f"area {i:02}" for i in range(12)], 1500)
    survey = pl.DataFrame(
        {
            "area": area,
            "job": rng.choice(["clerk", "cook", "nurse", CANARY], 1500, p=[0.6, 0.3, 0.08, 0.02]),
            "sex": rng.choice(["f", "m"], 1500),
            "age": rng.integers(20, 65, 1500),
            "w": rng.uniform(2, 6, 1500).round(2),
            "worth": rng.integers(1, 4, 1500),
        }
    ).with_columns(people=10 * pl.len().over("area"))
    survey.write_parquet(folder / "survey.parquet")
    survey.group_by("area").agg(N=pl.col("people").first()).sort("area").write_csv(folder / "register.csv")
    TABLE.write_csv(folder / "table.csv")
    (folder / "areas.csv").write_text(
        "".join(f"area {i:02};{'north' if i < 6 else 'south'}\n" for i in range(12)), encoding="utf-8"
    )
    return folder


def survey(folder: Path, *more: str | Path) -> list[str | Path]:
    return [folder / "survey.parquet", "--domain", "area", "--target", "job", "--loss", "uniques:40", *more]


def table(folder: Path, *more: str | Path) -> list[str | Path]:
    return [folder / "table.csv", "--domain", "area", "--prior", "0.5,1.5", *more]


# --- the decision -------------------------------------------------------------------------------------------------


def test_figure_1_in_words(run: Run, tmp_path: Path) -> None:
    """The second example of Zaslavsky and Horton, from its table: 38 % withheld cuts the risk to a fifth."""
    from scipy.stats import betabinom

    sizes = [(10, 50), (10, 200), (20, 30)]
    rows = [(n, N, y, float(betabinom.pmf(y, n, 0.5, 1.5)) / 3) for n, N in sizes for y in range(n + 1)]
    pl.DataFrame(rows, schema=["n", "N", "y", "share"], orient="row").write_csv(tmp_path / "figure.csv")
    args = [tmp_path / "figure.csv", "--prior", "0.5,1.5", "--loss", "uniques:10", "--risk", "0.2"]
    text = run(*args)
    assert "38% of the data withheld cuts the risk to a fifth." in text
    others = ["--compare", "uniques:10/cell", "--compare", "uniques:1"]
    told = json.loads(run(*args, *others, "--json"))
    assert round(told["withheld"], 4) == 0.3846
    by = {row["rule"]: round(row["withheld"], 4) for row in told["alternatives"]}
    assert (by["uniques(S=10) against cell"], by["uniques(S=1)"]) == (0.5302, 0.4371)


def test_python_and_the_command_line_agree(run: Run, made: Path) -> None:
    records = eq.read(made / "survey.parquet", eq.Roles(keys=["sex", "age"], weight="w"))
    found = eq.publication(records, disclosure="uniques:40", domain="area", target="job")
    chosen = found.choose(risk_at_most=0.2)
    told = json.loads(
        run(*survey(made, "--risk", "0.2", "--weight", "w", "--keys", "sex,age", "--json", "--show-values"))
    )
    assert (told["risk"], told["withheld"]) == (chosen.risk, chosen.withheld)
    assert told["realised"] == chosen.realised._asdict()
    assert [row["publish"] for row in told["table"]] == chosen.cells["publish"].to_list()
    for name in ("R0", "R1", "mean", "low", "high", "alpha", "beta"):
        assert [row[name] for row in told["table"]] == found.cells[name].to_list()
    assert told["misfit"]["counted"] == found.misfit.counted  # type: ignore[union-attr]
    assert told["residuals"]["p"] == found.residuals().misfit.p


@pytest.mark.parametrize(
    ("more", "same"),
    [
        (["--share", "0.6"], {"publish_share": 0.6}),
        (["--share", "60%"], {"publish_share": 0.6}),
        (["--cutoff", "0.5"], {"cutoff": 0.5}),
        (["--risk", "0.2", "--nonpublication", "cell"], {"risk_at_most": 0.2, "nonpublication": "cell"}),
        (["--risk", "0.2", "--loss", "small-group:20"], {"risk_at_most": 0.2, "disclosure": "small_group:20"}),
    ],
)
def test_every_way_to_say_how_far(run: Run, made: Path, more: list[str], same: dict[str, Any]) -> None:
    told = json.loads(run(*table(made, *more, "--json")))
    found = eq.publish(TABLE, prior=(0.5, 1.5), domain="area", **same)
    assert (told["risk"], told["withheld"]) == pytest.approx((found.decision.risk, found.decision.withheld))
    assert told["cells"] == found.counts
    assert told["alternatives"] == found.alternatives.to_dicts()


@pytest.mark.parametrize(
    ("given", "same"),
    [
        (["--population", "people"], {"population": "people"}),
        (["--population", "register.csv"], {"population": "people"}),
        (["--population", "people", "--target", "job=cook"], {"population": "people", "target": "job=cook"}),
        (["--weight", "w", "--nonpublication", "worth"], {"weight": "w", "nonpublication": "worth"}),
        (["--population", "people", "--covariates", "age"], {"population": "people", "covariates": "age"}),
    ],
)
def test_where_things_come_from(run: Run, made: Path, given: list[str], same: dict[str, Any]) -> None:
    args = [made / name if name == "register.csv" else name for name in given]
    told = json.loads(
        run(made / "survey.parquet", "--domain", "area", "--loss", "uniques:40", "--risk", "0.3", "--json",
            *([] if "--target" in given else ["--target", "job"]), *args)
    )  # fmt: skip
    records = eq.read(made / "survey.parquet", eq.Roles(weight=same.pop("weight", None)))
    found = eq.publication(records, disclosure="uniques:40", domain="area", **({"target": "job"} | same))
    assert told["withheld"] == found.choose(risk_at_most=0.3).withheld


def test_joint_answers(run: Run, made: Path) -> None:
    args = survey(
        made, "--population", "people", "--risk", "0.1", "--merge", "area",
        "--hierarchy", f"area=csv:{made / 'areas.csv'}", "--way", "round=0.5,0.1",
    )  # fmt: skip
    told = json.loads(run(*args, "--json"))
    assert told["answers"]["loss"] <= told["answers"]["two_way"]
    assert sum(told["answers"]["counts"].values()) == 48
    text = run(*args)
    assert "With more answers along area" in text
    assert "% below that of publishing or suppressing alone" in " ".join(text.split())


# --- what is shown, and what is not -------------------------------------------------------------------------------


def test_the_screen(run: Run, made: Path) -> None:
    text = run(*survey(made, "--population", "people", "--risk", "0.2", "--keys", "sex,age"))
    flat = " ".join(text.split())
    order = ["Publish or suppress: survey.parquet, 48 cells", "cuts the risk to a fifth.", "are published and"]
    order += ["What the wrong rule would cost, at the same risk", "Random suppression 80%", "Notes", "Prior:"]
    order += ["falls as a cell's population grows", "the loss expects", "Add --show-values"]
    places = [flat.index(words) for words in order]
    assert places == sorted(places)
    assert CANARY not in text
    assert "area 0" not in text


def test_values_only_when_asked(run: Run, made: Path) -> None:
    args = survey(made, "--population", "people", "--risk", "0.05")
    assert CANARY in run(*args, "--show-values")
    told = run(*args, "--json")
    assert CANARY not in told
    assert set(json.loads(told)) == KEYS
    shown = json.loads(run(*args, "--json", "--show-values"))
    assert set(shown) == KEYS | {"table"}
    assert set(shown["table"][0]) >= {
        "area",
        "job",
        "y",
        "n",
        "N",
        "mean",
        "low",
        "high",
        "R0",
        "R1",
        "ratio",
        "publish",
    }


def test_it_is_listed(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "publish" in capfd.readouterr().out
    text = run("--help")
    assert all(option in text for option in ("--domain", "--target", "--loss", "--risk", "--merge", "--show-values"))


# --- files --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(made: Path) -> Path:
    out = made / "decided"
    tree = eq.Hierarchy.csv(made / "areas.csv")
    records = eq.read(made / "survey.parquet", eq.Roles(keys=["sex", "age"], weight="w", hierarchies={"area": tree}))
    eq.publish(records, out=out, domain="area", target="job", disclosure="uniques:40", risk_at_most=0.2, merge="area")
    return out


def test_the_folder_is_whole_and_private(folder: Path) -> None:
    assert sorted(file.name for file in folder.iterdir()) == sorted(decision_files.DECISION_FILES)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in folder.iterdir())
    cells = pl.read_csv(folder / "decision.csv")
    told = json.loads((folder / "decision.json").read_text(encoding="utf-8"))
    assert cells.height == told["cells"]["total"] == len(told["table"]) == 48
    assert cells["publish"].sum() == told["cells"]["published"]
    assert {"area", "job", "R0", "R1", "ratio", "mean", "low", "high", "answer"} <= set(cells.columns)
    assert cells["R1"].to_list() == pytest.approx([row["R1"] for row in told["table"]])


def test_the_page(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    words = [
        "Internal report.",
        "cuts the risk to a fifth",
        "What a lower risk costs",
        "What the wrong rule would cost",
    ]
    words += [
        "More than two answers",
        "What was assumed",
        "N is estimated",
        "Does the prior fit?",
        "h-cells",
        "Source:",
    ]
    places = [own.index(word) for word in words]
    assert places == sorted(places)
    assert 'id="curve-spec"' in own
    assert 'id="residuals-spec"' in own
    assert CANARY in own  # internal: cells by their labels
    assert not re.search(r"<(link|img|iframe|object|embed|base)\b|url\(|@import", own)
    assert own.count("<table") == own.count("<caption") == 4


def test_both_charts_are_drawn(folder: Path, opened_page: Any) -> None:
    """In a browser: nothing complained of, nothing asked for, every label of the chart inside it, a tooltip."""
    tab, heard = opened_page(folder / "report.html")
    for name in ("curve", "residuals"):
        tab.wait_for_selector(f"#{name}[data-drawn=yes] svg")
    assert tab.locator("#curve .chosen_marks path").count() == 1
    assert "decision:" in (tab.locator("#curve svg").text_content() or "")
    tab.locator("#curve svg").hover(position={"x": 400, "y": 200})
    assert "Cells published" in tab.locator("#vg-tooltip-element").inner_text()
    assert heard == []


def test_the_page_has_its_charts_without_scripts(folder: Path) -> None:
    """Pictures stand in where nothing is run: every rule's line, the decision on it, and the band of the residuals."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    curve, residuals = re.findall(r"<noscript>(.*?)</noscript>", page, flags=re.DOTALL)
    assert (curve.count("<svg"), residuals.count("<svg")) == (1, 1)
    drawn = dict(re.findall(r'<g class="(\w+)_marks">(.*?)</g>', curve))
    assert {"best_line", "chosen", "chosen_label"} <= set(drawn)
    assert "decision: " in drawn["chosen_label"]
    assert "qq_band_marks" in residuals
    assert "JavaScript" not in curve + residuals


def test_it_prints_without_scripts(folder: Path, tmp_path: Path, chromium: Any) -> None:
    """On paper too: the pictures are there, and the page is no wider than the sheet."""
    tab = chromium.new_context(viewport={"width": 700, "height": 900}, java_script_enabled=False).new_page()
    tab.set_default_timeout(300_000)
    tab.emulate_media(media="print")
    tab.goto((folder / "report.html").resolve().as_uri())
    boxes = [tab.locator("noscript svg").nth(place).bounding_box() for place in (0, 1)]
    tab.pdf(path=str(tmp_path / "page.pdf"), format="A4")
    tab.context.close()
    for box in boxes:
        assert box is not None
        assert box["width"] > 200
        assert box["x"] + box["width"] <= 700
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def test_labels_are_escaped(made: Path) -> None:
    hostile = TABLE.with_columns(area=pl.when(pl.col("area") == CANARY).then(pl.lit("<b>x</b>")).otherwise("area"))
    page = made / "hostile.html"
    eq.publish(hostile, out=page, prior=(0.5, 1.5), domain="area", risk_at_most=0.2)
    text = page.read_text(encoding="utf-8")
    assert "&lt;b&gt;x&lt;/b&gt;" in text
    assert "<b>x</b>" not in text


@pytest.mark.parametrize("name", ["one.csv", "one.json", "one.html"])
def test_a_single_file(run: Run, made: Path, name: str) -> None:
    out = made / name
    args = table(made, "--risk", "0.2", "--out", out)
    assert name in run(*args)
    before = out.read_bytes()
    assert "exists already" in run(*args, code=2)
    assert out.read_bytes() == before
    run(*args, "--overwrite")
    assert not list(made.glob(f".{name}*"))


def test_never_over_anything_else(run: Run, made: Path) -> None:
    out = made / "mine"
    args = table(made, "--risk", "0.2", "--out", out)
    run(*args)
    assert "exists already" in run(*args, code=2)
    run(*args, "--overwrite")
    (out / "notes.txt").write_text("mine")
    assert "holds other files" in run(*args, "--overwrite", code=2)
    assert (out / "notes.txt").read_text() == "mine"


def test_a_failure_leaves_nothing(run: Run, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(PAGES, "Published", fail)
    assert "No space left" in run(*table(made, "--risk", "0.2", "--out", made / "new" / "place"), code=2)
    assert not (made / "new").exists()


# --- what is refused ----------------------------------------------------------------------------------------------


def changed(**columns: Any) -> pl.DataFrame:
    first = {name: pl.when(pl.int_range(pl.len()) == 0).then(value).otherwise(name) for name, value in columns.items()}
    return TABLE.with_columns(**first)


RISK = ["--risk", "0.2"]
GIVEN = ["--prior", "1,2", *RISK]
BAD: list[tuple[str, pl.DataFrame, list[str], str]] = [
    ("n above N", changed(n=60), GIVEN, "n"),
    ("y above n", changed(y=11), GIVEN, "y"),
    ("no N", TABLE.drop("N"), GIVEN, "A table of cells needs the columns n, N and y: there is no N."),
    ("N missing", changed(N=None), GIVEN, "N"),
    ("n is 0", changed(n=0, y=0), GIVEN, "n"),
    ("all y 0", TABLE.with_columns(y=0), GIVEN, "All y are 0"),
    ("one domain", TABLE.head(1), RISK, "one domain only"),
    ("negative loss", changed(n=10).with_columns(worth=-1), [*GIVEN, "--nonpublication", "worth"], "negative"),
    ("unknown loss", TABLE, [*GIVEN, "--loss", "unique:10"], "No loss 'unique'. Did you mean 'uniques'?"),
    ("a loss that is none", TABLE, [*GIVEN, "--loss", "uniques:-3"], "S must be"),
    ("unknown column", TABLE, [*GIVEN, "--nonpublication", "wort"], "No column 'wort'"),
    ("domain that is not there", TABLE, [*GIVEN, "--domain", "aera"], "Did you mean 'area'?"),
    ("bad prior", TABLE, ["--prior", "1", *RISK], "--prior is two numbers: ALPHA,BETA, like 0.5,1.5."),
    ("negative prior", TABLE, ["--prior", "-1,2", *RISK], "alpha"),
    ("two limits", TABLE, [*GIVEN, "--share", "0.5"], "one of --risk 0.2, --share 0.6 and --cutoff 1, not --risk and"),
    ("no limit", TABLE, ["--prior", "1,2"], "Say how far to go with one of"),
    ("percent", TABLE, ["--prior", "1,2", "--risk", "20"], "Write 20 % as 0.2."),
    ("no number", TABLE, ["--prior", "1,2", "--risk", "low"], "--risk must be a share between 0 and 1, like 0.2"),
    ("cutoff of 0", TABLE, ["--prior", "1,2", "--cutoff", "0"], "cutoff must be a number above 0"),
    ("no hierarchy", TABLE, [*GIVEN, "--merge", "area"], "has no hierarchy"),
    ("bad way", TABLE, [*GIVEN, "--way", "round"], "--way is written"),
    ("no population", TABLE, [*GIVEN, "--population", "peple"], "neither a column nor a file"),
    ("no such file", TABLE, [*GIVEN, "--population", "peple.csv"], "No file at 'peple.csv'."),
    ("not numbers", TABLE.with_columns(y=pl.lit(CANARY)), GIVEN, "must hold numbers"),
    ("compared with nothing", TABLE, [*GIVEN, "--compare", "unique:1"], "Did you mean 'uniques'?"),
]


@pytest.mark.parametrize(("cells", "more", "words"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bad_input_is_one_sentence(run: Run, tmp_path: Path, cells: pl.DataFrame, more: list[str], words: str) -> None:
    cells.write_csv(tmp_path / "cells.csv")
    given = [] if "--domain" in more else ["--domain", "area"]
    text = run(tmp_path / "cells.csv", *given, *more, "--out", tmp_path / "out", code=2)
    assert words in text
    assert text.count("\n") == 1
    assert CANARY not in text
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--target", "job"], "N is missing"),
        (["--target", "jobb", "--population", "people"], "Did you mean 'job'?"),
        (["--target", "job=", "--population", "people"], "--target names columns, or a class of each"),
        (["--target", "job=pilot", "--population", "people"], "All y are 0"),
        (["--population", "people"], "Name the target"),
        (["--target", "job", "--population", "age"], "differs within a domain"),
        (["--target", "job", "--weight", "weight"], "No column 'weight'"),
    ],
)
def test_bad_surveys(run: Run, made: Path, more: list[str], words: str) -> None:
    text = run(made / "survey.parquet", "--domain", "area", *RISK, *more, code=2)
    assert words in text
    assert text.count("\n") == 1
    assert CANARY not in text


def test_a_failure_is_json_too(made: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["publish", str(made / "table.csv"), "--json"]) == 2
    assert json.loads(capfd.readouterr().out)["exit_code"] == 2


# --- a real walk --------------------------------------------------------------------------------------------------


def test_the_demo_survey_from_file_to_report(run: Run, tmp_path: Path) -> None:
    """One command: regions by age as domains, race as the class, N from the weights, the keys of the demo's policy."""
    eq.demo.survey().write_parquet(tmp_path / "survey.parquet")
    text = run(
        tmp_path / "survey.parquet", "--domain", "region,age", "--target", "race", "--weight", "weight",
        "--keys", "sex,salary,marital", "--loss", "gamma-uniques:500,0.5", "--risk", "0.2", "--out", tmp_path / "out",
    )  # fmt: skip
    assert "3% of the data withheld cuts the risk to a fifth." in text
    assert "the model of the loss fits the file" in " ".join(text.split())
    told = json.loads((tmp_path / "out" / "decision.json").read_text(encoding="utf-8"))
    assert told["cells"]["total"] == 4 * 77 * 5
    assert told["realised"]["risk"] <= 0.2
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "3\xa0% of the data withheld cuts the risk to a fifth." in page


ADULT = Path(os.environ.get("EQUIPOISE_DATA", "/nowhere")) / "arx" / "adult.csv"


@pytest.mark.skipif(not ADULT.is_file(), reason="adult.csv is not in EQUIPOISE_DATA")
def test_adult_from_file_to_report(run: Run, tmp_path: Path) -> None:
    """Countries as domains, occupations as classes; the file has no weights, so N is a register of 20 to 1."""
    sizes = eq.read(ADULT).collect().group_by("native-country").agg(N=20 * pl.len())
    sizes.write_csv(tmp_path / "register.csv")
    told = json.loads(
        run(ADULT, "--domain", "native-country", "--target", "occupation", "--population", tmp_path / "register.csv",
            "--keys", "sex,age,race", "--loss", "uniques:50", "--risk", "0.2", "--out", tmp_path / "out", "--json")
    )  # fmt: skip
    assert told["cells"]["total"] == sizes.height * 14
    assert 0 < told["withheld"] < 0.5
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000


# --- as a rule of a policy ----------------------------------------------------------------------------------------

RULE = "expected_loss(disclosure='uniques:40', domain='area', cutoff=0.3)"


@pytest.mark.parametrize(
    "text",
    ["expected-loss:uniques:40,domain=area,cutoff=0.3", "expected-loss:disclosure=uniques(40),domain=area,cutoff=0.3"],
)
def test_the_rule_as_text(text: str) -> None:
    """Kebab-case and brackets too; rules join, and come back from their labels."""
    rule = parse(RULE, "rule")
    assert parse(text, "rule") == rule
    assert build("synthesize", "mask", {"columns": ["age"], "only": text}).only == rule
    joined = parse(f"{text} | min-count:3", "rule")
    assert joined == rule | eq.rules.MinCount(3)
    assert parse(label(joined), "rule") == joined


def test_the_rule_in_a_policy(made: Path) -> None:
    """What the rule flags is synthesized, the rest is left; the policy that makes it again gives the same file."""
    policy = made / "policy.toml"
    policy.write_text(
        f"""
        assume_unknown = ["age", "w"]
        [data]
        path = "survey.parquet"
        [roles]
        keys = ["area", "job"]
        numeric = ["age"]
        weight = "w"
        [limits]
        moments = "< 0.9"
        [[candidates]]
        masks = [{{ use = "synthesize", columns = ["age"], only = "{RULE} | min_count:3" }}]
        """,
        encoding="utf-8",
    )
    found = eq.balance(policy, out=made / "ruled", overwrite=True)
    (mask,) = found.trial.recipe.masks
    records = eq.read(made / "survey.parquet", eq.Roles(["area", "job"], weight="w"))
    cells = eq.count(records)
    flagged = cells.table.filter(mask.only.flag(cells)).select("area", "job", touched=True)
    assert 0 < flagged.height < cells.table.height
    before = records.collect().join(flagged, on=["area", "job"], how="left", maintain_order="left")
    moved = before["age"] != found.data.collect()["age"]
    assert not (moved & before["touched"].is_null()).any()
    assert moved.any()
    again = eq.balance(made / "ruled" / "private" / "policy.toml", out=made / "again", overwrite=True)
    assert again.data.collect().equals(found.data.collect())


def test_the_rule_on_the_command_line(made: Path, capfd: pytest.CaptureFixture[str]) -> None:
    args = ["protect", made / "survey.parquet", "--keys", "area,job", "--numeric", "age", "--weight", "w"]
    args += ["--mask", "synthesize", "--columns", "age", "--only", "expected-loss:gamma-uniques(40,2),domain=area"]
    assert main([*map(str, args), "--out", str(made / "protected"), "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["masks"][0]["only"] == "expected_loss(disclosure='gamma_uniques(S=40, a=2)', domain=('area',))"


def test_the_rule_flags_what_the_publication_withholds(made: Path) -> None:
    """Same cutoff, same prior, same N: the rule on cells and the decision on records are one."""
    records = eq.read(made / "survey.parquet", eq.Roles(["area", "job"]))
    sizes = dict(records.collect().group_by("area").agg(pl.col("people").first()).rows())
    rule = eq.rules.ExpectedLoss("uniques:40", "y", (0.5, 1.5), "area", sizes, cutoff=0.3)
    cells = eq.count(records)
    flagged = cells.table.select("area", "job", unsafe=rule.flag(cells))
    chosen = eq.publication(records, (0.5, 1.5), "uniques:40", "y", "area", "job", "people").choose(cutoff=0.3)
    both = flagged.join(chosen.cells, on=["area", "job"])
    assert both.height == flagged.height
    assert (both["unsafe"] != both["publish"]).all()
