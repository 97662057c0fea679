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


@given(values=WHOLE, at=st.integers(-20, 20), by=st.sampled_from(["mean", "median", "threshold"]), top=st.booleans())
def test_against_numpy(values: list[Any], at: int, by: Any, top: bool) -> None:
    """Strictly beyond the threshold; mean and median are of the records beyond."""
    beyond = [v for v in values if v is not None and (v > at if top else v < at)]
    new = {"mean": np.mean, "median": np.median, "threshold": lambda _: at}[by](beyond) if beyond else None
    expected = [new if v is not None and (v > at if top else v < at) else v for v in values]
    found = released((TopCode if top else BottomCode)("x", at, by), values)
    assert found == pytest.approx(expected)


@given(values=FLOATS, at=st.floats(-20, 20))
def test_the_mean_keeps_the_sum(values: list[Any], at: float) -> None:
    """Willenborg and de Waal (1996), ch. 1: replacing by the mean keeps the column's total; tolerance 1e-6."""
    for mask in (TopCode("x", at), BottomCode("x", at)):
        found = released(mask, values, pl.Float64)
        known = [v for v in values if v is not None]
        assert sum(v for v in found if v is not None) == pytest.approx(sum(known), abs=1e-6)


def test_the_threshold_itself_is_not_beyond() -> None:
    assert released(TopCode("x", 5, "threshold"), [4, 5, 6]) == [4, 5, 5]
    assert released(BottomCode("x", 5, "threshold"), [4, 5, 6]) == [5, 5, 6]


def test_whole_numbers_stay_whole_where_they_can() -> None:
    """A fraction makes the column a float; a whole replacement does not."""
    assert released(TopCode("x", 4), [1, 5, 9]) == [1, 7, 7]
    table = pl.DataFrame({"x": [1, 5, 9]})
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
    assert released(BottomCode("x", 1e300, "mean"), [1, 3]) == [2, 2]
