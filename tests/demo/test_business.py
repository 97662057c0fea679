"""The invented business survey: skewed sizes, nested codes, holdings, weights that sum to the population."""

import hashlib

import numpy as np
import polars as pl
import pytest
from scipy.stats import skew

from equipoise.demo.business import FRACTIONS, POPULATION, REGIONS, SECTIONS, SIZES, business

AMOUNTS = ["employees", "turnover", "wages", "investment", "exports"]


@pytest.fixture(scope="module")
def firms() -> pl.DataFrame:
    return business()


def test_columns_and_types(firms: pl.DataFrame) -> None:
    assert firms.schema == {
        "enterprise": pl.Int64, "holding": pl.Int64, "industry": pl.String, "region": pl.String,
        "legal_form": pl.String, "size_class": pl.String, **dict.fromkeys(AMOUNTS, pl.Int64), "weight": pl.Float64,
    }  # fmt: skip
    assert sum(firms.null_count().row(0)) == 0
    assert firms["enterprise"].is_sorted()
    assert firms["enterprise"].n_unique() == firms.height


def test_weights_sum_to_the_population_in_every_stratum(firms: pl.DataFrame) -> None:
    assert firms["weight"].sum() == pytest.approx(POPULATION)
    strata = firms.group_by(pl.col("industry").str.head(1), "size_class").agg(pl.col("weight").sum(), n=pl.len())
    assert np.allclose(strata["weight"], np.rint(strata["weight"]))
    assert firms.filter(size_class="250+")["weight"].unique().to_list() == [1.0]
    for size, fraction in FRACTIONS.items():
        part = firms.filter(size_class=size)
        assert part.height / part["weight"].sum() == pytest.approx(fraction, abs=0.02)


def test_sections_have_their_shares(firms: pl.DataFrame) -> None:
    """Estimated with the weights: exact up to the draw of the population."""
    total = dict(firms.group_by(pl.col("industry").str.head(1)).agg(pl.col("weight").sum()).iter_rows())
    for name, section in SECTIONS.items():
        share = section["share"]
        assert total[name] / POPULATION == pytest.approx(share, abs=4 * (share / POPULATION) ** 0.5)


def test_sizes_are_skewed_and_a_few_firms_dominate(firms: pl.DataFrame) -> None:
    for name in AMOUNTS:
        assert skew(firms[name].to_numpy()) > 10
    turnover = np.sort(firms["turnover"].to_numpy())[::-1]
    assert 0.3 < turnover[:59].sum() / turnover.sum() < 0.8, "the largest hundredth"
    assert abs(skew(np.log(firms["turnover"].to_numpy() + 1))) < 1.2, "nearly lognormal"
    assert firms["employees"].min() == 1
    share = (firms["exports"] == 0).mean()
    assert isinstance(share, float)
    assert 0.5 < share < 0.9


def test_size_classes_follow_employees(firms: pl.DataFrame) -> None:
    for (name, low), high in zip(SIZES.items(), [10, 50, 250, 10**9], strict=True):
        assert firms.filter(size_class=name)["employees"].is_between(low, high - 1).all()


def test_the_codes_nest(firms: pl.DataFrame) -> None:
    assert firms["industry"].str.contains(r"^[A-Z]\d\d\.\d$").all()
    assert firms["region"].str.contains(r"^EQ[1-4]\d\d$").all()
    divisions = firms.select(pl.col("industry").str.head(1).alias("s"), pl.col("industry").str.slice(1, 2).alias("d"))
    assert divisions.unique().height == divisions["d"].n_unique(), "a division belongs to one section"
    for section, division in divisions.unique().iter_rows():
        first, last = SECTIONS[section]["divisions"]
        assert first <= int(division) <= last
    assert firms["region"].n_unique() == sum(two * three for two, three in REGIONS.values())


def test_holdings_control_several_firms_in_several_industries(firms: pl.DataFrame) -> None:
    groups = firms.group_by("holding").agg(pl.len(), pl.col("industry").n_unique().alias("industries"))
    several = groups.filter(pl.col("len") > 1)
    assert 100 < several.height < 300
    assert (several["industries"] > 1).mean() > 0.5  # type: ignore[operator]
    members = firms.filter(pl.col("holding").is_in(several["holding"].implode()))
    assert members["employees"].median() > 3 * firms["employees"].median()  # type: ignore[operator]


def test_amounts_hang_together(firms: pl.DataFrame) -> None:
    assert (firms["wages"] <= firms["turnover"] + 1).all()
    assert (firms["exports"] <= firms["turnover"]).all()
    logs = firms.select(pl.col("employees", "turnover", "wages").log1p())
    assert logs.select(pl.corr("employees", "turnover")).item() > 0.8
    by = dict(
        firms.group_by(pl.col("industry").str.head(1))
        .agg((pl.col("turnover") / pl.col("employees")).median())
        .iter_rows()
    )
    assert by["D"] > by["G"] > by["I"]  # fmt: skip


def test_many_firms_are_unique(firms: pl.DataFrame) -> None:
    cells = firms.group_by("industry", "region", "size_class").len()
    assert 0.4 < (cells["len"] == 1).sum() / firms.height < 0.8


def test_the_same_frame_every_time(firms: pl.DataFrame) -> None:
    digests = {hashlib.sha256(frame.write_csv().encode()).hexdigest() for frame in (firms, business())}
    assert len(digests) == 1


def test_golden_totals(firms: pl.DataFrame) -> None:
    """The public seed gives these very firms."""
    assert firms.select(pl.len(), pl.col("employees", "turnover", "wages").sum()).row(0) == GOLDEN


GOLDEN = (5_902, 338_478, 100_204_900, 13_092_996)
