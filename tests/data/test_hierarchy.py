"""Hierarchy: every constructor, the ends, nesting, and what is refused."""

import math
from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise import Hierarchy
from equipoise.data.branches import Breaks, Intervals


def labels(tree: Hierarchy, level: int | str, values: list[Any], dtype: Any = None) -> list[Any]:
    return tree.level(level).label(pl.Series("x", values, dtype=dtype, strict=False)).to_list()


# --- intervals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("closed", "values", "expected"),
    [
        ("left", [0, 4, 5, 9, 10], ["0-4", "0-4", "5-9", "5-9", "10-14"]),
        ("right", [0, 1, 5, 6, 10], ["-4 to 0", "1-5", "1-5", "6-10", "6-10"]),
    ],
)
def test_which_end_belongs_to_the_interval(closed: Any, values: list[int], expected: list[str]) -> None:
    """Closed on the left: 5 opens 5-9. Closed on the right: 5 closes 1-5 (Massell's salaries)."""
    assert labels(Hierarchy.intervals(5, closed=closed), 1, values) == expected


def test_massell_s_age3() -> None:
    """Massell (1999): code 3i holds ages 3i-2..3i, 0 alone (shared/seeds/README.md, 004)."""
    tree = Hierarchy.intervals(3, closed="right", alone=0, labels="upper")
    ages = list(range(16))
    assert labels(tree, "3", ages) == [0, *(3 * math.ceil(a / 3) for a in ages[1:])]


def test_negative_numbers_fall_below_zero() -> None:
    """Floor, not truncation: -1 is in -5 to -1."""
    assert labels(Hierarchy.intervals(5), 1, [-6, -5, -1, 0]) == ["-10 to -6", "-5 to -1", "-5 to -1", "0-4"]


@given(
    width=st.sampled_from(["0.1", "0.2", "0.25", "0.3", "0.7", "1.1"]),
    steps=st.lists(st.integers(-200, 200), min_size=1, max_size=20),
)
def test_decimal_widths_are_exact_at_their_own_edges(width: str, steps: list[int]) -> None:
    """x = 0.3 lies in [0.3, 0.4) for width 0.1, though 3 * 0.1 > 0.3 in binary: edges are decimals, as written."""
    values = [float(Fraction(width) * k) for k in steps]
    found = labels(Hierarchy.intervals(float(width), labels="lower"), 1, values)
    assert found == pytest.approx(values, abs=1e-12)
    assert all(low <= x for low, x in zip(found, values, strict=True))


def test_width_a_tenth_at_three_tenths() -> None:
    """The case everyone trips over."""
    assert labels(Hierarchy.intervals(0.1), "0.1", [0.3, 0.29, 0.7]) == ["[0.3, 0.4)", "[0.2, 0.3)", "[0.7, 0.8)"]


@pytest.mark.parametrize(
    ("closed", "expected"),
    [
        ("left", ["<10", "10-14", "15-19", "20-21", "22+", "22+"]),
        ("right", ["<=10", "11-15", "11-15", "16-20", "21-22", ">22"]),
    ],
)
def test_top_and_bottom_codes(closed: Any, expected: list[str]) -> None:
    """Everything from top on (above it when closed on the right) is one category, likewise below bottom."""
    tree = Hierarchy.intervals(5, closed=closed, top=22, bottom=10)
    values = [3, 14, 15, 20, 22, 99] if closed == "left" else [10, 11, 15, 16, 22, 23]
    assert labels(tree, 1, values) == expected


def test_values_kept_alone() -> None:
    """0 (no salary) is a category of its own beside the intervals around it."""
    tree = Hierarchy.intervals(1000, closed="right", alone=[0, 999], top=3000)
    found = labels(tree, 1, [0, 1, 998, 999, 1000, 1001, 3000, 3001])
    assert found == ["0", "1-1000", "1-1000", "999", "1-1000", "1001-2000", "2001-3000", ">3000"]


@pytest.mark.parametrize(
    ("style", "expected"), [("lower", [0, 0, 5, 10]), ("upper", [5, 5, 10, 15]), ("middle", [2.5, 2.5, 7.5, 12.5])]
)
def test_numeric_labels(style: Any, expected: list[float]) -> None:
    """Bands as numbers, so that a user can still compute."""
    found = labels(Hierarchy.intervals(5, labels=style), 1, [0, 4, 5, 14])
    assert found == expected
    assert {type(v) for v in found} == ({float} if style == "middle" else {int})


@pytest.mark.parametrize(
    ("tree", "values"),
    [
        (Hierarchy.breaks([18, 65], labels="upper"), [20, 70]),
        (Hierarchy.breaks([18, 65], labels="lower"), [10, 20]),
        (Hierarchy.intervals(5, closed="right", top=100, labels="upper"), [99, 101]),
        (Hierarchy.intervals(5, bottom=10, labels="lower"), [3, 11]),
        (Hierarchy.intervals(5, alone=0, labels="lower"), [0, 1]),
        (Hierarchy.intervals(10, alone=5, labels="middle"), [5, 6]),
    ],
)
def test_two_categories_never_share_a_number(tree: Hierarchy, values: list[int]) -> None:
    """An open end has no upper (or lower) bound of its own: giving it its neighbour's would merge the two."""
    with pytest.raises(eq.ParameterError, match="same number"):
        labels(tree, 1, values)


def test_numeric_labels_are_fine_where_nothing_is_beyond_the_end() -> None:
    """Massell's salaries are at most the top code: no clash, no refusal."""
    tree = Hierarchy.intervals(10_000, closed="right", alone=0, top=100_000, labels="upper")
    assert labels(tree, 1, [0, 1, 99_000, 100_000]) == [0, 10_000, 100_000, 100_000]


def test_a_start_shifts_the_edges() -> None:
    assert labels(Hierarchy.intervals(10, start=5), 1, [4, 5, 14, 15]) == ["-5 to 4", "5-14", "5-14", "15-24"]


@given(
    widths=st.sampled_from([(2, 6), (5, 10, 20), (0.5, 1.0, 3.0), (3, 9)]),
    closed=st.sampled_from(["left", "right"]),
    top=st.none() | st.integers(5, 30),
    bottom=st.none() | st.integers(-30, 4),
    alone=st.lists(st.integers(-10, 10), max_size=2, unique=True),
    values=st.lists(st.integers(-60, 60), min_size=1, max_size=40),
)
def test_levels_are_nested(
    widths: tuple[float, ...], closed: Any, top: Any, bottom: Any, alone: list[int], values: list[int]
) -> None:
    """Equal labels at a level stay equal at every coarser one: each level is a function of the finer."""
    tree = Hierarchy.intervals(list(widths), closed=closed, top=top, bottom=bottom, alone=alone, root=True)
    rows = [labels(tree, i, values) for i in range(len(tree.levels))]
    for fine, coarse in pairwise(rows):
        assert len(set(zip(fine, coarse, strict=True))) == len(set(fine))


@given(
    width=st.integers(1, 20),
    closed=st.sampled_from(["left", "right"]),
    start=st.integers(-7, 7),
    values=st.lists(st.integers(-500, 500), min_size=1, max_size=50),
)
def test_equal_widths_against_integer_division(width: int, closed: Any, start: int, values: list[int]) -> None:
    """Bands are floor((x - start) / width), or ceil when closed on the right."""
    found = labels(Hierarchy.intervals(width, closed=closed, start=start), 1, values)
    bands = [(x - start) // width if closed == "left" else -((start - x) // width) for x in values]
    assert len(set(zip(found, bands, strict=True))) == len(set(bands)) == len(set(found))


@pytest.mark.parametrize(
    ("widths", "level"), [([3, 5], "'5'"), ([5, 5], "'5'"), ([10, 5], "'5'"), ([0.1, 0.25], "'0.25'")]
)
def test_widths_that_do_not_nest_are_refused_by_name(widths: list[float], level: str) -> None:
    """A level that is not a function of the finer one is refused with the offending level named."""
    with pytest.raises(eq.ParameterError, match=f"Level {level} is not a function"):
        Hierarchy.intervals(widths)


@pytest.mark.parametrize(
    "bad",
    [
        {"widths": 0},
        {"widths": []},
        {"widths": -1},
        {"widths": math.nan},
        {"widths": math.inf},
        {"widths": 5, "closed": "up"},
        {"widths": 5, "labels": "nonsense"},
        {"widths": 5, "top": 1, "bottom": 2},
        {"widths": 5, "floor": 6},
        {"widths": "five"},
        {"widths": 5, "top": "high"},
    ],
)
def test_unfit_intervals_are_refused_before_data(bad: dict[str, Any]) -> None:
    """Parameters are checked when they are given."""
    with pytest.raises(eq.ParameterError):
        Hierarchy.intervals(**bad)


@pytest.mark.parametrize("bad", [{"closed": "up"}, {"labels": "nonsense"}])
def test_branches_from_files_are_checked_too(bad: dict[str, Any]) -> None:
    """A policy file makes branches directly: a wrong word must not pass as the default."""
    with pytest.raises(eq.ParameterError):
        Intervals((5,), **bad)
    with pytest.raises(eq.ParameterError):
        Breaks(((5,),), **bad)


def test_too_many_bands_are_refused() -> None:
    """A width of a millionth over billions would fill the memory."""
    with pytest.raises(eq.ParameterError, match="use a wider one"):
        labels(Hierarchy.intervals(1e-6), 1, [0.0, 1e9])


def test_text_cannot_be_cut_into_intervals() -> None:
    with pytest.raises(eq.DataError, match="'x' is String, not numeric"):
        labels(Hierarchy.intervals(5), 1, ["a"])


# --- breaks -------------------------------------------------------------------------------------------------------


def test_breaks_are_open_at_both_ends() -> None:
    tree = Hierarchy.breaks([18, 40, 65], [18, 65], closed="right", root=True)
    assert labels(tree, 1, [18, 19, 40, 65, 66]) == ["<=18", "19-40", "19-40", "41-65", ">65"]
    assert labels(tree, 2, [18, 19, 40, 65, 66]) == ["<=18", "19-65", "19-65", "19-65", ">65"]
    assert labels(tree, "all", [18, None]) == ["*", None]


def test_breaks_with_labels_and_names() -> None:
    tree = Hierarchy.breaks([18, 65], labels=[["child", "adult", "old"]], names=["stage"], alone=0)
    assert labels(tree, "stage", [0, 1, 18, 65]) == ["0", "child", "adult", "old"]


@pytest.mark.parametrize("bad", [[[]], [[3, 2]], [[2, 2]], [[1, 2], [3]], [[1, 2], [1, 2]]])
def test_unfit_breaks_are_refused(bad: list[list[float]]) -> None:
    """Coarser breaks must be some of the finer ones."""
    with pytest.raises(eq.ParameterError):
        Hierarchy.breaks(*bad)


def test_offending_breaks_are_named() -> None:
    with pytest.raises(eq.ParameterError, match="Level 'wide' is not a function of the finer level 'narrow'"):
        Hierarchy.breaks([18, 65], [20], names=["narrow", "wide"])


def test_each_level_needs_its_labels() -> None:
    with pytest.raises(eq.ParameterError, match="one label more"):
        Hierarchy.breaks([18, 65], labels=[["young", "old"]])


# --- leaves -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [";", ",", "\t"])
def test_arx_files(tmp_path: Path, mark: str) -> None:
    """ARX layout: leaf first, one column per level, no header; `;` or `,`."""
    path = tmp_path / "h.csv"
    rows = [["Ål", "north", "*"], ['"B, o"' if mark == "," else "B, o", "north", "*"], ["C", "south", "*"]]
    path.write_text("\n".join(mark.join(row) for row in rows) + "\n", encoding="utf-8")
    tree = Hierarchy.csv(path)
    assert [level.name for level in tree.levels] == ["original", "1", "2"]
    assert labels(tree, 1, ["Ål", "B, o", "C", None]) == ["north", "north", "south", None]
    assert labels(tree, 2, ["Ål", "C"]) == ["*", "*"]


def test_arx_files_with_a_byte_order_mark_and_crlf(tmp_path: Path) -> None:
    """Windows writes both; neither is data."""
    path = tmp_path / "h.csv"
    path.write_bytes("﻿1;low\r\n2;high\r\n".encode())
    assert labels(Hierarchy.csv(path, names=["band"]), "band", [1, 2]) == ["low", "high"]


@pytest.mark.parametrize("text", ["", "a\n", "a;b\nc\n", "a;b\na;c\n"])
def test_unfit_hierarchy_files_are_refused(tmp_path: Path, text: str) -> None:
    """Empty, one column, ragged, one leaf twice."""
    path = tmp_path / "h.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(eq.EquipoiseError):
        Hierarchy.csv(path)


def test_a_missing_hierarchy_file() -> None:
    with pytest.raises(eq.DataError, match="No hierarchy file"):
        Hierarchy.csv("nowhere.csv")


def test_leaves_that_do_not_nest_are_refused_by_name() -> None:
    """One category of the finer level in two groups of the coarser."""
    with pytest.raises(eq.ParameterError, match="Level 'land' is not a function of the finer level 'county'"):
        Hierarchy.mapping({"a": ("x", "p"), "b": ("x", "q")}, names=["county", "land"])


@pytest.mark.parametrize(
    ("groups", "values", "dtype"),
    [
        ({1: "low", 2: "high"}, [1, 2, None], pl.Int64),
        ({1: "low", 2: "high"}, [1.0, 2.0, math.nan], pl.Float64),
        ({1.5: "low", 2.0: "high"}, [1.5, 2.0, math.nan], pl.Float64),
        ({1.0: "low", 2.0: "high"}, [1, 2, None], pl.Int64),
        ({True: "low", False: "high"}, [True, False, None], pl.Boolean),
        ({date(2024, 1, 2): "low", date(2024, 1, 3): "high"}, [date(2024, 1, 2), date(2024, 1, 3), None], pl.Date),
        ({"a": "low", "b": "high"}, ["a", "b", None], pl.Categorical),
    ],
)
def test_a_mapping_of_any_type(groups: dict[Any, str], values: list[Any], dtype: Any) -> None:
    """What Python writes as a key finds the value of the column; nulls and NaN stay null."""
    assert labels(Hierarchy.mapping(groups), 1, values, dtype) == ["low", "high", None]


def test_values_that_are_not_listed() -> None:
    """Refused with their number, or put together under `other`."""
    groups = {"a": "x", "b": "x"}
    with pytest.raises(eq.DataError, match="2 values of column 'x' are not in its hierarchy"):
        labels(Hierarchy.mapping(groups), 1, ["a", "c", "d"])
    assert labels(Hierarchy.mapping(groups, other="rest"), 1, ["a", "c", None]) == ["x", "rest", None]


def test_rows_of_a_file_may_be_numbers(tmp_path: Path) -> None:
    """TOML rows are naturally written [[1, "low"]]."""
    path = tmp_path / "roles.toml"
    path.write_text('keys = ["x"]\n[hierarchies.x]\nkind = "mapping"\ngroups = [[1, "low"], [2, "high"]]\n')
    assert labels(eq.Roles.from_toml(path).hierarchies["x"], 1, [2, 1]) == ["high", "low"]


# --- prefixes and dates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        (["10117", "26000", None], pl.String, ["101", "260", None]),
        ([10117, 26000, None], pl.Int64, ["101", "260", None]),
        ([10117.0, 26000.0, math.nan], pl.Float64, ["101", "260", None]),
        (["æøå12"], pl.String, ["æøå"]),
    ],
)
def test_prefixes(values: list[Any], dtype: Any, expected: list[Any]) -> None:
    """Postcodes as text or as numbers; characters, not bytes."""
    assert labels(Hierarchy.prefix(3, 1), "3", values, dtype) == expected


@pytest.mark.parametrize("bad", [(), (0,), (2, 3), (3, 3)])
def test_unfit_prefixes_are_refused(bad: tuple[int, ...]) -> None:
    with pytest.raises(eq.ParameterError):
        Hierarchy.prefix(*bad)


def test_date_parts() -> None:
    """1 January 2021 is in week 53 of 2020: ISO 8601."""
    tree = Hierarchy.dates("day", "month", "quarter", "year", "five years", "decade", root=True)
    day = [date(2021, 1, 1), None]
    found = [labels(tree, i, day)[0] for i in range(1, 8)]
    assert found == ["2021-01-01", "2021-01", "2021-Q1", "2021", "2020-2024", "2020s", "*"]
    assert labels(Hierarchy.dates("day", "week"), "week", day) == ["2020-W53", None]
    assert labels(tree, "month", ["2021-01-31", None]) == ["2021-01", None]
    assert labels(tree, "year", [datetime(2021, 1, 1, 5)]) == ["2021"]


@pytest.mark.parametrize(
    ("fine", "coarse"), [("week", "month"), ("month", "week"), ("year", "month"), ("week", "year")]
)
def test_weeks_do_not_nest_in_months(fine: Any, coarse: Any) -> None:
    """A week may lie in two months."""
    with pytest.raises(eq.ParameterError, match=f"Level '{coarse}' is not a function of the finer level '{fine}'"):
        Hierarchy.dates(fine, coarse)


def test_no_such_date_part_and_no_dates() -> None:
    with pytest.raises(eq.ParameterError, match="Did you mean 'month'"):
        Hierarchy.dates("mnth")  # type: ignore[arg-type]
    with pytest.raises(eq.DataError, match="not dates"):
        labels(Hierarchy.dates("month"), 1, ["half past two"])
    with pytest.raises(eq.ParameterError):
        Hierarchy.dates()


# --- branches, levels, floors -------------------------------------------------------------------------------------


def test_branches_hold_what_does_not_nest() -> None:
    tree = Hierarchy.intervals(3) | Hierarchy.intervals([5, 10])
    assert [level.name for level in tree.levels] == ["original", "3", "5", "10"]
    assert labels(tree, "3", [7]) == ["6-8"]
    assert labels(tree, 2, [7]) == ["5-9"]


def test_branches_share_equal_levels_and_refuse_clashes() -> None:
    shared = Hierarchy.intervals([1000, 2000]) | Hierarchy.intervals([1000, 5000])
    assert [level.name for level in shared.levels] == ["original", "1000", "2000", "5000"]
    with pytest.raises(eq.ParameterError, match="Two branches define level '5' differently"):
        _ = Hierarchy.intervals(5) | Hierarchy.intervals(5, closed="right")


@pytest.mark.parametrize("which", [4, -1, "nothing", "9"])
def test_no_such_level(which: Any) -> None:
    with pytest.raises(eq.ParameterError, match=r"No level .* There are: 0 'original', 1 '5'"):
        Hierarchy.intervals(5).level(which)


def test_the_floor_is_the_finest_that_may_be_released() -> None:
    """Massell, section I.a: a salary that is not measured better than 1,000 is not released better than 1,000."""
    tree = Hierarchy.intervals([500, 1000, 2000], floor=1000)
    assert [level.name for level in tree.allowed] == ["1000", "2000"]
    assert [level.name for level in Hierarchy.prefix(4, 2, floor="4").allowed] == ["4", "2"]
    assert [level.name for level in Hierarchy.dates("month", "year", floor=2).allowed] == ["year"]
    assert [level.name for level in Hierarchy.intervals(5).allowed] == ["original", "5"]


def test_a_floor_in_one_branch_holds_for_the_column() -> None:
    """What is finer than the measurement in one branch is so in all."""
    tree = Hierarchy.intervals([1000, 2000], floor=2000) | Hierarchy.intervals([1000, 5000])
    assert [level.name for level in tree.allowed] == ["2000", "5000"]


@pytest.mark.parametrize("floor", [7, "nothing"])
def test_a_floor_that_is_no_level(floor: Any) -> None:
    with pytest.raises(eq.ParameterError, match="floor"):
        _ = Hierarchy.prefix(3, 1, floor=floor).allowed


def test_a_hierarchy_needs_a_level() -> None:
    with pytest.raises(eq.ParameterError):
        Hierarchy(())


@pytest.mark.parametrize(
    "tree",
    [
        Hierarchy.intervals(5, root=True),
        Hierarchy.breaks([1, 2], root=True),
        Hierarchy.mapping({"1": "a", "2.5": "b"}, other="c", root=True),
        Hierarchy.prefix(1, root=True),
    ],
    ids=["intervals", "breaks", "mapping", "prefix"],
)
def test_missing_stays_missing_at_every_level(tree: Hierarchy) -> None:
    """A null or NaN is not a value: no level gives it one."""
    for level in tree.levels[1:]:
        assert level.label(pl.Series("x", [None, math.nan, 2.5])).to_list()[:2] == [None, None]
        assert level.label(pl.Series("x", [None, None], dtype=pl.Float64)).to_list() == [None, None]


def test_nothing_is_quoted_of_numbers_too_large() -> None:
    """1e300 is whole, but no integer; it is not in the hierarchy, and its digits are not in the error."""
    with pytest.raises(eq.DataError, match="not in its hierarchy") as caught:
        labels(Hierarchy.mapping({"1": "a"}), 1, [1e300])
    assert "1e" not in str(caught.value)


def test_numpy_parameters_are_plain_numbers() -> None:
    """Widths often come from np.arange; they must reach TOML."""
    tree = Hierarchy.intervals(np.array([5, 10]), top=np.int64(80))
    assert tree == Hierarchy.intervals([5, 10], top=80)
    assert eq.Roles(["x"], hierarchies={"x": tree}).to_toml()


@pytest.mark.parametrize("width", [10**400, float("inf"), -1])
def test_widths_beyond_reason(width: float) -> None:
    """Before, a width that no floating-point number holds was an internal error."""
    with pytest.raises(eq.EquipoiseError, match="widths"):
        eq.Hierarchy.intervals([width])
