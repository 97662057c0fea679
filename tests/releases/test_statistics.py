"""Tables of statistics: the numbers by hand, one pattern for all that they are made of, and what the folder says."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.tables.statistic import Percentile
from equipoise.releases.tabulated import Tabulated
from equipoise.tables import Ready
from equipoise.tables.percentiles import percentiles

RULE = "p-percent:10% | min-count:3"


@pytest.fixture(scope="module")
def firms() -> pl.DataFrame:
    random = np.random.default_rng(5)
    many = 300
    return pl.DataFrame(
        {
            "region": random.choice(list("abc"), many, p=[0.6, 0.37, 0.03]),
            "size": random.choice(["large", "small"], many),
            "turnover": random.gamma(0.9, 100, many).round(1),
            "staff": random.integers(1, 40, many),
            "none": np.where(np.arange(many) % 2, 0, 0),
        }
    )


def made(frame: pl.DataFrame, statistic: str, rule: str = RULE, **options: Any) -> Tabulated:
    records = eq.Records.of(frame, eq.Roles())
    return eq.tabulate(records, ["region", "size"], "turnover", rule=rule, statistic=statistic, **options)


def number(table: Tabulated, region: str, size: str) -> float:
    return table.public.filter(pl.col("region") == region, pl.col("size") == size)["published"].item()


@pytest.mark.parametrize("statistic", ["mean", "ratio:staff", "index:staff", "share:size", "share", "sd"])
def test_numbers(firms: pl.DataFrame, statistic: str) -> None:
    table = made(firms, statistic, "min-count:2")
    cell = firms.filter(pl.col("region") == "a", pl.col("size") == "small")
    row = firms.filter(pl.col("region") == "a")
    x, staff = cell["turnover"], float(cell["staff"].sum())
    expected = {
        "mean": x.mean(),
        "ratio:staff": x.sum() / staff,
        "index:staff": 100 * x.sum() / staff,
        "share:size": x.sum() / row["turnover"].sum(),
        "share": x.sum() / firms["turnover"].sum(),
        "sd": x.std(),
    }[statistic]
    assert number(table, "a", "small") == pytest.approx(expected)


def test_one_pattern_protects_both_sums(firms: pl.DataFrame) -> None:
    table = made(firms, "ratio:staff")
    (second,) = table.parts
    hidden = np.isnan(table.table.published_values)
    assert hidden.any()
    assert np.array_equal(hidden, np.isnan(second.table.published_values))
    for part in (table, second):
        assert not part.outsider["exact"].any()
        assert not part.outsider["exposed"].any()
    rule = eq.rules.PPercent(0.1) | eq.rules.MinCount(3)
    either = rule.flag(table.table).to_numpy() | rule.flag(second.table).to_numpy()
    assert np.array_equal((table.statuses == "sensitive").to_numpy(), either)
    assert "somebody who knows one of the two sums of every cell" in table.attackers.against


def test_a_share_needs_its_total(firms: pl.DataFrame) -> None:
    few = firms.filter((pl.col("region") != "c") | (pl.int_range(pl.len()) % 3 == 0))
    table = made(few, "share:size")
    rows = table.public.filter(pl.col("status") == "suppressed")["region"].to_list()
    totals = table.public.filter(pl.col("size") == "Total", pl.col("status") == "suppressed")["region"].to_list()
    assert all(rows.count(region) == 3 for region in totals)


def test_a_denominator_of_zero_is_an_empty_cell(firms: pl.DataFrame) -> None:
    table = made(firms, "ratio:none", "min-count:2")
    assert table.public["published"].null_count() == table.public.height
    assert set(table.public["status"]) <= {"empty", "suppressed"}


def test_deviations_of_few_or_of_one_large_value_are_suppressed() -> None:
    """Samuelson: of 12 values of which 11 are 1, mean and deviation give the twelfth."""
    alike = pl.DataFrame({"k": ["a"] * 12 + ["b"] * 40 + ["c"] * 40, "x": [1.0] * 11 + [150.0] + [*range(1, 41)] * 2})
    table = eq.tabulate(eq.Records.of(alike, eq.Roles()), "k", "x", rule="min-count:3", statistic="sd")
    status = dict(table.internal.select("k", "status").rows())
    assert status["a"] == "sensitive"
    assert status["Total"] != "sensitive"
    few = eq.tabulate(
        eq.Records.of(alike.filter(pl.col("k") != "a").head(50), eq.Roles()),
        "k",
        "x",
        rule="min-count:3",
        statistic="sd",
    )
    assert dict(few.internal.select("k", "status").rows())["c"] == "sensitive"


def test_percentiles_by_hand() -> None:
    """Ten people a, twelve b: the median of a is the mean of ranks 2 to 7, that of 1, 4, ..., 100 squared."""
    frame = pl.DataFrame({"k": ["a"] * 10 + ["b"] * 12, "x": [float(i * i) for i in range(1, 11)] + [7.0] * 12})
    table = eq.table(eq.Records.of(frame, eq.Roles()), "k", "x")
    cells = percentiles(table, Percentile())
    assert cells.values.tolist()[1:] == pytest.approx([np.mean([9, 16, 25, 36, 49, 64]), 7.0])
    top = percentiles(table, Percentile(100))
    assert top.few.tolist() == [True, True, False]


def test_a_median_that_would_be_somebodys_own_takes_more_values() -> None:
    frame = pl.DataFrame({"k": ["a"] * 11, "x": [float(i) for i in range(10)] + [30.0]})
    values = percentiles(eq.table(eq.Records.of(frame, eq.Roles()), "k", "x"), Percentile()).values
    assert np.isnan(values).all() or not set(values.tolist()) & set(frame["x"].to_list())


def test_of_two_medians_of_nearly_the_same_people_one_is_suppressed() -> None:
    frame = pl.DataFrame({"k": ["a"] * 30 + ["b"] * 2, "x": [float(i * i) for i in range(32)]})
    table = eq.tabulate(eq.Records.of(frame, eq.Roles()), "k", "x", rule="min-count:3", statistic="median")
    assert dict(table.internal.select("k", "status").rows()) == {
        "Total": "published",
        "a": "secondary",
        "b": "sensitive",
    }


def test_weights_count_as_so_many_people(firms: pl.DataFrame) -> None:
    weighted = firms.with_columns(w=pl.lit(3))
    for statistic in ("mean", "median"):
        one, two = made(firms, statistic), made(weighted, statistic, weight="w")
        assert number(one, "a", "small") == pytest.approx(number(two, "a", "small"))


def test_the_folder_says_what_the_numbers_are(firms: pl.DataFrame, tmp_path: Path) -> None:
    firms.write_csv(tmp_path / "firms.csv")
    records = eq.read(tmp_path / "firms.csv", eq.Roles())
    out = tmp_path / "out"
    options: dict[str, Any] = {"statistic": "ratio:staff", "components": True, "rule": RULE, "out": out}
    table = eq.tabulate(records, ["region", "size"], "turnover", **options)
    assert table.public.columns == ["region", "size", "published", "sum_1", "sum_2", "count", "status"]
    evidence = json.loads((out / "public/evidence.json").read_text())
    assert evidence["table"]["statistic"] == "ratio of turnover to staff"
    assert "Ratio of turnover to staff" in (out / "public/report.html").read_text()
    assert (out / "private/component-2/audit.csv").is_file()
    checks = {check.name: check.holds for check in eq.verify(out).checks}
    assert checks["again"]
    assert checks["numbers"]


def test_a_ready_table_has_means_and_shares() -> None:
    cells = pl.DataFrame({"k": ["a", "b", "c"], "x": [100.0, 50.0, 8.0], "n": [10, 5, 2]})
    ready = Ready(n="n")
    table = eq.tabulate(eq.Records.of(cells, eq.Roles()), "k", "x", rule="min-count:3", statistic="mean", ready=ready)
    assert dict(table.public.select("k", "published").rows())["a"] == 10.0
    with pytest.raises(eq.ParameterError, match="made of records"):
        eq.tabulate(eq.Records.of(cells, eq.Roles()), "k", "x", rule="min-count:3", statistic="median", ready=ready)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"statistic": "sd:few"}, "sd takes numbers"),
        ({"statistic": "median:1"}, "at least 2 contributors"),
        ({"statistic": "share:staff"}, "does not go by 'staff'"),
        ({"statistic": "ratio:turnover"}, "divided by itself"),
        ({"statistic": "mean", "compare": ["round:5"]}, "not compared"),
        ({"statistic": "mean", "method": eq.tables.Round(5)}, "protected by suppressing cells"),
        ({"statistic": "median", "holding": "staff"}, "of records, not of holdings"),
        ({"statistic": "median", "components": True}, "not made of sums"),
        ({"statistic": None, "components": True}, "components is about a statistic"),
    ],
)
def test_bad_statistics(firms: pl.DataFrame, options: dict[str, Any], words: str) -> None:
    with pytest.raises(eq.ParameterError, match=words):
        made(firms, **{"rule": None if "method" in options else RULE, **options})


def test_a_register_remembers_both_sums_of_a_ratio(firms: pl.DataFrame, tmp_path: Path) -> None:
    """A sum of staff that would tell a suppressed denominator is protected beside the ratio, or refused."""
    book = tmp_path / "register.json"
    one = made(firms, "ratio:staff", register=book, out=tmp_path / "ratio")
    records = eq.Records.of(firms, eq.Roles())
    two = eq.tabulate(records, ["region", "size"], "staff", rule="min-count:2", register=book, out=tmp_path / "sums")
    hidden = [np.isnan(table.table.published_values) for table in (one, two)]
    assert hidden[0].any()
    assert (hidden[0] <= hidden[1]).all()
    with pytest.raises(eq.ParameterError, match="percentiles do not add up"):
        made(firms, "median", register=book)
    with pytest.raises(eq.RefusedError, match="beside the tables that were published before"):
        made(firms, "sd", register=book)
    alone = made(firms, "sd", register=tmp_path / "other.json")
    assert "standard deviations of several tables" in alone.attackers.not_cover[-1]
