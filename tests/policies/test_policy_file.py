"""Policy files: what they may say, and every problem in them at once."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w

import equipoise as eq
from equipoise.masks import Recode, TopCode
from equipoise.policies.policy_file import Job

ROLES = {"keys": ["sex", "age"], "hierarchies": {"age": {"kind": "intervals", "widths": [5, 10]}}}


def write(folder: Path, **changes: Any) -> Path:
    plain: dict[str, Any] = {
        "format": 1,
        "data": {"path": "people.csv"},
        "roles": ROLES,
        "limits": {"uniques": "< 0.5"},
    }
    path = folder / "policy.toml"
    path.write_text(tomli_w.dumps({k: v for k, v in (plain | changes).items() if v is not None}), encoding="utf-8")
    return path


@pytest.fixture
def here(tmp_path: Path, people: pl.DataFrame) -> Path:
    people.write_csv(tmp_path / "people.csv", separator=";")
    return tmp_path


def test_the_least_a_policy_says(here: Path) -> None:
    """Data, roles and a limit; all coarsenings are tried."""
    job = Job.load(write(here))
    records = job.read()
    assert [r.masks for r in job.recipes(records)] == [(), (Recode("age", "5"),), (Recode("age", "10"),)]
    assert job.scales() == (eq.risk.Uniques(), eq.utility.Overlap())
    assert job.policy() == eq.Policy({"uniques": "< 0.5"}, weights={"overlap": 1.0})
    assert job.target(here / "policy.toml") == here / "policy-release"


def test_paths_are_relative_to_the_policy(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    job = Job.load(Path("..") / write(here, output={"folder": "result"}).name)
    assert job.read().collect().height == 400
    assert job.target(here / "policy.toml").resolve() == (here / "result").resolve()


def test_perturbation_tables_are_beside_the_policy(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file for all counts, and one for a variable of its own, from wherever the policy is read."""
    (here / "all.csv").write_text("i,v,p_int_ub\n", encoding="utf-8")
    (here / "ill.csv").write_text("i,v,p_int_ub\n", encoding="utf-8")
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    mask = {"use": "cell-key", "ptable": "all.csv", "ptables": ["ill=ill.csv", "poor=missing.csv"]}
    limits = {"exposed(rule='min-count:3')": "<= 0"}
    job = Job.load(write(here, table={"by": ["sex"]}, limits=limits, candidates=[{"masks": [mask]}]))
    files = job.candidates[0].masks[0]
    assert files["ptable"] == str((here / "all.csv").resolve())
    assert files["ptables"] == [f"ill={(here / 'ill.csv').resolve()}", "poor=missing.csv"]


def test_grids_and_ranges(here: Path) -> None:
    """`at = [..]` and `{from, to, steps}` expand into recipes; steps multiply."""
    masks = [
        {"use": "top-code", "column": "salary", "at": {"from": 10_000, "to": 30_000, "steps": 3}},
        {"use": "recode", "column": "age", "level": ["5", 2]},
    ]
    job = Job.load(write(here, candidates=[{"masks": masks}]))
    found = [r.masks for r in job.recipes(job.read())]
    assert found == [
        (TopCode("salary", at), Recode("age", level)) for at in (10_000.0, 20_000.0, 30_000.0) for level in ("5", 2)
    ]


def test_several_candidates_are_tried_together(here: Path) -> None:
    masks = [{"use": "top_code", "column": "age", "at": 70}]
    job = Job.load(write(here, candidates=[{"coarsenings": True}, {"masks": masks}]))
    assert len(job.recipes(job.read())) == 4


def test_how_to_read_the_data(here: Path, people: pl.DataFrame) -> None:
    people.write_csv(here / "odd.csv", separator="|")
    job = Job.load(write(here, data={"path": "odd.csv", "delimiter": "|", "encoding": "utf-8"}))
    assert job.read().collect().equals(people.with_columns(pl.col("area").cast(pl.Int64)))


def test_measures_beside_the_limits_each_once(here: Path) -> None:
    job = Job.load(write(here, measures=["uniques", "uniques(k=2)", "entropy", "uniques:2"]))
    assert job.scales() == (eq.risk.Uniques(), eq.utility.Overlap(), eq.risk.Uniques(2), eq.utility.Entropy())


def test_the_side_to_prefer(here: Path) -> None:
    assert Job.load(write(here, choose={"prefer": "risk"})).policy().prefer == "risk"


def test_a_seed_file_seeds_every_recipe(here: Path) -> None:
    (here / "seed.json").write_text('{"format": 1, "seed": "12345"}')
    job = Job.load(write(here, seed_file="seed.json"))
    assert {r.seed for r in job.recipes(job.read())} == {12345}
    (here / "seed.json").write_text("nothing")
    with pytest.raises(eq.ParameterError, match="Cannot read a seed"):
        Job.load(write(here, seed_file="seed.json")).recipes(job.read())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lmits": {}}, "lmits: is not known here"),
        ({"data": {"path": "x.csv", "delimeter": ";"}}, "data.delimeter: is not known here"),
        ({"data": {}}, "data.path"),
        ({"data": None}, "data"),
        ({"limits": {}}, "limits: set at least one"),
        ({"limits": {"uniques": "about 1"}}, "Cannot read the limit"),
        ({"limits": {"uniquess": "< 1"}}, "Did you mean 'uniques'"),
        ({"candidates": []}, "candidates: name at least one"),
        ({"candidates": [{"masks": [{"column": "age"}]}]}, "each mask needs use"),
        ({"candidates": [{"masks": [{"use": "recod", "column": "age", "level": 1}]}]}, "Did you mean 'recode'"),
        ({"candidates": [{"masks": [{"use": "recode", "column": "age"}]}]}, "recode needs level"),
        ({"candidates": [{"masks": [{"use": "top_code", "column": "a", "at": "x"}]}]}, "top_code: at"),
        ({"candidates": [{"masks": [{"use": "top_code", "column": "a", "at": []}]}]}, "empty grid"),
        ({"candidates": [{"masks": [{"use": "top_code", "column": "a", "at": 1, "by": 2}]}]}, "no parameter 'by'"),
        ({"choose": {"prefer": "speed"}}, "choose.prefer"),
        ({"measures": ["uniques("]}, "No measure 'uniques\\('"),
        ({"format": 2}, "format"),
        ({"draws": "many"}, "draws"),
        ({"roles": {"kyes": ["a"]}}, "Did you mean 'keys'"),
    ],
)
def test_unfit_policies_say_where(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    """One sentence that names the place; before any data is read."""
    with pytest.raises(eq.ParameterError, match=said) as caught:
        Job.load(write(tmp_path, **changes))
    assert "'policy.toml' cannot be used" in str(caught.value)
    assert caught.value.exit_code == 2


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    """Nobody wants to learn of them one by one."""
    path = write(
        tmp_path,
        roles={"kyes": ["a"]},
        limits={"uniquess": "< 1"},
        measures=["entropyy"],
        candidates=[{"masks": [{"use": "recod"}]}],
    )
    with pytest.raises(eq.ParameterError) as caught:
        Job.load(path)
    for part in ("kyes", "uniquess", "recod"):
        assert part in str(caught.value)


def test_all_unknown_names_are_listed_at_once(tmp_path: Path) -> None:
    with pytest.raises(eq.ParameterError) as caught:
        Job.load(write(tmp_path, one=1, two=2, data={"path": "x", "three": 3}))
    assert all(name in str(caught.value) for name in ("one", "two", "data.three"))


def test_a_policy_that_is_not_there_or_not_toml(tmp_path: Path) -> None:
    with pytest.raises(eq.ParameterError, match="No file"):
        eq.balance(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("limits = [")
    with pytest.raises(eq.ParameterError, match="not valid TOML"):
        eq.balance(tmp_path / "bad.toml")


def test_data_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(eq.DataError, match="No file"):
        eq.balance(write(tmp_path))
    assert [p.name for p in tmp_path.iterdir()] == ["policy.toml"]


def test_a_job_written_and_read_again_is_the_same(here: Path) -> None:
    """`private/policy.toml` is made this way."""
    job = Job.load(
        write(
            here,
            candidates=[{"coarsenings": True}, {"masks": [{"use": "top_code", "column": "age", "at": [60, 70]}]}],
            measures=["uniques(k=2)"],
            choose={"prefer": "risk"},
            title='A "quoted" title, ø',
            draws=3,
        )
    )
    (here / "again.toml").write_text(job.to_toml(), encoding="utf-8")
    assert Job.load(here / "again.toml") == job


def test_a_release_without_limits_can_be_made_again(tmp_path: Path) -> None:
    """One recipe and nothing to choose: the policy in the private folder needs no limit."""
    file = tmp_path / "people.csv"
    pl.DataFrame({"age": [*range(20, 60)], "pay": [float(i * i % 97) for i in range(40)]}).write_csv(file)
    records = eq.read(file, eq.Roles(["age"], numeric="pay"))
    made = eq.protect(records, [eq.masks.Noise("pay", 0.3)], tmp_path / "one")
    again = eq.balance(made.private / "policy.toml", out=tmp_path / "two")
    assert isinstance(again, eq.Release)
    assert (made.public / "data.csv").read_bytes() == (again.public / "data.csv").read_bytes()


def test_a_folder_that_is_no_release_cannot_be_attacked(tmp_path: Path) -> None:
    with pytest.raises(eq.DataError, match="is not a release"):
        eq.attack(str(tmp_path), eq.read(pl.DataFrame({"age": [1]}), eq.Roles("age")))


def test_masks_that_follow_every_coarsening(here: Path) -> None:
    """Each combination of levels, then each alternative of what follows."""
    then = [{"use": "suppress_records", "rule": ["min-count:2", "min-count:3"]}]
    job = Job.load(write(here, candidates=[{"coarsenings": True, "then": then}]))
    found = [r.masks for r in job.recipes(job.read())]
    rules = [eq.masks.SuppressRecords(eq.rules.MinCount(n)) for n in (2, 3)]
    levels = [(), (Recode("age", "5"),), (Recode("age", "10"),)]
    assert found == [(*masks, rule) for masks in levels for rule in rules]
    (here / "again.toml").write_text(job.to_toml(), encoding="utf-8")
    assert Job.load(here / "again.toml") == job
    with pytest.raises(eq.ParameterError, match="follows coarsenings"):
        Job.load(write(here, candidates=[{"masks": then, "then": then}]))
