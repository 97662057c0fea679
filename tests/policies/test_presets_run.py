"""Presets run on what they are for: tables of counts, patients, a household survey, a clinical file."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.policies.policy_file import Job

SMALL_AREA, LARGE_AREA = "03601", "10001"


def balanced(folder: Path, preset: str, frame: pl.DataFrame, **sections: Any) -> Any:
    """The release of a policy that only names a preset, its data and its columns."""
    import tomli_w

    frame.write_parquet(folder / "data.parquet")
    plain = {"extends": preset, **sections, "data": {"path": "data.parquet"}}
    (folder / "policy.toml").write_text(tomli_w.dumps(plain), encoding="utf-8")
    return eq.balance(folder / "policy.toml", out=folder / "out")


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    """Counts by area and illness: 3 of 16 cells are below 8, one is 8, one 9, one 10 and one is empty."""
    sizes = [[40, 60, 3, 25], [33, 9, 50, 44], [70, 8, 10, 31], [5, 41, 38, 0]]
    rows = [(f"a{i}", f"d{j}") for i, row in enumerate(sizes) for j, size in enumerate(row) for _ in range(size)]
    rows += [("a0", "d1")] * 2 + [("a3", "d0")]
    return pl.DataFrame(rows, schema=["area", "illness"], orient="row")


def counts(people: pl.DataFrame) -> dict[tuple[str, str], int]:
    return {(a, d): n for a, d, n in people.group_by("area", "illness").len().rows()}


def cells(release: Any) -> pl.DataFrame:
    """The inner cells of the published table, in the columns area, illness, status and published."""
    table = pl.read_csv(release.public / "table.csv")
    return table.filter((pl.col("area") != "Total") & (pl.col("illness") != "Total"))


@pytest.mark.parametrize(
    ("preset", "least", "empty"),
    [("abs-datalab", 10, False), ("uk-tre", 10, True), ("opensafely", 8, False), ("cms", 11, False)],
)
def test_presets_of_research_environments_run_on_counts(
    people: pl.DataFrame, tmp_path: Path, preset: str, least: int, empty: bool
) -> None:
    """What is below the threshold, or empty where zeros are disclosive, is not published, and the release verifies."""
    release = balanced(tmp_path, preset, people, table={"by": ["area", "illness"]})
    sizes, table = counts(people), cells(release)
    for row in table.iter_rows(named=True):
        size = sizes.get((row["area"], row["illness"]), 0)
        if 0 < size < least or (empty and not size):
            assert row["published"] is None, (row["area"], row["illness"])
    shown = table.drop_nulls("published")
    assert 0 < shown.height < 16
    assert (shown.filter(pl.col("published") > 0)["published"] >= least - 5).all()
    assert eq.verify(tmp_path / "out")


def test_dominance_asks_nothing_more_of_counts(people: pl.DataFrame) -> None:
    """With ten contributors of 1 each the largest has a tenth: DataLab's rules on counts are its rule of ten."""
    table = eq.table(eq.read(people, eq.Roles(["area", "illness"])), ["area", "illness"])
    both = eq.rules.MinCount(10) | eq.rules.Dominance(1, 0.5) | eq.rules.Dominance(2, 0.67)
    assert both.flag(table).to_list() == eq.rules.MinCount(10).flag(table).to_list()


def test_opensafely_rounds_to_the_nearest_5(people: pl.DataFrame, tmp_path: Path) -> None:
    """Every published number, margins too, is the multiple of 5 nearest to its own count."""
    release = balanced(tmp_path, "opensafely", people, table={"by": ["area", "illness"]})
    table = pl.read_csv(release.public / "table.csv").drop_nulls("published")
    for row in table.iter_rows(named=True):
        inside = [
            n for (a, d), n in counts(people).items() if row["area"] in (a, "Total") and row["illness"] in (d, "Total")
        ]
        assert row["published"] == 5 * round(sum(inside) / 5)


def patients() -> pl.DataFrame:
    """A patient in a small area, one of 95, and others; as numbers their ZIP codes have lost zeros."""
    rng, many = np.random.default_rng(3), 400
    ages = rng.integers(20, 88, many)
    ages[0] = 95
    births = [datetime.date(2026 - int(age), 1 + int(age) % 12, 3) for age in ages]
    zips = rng.choice([LARGE_AREA, "60601", "94105"], many)
    zips[:9] = SMALL_AREA
    return pl.DataFrame(
        {
            "age": ages, "zip": zips, "sex": rng.choice(["f", "m"], many), "birth": births,
            "born": [birth.year for birth in births],
            "seen": [datetime.date(2025, 1 + i % 12, 1 + i % 28) for i in range(many)],
        }
    )  # fmt: skip


@pytest.mark.parametrize("numbers", [False, True])
def test_safe_harbor_changes_small_areas_to_000_and_hides_years_of_birth_of_90(tmp_path: Path, numbers: bool) -> None:
    frame = patients().with_columns(pl.col("zip").cast(pl.Int64)) if numbers else patients()
    slots = {"age": "age", "zip": "zip", "dates": ["seen"], "births": "birth", "birth_years": "born", "oldest": 1936}
    roles = {"keys": ["age", "zip", "sex", "birth", "born", "seen"]}
    release = balanced(tmp_path, "hipaa-safe-harbor", frame, slots=slots, roles=roles)
    data = pl.read_parquet(release.public / "data.parquet")
    assert set(data["zip"]) == {"000", "100", "606", "941"}
    assert (data["zip"] == "000").sum() == 9
    assert set(data["seen"]) == {"2025"}
    oldest = data.filter(pl.col("age") == "90+")
    assert oldest.select("birth", "born").rows() == [("1936 or before", "<=1936")]
    assert {birth for birth in data["birth"] if birth < "1937"} == {"1936 or before"}


def test_safe_harbor_asks_for_the_year_before_it_hides_births(tmp_path: Path) -> None:
    plain: dict[str, Any] = {"data": {"path": "x.csv"}, "roles": {"keys": ["age"]}, "slots": {"births": "birth"}}
    plain["extends"] = "hipaa-safe-harbor"
    with pytest.raises(eq.ParameterError, match="oldest"):
        Job.from_plain(plain, tmp_path / "policy.toml")


def survey() -> pl.DataFrame:
    rng = np.random.default_rng(11)
    homes = np.repeat(np.arange(300) + 7000, 3)
    return pl.DataFrame(
        {
            "home": homes, "region": rng.choice(["n", "s"], 300).repeat(3), "sex": rng.choice(["f", "m"], 900),
            "age": rng.integers(0, 90, 900),
        }
    )  # fmt: skip


def test_worldbank_renumbers_households_and_shuffles(tmp_path: Path) -> None:
    """New numbers from 1 on, who lives together stays, neither numbers nor rows go with the original."""
    frame = survey()
    tree = {"age": {"kind": "intervals", "widths": [10, 30]}}
    roles = {"keys": ["region", "sex", "age"], "household": "home", "hierarchies": tree}
    release = balanced(tmp_path, "worldbank", frame, roles=roles, assume_unknown=["home"])
    data = pl.read_parquet(release.public / "data.parquet")
    assert set(data["home"]) == set(range(1, 301))
    assert set(data.group_by("home").len()["len"]) == {3}
    assert abs(float(np.corrcoef(np.arange(900), data["home"].to_numpy())[0, 1])) < 5 / np.sqrt(900)
    assert data.group_by("region", "sex", "age").len()["len"].min() >= 3


def test_worldbank_runs_without_households(tmp_path: Path) -> None:
    frame = survey().drop("home")
    tree = {"age": {"kind": "intervals", "widths": [10, 30]}}
    release = balanced(tmp_path, "worldbank", frame, roles={"keys": ["region", "sex", "age"], "hierarchies": tree})
    assert release.verdict


def test_ema_reads_the_threshold_as_12_and_ema_11_as_11(tmp_path: Path) -> None:
    """A file with a class of 11: both classes are measured, one preset blanks it and the other keeps it."""
    frame = pl.DataFrame({"arm": ["a"] * 11 + ["b"] * 40, "x": list(range(51))})
    roles = {"keys": ["arm"], "hierarchies": {"arm": {"kind": "prefix", "lengths": [1]}}}
    blanks = {}
    for preset in ("ema", "ema-11"):
        (tmp_path / preset).mkdir()
        release = balanced(tmp_path / preset, preset, frame, roles=roles, assume_unknown=["x"])
        blanks[preset] = pl.read_parquet(release.public / "data.parquet")["arm"].null_count()
        assert {"k_anonymity(k=11)", "k_anonymity(k=12)"} <= set(release.trial.scores.keys())
    assert blanks["ema"] >= 12
    assert blanks["ema-11"] == 0
