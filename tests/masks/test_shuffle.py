"""Shuffle: the distribution exactly, rank correlations nearly, and nothing of the value itself."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.masks import Shuffle

SIZE = 20_000
ROLES = eq.Roles(id="id")


@pytest.fixture(scope="module")
def town() -> pl.DataFrame:
    """Income and wealth go with age, schooling and region, through monotone curves."""
    rng = np.random.default_rng(11)
    age, school, region = rng.normal(45, 12, SIZE), rng.integers(0, 10, SIZE), rng.integers(0, 3, SIZE)
    common = rng.normal(size=SIZE)
    income = np.exp(0.02 * age + 0.15 * school + np.array([0.0, 0.5, -0.6])[region] + 0.5 * common)
    wealth = 0.1 * age + 2 * common + rng.normal(size=SIZE)
    return pl.DataFrame(
        {
            "id": np.arange(SIZE) + 7,
            "age": age,
            "school": school,
            "region": pl.Series(["n", "s", "w"]).gather(region),
            "income": income,
            "wealth": wealth,
        }
    )


def shuffled(mask: Shuffle, table: Any, seed: int = 1, roles: eq.Roles = ROLES) -> pl.DataFrame:
    return mask.apply(eq.read(table, roles), Draws(seed)).collect()


def spearman(table: pl.DataFrame, a: str, b: str) -> float:
    return float(stats.spearmanr(table[a], table[b]).statistic)


def test_distribution_is_kept_exactly_and_rank_correlations_nearly(town: pl.DataFrame) -> None:
    """Muralidhar and Sarathy: same marginals; rank correlations within 4 standard errors."""
    found = shuffled(Shuffle(["income", "wealth"], given=["age", "school", "region"]), town)
    limit = 4 * np.sqrt(2 / SIZE) + 0.01
    for column in ("income", "wealth"):
        assert found[column].sort().equals(town[column].sort())
        for other in ("age", "school"):
            assert spearman(found, column, other) == pytest.approx(spearman(town, column, other), abs=limit)
    assert spearman(found, "income", "wealth") == pytest.approx(spearman(town, "income", "wealth"), abs=limit)
    middle = found.group_by("region").agg(pl.col("income").median()).sort("region")
    truth = town.group_by("region").agg(pl.col("income").median()).sort("region")
    assert middle["income"].to_list() == pytest.approx(truth["income"].to_list(), rel=0.06)
    assert found.drop("income", "wealth").equals(town.drop("income", "wealth"))


def test_the_value_itself_is_gone(town: pl.DataFrame) -> None:
    """Given the other columns a shuffled value says nothing about the original: partial rank correlation 0."""
    given = ["age", "school", "region"]
    found = shuffled(Shuffle(["income"], given=given), town)
    design = np.column_stack(
        [np.ones(SIZE), town["age"].rank(), town["school"].rank(), town["region"] == "n", town["region"] == "s"]
    )
    left = []
    for table in (town, found):
        y = stats.norm.ppf((table["income"].rank().to_numpy() - 0.5) / SIZE)
        left.append(y - design @ np.linalg.lstsq(design, y, rcond=None)[0])
    assert abs(np.corrcoef(left)[0, 1]) < 4 / np.sqrt(SIZE)


def test_given_nothing_only_the_columns_hold_together(town: pl.DataFrame) -> None:
    found = shuffled(Shuffle(["income", "wealth"], given=()), town)
    assert spearman(found, "income", "wealth") == pytest.approx(spearman(town, "income", "wealth"), abs=0.04)
    assert abs(spearman(found, "income", "age")) < 4 / np.sqrt(SIZE)
    assert abs(stats.spearmanr(found["income"], town["income"]).statistic) < 4 / np.sqrt(SIZE)


def test_ties_and_whole_numbers(town: pl.DataFrame) -> None:
    """A column of few values stays one, and goes with its covariate as before."""
    found = shuffled(Shuffle(["school"], given=["income"]), town)
    assert found["school"].dtype == town["school"].dtype
    assert found["school"].value_counts(sort=True).equals(town["school"].value_counts(sort=True))
    assert spearman(found, "school", "income") == pytest.approx(spearman(town, "school", "income"), abs=0.05)


def test_gaps_stay(town: pl.DataFrame) -> None:
    """Missing values of the column stay where they are; missing covariates are a group of their own."""
    rng = np.random.default_rng(0)
    holes = town.with_columns(
        income=pl.when(pl.Series(rng.random(SIZE) < 0.2)).then(None).otherwise(pl.col("income")),
        wealth=pl.when(pl.Series(rng.random(SIZE) < 0.1)).then(float("nan")).otherwise(pl.col("wealth")),
        age=pl.when(pl.col("age") > 60).then(None).otherwise(pl.col("age")),
        region=pl.when(pl.col("region") == "n").then(None).otherwise(pl.col("region")),
    )
    found = shuffled(Shuffle(["income", "wealth"], given=["age", "region"]), holes)
    assert found["income"].is_null().equals(holes["income"].is_null())
    assert found["wealth"].is_nan().equals(holes["wealth"].is_nan())
    assert found["income"].sort().equals(holes["income"].sort())
    old = pl.col("age").is_null()
    assert found.filter(old)["income"].mean() == pytest.approx(holes.filter(old)["income"].mean(), rel=0.1)


def test_the_default_is_what_the_roles_release(people: pl.DataFrame, people_roles: eq.Roles) -> None:
    done = Shuffle(["salary"]).apply(eq.read(people, people_roles), Draws(1))
    assert done.history[0].parameters["given"] == ["sex", "area", "age"]
    assert set(done.history[0].parameters["explained"]) == {"salary"}
    assert "sex, area, age" in done.history[0].words


def test_rows_engines_seeds(engine: Any, town: pl.DataFrame) -> None:
    table = town.head(500)
    mask = Shuffle(["income", "wealth"], given=["age", "region"])
    expected = shuffled(mask, table).sort("id")
    records = eq.read(engine.make(table.sample(fraction=1, shuffle=True, seed=1)), ROLES)
    if engine.name == "pyspark":
        with pytest.raises(eq.EngineError, match="in memory"):
            mask.apply(records, Draws(1))
        return
    found = engine.rows(mask.apply(records, Draws(1)).to_native()).sort("id")
    assert_frame_equal(found.select(expected.columns), expected, check_dtypes=False)
    assert not expected.equals(shuffled(mask, table, seed=2).sort("id"))


def test_scanned_parquet(town: pl.DataFrame, tmp_path: Path) -> None:
    town.write_parquet(tmp_path / "town.parquet", row_group_size=3000)
    mask = Shuffle(["income"], given=["age"])
    done = mask.apply(eq.read(pl.scan_parquet(tmp_path / "town.parquet"), ROLES), Draws(1))
    assert_frame_equal(done.collect(), shuffled(mask, town))


def test_refusals(town: pl.DataFrame) -> None:
    with pytest.raises(eq.ParameterError, match="both shuffled and given"):
        Shuffle(["income"], given=["income"])
    with pytest.raises(eq.DataError, match="12 known values in each column, there are 9"):
        shuffled(Shuffle(["income"], given=["age"]), town.head(9))
    many = town.head(500).with_columns(name=pl.col("id").cast(pl.String))
    with pytest.raises(eq.DataError, match="500 categories"):
        shuffled(Shuffle(["income"], given=["name"]), many)
    with pytest.raises(eq.DataError, match="not numeric"):
        shuffled(Shuffle(["region"], given=["age"]), town)
    with pytest.raises(eq.RolesError, match="agee"):
        shuffled(Shuffle(["income"], given=["agee"]), town)


def test_a_column_explained_wholly(town: pl.DataFrame) -> None:
    """Where given explains everything the law says so: the shuffled values are the true ones."""
    table = town.with_columns(twin=pl.col("income") * 2)
    done = Shuffle(["twin"], given=["income"]).apply(eq.read(table, ROLES), Draws(1))
    assert done.history[0].parameters["explained"]["twin"] == pytest.approx(1, abs=0.01)
