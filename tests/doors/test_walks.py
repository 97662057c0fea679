"""Three walks from a raw file to a verified release, by the commands of the README's gallery; limits are counted again.

The files are the demo's, the survey and the stays cut down; the policies are those of docs/walks. A file also gets what
may never come out: an e-mail address, a canary, a seed that is known here.
"""

import hashlib
import json
import re
import shlex
import stat
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.cli import main

ROOT = Path(__file__).parents[2]
WALKS = ("survey", "business", "hospital")
SEED = 271828182845904523536028747
CANARY = "Zanzibar77"


@dataclass(frozen=True)
class Walk:
    """A walk: where it went, what was read, what the commands said, and the release that they made."""

    name: str
    folder: Path
    original: pl.DataFrame
    said: str
    digest: str
    made: eq.Release

    @property
    def release(self) -> Path:
        return self.folder / f"{self.name}-release"

    @property
    def public(self) -> Path:
        return self.release / "public"

    @property
    def raw(self) -> Path:
        return self.folder / f"{self.name}.parquet"

    @property
    def data(self) -> pl.DataFrame:
        return pl.read_parquet(self.public / "data.parquet")

    @property
    def evidence(self) -> dict[str, Any]:
        return dict(json.loads((self.public / "evidence.json").read_text(encoding="utf-8")))


def survey() -> pl.DataFrame:
    """One household in five; each stands for five times as many."""
    some = eq.demo.survey().filter(pl.col("household") % 5 == 0)
    return some.with_columns((pl.col("weight") * 5).round(2), email=pl.format("p{}@zanzibar77.org", "person"))


def business() -> pl.DataFrame:
    return eq.demo.business().with_columns(email=pl.format("office{}@zanzibar77.org", "enterprise"))


def hospital() -> pl.DataFrame:
    """One patient in two; one stay has a diagnosis of its own."""
    some = eq.demo.hospital().filter(pl.col("patient") % 2 == 0)
    rare = pl.when(pl.col("stay") == some["stay"][99]).then(pl.lit(f"J45.{CANARY}")).otherwise(pl.col("diagnosis"))
    return some.with_columns(diagnosis=rare)


def gallery(name: str) -> list[list[str]]:
    """The commands of a walk, as the README has them."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Gallery")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    found = [block for block in blocks if f"balance {name}-walk.toml" in block]
    assert len(found) == 1, name
    return [shlex.split(line, comments=True)[1:] for line in found[0].splitlines() if line.startswith("equipoise ")]


def run(*command: str) -> str:
    """What a command says on both channels; it must end with 0."""
    said = StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = main(list(command))
    assert code == 0, f"{shlex.join(command)}\n{said.getvalue()}"
    return said.getvalue()


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Walk]:
    """Each walk is gone once."""

    @cache
    def go(name: str) -> Walk:
        folder = tmp_path_factory.mktemp(name)
        original = {"survey": survey, "business": business, "hospital": hospital}[name]()
        original.write_parquet(folder / f"{name}.parquet")
        digest = hashlib.sha256((folder / f"{name}.parquet").read_bytes()).hexdigest()
        (folder / "seed.json").write_text(json.dumps({"seed": str(SEED)}))
        decided = (ROOT / f"docs/walks/{name}-walk.toml").read_text(encoding="utf-8")
        decided = decided.replace("draws = 2", "draws = 1").replace("draws = 5", "draws = 2")
        (folder / f"{name}-walk.toml").write_text(f'seed_file = "seed.json"\n{decided}', encoding="utf-8")
        balance, releases = eq.balance, []
        with pytest.MonkeyPatch.context() as here:
            here.chdir(folder)
            here.setattr(eq, "balance", lambda *words, **more: releases.append(balance(*words, **more)) or releases[-1])
            canaries = {"verify": ("--canary", CANARY, "--canary", CANARY.lower())}
            commands = [command for command in gallery(name) if "table" not in " ".join(command)]
            steps = [run(*command, *canaries.get(command[0], ())) for command in commands]
            (made,) = releases
            assert isinstance(made, eq.Release)
            made = replace(made, folder=folder / made.folder, data=made.data.held())
        return Walk(name, folder, original, " ".join("".join(steps).split()), digest, made)

    return go


def texts(folder: Path) -> dict[str, str]:
    return {str(file): file.read_bytes().decode("utf-8", "replace") for file in folder.rglob("*") if file.is_file()}


def classes(frame: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """For every record how many have its values; what is missing is a value."""
    return frame.with_columns(alike=pl.len().over(keys))


# --- what holds on every walk ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WALKS)
def test_it_ends_verified_and_accepted(walk: Callable[[str], Walk], name: str) -> None:
    gone = walk(name)
    assert "can be used" in gone.said
    assert "Verified. Made again from the original, the data is the same byte for byte." in gone.said
    assert "Internal error" not in gone.said
    assert gone.evidence["verdict"] == "accepted"
    assert all(row["margin"] > 0 for row in gone.evidence["margins"] if "uniques" not in row["limit"])
    assert gone.evidence["output"]["sha256"] == hashlib.sha256((gone.public / "data.parquet").read_bytes()).hexdigest()
    assert gone.data.height == gone.original.height


@pytest.mark.parametrize("name", WALKS)
def test_the_raw_file_is_as_it_was(walk: Callable[[str], Walk], name: str) -> None:
    gone = walk(name)
    assert hashlib.sha256(gone.raw.read_bytes()).hexdigest() == gone.digest
    assert not [file for file in gone.folder.iterdir() if file.name.startswith(".")]


@pytest.mark.parametrize(
    "name", ["hospital", *(pytest.param(name, marks=pytest.mark.evidence) for name in ("survey", "business"))]
)
def test_python_makes_the_same_choice(walk: Callable[[str], Walk], name: str) -> None:
    """The same seed, the same policy: the same bytes, in Python as by the commands. One here, three in full."""
    gone = walk(name)
    made = eq.balance(gone.folder / f"{name}-walk.toml", out=gone.folder / "in-python")
    assert isinstance(made, eq.Release)
    assert made.evidence["masks"] == gone.evidence["masks"]
    assert (made.public / "data.parquet").read_bytes() == (gone.public / "data.parquet").read_bytes()
    assert made.verdict.accepted


@pytest.mark.parametrize("name", WALKS)
def test_what_the_command_released_is_in_the_folder(walk: Callable[[str], Walk], name: str) -> None:
    gone = walk(name)
    assert gone.made.folder == gone.release
    assert gone.made.evidence == gone.evidence
    assert gone.made.verdict.accepted


@pytest.mark.parametrize("name", WALKS)
def test_identifiers_stay_inside(walk: Callable[[str], Walk], name: str) -> None:
    gone = walk(name)
    withheld = {"survey": {"person", "email"}, "business": {"enterprise", "email"}, "hospital": {"stay", "discharge"}}
    assert set(gone.original.columns) - set(gone.data.columns) == withheld[name]
    group = {"survey": "household", "business": "holding", "hospital": "patient"}[name]
    numbers = gone.data[group].unique().sort()
    assert numbers.to_list() == list(range(1, gone.original[group].n_unique() + 1))
    sizes = [frame.group_by(group).len()["len"].sort().to_list() for frame in (gone.data, gone.original)]
    assert sizes[0] == sizes[1]
    assert gone.data.rows() != gone.original.select(gone.data.columns).rows()


@pytest.mark.parametrize("name", WALKS)
def test_the_seed_is_private_and_the_canary_nowhere(walk: Callable[[str], Walk], name: str) -> None:
    gone = walk(name)
    for file, text in texts(gone.public).items():
        assert str(SEED) not in text, file
        assert f"{SEED:x}" not in text, file
        assert CANARY.lower() not in text.lower(), file
    assert str(SEED) not in gone.said
    assert CANARY.lower() not in gone.said.lower()
    assert CANARY.lower() not in (gone.release / "private/report.html").read_text(encoding="utf-8").lower()
    assert str(SEED) in (gone.release / "private/seed.json").read_text(encoding="utf-8")
    if sys.platform != "win32":
        assert stat.S_IMODE((gone.release / "private").stat().st_mode) == 0o700


@pytest.mark.parametrize("name", WALKS)
def test_the_codebook_says_what_was_done_to_each_variable(walk: Callable[[str], Walk], name: str) -> None:
    gone = walk(name)
    book = (gone.public / "codebook.md").read_text(encoding="utf-8")
    told = {part.partition("\n")[0]: part for part in book.split("\n## ")[1:]}
    assert list(told) == gone.data.columns
    changed = {column for mask in gone.evidence["masks"] for column in mask["columns"]}
    for column, part in told.items():
        assert ("**Changed:**" in part) == (column in changed), column
        assert ("nothing was changed" in part) == (column not in changed), column
    assert f"File `data.parquet`, {gone.data.height:,} records" in book


# --- a household survey ---------------------------------------------------------------------------------------------

NEIGHBOUR = ["region", "sex", "race", "age", "tenure"]
COLLEAGUE = ["region", "sex", "age", "education", "marital"]
SCENARIOS = {"neighbour": NEIGHBOUR, "colleague": COLLEAGUE}


def individual_risk(f: Any, p: Any) -> Any:
    """E(1/F | f) = p times the integral of s^(f-1) / (p + (1-p) s) over 0 to 1, by its recursion in f."""
    found = -np.log(p) / (1 - p)
    for k in range(2, int(f.max()) + 1):
        found = np.where(f >= k, (1 / (k - 1) - p * found) / (1 - p), found)
    return p * found


def household_risk(frame: pl.DataFrame, keys: list[str]) -> float:
    """Mean over records of 1 - product over the household of (1 - r), r with p = f / W of its class.

    Or the sum of r over the members of one class, where that is more: any of their records leads to the household.
    """
    sized = frame.with_columns(f=pl.len().over(keys), total=pl.col("weight").sum().over(keys))
    f, total = sized["f"].to_numpy().astype(float), sized["total"].to_numpy()
    risks = sized.with_columns(risk=pl.Series(individual_risk(f, f / total)))
    classes = risks.with_columns(together=pl.col("risk").sum().over("household", *keys))
    some = 1 - (1 - pl.col("risk")).product().over("household")
    return float(classes.select(pl.max_horizontal(some, pl.col("together").max().over("household"))).to_series().mean())


@pytest.mark.parametrize("who", SCENARIOS)
def test_neither_neighbour_nor_colleague_finds_many(walk: Callable[[str], Walk], who: str) -> None:
    gone, keys = walk("survey"), SCENARIOS[who]
    alone = float((classes(gone.data, keys)["alike"] == 1).mean())
    assert alone < 0.01
    assert gone.made.trial.scores[f"uniques[{who}]"].value == pytest.approx(alone, abs=1e-12)
    assert gone.evidence["scores"][f"uniques[{who}]"]["value"] == pytest.approx(alone, abs=6e-4)
    risk = household_risk(gone.data, keys)
    assert risk < 0.0002 < household_risk(gone.original, COLLEAGUE)
    assert gone.made.trial.scores[f"household[{who}]"].value == pytest.approx(risk, rel=1e-9)


def test_weights_and_families_stay(walk: Callable[[str], Walk]) -> None:
    """Estimates by weight, and who lives with whom, are as they were."""
    gone, kept = walk("survey"), ["region", "sex", "education", "marital", "tenure", "rooms"]
    families = [
        frame.group_by("household").agg(pl.struct(kept).sort_by(kept)).drop("household").to_series().to_list()
        for frame in (gone.data, gone.original)
    ]
    assert sorted(map(str, families[0])) == sorted(map(str, families[1]))
    totals = [
        frame.group_by("region").agg(pl.col("weight").sum()).sort("region") for frame in (gone.data, gone.original)
    ]
    assert totals[0]["weight"].to_list() == pytest.approx(totals[1]["weight"].to_list())
    assert gone.data.group_by("region").agg(pl.col("weight").n_unique())["weight"].max() <= 10


def test_noise_is_as_the_evidence_says(walk: Callable[[str], Walk]) -> None:
    """Multiplied by 1 + e, sd(e) = 0.2 sd / root mean square: zeros stay, nobody's salary is known to 97 %."""
    gone = walk("survey")
    both = gone.original.join(gone.made.data.collect(), on="person", suffix="_released")
    law = next(mask for mask in gone.evidence["masks"] if mask["mask"] == "noise")
    assert law["parameters"]["scale"] == 0.2
    assert ((both["salary"] == 0) == (both["salary_released"] == 0)).all()
    for column in ("salary", "housing_cost"):
        here, there = both[column].to_numpy().astype(float), both[f"{column}_released"].to_numpy().astype(float)
        assert np.std(there - here) == pytest.approx(0.2 * np.std(here), rel=0.05)
        assert np.corrcoef(here, there)[0, 1] ** 2 < 0.97
        assert np.mean(there) == pytest.approx(np.mean(here), rel=0.02)


@pytest.mark.skipif(find_spec("pyreadstat") is None, reason="SPSS files were not tried: the extra 'files' is missing.")
def test_labels_come_out_as_they_went_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same survey as SPSS has it: codes with labels, from raw file to verified release."""
    import pyreadstat

    monkeypatch.chdir(tmp_path)
    sexes = {"Male": 1.0, "Female": 2.0}
    some = eq.demo.survey().drop("household").head(500).with_columns(pl.col("sex").replace_strict(sexes))
    labels = {"sex": {code: word for word, code in sexes.items()}}
    pyreadstat.write_sav(
        some.to_pandas(), "survey.sav", column_labels={"sex": "Sex of person"}, variable_value_labels=labels
    )
    run("init", "survey.sav", "--out", "first.toml")
    text = Path("first.toml").read_text(encoding="utf-8").replace('"< 2%"', '"< 20%"')
    Path("first.toml").write_text(text, encoding="utf-8")
    assert "uniques must be below 20%" in run("check", "first.toml")
    run("balance", "first.toml", "--out", "release")
    assert "Verified" in run("verify", "release")
    frame, told = pyreadstat.read_sav("release/public/data.sav")
    assert told.variable_value_labels["sex"] == labels["sex"]
    assert told.column_names_to_labels["sex"] == "Sex of person"
    assert len(frame) == some.height
    assert set(frame["sex"].dropna()) == set(some["sex"])
    assert "Categories: `1` Male; `2` Female." in Path("release/public/codebook.md").read_text(encoding="utf-8")


# --- a business survey ----------------------------------------------------------------------------------------------

AMOUNTS = ["employees", "turnover", "wages", "investment", "exports"]
FIRM = ["industry", "region", "legal_form", "size_class"]


def linked(released: pl.DataFrame, original: pl.DataFrame) -> float:
    """Share of firms whose record is nearest: each key that differs counts 1, employees (a - b)^2 / variance."""
    coarse = original.with_columns(pl.col("industry").str.head(1), pl.col("region").str.head(3))
    theirs, ours = (frame.sort("enterprise") for frame in (coarse, released))
    spread = float(np.std(original["employees"].to_numpy()))
    a, b = (frame["employees"].to_numpy() / spread for frame in (theirs, ours))
    codes = [pl.concat([theirs[key], ours[key]]).rank("dense").to_numpy().reshape(2, -1) for key in FIRM]
    right = 0.0
    for start in range(0, len(a), 500):
        rows = slice(start, start + 500)
        gaps = (a[rows, None] - b[None]) ** 2
        for here, there in codes:
            gaps += here[rows, None] != there[None]
        tied = np.sqrt(gaps) <= np.sqrt(gaps.min(axis=1, keepdims=True)) * (1 + 1e-9)
        own = tied[np.arange(len(tied)), start + np.arange(len(tied))]
        right += float((own / tied.sum(axis=1)).sum())
    return right / len(a)


def test_a_competitor_links_one_firm_in_eight_at_most(walk: Callable[[str], Walk]) -> None:
    gone = walk("business")
    name = f"nearest(known={(*FIRM, 'employees')!r})"
    share = linked(gone.made.data.collect(), gone.original)
    assert share < 0.12
    assert gone.made.trial.scores[name].value == pytest.approx(share, abs=1e-9)
    alone = float((classes(gone.data, FIRM)["alike"] == 1).mean())
    assert alone < 0.03
    assert gone.made.trial.scores["uniques"].value == pytest.approx(alone, abs=1e-12)


def test_amounts_keep_their_signs_and_their_sums(walk: Callable[[str], Walk]) -> None:
    gone = walk("business")
    both = gone.original.join(gone.made.data.collect(), on="enterprise", suffix="_released")
    weight = both["weight"].to_numpy()
    for column in AMOUNTS:
        here, there = both[column].to_numpy().astype(float), both[f"{column}_released"].to_numpy().astype(float)
        assert (there >= 0).all()
        assert np.corrcoef(here, there)[0, 1] ** 2 < 0.98
        assert np.average(there, weights=weight) == pytest.approx(np.average(here, weights=weight), rel=0.25)
    assert gone.data["weight"].sum() == pytest.approx(gone.original["weight"].sum())
    assert gone.data["weight"].n_unique() <= 10


@pytest.fixture(scope="module")
def tabled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's table by the gallery's commands: regions by sections, suppressed or adjusted, not rounded."""
    folder = tmp_path_factory.mktemp("table")
    eq.demo.write(folder, "business")
    policy = folder / "business-table.toml"
    text = policy.read_text(encoding="utf-8").replace('coarsen = { region = "4"', 'coarsen = { region = "3"')
    text = re.sub(r"^\[table\.hierarchies\.region\]\n.*?\n\n", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^\[\[candidates\]\]\nmasks = \[\{ use = \"round\".*?\n", "", text, flags=re.MULTILINE)
    policy.write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as here:
        here.chdir(folder)
        said = [run(*command) for command in gallery("business") if "table" in " ".join(command)]
    assert len(said) == 2
    assert "Audit: passed" in said[0]
    assert "Verified." in said[1]
    return folder / "table-release"


def test_no_turnover_can_be_computed_from_the_table(tabled: Path) -> None:
    """The p% rule from the records, and what an attacker's linear programs give of every sensitive cell."""
    shown = pl.read_csv(tabled / "public/table.csv").fill_null("Total")
    firms = eq.demo.business().with_columns(pl.col("region").str.head(3), pl.col("industry").str.head(1))
    total, sensitive = {}, {}
    for region, industry in shown.select("region", "industry").rows():
        inside = firms.filter(
            (pl.lit(region == TOTAL) | (pl.col("region") == region)),
            (pl.lit(industry == TOTAL) | (pl.col("industry") == industry)),
        )
        held = (
            inside.group_by("holding").agg(x=(pl.col("turnover") * pl.col("weight")).sum())["x"].sort(descending=True)
        )
        total[region, industry] = float(held.sum())
        largest = [*held.to_list(), 0.0, 0.0][:2]
        lack = 0.1 * largest[0] - (float(held.sum()) - sum(largest))
        if lack > 1e-9 * float(held.sum()):
            sensitive[region, industry] = lack
    suppressed = shown.filter(pl.col("status") == "suppressed").select("region", "industry").rows()
    assert sensitive
    assert set(sensitive) <= set(suppressed)
    for region, industry, value in (
        shown.filter(pl.col("status") == "published").select("region", "industry", "published").rows()
    ):
        assert value == pytest.approx(total[region, industry], rel=1e-6)
    for cell, lack in sensitive.items():
        low, high = bounds(cell, total, suppressed)
        assert high - total[cell] >= lack * (1 - 1e-6)
        assert total[cell] - low >= min(lack, total[cell]) * (1 - 1e-6)


TOTAL = "Total"


def bounds(
    cell: tuple[str, str], total: dict[tuple[str, str], float], suppressed: list[tuple[str, str]]
) -> tuple[float, float]:
    """The least and the most that a suppressed cell can be, by all sums of rows and columns."""
    from scipy.optimize import linprog

    regions, industries = ({place[axis] for place in total} - {TOTAL} for axis in (0, 1))
    sums = [([(r, i) for r in regions], (TOTAL, i)) for i in (*industries, TOTAL)]
    sums += [([(r, i) for i in industries], (r, TOTAL)) for r in (*regions, TOTAL)]
    matrix, right = [], []
    for parts, whole in sums:
        row = [float(place in parts) - float(place == whole) for place in suppressed]
        known = sum(total[part] for part in parts if part not in suppressed)
        matrix.append(row)
        right.append((0.0 if whole in suppressed else total[whole]) - known)
    aim = np.array([float(place == cell) for place in suppressed])
    found = [linprog(sign * aim, A_eq=matrix, b_eq=right, bounds=(0, None)) for sign in (1, -1)]
    assert all(one.status in (0, 3) for one in found)
    return found[0].fun, -found[1].fun if found[1].status == 0 else np.inf


# --- stays in hospital ----------------------------------------------------------------------------------------------

PATIENT = ["hospital", "admission", "age", "sex", "postcode", "emergency"]


def test_no_patient_is_found_with_more_than_nine_percent(walk: Callable[[str], Walk]) -> None:
    """12 patients or more fit any one stay: 1/12 = 0.083, as the European Medicines Agency asks (0.09)."""
    gone = walk("hospital")
    smallest = int(gone.data.group_by(PATIENT).agg(pl.col("patient").n_unique())["patient"].min())  # type: ignore[arg-type]
    assert smallest >= 12
    assert 1 / smallest <= gone.made.trial.scores["prosecutor"].value <= 0.09
    assert gone.evidence["scores"]["prosecutor"]["value"] <= 0.09
    assert gone.evidence["policy"]["preset"] in ("ema", "first.toml")
    assert "Because: EMA policy 0070" in gone.said


def test_what_is_assumed_stands_in_the_headlines(walk: Callable[[str], Walk]) -> None:
    sentences = {
        "hospital": "Assumes that only one stay of a patient is known, not how many there are.",
        "survey": "Assumes that only one member of a household is known, not the whole household, nor its size.",
        "business": "Assumes that only one member of a holding is known, not the whole holding, nor its size.",
    }
    for name, sentence in sentences.items():
        gone = walk(name)
        assert sentence in gone.evidence["assumes"]
        assert sentence in " ".join(gone.said.split())
        for part in ("public", "private"):
            assert sentence in (gone.release / part / "report.html").read_text(encoding="utf-8")
    likely = "Assumes that every patient who fits is as likely: who guesses the one who fits most often finds more."
    gone = walk("hospital")
    pages = [(gone.release / part / "report.html").read_text(encoding="utf-8") for part in ("public", "private")]
    assert all(likely in words for words in (gone.evidence["assumes"], " ".join(gone.said.split()), *pages))


def test_suppressed_keys_are_suppressed_together(walk: Callable[[str], Walk]) -> None:
    gaps = walk("hospital").data.select(pl.sum_horizontal(pl.col(PATIENT).is_null().cast(pl.Int32))).to_series()
    assert set(gaps.unique()) == {0, len(PATIENT)}
    assert float((gaps > 0).mean()) < 0.25, "half the patients: of all stays an eighth loses its keys"


def test_no_exact_date_or_place_leaves_the_house(walk: Callable[[str], Walk]) -> None:
    gone = walk("hospital")
    assert not [name for name, kind in gone.data.schema.items() if isinstance(kind, pl.Date | pl.Datetime)]
    assert gone.data["admission"].drop_nulls().str.contains(r"^\d{4}(-Q[1-4])?$").all()
    assert gone.data["postcode"].drop_nulls().str.len_chars().max() <= 2
    assert gone.data["diagnosis"].str.len_chars().max() == 3
    for column in ("days", "outcome"):
        assert sorted(gone.data[column]) == sorted(gone.original[column])
    assert gone.data["cost"].sum() == pytest.approx(gone.original["cost"].sum(), rel=0.05)
