"""A first policy: it loads, it runs as it is, and it says what it does; nothing is applied silently."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.policies.explain import explain
from equipoise.policies.first_policy import initial, proposed
from equipoise.policies.policy_file import Job


def first(folder: Path, frame: pl.DataFrame, preset: str | None = None) -> Job:
    frame.write_csv(folder / "x.csv")
    text = initial(folder / "x.csv", path="x.csv", preset=preset)
    (folder / "policy.toml").write_text(text, encoding="utf-8")
    return Job.load(folder / "policy.toml")


@pytest.fixture(scope="module")
def survey() -> pl.DataFrame:
    columns = ["household", "region", "weight", "sex", "age", "education", "salary"]
    return eq.demo.survey().select(columns).head(1500)


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


@pytest.mark.parametrize("many", ["count", "N_OBS", "ant"])
def test_a_table_of_counts_is_no_file_of_people(tmp_path: Path, many: str) -> None:
    """Said in one refusal with the command for tables; the same rows of people are not refused."""
    cells = [(r, a, s) for r in ("n", "s", "w") for a in ("0-19", "20-64", "65+") for s in "fmxyz"]
    frame = pl.DataFrame(cells, schema=["region", "age", "sex"], orient="row")
    counts = frame.with_columns(pl.Series(many, [7 + i % 5 for i in range(len(cells))]))
    with pytest.raises(eq.RefusedError, match=f"rows are cells of a table .* --by region,age,sex --count {many} "):
        first(tmp_path, counts)
    with pytest.raises(eq.RefusedError, match="rows are cells"):
        proposed(eq.read(counts, eq.Roles(("region", "age", "sex"), numeric=(many,))))
    with pytest.raises(eq.RefusedError, match="rows are cells"):
        first(tmp_path, counts.head(20), "uk-tre")
    for people in (pl.concat([counts, counts]), counts.with_columns(person_id=pl.Series(range(len(cells))))):
        first(tmp_path, people)


def test_safe_harbor_withholds_dates_of_birth_until_the_oldest_year_is_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    births = np.datetime64("1940-01-01") + rng.integers(0, 20_000, 300).astype("timedelta64[D]")
    frame = pl.DataFrame({"birth_date": births, "zip": rng.integers(10_000, 10_900, 300), "sex": ["f", "m"] * 150})
    assert first(tmp_path, frame, "hipaa-safe-harbor").read_roles().direct == ("birth_date",)
    job = first(tmp_path, frame)
    assert "birth_date" in job.read_roles().keys
    assert all("birth_date" in {step.get("column") for step in one.masks} for one in job.candidates)


def test_safe_harbor_takes_every_zip_code_year_of_birth_and_date_and_withholds_small_places(tmp_path: Path) -> None:
    """Few distinct ZIP codes have no hierarchy of their own; dates beyond the likeliest keys are dates all the same."""
    rng = np.random.default_rng(3)
    ages = rng.integers(0, 99, 400)
    days = [np.datetime64("2025-01-01") + rng.integers(0, 360, 400).astype("timedelta64[D]") for _ in range(3)]
    frame = pl.DataFrame({
        "zip": rng.choice(["10001", "03601"], 400), "birth_year": 2026 - ages, "county": ["x", "y"] * 200,
        "admission": days[0], "discharge": days[1], "surgery_date": days[2], "sex": ["f", "m"] * 200,
    })  # fmt: skip
    job = first(tmp_path, frame, "hipaa-safe-harbor")
    assert job.read_roles().direct == ("county",)
    made = eq.balance(tmp_path / "policy.toml")
    assert isinstance(made, eq.Release)
    released = pl.read_csv(made.public / "data.csv", infer_schema=False)
    assert set(released["zip"]) == {"100", "000"}
    assert {*released["admission"], *released["discharge"], *released["surgery_date"]} == {"2025"}
    years = {word for word in released["birth_year"] if not word.startswith("<=")}
    assert min(map(int, years)) == job.slots["oldest"] + 1


def test_old_numbers_and_the_old_order_go(tmp_path: Path, survey: pl.DataFrame) -> None:
    """Households get new numbers, weights are few, records stand in a new order."""
    job = first(tmp_path, survey)
    uses = [step["use"] for step in (*job.candidates[0].masks, *job.candidates[0].then)]
    assert {"renumber", "coarsen_weights"} < {*uses}
    assert {*uses} & {"noise", "rank_swap"}
    made = eq.balance(tmp_path / "policy.toml")
    assert isinstance(made, eq.Release)
    released = pl.read_csv(made.public / "data.csv")
    assert released["household"].to_list() != survey["household"].to_list()
    assert released["weight"].n_unique() <= 10
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
    assert explain(job).recipes <= 20


def test_a_file_of_numbers_without_keys(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    job = first(tmp_path, pl.DataFrame({"turnover": rng.lognormal(3, 1, 300), "wages": rng.lognormal(2, 1, 300)}))
    assert not job.read_roles().keys
    assert isinstance(eq.balance(tmp_path / "policy.toml"), eq.Release)
    assert proposed(job.read())["draws"] == job.draws == 3


def test_nothing_to_protect_is_said(tmp_path: Path) -> None:
    pl.DataFrame({"one": ["a"] * 40}).write_csv(tmp_path / "x.csv")
    with pytest.raises(eq.DataError, match="roles by hand"):
        initial(tmp_path / "x.csv")


def test_records_that_are_all_alone_are_released_inside_the_ceilings(tmp_path: Path) -> None:
    """Categories are merged as far as it takes, and few values are blanked."""
    rng = np.random.default_rng(4)
    columns = {name: rng.integers(0, 20, 120).astype(str) for name in ("sex", "race", "education", "marital", "tenure")}
    first(tmp_path, pl.DataFrame(columns))
    release = eq.balance(tmp_path / "policy.toml")
    assert isinstance(release, eq.Release)
    scores = release.trial.scores
    assert scores["uniques"].value < 0.02
    assert scores["blank_keys"].value <= 0.05
    assert scores["overlap"].value > 0.7


@pytest.mark.parametrize("preset", ["worldbank", "hdx", "health-canada"])
def test_a_preset_gives_the_limits(tmp_path: Path, survey: pl.DataFrame, preset: str) -> None:
    job = first(tmp_path, survey, preset)
    assert job.extends == preset
    assert all(limit.reason for limit in job.policy().parsed)


@pytest.mark.parametrize("preset", ["ema", "cms"])
def test_a_preset_runs_or_says_that_blanks_would_be_many(tmp_path: Path, survey: pl.DataFrame, preset: str) -> None:
    """Under a strict preset a small file may need more blanks than the ceiling allows: then that limit is named."""
    first(tmp_path, survey, preset)
    refusal = ""
    try:
        eq.balance(tmp_path / "policy.toml")
    except eq.RefusedError as refused:
        refusal = str(refused)
    assert not refusal or (preset == "ema" and "blank_keys" in refusal)


def test_every_proposal_has_ceilings_and_the_objective(tmp_path: Path, survey: pl.DataFrame) -> None:
    """Blanks, withheld records and bias are limited; the choice goes by what users compute; few records err more."""
    policy = first(tmp_path, survey).policy()
    ceilings = {limit.score: limit.bound for limit in policy.parsed}
    assert ceilings["overlap"] == 0.7
    assert (ceilings["blank_keys"], ceilings["withheld_records"], ceilings["bias"]) == (0.05, 0.05, 0.1)
    assert policy.weights == {"overlap": 1.0}
    bounds = {limit.score: limit.bound for limit in first(tmp_path, survey.head(100), "ema").policy().parsed}
    assert bounds["bias"] == 0.3
    assert bounds["blank_keys"] == 0.05


def test_no_value_of_a_rare_record_is_written(tmp_path: Path, survey: pl.DataFrame) -> None:
    canary = survey.with_columns(pl.col("region").cast(pl.String)).with_row_index("i").with_columns(
        region=pl.when(pl.col("i") == 5).then(pl.lit("canary7319")).otherwise(pl.col("region"))
    ).drop("i")  # fmt: skip
    first(tmp_path, canary)
    assert "canary7319" not in (tmp_path / "policy.toml").read_text(encoding="utf-8")


def test_a_file_of_few_records_is_refused_in_a_sentence(tmp_path: Path) -> None:
    pl.DataFrame({"age": range(8), "sex": ["f", "m"] * 4}).write_csv(tmp_path / "x.csv")
    with pytest.raises(eq.RefusedError, match=r"Nothing is proposed for 8 records.*Decide whether"):
        initial(tmp_path / "x.csv")


def test_three_sentences_at_the_head(tmp_path: Path, survey: pl.DataFrame) -> None:
    survey.write_csv(tmp_path / "x.csv")
    head = initial(tmp_path / "x.csv").split("format = 1")[0]
    assert [head.count(words) for words in ("# It assumes that", "# It could not know", "# Two decisions")] == [1, 1, 1]
    assert all(key in head for key in ("age", "sex"))


def test_a_file_without_names_is_refused(tmp_path: Path) -> None:
    """A record in the place of the names would be told in every report; columns may be numbered."""
    rows = [f"{i % 2};{5 + i % 7};0,{1000 + i}" for i in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(rows), encoding="utf-8")
    with pytest.raises(eq.DataError, match="first row of the file has numbers") as caught:
        initial(tmp_path / "a.csv")
    assert "1000" not in str(caught.value)
    (tmp_path / "b.csv").write_text("\n".join(["1;2;3", *rows]), encoding="utf-8")
    assert "uniques" in initial(tmp_path / "b.csv")
