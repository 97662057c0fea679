"""Top and bottom coding against NumPy: what is beyond, what it becomes, and what is kept."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.masks import BottomCode, TopCode

WHOLE = st.lists(st.none() | st.integers(-20, 20), min_size=1, max_size=40)
FLOATS = st.lists(st.none() | st.floats(-20, 20, width=32), min_size=1, max_size=40)


def released(mask: Any, values: list[Any], dtype: Any = pl.Int64) -> list[Any]:
    table = pl.DataFrame({"x": pl.Series(values, dtype=dtype)})
    found: list[Any] = mask.apply(eq.read(table, eq.Roles(["x"])), Draws(1)).collect()["x"].to_list()
    return found


def replacement(beyond: list[float], at: float, by: str) -> float:
    """By hand: the mean, or the mean of the middle three or four, unless few or one above all are behind it."""
    size = len(beyond) if by == "mean" else min(len(beyond), 3 if len(beyond) % 2 else 4)
    first = (len(beyond) - size) // 2
    shown = sorted(beyond)[first : first + size]
    distances = sorted((abs(v - at) for v in shown), reverse=True)
    if by == "threshold" or len(shown) < 3 or sum(distances[2:]) < 0.1 * distances[0] * (1 - 1e-9):
        return at
    return float(np.mean(shown))


@given(values=WHOLE, at=st.integers(-20, 20), by=st.sampled_from(["mean", "median", "threshold"]), top=st.booleans())
def test_against_numpy(values: list[Any], at: int, by: Any, top: bool) -> None:
    """Strictly beyond the threshold; mean and median are of the records beyond, where they may be published."""
    beyond = [v for v in values if v is not None and (v > at if top else v < at)]
    new = replacement(beyond, at, by) if beyond else None
    expected = [new if v is not None and (v > at if top else v < at) else v for v in values]
    assert released((TopCode if top else BottomCode)("x", at, by), values) == pytest.approx(expected)


@given(values=FLOATS, at=st.floats(-20, 20))
def test_the_mean_keeps_the_sum(values: list[Any], at: float) -> None:
    """Willenborg and de Waal (1996), ch. 1: replacing by the mean keeps the column's total; tolerance 1e-6."""
    present = [v for v in values if v is not None]
    for mask in (TopCode("x", at), BottomCode("x", at)):
        record = mask.apply(eq.read(pl.DataFrame({"x": values}, schema={"x": pl.Float64})), Draws(1))
        total = sum(v for v in record.collect()["x"].to_list() if v is not None)
        if "withheld" not in record.history[0].parameters:
            assert total == pytest.approx(sum(present), abs=1e-6)


@pytest.mark.parametrize("by", ["mean", "median"])
@pytest.mark.parametrize("tail", [[913.0], [913.0, 204.0], [101.0, 102.0, 9913.0], [float("inf"), 200, 300]])
def test_no_statistic_of_few_people_or_of_one_above_all(by: Any, tail: list[float]) -> None:
    """Before, one record above the threshold was published as its own mean."""
    table = pl.DataFrame({"x": [50.0, 60.0, *tail]})
    record = TopCode("x", 100, by).apply(eq.read(table), Draws(1))
    assert record.collect()["x"].to_list() == [50, 60, *[100] * len(tail)]
    law = record.history[0]
    assert law.parameters == {"column": "x", "at": 100, "replace_by": "threshold", "withheld": by}
    assert f"no {by} is published" in law.words
    low = BottomCode("x", -100, by).apply(eq.read(table * -1), Draws(1))
    assert low.collect()["x"].to_list() == [-50, -60, *[-100] * len(tail)]


@pytest.mark.parametrize("by", ["mean", "median"])
def test_people_are_counted_not_rows(by: Any) -> None:
    """Four rows of one household, person or id are one unit, whatever their weights."""
    rents = {"rent": [5, 6, 90, 90, 90, 90], "home": [1, 2, 3, 3, 3, 3], "w": [1.0, 1, 9, 9, 9, 9]}
    for roles in ({"household": "home"}, {"id": "home"}):
        data = eq.read(pl.DataFrame(rents), eq.Roles(weight="w", **roles))  # type: ignore[arg-type]
        assert TopCode("rent", 50, by).apply(data, Draws(1)).collect()["rent"].to_list() == [5, 6, 50, 50, 50, 50]
    apart = eq.read(pl.DataFrame(rents | {"home": [1, 2, 3, 4, 5, 6]}), eq.Roles(household="home"))
    assert TopCode("rent", 50, by).apply(apart, Draws(1)).collect()["rent"].to_list() == [5, 6, 90, 90, 90, 90]


def test_the_threshold_itself_is_not_beyond() -> None:
    assert released(TopCode("x", 5, "threshold"), [4, 5, 6]) == [4, 5, 5]
    assert released(BottomCode("x", 5, "threshold"), [4, 5, 6]) == [5, 5, 6]


def test_whole_numbers_stay_whole_where_they_can() -> None:
    """A fraction makes the column a float; a whole replacement does not."""
    assert released(TopCode("x", 4), [1, 5, 7, 9]) == [1, 7, 7, 7]
    table = pl.DataFrame({"x": [1, 5, 7, 9]})
    kinds = [
        mask.apply(eq.read(table), Draws(1)).collect().schema["x"]
        for mask in (TopCode("x", 4), TopCode("x", 4.5, "threshold"))
    ]
    assert kinds == [pl.Int64, pl.Float64]


def test_nothing_beyond_changes_nothing() -> None:
    assert released(TopCode("x", 100), [1, None, 3]) == [1, None, 3]


def test_nan_is_not_beyond() -> None:
    """NaN is missing, and stays so."""
    found = released(TopCode("x", 1, "threshold"), [float("nan"), 5.0, 0.5], pl.Float64)
    assert found[1:] == [1.0, 0.5]
    assert found[0] is None or found[0] != found[0]


def test_small_integer_types_do_not_overflow() -> None:
    """A threshold beyond the type's range is fine; a mean is not cut to it."""
    assert released(BottomCode("x", 300, "threshold"), [1, 255], pl.UInt8) == [300, 300]
    assert released(TopCode("x", -5, "threshold"), [1, 255], pl.UInt8) == [-5, -5]


def test_the_hierarchy_is_kept(people_records: eq.Records) -> None:
    """Top coding leaves numbers: bands can follow."""
    done = eq.Recipe([TopCode("age", 60, "threshold"), eq.masks.Recode("age", "10")]).run(people_records)
    assert done.collect("age")["age"].n_unique() == 6


def test_words_and_law(people_records: eq.Records) -> None:
    law = BottomCode("salary", 1000.5, "median").apply(people_records, Draws(1)).history[0]
    assert law.words == "salary below 1,000.5 replaced by their median"
    assert law.parameters == {"column": "salary", "at": 1000.5, "replace_by": "median"}


def test_text_has_no_top(people_records: eq.Records) -> None:
    with pytest.raises(eq.DataError, match="'sex' is String, not numeric"):
        TopCode("sex", 1).apply(people_records, Draws(1))


@pytest.mark.parametrize("dtype", [pl.UInt64, pl.Int64])
def test_large_whole_numbers_keep_their_last_digit(dtype: Any) -> None:
    """Beyond 2^53 a float would round them."""
    values = [2**60 + 1, 2**60 + 3, 7]
    assert released(BottomCode("x", 8, "threshold"), values, dtype) == [2**60 + 1, 2**60 + 3, 8]


def test_thresholds_beyond_all_numbers() -> None:
    assert released(TopCode("x", 1e300), [1, 2]) == [1, 2]
    assert released(BottomCode("x", -1e300), [1, 2]) == [1, 2]
    assert released(BottomCode("x", 1e300, "mean"), [1, 2, 3]) == [2, 2, 2]
