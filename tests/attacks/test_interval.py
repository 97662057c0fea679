"""Interval disclosure: against the definition record by record, by hand, and at the two ends of protection."""

import math
from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.attacks import Interval
from equipoise.data.records import Law, Records


def read(id_: str | None = None, /, **columns: Any) -> Records:
    return Records.of(pl.DataFrame(columns), eq.Roles(numeric=[c for c in columns if c != id_], id=id_))


def brute(masked: Any, original: Any, width: float) -> list[bool | None]:
    """The definition, one record at a time: ranks nearer than p n / 2 to the mean rank, mapped to values."""
    ordered = sorted(y for y in masked if not math.isnan(y))
    n, found = len(ordered), []
    for y, x in zip(masked, original, strict=True):
        if math.isnan(y) or math.isnan(x):
            found.append(None)
            continue
        places = [k for k, value in enumerate(ordered, 1) if value == y]
        middle = sum(places) / len(places)
        held = [ordered[k - 1] for k in range(1, n + 1) if 2 * abs(k - middle) < round(width * n, 9)] or [y]
        found.append(min(held) <= x <= max(held))
    return found


@pytest.mark.parametrize("width", [0.001, 0.01, 0.1, 0.25, 1.0])
@pytest.mark.parametrize("steps", [5, 40, 10_000])
def test_record_by_record(width: float, steps: int) -> None:
    """Random ties (few values to many), gaps in both files: everybody inside or not as by the definition."""
    rng = np.random.default_rng(steps)
    original = rng.integers(0, steps, 600).astype(float)
    masked = original + rng.integers(-steps // 5, steps // 5 + 1, 600)
    original[rng.random(600) < 0.05] = np.nan
    masked[rng.random(600) < 0.05] = np.nan
    expected = brute(masked, original, width)
    attack = Interval(width)
    here, there = read(x=masked), read(x=original)
    assert attack.inside(here, there)["x"].to_list() == expected
    known = [e for e in expected if e is not None]
    score = attack.measure(here, there)
    assert score.value == sum(known) / len(known)
    assert score.by_record()["risk"].to_list() == [float(bool(e)) for e in expected]


def test_by_hand() -> None:
    """Ten masked values 10..100: 0.3 of 10 ranks is 3, so the ranks next to one's own, 1.5 not reached, are inside."""
    masked = [10.0 * k for k in range(1, 11)]
    original = [20.0, 9.0, 40.0, 51.0, 50.0, 60.0, 81.0, 79.0, 100.0, 101.0]
    score = Interval(0.3).measure(read(x=masked), read(x=original))
    # [10,20] [10,30] [20,40] [30,50] [40,60] [50,70] [60,80] [70,90] [80,100] [90,100]
    inside = [True, False, True, False, True, True, False, True, True, False]
    assert Interval(0.3).inside(read(x=masked), read(x=original))["x"].to_list() == inside
    assert score.value == 0.6
    assert score.detail.row(0, named=True)["inside"] == 6


@pytest.mark.parametrize(("width", "reach"), [(0.1, 0), (0.2, 0), (0.21, 1), (0.4, 1), (0.41, 2), (0.6, 2), (1.0, 4)])
def test_ranks_differ_by_less_than_the_width(width: float, reach: int) -> None:
    """Strictly less than p n: with n = 10 and p = 0.4 one rank on each side, for two would differ by 4."""
    masked = np.arange(10.0)
    original = np.full(10, np.nan)
    original[5] = 5.0 + reach
    assert Interval(width).measure(read(x=masked), read(x=original)).value == 1.0
    original[5] += 1
    assert Interval(width).measure(read(x=masked), read(x=original)).value == 0.0


def test_ties_share_an_interval_and_a_crowd_is_alone_in_its_own() -> None:
    """Seven of ten at 5: mean rank 5; ranks 4 to 6 are all fives. Both tens have the ranks above 8."""
    masked = [1.0, *[5.0] * 7, 10.0, 10.0]
    original = [1.0, 5.0, 6.0, 5.0, 5.0, 5.0, 5.0, 4.0, 10.0, 5.0]
    shown = Interval(0.3).inside(read(x=masked), read(x=original))["x"].to_list()
    assert shown == [True, True, False, True, True, True, True, False, True, False]


def test_by_standard_deviations() -> None:
    """sd of 0, 2, 4 is 1.633; a width of 1 reaches 0.816 on each side."""
    masked, original = [0.0, 2.0, 4.0], [0.8, 2.9, 4.0]
    assert Interval(1.0, "sd").measure(read(x=masked), read(x=original)).value == pytest.approx(2 / 3)
    assert Interval(1.2, "sd").measure(read(x=masked), read(x=original)).value == 1.0


def test_an_unmasked_file_discloses_every_value(people_records: eq.Records) -> None:
    score = Interval(0.01, columns=("age", "salary")).measure(people_records, people_records)
    assert score.value == 1.0
    assert score.detail["column"].to_list() == ["age", "salary"]


@pytest.mark.parametrize("sides", ["rank", "sd"])
def test_independent_files_give_the_baseline(sides: Any) -> None:
    rng = np.random.default_rng(5)
    here, there = (read(x=rng.normal(size=20_000), y=rng.exponential(size=20_000)) for _ in range(2))
    score = Interval(0.1, sides).measure(here, there)
    assert score.baseline == pytest.approx(0.1 if sides == "rank" else score.value, abs=0.005)
    assert score.interval is not None
    assert score.interval[0] <= score.baseline <= score.interval[1]


def test_the_baseline_is_the_mean_over_all_pairs() -> None:
    rng = np.random.default_rng(6)
    original = rng.integers(0, 30, 80).astype(float)
    masked = original + rng.integers(-3, 4, 80)
    crossed = [brute(masked, np.roll(original, k), 0.2) for k in range(80)]
    assert Interval(0.2).measure(read(x=masked), read(x=original)).baseline == pytest.approx(np.mean(crossed))


def test_the_order_of_rows_changes_nothing() -> None:
    rng = np.random.default_rng(8)
    table = pl.DataFrame({"id": np.arange(500), "x": rng.integers(0, 60, 500), "y": rng.normal(size=500)})
    masked = table.with_columns(x=table["x"] + pl.Series(rng.integers(-9, 10, 500)), y=table["y"] * 1.1)
    roles = eq.Roles(numeric=["x", "y"], id="id")
    plain = Interval().measure(Records.of(masked, roles), Records.of(table, roles))
    one, two = (t.sample(fraction=1, shuffle=True, seed=s) for t, s in ((masked, 1), (table, 2)))
    moved = Interval().measure(Records.of(one, roles), Records.of(two, roles))
    assert moved.value == pytest.approx(plain.value, rel=1e-12)
    assert moved.detail.equals(plain.detail)
    assert moved.by_record()["id"].to_list() == one["id"].to_list()
    assert moved.by_record().sort("id").equals(plain.by_record())


def test_the_curve_rises_and_passes_through_the_score() -> None:
    rng = np.random.default_rng(9)
    original = rng.normal(size=1000)
    here, there = read(x=original + rng.normal(size=1000) / 4, y=original), read(x=original, y=original)
    curve = Interval().curve(here, there)
    shares = curve.filter(column="x")["risk"]
    assert curve.height == 20
    assert shares.is_sorted()
    assert curve.filter(width=0.1)["risk"].mean() == pytest.approx(Interval(0.1).measure(here, there).value, rel=1e-12)
    with pytest.raises(eq.ParameterError):
        Interval().curve(here, there, [2])


def test_dates_and_ordered_categories() -> None:
    kind = pl.Enum(["low", "mid", "high"])
    original = pl.DataFrame(
        {
            "k": pl.Series(["low", "mid", "high", "high"], dtype=kind),
            "d": [date(2020, 1, 1), date(2020, 1, 2), date(2020, 1, 5), date(2021, 1, 1)],
            "t": ["a", "b", "c", "d"],
        }
    )
    released = original.with_columns(k=pl.Series(["mid", "mid", "high", "high"], dtype=kind))
    one, two = (Records.of(t, eq.Roles("t")) for t in (released, original))
    assert Interval(0.1, columns=("k", "d")).measure(one, two).detail["risk"].to_list() == [0.75, 1.0]
    with pytest.raises(eq.DataError, match="no order"):
        Interval(0.1, columns=("t",)).measure(one, two)
    with pytest.raises(eq.DataError, match="no order"):
        Interval(0.1, "sd", columns=("k",)).measure(one, two)


def test_columns_without_pairs_are_left_out_and_said() -> None:
    empty = pl.Series([None, None], dtype=pl.Float64)
    here, there = read(x=[1.0, 2.0], y=empty), read(x=[1.0, 2.0], y=[3.0, 4.0])
    score = Interval().measure(here, there)
    assert score.value == 1.0
    assert score.notes[-1] == "Left out, without values in both files: y."
    with pytest.raises(eq.DataError, match="nothing to compare"):
        Interval(columns=("y",)).measure(here, there)


def test_synthetic_files_are_nobody() -> None:
    records = read(x=[1.0, 2.0])
    made = records.with_frame(records.frame, Law("synthesize", ("x",), "drawn", {"synthetic": "full"}))
    assert np.isnan(Interval().measure(made, records).value)


@pytest.mark.parametrize(
    "bad", [{"width": 0}, {"width": 10}, {"width": math.nan}, {"width": -1, "sides": "sd"}, {"sides": "value"}]
)
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        Interval(**bad)


def test_two_thousand_records_one_by_one(full: Any) -> None:
    """The definition on all pairs of 600 records (2,000 in full), ties and gaps included."""
    rng, size = np.random.default_rng(7), full(600, 2000)
    original = rng.integers(0, 300, size).astype(float)
    masked = original + rng.integers(-20, 21, size)
    original[rng.random(size) < 0.03] = np.nan
    masked[rng.random(size) < 0.03] = np.nan
    assert Interval(0.1).inside(read(x=masked), read(x=original))["x"].to_list() == brute(masked, original, 0.1)
