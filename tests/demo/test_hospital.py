"""The invented stays in hospital: dates in order, a code tree with rare cases, patients who come again."""

import hashlib
from datetime import date

import numpy as np
import polars as pl
import pytest

from equipoise.demo.hospital import CHAPTERS, DISTRICTS, PATIENTS, hospital


@pytest.fixture(scope="module")
def stays() -> pl.DataFrame:
    return hospital()


def test_columns_and_types(stays: pl.DataFrame) -> None:
    assert stays.schema == {
        "stay": pl.Int64, "patient": pl.Int64, "hospital": pl.String, "admission": pl.Date, "discharge": pl.Date,
        "days": pl.Int64, "age": pl.Int64, "sex": pl.String, "postcode": pl.String, "diagnosis": pl.String,
        "emergency": pl.Boolean, "outcome": pl.String, "cost": pl.Int64,
    }  # fmt: skip
    assert sum(stays.null_count().row(0)) == 0
    assert stays["stay"].to_list() == list(range(1, stays.height + 1))
    assert stays["admission"].is_sorted()


def test_dates(stays: pl.DataFrame) -> None:
    assert stays["admission"].min() >= date(2023, 1, 1)  # type: ignore[operator]
    assert stays["admission"].max() <= date(2024, 12, 31)  # type: ignore[operator]
    assert ((stays["discharge"] - stays["admission"]).dt.total_days() == stays["days"]).all()
    assert 3 <= stays["days"].median() <= 6  # type: ignore[operator]
    assert stays["days"].mean() > stays["days"].median()  # type: ignore[operator]


def test_a_patient_has_one_sex_and_home_and_ages(stays: pl.DataFrame) -> None:
    people = stays.group_by("patient").agg(
        pl.col("sex", "postcode").n_unique(), span=pl.col("age").max() - pl.col("age").min()
    )
    assert people.select(pl.max_horizontal("sex", "postcode").max()).item() == 1
    assert people["span"].max() == 1
    assert people.height > 0.99 * PATIENTS


def test_stays_follow_each_other(stays: pl.DataFrame) -> None:
    ordered = stays.sort("patient", "admission").with_columns(before=pl.col("discharge").shift().over("patient"))
    assert (ordered["admission"] > ordered["before"]).drop_nulls().all()
    died = pl.col("outcome") == "died"
    last = stays.sort("patient", "admission").group_by("patient").agg(pl.col("outcome").last(), died=died.sum())
    assert (last["died"] == (last["outcome"] == "died").cast(pl.UInt32)).all(), "nobody comes again after death"


def test_patients_come_again(stays: pl.DataFrame) -> None:
    counts = stays.group_by("patient").len()["len"]
    assert 0.6 < (counts == 1).mean() < 0.8  # type: ignore[operator]
    assert 8 <= counts.max() <= 14  # type: ignore[operator]
    again = stays.sort("patient", "admission").with_columns(
        before=pl.col("diagnosis").str.head(3).shift().over("patient")
    )
    same = again.filter(pl.col("before").is_not_null()).select(
        (pl.col("diagnosis").str.head(3) == pl.col("before")).mean()
    )
    assert 0.5 < same.item() < 0.8  # fmt: skip


def test_the_code_tree_nests_and_has_rare_codes(stays: pl.DataFrame) -> None:
    assert stays["diagnosis"].str.contains(r"^[A-Z]\d\d\.\d$").all()
    assert set(stays["diagnosis"].str.head(1)) == set(CHAPTERS)
    per = stays.select(pl.col("diagnosis").str.head(1).alias("c"), pl.col("diagnosis").str.head(3).alias("k")).unique()
    for name, count in per.group_by("c").len().iter_rows():
        assert count <= CHAPTERS[name]["categories"], "as many categories as the table says"
    patients = stays.group_by("diagnosis").agg(pl.col("patient").n_unique())["patient"]
    assert 0.2 < (patients == 1).mean() < 0.5  # type: ignore[operator]
    assert patients.max() > 50  # type: ignore[operator]


def test_chapters_have_their_ages(stays: pl.DataFrame) -> None:
    mean = dict(stays.group_by(pl.col("diagnosis").str.head(1)).agg(pl.col("age").mean()).iter_rows())
    assert mean["I"] > mean["M"] > mean["A"]
    assert stays.filter(outcome="died")["age"].mean() > stays["age"].mean() + 5  # type: ignore[operator]
    assert 0.015 < (stays["outcome"] == "died").mean() < 0.04  # type: ignore[operator]


def test_places(stays: pl.DataFrame) -> None:
    assert stays["postcode"].str.contains(r"^\d{5}$").all()
    people = stays.unique("patient")
    shares = dict(people.group_by(pl.col("postcode").str.head(2)).agg(pl.len() / people.height).iter_rows())
    assert {name: pytest.approx(share, abs=0.02) for name, share in DISTRICTS.items()} == shares


def test_nearly_everybody_is_unique(stays: pl.DataFrame) -> None:
    cells = stays.group_by("age", "sex", "postcode", "admission").len()
    assert (cells["len"] == 1).sum() / stays.height > 0.99
    coarse = stays.group_by(
        pl.col("age") // 10, "sex", pl.col("postcode").str.head(2), pl.col("admission").dt.year()
    ).len()
    assert (coarse["len"] == 1).sum() / stays.height < 0.01  # fmt: skip


def test_costs_grow_with_days(stays: pl.DataFrame) -> None:
    assert stays.select(pl.corr("days", "cost")).item() > 0.9
    assert np.all(stays["cost"].to_numpy() > 0)


def test_the_same_frame_every_time(stays: pl.DataFrame) -> None:
    digests = {hashlib.sha256(frame.write_csv().encode()).hexdigest() for frame in (stays, hospital())}
    assert len(digests) == 1


def test_golden_totals(stays: pl.DataFrame) -> None:
    """The public seed gives these very stays."""
    assert stays.select(pl.len(), pl.col("days", "age", "cost").sum()).row(0) == GOLDEN
    assert stays["diagnosis"].n_unique() == CODES


GOLDEN, CODES = (15_038, 102_052, 817_203, 88_974_884), 1_729
