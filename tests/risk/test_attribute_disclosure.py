"""Attribute disclosure against brute force over groups."""

import math
from collections import Counter, defaultdict
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.integers(0, 2),
        st.none() | st.integers(0, 6),
    ),
    min_size=1,
    max_size=50,
)


def records(rows: list[tuple[Any, ...]], dtype: Any = pl.Int64) -> eq.Records:
    table = pl.DataFrame(rows, schema={"town": pl.String, "age": pl.Int64, "pay": dtype}, orient="row", strict=False)
    return eq.read(table, eq.Roles(["town", "age"], ["pay"]))


def grouped(rows: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], list[Any]]:
    groups: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for town, age, pay in rows:
        groups[town, age].append(pay)
    return groups


@given(rows=ROWS, share=st.sampled_from([1.0, 0.9, 2 / 3, 0.5, 0.01]))
def test_share_against_brute_force(rows: list[tuple[Any, ...]], share: float) -> None:
    """A group is disclosive when its most frequent value holds at least `share` of it; missing is a value."""
    measure = eq.risk.AttributeDisclosure("pay", share=share)
    bad = {key for key, pays in grouped(rows).items() if max(Counter(pays).values()) >= share * len(pays) - 1e-9}
    expected = sum((town, age) in bad for town, age, _ in rows)
    data = records(rows)
    score = measure.measure(data, data)
    assert score.number == expected
    assert score.value == pytest.approx(expected / len(rows))
    assert {tuple(r[:2]) for r in score.detail.filter(risk=1.0).iter_rows()} == bad
    assert score.by_record()["risk"].to_list() == [float((t, a) in bad) for t, a, _ in rows]


@given(rows=ROWS, width=st.sampled_from([0.0, 1.0, 2.5, 6.0]), dtype=st.sampled_from([pl.Int64, pl.Float64]))
def test_range_against_brute_force(rows: list[tuple[Any, ...]], width: float, dtype: Any) -> None:
    """A group is disclosive when its known values differ by at most `range`; a group that tells nothing is not."""
    bad = set()
    for key, pays in grouped(rows).items():
        known = [p for p in pays if p is not None]
        if known and max(known) - min(known) <= width:
            bad.add(key)
    data = records(rows, dtype)
    score = eq.risk.AttributeDisclosure("pay", range=width).measure(data, data)
    assert score.number == sum((town, age) in bad for town, age, _ in rows)


def test_nan_is_missing_for_a_range() -> None:
    rows = [("a", 1, 5.0), ("a", 1, math.nan), ("b", 1, math.nan)]
    data = records(rows, pl.Float64)
    assert eq.risk.AttributeDisclosure("pay", range=0.0).measure(data, data).number == 2


def test_a_group_of_one_gives_its_value_away() -> None:
    data = records([("a", 1, 3), ("b", 1, 3), ("b", 1, 4)])
    assert eq.risk.AttributeDisclosure("pay").measure(data, data).value == pytest.approx(1 / 3)


def test_massell_s_zero_cells() -> None:
    """Massell (1999), III.a.iii: all salaries of a group in a narrow range are disclosed though nobody is unique."""
    rows = [("a", 1, 40_000 + i) for i in range(10)] + [("b", 1, i * 10_000) for i in range(10)]
    data = records(rows)
    assert eq.risk.Uniques().measure(data, data).value == 0
    assert eq.risk.AttributeDisclosure("pay").measure(data, data).value == 0
    assert eq.risk.AttributeDisclosure("pay", range=1000).measure(data, data).value == 0.5


def test_a_sensitive_key_is_not_used_against_itself() -> None:
    """A column that is both key and sensitive is taken out of the keys."""
    table = pl.DataFrame({"town": ["a", "a", "b"], "pay": [1, 2, 3]})
    data = eq.read(table, eq.Roles(["town", "pay"], ["pay"]))
    assert eq.risk.AttributeDisclosure("pay").measure(data, data).number == 1


def test_no_keys_but_the_sensitive_one() -> None:
    """All records are one group."""
    data = eq.read(pl.DataFrame({"pay": [1, 1]}), eq.Roles(["pay"], ["pay"]))
    assert eq.risk.AttributeDisclosure("pay").measure(data, data).value == 1


def test_the_sensitive_column_must_be_there_and_fit() -> None:
    data = records([("a", 1, 3), ("b", 1, 4)])
    with pytest.raises(eq.RolesError, match="Did you mean 'pay'"):
        eq.risk.AttributeDisclosure("payy").measure(data, data)
    with pytest.raises(eq.RolesError, match="'pay'"):
        eq.risk.AttributeDisclosure("pay").measure(eq.count(data), eq.count(data))
    with pytest.raises(eq.DataError, match="not numeric"):
        eq.risk.AttributeDisclosure("town", range=1).measure(data, data)


def test_suppressing_information_lowers_it(people_records: eq.Records) -> None:
    """A merged group is all alike only if its parts were, with one value: coarsening never raises the share."""
    measure = eq.risk.AttributeDisclosure("ill")
    before = measure.measure(people_records, people_records).value
    for recipe in eq.coarsenings(people_records)[::7]:
        assert measure.measure(recipe.run(people_records), people_records).value <= before + 1e-12
