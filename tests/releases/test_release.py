"""Release: whole or not at all, public and private kept apart, and the same again from its own policy."""

import json
import os
import shutil
import stat
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.ground import system
from equipoise.presentation.pages import PAGES
from equipoise.releases.evidence import EVIDENCE_FORMAT
from equipoise.releases.release import release, rounded

Page = Callable[[Any, bool], str]
MASKS = [eq.masks.Recode("age", "10"), eq.masks.Recode("area", "1"), eq.masks.TopCode("salary", 40_000)]
LIMITS = eq.Policy({"uniques": "<= 0.05", "entropy": "> 1"})


@pytest.fixture
def source(tmp_path: Path, people: pl.DataFrame) -> Path:
    path = tmp_path / "people.csv"
    people.write_csv(path)
    return path


@pytest.fixture
def records(source: Path, people_roles: eq.Roles) -> eq.Records:
    return eq.read(source, people_roles)


def tree(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory, people: pl.DataFrame, people_roles: eq.Roles, plainly: Any
) -> eq.Release:
    """One release; tests take copies."""
    folder = tmp_path_factory.mktemp("shared")
    people.write_csv(folder / "people.csv")
    records = eq.read(folder / "people.csv", people_roles)
    with plainly():
        return release(records, eq.Recipe(MASKS, seed=314159265358979), LIMITS, folder / "out")


@pytest.fixture
def made(shared: eq.Release, tmp_path: Path) -> eq.Release:
    """A copy that may be spoiled; times and modes are those of the release."""
    shutil.copytree(shared.folder, tmp_path / "out")
    return replace(shared, folder=tmp_path / "out")


# --- what is in the folder ----------------------------------------------------------------------------------------


def test_the_folder_is_complete(made: eq.Release, tmp_path: Path) -> None:
    """House: public/ (data, codebook, report, evidence), private/ (seed, policy, replay, internal report, journal)."""
    assert tree(tmp_path / "out") == {
        "public/data.csv",
        "public/codebook.md",
        "public/codebook.json",
        "public/report.html",
        "public/evidence.json",
        "private/report.html",
        "private/policy.toml",
        "private/recipe.json",
        "private/replay.py",
        "private/seed.json",
        "private/journal.jsonl",
    }
    assert made.public == tmp_path / "out" / "public"
    assert made.private == tmp_path / "out" / "private"
    assert made.report == made.private / "report.html"
    assert "internal" in made.report.read_text(encoding="utf-8")
    assert "public" in (made.public / "report.html").read_text(encoding="utf-8")


@pytest.mark.skipif(os.name != "posix", reason="Modes are a matter of POSIX.")
def test_private_is_private(made: eq.Release) -> None:
    """Mode 700 on the folder, 600 on what is in it; the public side can be read by all."""
    assert mode(made.private) == 0o700
    assert {mode(p) for p in made.private.iterdir()} == {0o600}
    assert mode(made.folder) & 0o055 == 0o055
    assert mode(made.public) & 0o055 == 0o055


def test_the_data_is_the_recipe_s(made: eq.Release, records: eq.Records) -> None:
    """Released records are what the recipe gives, in another order, without the id."""
    expected = eq.Recipe(MASKS, seed=1).run(records).collect().drop("person")
    found = pl.read_csv(made.public / "data.csv", schema_overrides=expected.schema)
    assert_frame_equal(found, expected, check_row_order=False)
    assert not found.equals(expected)


def test_the_id_is_withheld_from_the_public(made: eq.Release) -> None:
    """An id would link the release to everything else that has it."""
    assert "person" not in (made.public / "data.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    assert json.loads((made.public / "evidence.json").read_text())["withheld"] == ["person"]


def test_the_input_file_is_untouched(records: eq.Records, source: Path, tmp_path: Path, page: Page) -> None:
    before = source.read_bytes(), source.stat().st_mtime_ns
    release(records, eq.Recipe(MASKS), LIMITS, tmp_path / "out")
    assert (source.read_bytes(), source.stat().st_mtime_ns) == before


def test_evidence_has_what_the_public_may_check(made: eq.Release) -> None:
    """Versions, keyed hashes, rounded scores of the chosen release only, limits; a format version."""
    evidence = json.loads((made.public / "evidence.json").read_text(encoding="utf-8"))
    assert evidence == made.evidence
    assert evidence["format"] == 1
    assert set(evidence["versions"]) >= {"equipoise", "polars", "numpy"}
    assert evidence["limits"] == {"uniques": "<= 0.05", "entropy": "> 1"}
    assert evidence["verdict"] == "accepted"
    assert evidence["input"]["records"] == 400
    assert len(evidence["input"]["hmac_sha256"]) == 64
    assert set(evidence["scores"]) == {"uniques", "entropy"}
    for name, said in evidence["scores"].items():
        score = made.trial.scores[name]
        assert said["value"] == rounded(score.value, score.unit)
    assert [m["mask"] for m in evidence["masks"]] == ["recode", "recode", "top_code"]


@pytest.mark.parametrize(("value", "unit", "shown"), [(0.016_58, "share of records", 0.017), (9.9512, "bits", 10.0)])
def test_scores_are_rounded_for_the_public(value: float, unit: str, shown: float) -> None:
    """An exact share of n records is a count; the public gets a thousandth, or a tenth of other units."""
    assert rounded(value, unit) == shown


def test_the_output_hash_is_the_file_s(made: eq.Release) -> None:
    import hashlib

    evidence = json.loads((made.public / "evidence.json").read_text())
    assert evidence["output"]["sha256"] == hashlib.sha256((made.public / "data.csv").read_bytes()).hexdigest()


def test_the_input_hash_is_keyed(
    shared: eq.Release, made: eq.Release, records: eq.Records, tmp_path: Path, page: Page
) -> None:
    """House: a plain hash would let an intruder confirm a guess. Two releases of one file share no hash."""
    import hashlib
    import hmac

    second = release(records, eq.Recipe(MASKS), LIMITS, tmp_path / "second")
    hashes = [r.evidence["input"]["hmac_sha256"] for r in (made, second)]
    plain = (tmp_path / "people.csv").read_bytes()
    assert plain == (shared.folder.parent / "people.csv").read_bytes()
    assert hashes[0] != hashes[1]
    assert hashlib.sha256(plain).hexdigest() not in hashes
    key = bytes.fromhex(json.loads((made.private / "seed.json").read_text())["hash_key"])
    assert hmac.new(key, plain, hashlib.sha256).hexdigest() == hashes[0]
    assert key.hex() not in (made.public / "evidence.json").read_text()


def test_the_seed_is_in_the_private_log_only(made: eq.Release) -> None:
    """House: whoever has the seed can undo the masking."""
    seed = "314159265358979"
    assert json.loads((made.private / "seed.json").read_text())["seed"] == seed
    for path in (*made.public.rglob("*"), made.private / "report.html", made.private / "policy.toml"):
        if path.is_file():
            assert seed.encode() not in path.read_bytes(), path.name
    assert seed not in repr(made)
    assert seed not in json.dumps(made.evidence)


def test_formats_carry_a_version(made: eq.Release) -> None:
    """Policy, evidence and journal carry a format version."""
    journal = [json.loads(line) for line in (made.private / "journal.jsonl").read_text().splitlines()]
    assert journal[0]["format"] == 1
    assert len(journal) >= 2
    assert tomllib.loads((made.private / "policy.toml").read_text())["format"] == 1
    assert json.loads((made.private / "seed.json").read_text())["format"] == 1


def test_scores_are_those_of_the_released_records(made: eq.Release, records: eq.Records) -> None:
    """Measured again on what is released, not copied from the sweep."""
    released = eq.Recipe(MASKS).run(records)
    assert made.trial.scores["uniques"].value == pytest.approx(
        eq.risk.Uniques().measure(released, records).value, rel=1e-12
    )
    assert made.verdict.accepted
    assert len(made.verdict.reasons) == 2


@pytest.mark.parametrize("format", ["csv", "parquet", "arrow"])
def test_formats(records: eq.Records, tmp_path: Path, page: Page, format: str) -> None:
    """The released table is the same in each."""
    made = release(records, eq.Recipe(MASKS), LIMITS, tmp_path / "out", format=format)
    again = eq.read(made.public / f"data.{format}").collect()
    expected = made.data.collect().drop("person")
    assert_frame_equal(again.cast(dict(expected.schema)), expected, check_row_order=False)


def test_a_format_that_is_none(records: eq.Records, tmp_path: Path, page: Page) -> None:
    with pytest.raises(eq.ParameterError, match="No format 'xls'"):
        release(records, eq.Recipe(), eq.Policy(), tmp_path / "out", format="xls")
    assert not (tmp_path / "out").exists()


def test_every_engine_can_release(engine: Any, people: pl.DataFrame, people_roles: eq.Roles, tmp_path: Path) -> None:
    """The same table comes out whatever held the data; frames have no file format, so Parquet."""
    made = eq.release(eq.read(engine.make(people), people_roles), eq.Recipe(MASKS), LIMITS, tmp_path / "out")
    data = made.public / "data.parquet"
    found = pl.read_parquet(data if data.is_file() else data / "*.parquet")
    expected = eq.Recipe(MASKS).run(eq.read(people, people_roles)).collect().drop("person")
    assert_frame_equal(found, expected, check_row_order=False, check_dtypes=False)
    assert made.evidence["input"]["records"] == people.height


# --- nothing else is ever written ---------------------------------------------------------------------------------


def test_a_refused_release_writes_nothing(records: eq.Records, tmp_path: Path, page: Page) -> None:
    """Exit code 1, the reasons, and no folder: neither the release nor a temporary one."""
    before = sorted(tmp_path.iterdir())
    with pytest.raises(eq.RefusedError, match="Nothing was released: uniques is") as caught:
        release(records, eq.Recipe(), LIMITS, tmp_path / "out")
    assert caught.value.exit_code == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("when", [True, False], ids=["public page", "internal page"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError])
def test_a_failure_on_the_way_leaves_nothing(
    records: eq.Records,
    tmp_path: Path,
    page: Page,
    when: bool,
    error: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whole or not at all: the page fails after the data was written, and the data is gone again."""

    def failing(report: Any, public: bool) -> str:
        if public is when:
            raise error
        return "page"

    monkeypatch.setitem(PAGES, "Report", failing)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(error):
        release(records, eq.Recipe(MASKS), LIMITS, tmp_path / "out")
    assert sorted(tmp_path.iterdir()) == before


def test_a_failure_while_overwriting_keeps_the_old_release(
    made: eq.Release, records: eq.Records, tmp_path: Path, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even when the last step fails, what stood there stands there."""
    before = {name: (made.folder / name).read_bytes() for name in tree(made.folder)}

    def failing(*_: Any) -> bool:
        raise OSError("disk gone")

    monkeypatch.setattr(system, "exchange", failing)
    with pytest.raises(OSError, match="disk gone"):
        release(records, eq.Recipe(MASKS), LIMITS, made.folder, overwrite=True)
    monkeypatch.undo()
    assert {name: (made.folder / name).read_bytes() for name in tree(made.folder)} == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "people.csv"]


def test_an_existing_release_is_kept_unless_told(
    made: eq.Release, records: eq.Records, tmp_path: Path, page: Page
) -> None:
    with pytest.raises(eq.DataError, match="exists already"):
        release(records, eq.Recipe(MASKS), LIMITS, made.folder)
    (made.public / "old.txt").write_text("old")
    second = release(records, eq.Recipe(MASKS), LIMITS, made.folder, overwrite=True, format="parquet")
    assert "public/data.parquet" in tree(second.folder)
    assert "public/old.txt" not in tree(second.folder)
    assert "public/data.csv" not in tree(second.folder)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "people.csv"]


def test_a_folder_that_is_no_release_is_never_overwritten(records: eq.Records, tmp_path: Path, page: Page) -> None:
    """Told or not: somebody's thesis may be in it."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("years")
    for overwrite in (False, True):
        with pytest.raises(eq.DataError):
            release(records, eq.Recipe(MASKS), LIMITS, tmp_path / "home", overwrite=overwrite)
    assert tree(tmp_path / "home") == {"thesis.txt"}


def test_a_file_is_not_a_folder(records: eq.Records, source: Path, page: Page) -> None:
    with pytest.raises(eq.DataError, match="is a file"):
        release(records, eq.Recipe(MASKS), LIMITS, source, overwrite=True)
    assert source.is_file()


def test_an_empty_folder_may_be_filled(records: eq.Records, tmp_path: Path, page: Page) -> None:
    (tmp_path / "empty").mkdir()
    made = release(records, eq.Recipe(MASKS), LIMITS, tmp_path / "empty")
    assert "public/evidence.json" in tree(made.folder)


def test_parents_are_made(records: eq.Records, tmp_path: Path, page: Page) -> None:
    made = release(records, eq.Recipe(MASKS), LIMITS, tmp_path / "a" / "b" / "out")
    assert (made.public / "data.csv").is_file()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pl.DataFrame({"x": [1]}), "one record only"),
        (pl.DataFrame({"x": [None, None]}, schema={"x": pl.Int64}), "'x' has no values"),
        (pl.DataFrame({"x": range(60_000)}), "60,000 categories"),
    ],
)
def test_files_on_which_no_risk_can_be_measured(tmp_path: Path, page: Page, table: pl.DataFrame, said: str) -> None:
    """Bad input: one record, an all-null key, a key that is an identifier; nothing written."""
    with pytest.raises(eq.DataError, match=said):
        release(eq.read(table, eq.Roles(["x"])), eq.Recipe(), eq.Policy(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


# --- the same again -----------------------------------------------------------------------------------------------


@pytest.fixture
def policy(tmp_path: Path, source: Path, people_roles: eq.Roles) -> Path:
    import tomli_w

    path = tmp_path / "policy.toml"
    plain = {
        "format": 1,
        "assume_unknown": ["salary"],
        "data": {"path": source.name},
        "roles": people_roles.to_plain(),
        "limits": {"uniques": "< 0.1", "entropy": "> 1"},
        "measures": ["uniques(k=2)"],
        "candidates": [
            {"coarsenings": True},
            {
                "masks": [
                    {"use": "recode", "column": "age", "level": ["5", "10"]},
                    {"use": "top_code", "column": "salary", "at": {"from": 20_000, "to": 40_000, "steps": 2}},
                ]
            },
        ],
        "output": {"format": "parquet"},
    }
    path.write_text(tomli_w.dumps(plain), encoding="utf-8")
    return path


def test_the_private_policy_makes_the_same_release(policy: Path, tmp_path: Path) -> None:
    """From private/policy.toml alone the public data comes out again, byte for byte; so does the choice."""
    first = eq.balance(policy, out=tmp_path / "first")
    second = eq.balance(first.private / "policy.toml", out=tmp_path / "second")
    assert (first.public / "data.parquet").read_bytes() == (second.public / "data.parquet").read_bytes()
    assert first.trial.recipe == second.trial.recipe
    assert first.trial.recipe.seed == second.trial.recipe.seed
    assert first.evidence["scores"] == second.evidence["scores"]
    third = eq.balance(second.private / "policy.toml", out=tmp_path / "third")
    assert (third.public / "data.parquet").read_bytes() == (first.public / "data.parquet").read_bytes()


def test_a_released_recipe_can_be_made_again_from_its_policy(records: eq.Records, tmp_path: Path) -> None:
    """Also without a policy file in the first place."""
    first = eq.release(records, eq.Recipe(MASKS), LIMITS, tmp_path / "first")
    second = eq.balance(first.private / "policy.toml", out=tmp_path / "second")
    assert (first.public / "data.csv").read_bytes() == (second.public / "data.csv").read_bytes()
    assert second.trial.recipe == first.trial.recipe


def test_balance_writes_beside_its_policy_and_refuses_twice(policy: Path) -> None:
    made = eq.balance(policy)
    assert made.folder == policy.with_name("policy-release")
    with pytest.raises(eq.DataError, match="exists already"):
        eq.balance(policy)
    assert eq.balance(policy, overwrite=True).folder == made.folder


def test_balance_without_an_acceptable_candidate_writes_nothing(policy: Path, tmp_path: Path) -> None:
    policy.write_text(policy.read_text().replace("> 1", "> 9"), encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(eq.RefusedError, match="candidates meets the limits"):
        eq.balance(policy)
    assert sorted(tmp_path.iterdir()) == before


def test_balance_can_be_stopped(policy: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(eq.Cancelled, match="What was tried is kept"):
        eq.balance(policy, progress=lambda done, total, what: done < 2)
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / ".policy-release.journal"])


def test_protect_needs_no_limits(records: eq.Records, tmp_path: Path) -> None:
    """Masks and a folder will do; the standard measures are reported."""
    made = eq.protect(records, MASKS, tmp_path / "out", seed=5)
    assert made.trial.recipe.seed == 5
    standard = {"uniques", "uniques(k=2)", "entropy", "attribute_disclosure(sensitive='ill')"}
    assert standard <= set(made.trial.scores.keys())


def test_two_at_once_do_not_meet(
    records: eq.Records, tmp_path: Path, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that appears while we write is not overwritten, and our stage is cleared away."""

    def slow(report: Any, public: bool) -> str:
        (tmp_path / "out").mkdir(exist_ok=True)
        (tmp_path / "out" / "theirs.txt").write_text("first")
        return page(report, public)

    monkeypatch.setitem(PAGES, "Report", slow)
    with pytest.raises(eq.DataError, match="exists already"):
        release(records, eq.Recipe(MASKS), LIMITS, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "people.csv"]
    assert tree(tmp_path / "out") == {"theirs.txt"}


@pytest.fixture(autouse=True)
def _no_stage_left(tmp_path: Path) -> Iterator[None]:
    """After every test here: no half-written folder anywhere."""
    yield
    assert not [p for p in tmp_path.rglob("*") if p.name.endswith((".partial", ".old"))]
    assert EVIDENCE_FORMAT == 1
