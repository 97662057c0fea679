"""Suggested hierarchies: round widths, breaks at rounded quantiles, prefixes, the calendar, rare categories merged."""

from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.inspection.column_facts import facts_of
from equipoise.inspection.propose_hierarchies import nested


def tree(values: pl.Series, coded: bool = False) -> eq.Hierarchy:
    found = nested(facts_of(values), coded)
    assert found is not None
    return found


def names(values: pl.Series, coded: bool = False) -> list[str]:
    return [level.name for level in tree(values, coded).levels[1:]]


def test_ages_in_fives_tens_and_twenties() -> None:
    assert names(pl.Series("age", [i % 96 for i in range(960)])) == ["5", "10", "20"]


@pytest.mark.parametrize(("factor", "first"), [(1, "5"), (10, "50"), (2, "10"), (0.01, "0.05"), (0.4, "2")])
def test_widths_are_one_two_or_five_times_a_power_of_ten(factor: float, first: str) -> None:
    assert names(pl.Series("x", np.arange(100.0) * factor + 0.001))[0] == first


def test_skewed_numbers_break_at_rounded_quantiles() -> None:
    values = pl.Series("x", np.random.default_rng(1).lognormal(5, 2, 5_000).round(2))
    levels = tree(values).levels[1:]
    assert [level.name.split()[1] for level in levels] == ["bands"] * len(levels)
    counts = levels[0].label(values).value_counts()["count"]
    assert counts.max() < 5_000 / 4  # type: ignore[operator]
    (branch,) = tree(values).branches
    assert all(float(f"{point:.1g}") == point for point in branch.breaks[0])  # type: ignore[union-attr]


def test_zero_stays_alone_where_it_is_frequent() -> None:
    (branch,) = tree(pl.Series("x", [0] * 300 + list(range(1, 901)))).branches
    assert branch.alone == (0,)  # type: ignore[union-attr]


def test_codes_are_cut_where_their_parts_meet() -> None:
    codes = pl.Series("icd", [f"{c}{i:02d}.{j}" for c in "ABC" for i in range(10, 40) for j in range(4)])
    assert names(codes) == ["3", "1"]
    assert names(pl.Series("nuts", [f"EQ{i}{j}{k}" for i in "123" for j in "1234" for k in "12345"])) == ["4", "3"]
    assert names(pl.Series("plz", [f"1{i:04d}" for i in range(0, 900, 7)]))[-1] == "3"


def test_numbers_that_are_codes() -> None:
    values = pl.Series("zip", [10_000 + 100 * i + j for i in range(20) for j in range(9)])
    assert names(values, coded=True) == ["3", "2"]


def test_dates_by_the_calendar() -> None:
    days = pl.Series("d", [date(2000, 1, 1) + timedelta(days=37 * i) for i in range(300)])
    assert names(days) == ["month", "quarter", "year", "decade"]
    assert names(days.filter(days < date(2000, 12, 1))) == ["month", "quarter"]
    assert names(days.cast(pl.String)) == ["month", "quarter", "year", "decade"]


def test_rare_categories_are_merged_and_not_named() -> None:
    values = pl.Series("town", ["a"] * 500 + ["b"] * 400 + ["c"] * 96 + ["rare1", "rare2", "rare2"])
    made = tree(values)
    assert made.level("rare merged").label(values).unique().sort().to_list() == ["a", "b", "c", "other"]
    assert "rare1" not in str(made.to_plain())


def test_a_single_rare_category_takes_the_next_with_it() -> None:
    values = pl.Series("town", ["a"] * 500 + ["b"] * 400 + ["c"] * 96 + ["rare"])
    assert tree(values).level(1).label(values).unique().sort().to_list() == ["a", "b", "other"]


def test_merging_goes_on_down_to_the_most_frequent() -> None:
    values = pl.Series("job", [f"j{i}" for i in range(8) for _ in range(100 - i)] + ["rare1", "rare2"])
    made = tree(values)
    assert [level.name for level in made.levels[1:]] == ["rare merged", "4 kept", "2 kept", "1 kept"]
    assert made.level("1 kept").label(values).unique().sort().to_list() == ["j0", "other"]
    assert [level.name for level in tree(values.head(700)).levels[1:]] == ["4 kept", "2 kept", "1 kept"]


def test_months_by_the_quarter_and_ages_by_five_years() -> None:
    assert names(pl.Series("month", list(range(1, 13)) * 20)) == ["3", "6"]
    assert names(pl.Series("age", list(range(20, 50)) * 20)) == ["5", "10", "20"]


def test_the_top_code_takes_few() -> None:
    """An open band counts by its bound: few may be above it, or means shift."""
    ages = pl.Series("age", [*list(range(18, 80)) * 40, *range(80, 100)])
    labels = tree(ages).level("5").label(ages)
    assert 0 < (labels.str.ends_with("+")).mean() <= 0.01


def test_nothing_to_merge() -> None:
    assert nested(facts_of(pl.Series("sex", ["f", "m"] * 50))) is None
    assert nested(facts_of(pl.Series("x", [7.5] * 10))) is None


@given(st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 3)), min_size=30, max_size=200))
def test_levels_nest_whatever_the_numbers(drawn: list[float]) -> None:
    values = pl.Series("x", drawn)
    found = nested(facts_of(values))
    if found is not None:
        pairs = [level.label(values) for level in found.levels[1:]]
        for fine, coarse in pairwise(pairs):
            joint = pl.DataFrame({"fine": fine, "coarse": coarse}).unique()
            assert joint.height == fine.n_unique()


def test_tops_of_household_sizes_keep_the_mean_within_what_a_release_may_shift() -> None:
    """By hand: 3+ read as 3 shifts the mean by less than 0.08 standard deviations, 2+ read as 2 by more."""
    counts = pl.Series("children", [0] * 2350 + [1] * 626 + [2] * 698 + [3] * 233 + [4] * 69 + [5] * 24)
    assert names(counts) == ["4+", "3+"]
    values = counts.to_numpy()
    shifts = [(values.mean() - np.minimum(values, top).mean()) / values.std() for top in (3, 2)]
    assert shifts[0] < 0.08 < shifts[1]
