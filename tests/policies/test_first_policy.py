"""A first policy: it loads, it runs as it is, and it says what it does; nothing is applied silently."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.policies.explain import explain
from equipoise.policies.first_policy import MAX_GRID_RECIPES, initial
from equipoise.policies.policy_file import Job


def first(folder: Path, frame: pl.DataFrame, preset: str | None = None) -> Job:
    frame.write_csv(folder / "x.csv")
    text = initial(folder / "x.csv", path="x.csv", preset=preset)
    (folder / "policy.toml").write_text(text, encoding="utf-8")
    return Job.load(folder / "policy.toml")


@pytest.fixture(scope="module")
def survey() -> pl.DataFrame:
    return eq.demo.survey().head(300)


def test_a_survey_runs_as_it_is(tmp_path: Path, survey: pl.DataFrame) -> None:
    job = first(tmp_path, survey)
    made = eq.balance(tmp_path / "policy.toml")
    assert isinstance(made, eq.Release)
    assert made.trial.scores["uniques"].value < 0.02
    assert job.policy().reasons["uniques"].startswith("few people")
    assert "age" in job.read_roles().keys


def test_it_is_commented_in_plain_words(tmp_path: Path, survey: pl.DataFrame) -> None:
    first(tmp_path, survey)
    text = (tmp_path / "policy.toml").read_text(encoding="utf-8")
    assert text.startswith("# A first policy for x.csv")
    assert text.count("#") > 15
    assert "named like" in text
    assert max(map(len, text.split("\n"))) < 200
    assert not (tmp_path / "policy-release").exists()


def test_old_numbers_and_the_old_order_go(tmp_path: Path, survey: pl.DataFrame) -> None:
    """Households get new numbers, weights are few, records stand in a new order."""
    job = first(tmp_path, survey)
    assert [step["use"] for step in job.candidates[0].then] == ["renumber", "coarsen_weights", "noise"]
    made = eq.balance(tmp_path / "policy.toml")
    assert isinstance(made, eq.Release)
    released = pl.read_csv(made.public / "data.csv")
    assert released["household"].to_list() != survey["household"].to_list()
    assert released["weight"].n_unique() == 2
    assert released["weight"].sum() == pytest.approx(survey["weight"].sum())
    first(tmp_path, survey.drop("household"))
    assert "renumber" not in (tmp_path / "policy.toml").read_text(encoding="utf-8")


def test_the_same_data_gives_the_same_policy(tmp_path: Path, survey: pl.DataFrame) -> None:
    survey.write_csv(tmp_path / "x.csv")
    assert initial(tmp_path / "x.csv") == initial(tmp_path / "x.csv")


def test_many_combinations_are_thinned(tmp_path: Path) -> None:
    """Eight keys with three levels each: not 4^8 recipes."""
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({f"age{i}" if i else "age": rng.integers(0, 99, 500) for i in range(8)})
    frame = frame.rename({f"age{i}": f"alter_{'abcdefg'[i - 1]}" for i in range(1, 8)})
    job = first(tmp_path, frame)
    assert len(job.read_roles().keys) == 8
    assert explain(job).recipes <= MAX_GRID_RECIPES + 1


def test_a_file_of_numbers_without_keys(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    job = first(tmp_path, pl.DataFrame({"turnover": rng.lognormal(3, 1, 300), "wages": rng.lognormal(2, 1, 300)}))
    assert not job.read_roles().keys
    assert isinstance(eq.balance(tmp_path / "policy.toml"), eq.Release)


def test_nothing_to_protect_is_said(tmp_path: Path) -> None:
    pl.DataFrame({"one": ["a"] * 20}).write_csv(tmp_path / "x.csv")
    with pytest.raises(eq.DataError, match="roles by hand"):
        initial(tmp_path / "x.csv")


def test_records_that_are_all_alone_still_run(tmp_path: Path) -> None:
    """Where coarsening does not help, keys are suppressed: the limit is never loosened."""
    rng = np.random.default_rng(4)
    columns = {name: rng.integers(0, 20, 120).astype(str) for name in ("sex", "race", "education", "marital", "tenure")}
    first(tmp_path, pl.DataFrame(columns))
    made = eq.balance(tmp_path / "policy.toml")
    assert isinstance(made, eq.Release)
    assert made.trial.scores["uniques"].value < 0.02


@pytest.mark.parametrize("preset", ["worldbank", "hdx", "health-canada"])
def test_a_preset_gives_the_limits(tmp_path: Path, survey: pl.DataFrame, preset: str) -> None:
    job = first(tmp_path, survey, preset)
    assert job.extends == preset
    assert all(limit.reason for limit in job.policy().parsed)


@pytest.mark.parametrize("preset", ["ema", "cms"])
def test_a_preset_runs_as_it_is(tmp_path: Path, survey: pl.DataFrame, preset: str) -> None:
    first(tmp_path, survey, preset)
    made = eq.balance(tmp_path / "policy.toml")
    assert made.verdict.accepted


def test_no_value_of_a_rare_record_is_written(tmp_path: Path, survey: pl.DataFrame) -> None:
    canary = survey.with_columns(pl.col("region").cast(pl.String)).with_row_index("i").with_columns(
        region=pl.when(pl.col("i") == 5).then(pl.lit("canary7319")).otherwise(pl.col("region"))
    ).drop("i")  # fmt: skip
    first(tmp_path, canary)
    assert "canary7319" not in (tmp_path / "policy.toml").read_text(encoding="utf-8")
