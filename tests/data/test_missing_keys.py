"""Missing keys that match anything, against all pairs."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.data.cells import count

ROWS = st.lists(st.tuples(*[st.sampled_from([None, "a", "b", "c"])] * 3, st.sampled_from(["x", "y"])), min_size=2)


def matches(frame: pl.DataFrame, keys: list[str]) -> Any:
    """Which records match which, pair by pair."""
    found = np.ones((frame.height, frame.height), dtype=bool)
    for key in keys:
        values = frame[key].to_list()
        found &= np.array([[a is None or b is None or a == b for b in values] for a in values])
    return found


def read(rows: list[Any], missing: Any = "any") -> eq.Records:
    frame = pl.DataFrame(rows, schema=dict.fromkeys(["p", "q", "r", "s"], pl.String), orient="row")
    frame = frame.with_columns(w=pl.int_range(1, pl.len() + 1).cast(pl.Float64)).with_row_index("id")
    return eq.read(frame, eq.Roles(["p", "q", "r"], sensitive="s", weight="w", id="id", missing=missing))


@given(ROWS)
def test_classes_are_the_records_that_agree_on_all_that_both_have(rows: list[Any]) -> None:
    records = read(rows)
    cells = count(records)
    frame = records.collect()
    pairs = matches(frame, ["p", "q", "r"])
    facts = cells.table.select(cells.by).with_columns(n=cells.alike[0], total=cells.alike[1])
    found = frame.join(facts, on=cells.by, nulls_equal=True, how="left", maintain_order="left")
    assert found["n"].to_list() == pairs.sum(axis=1).tolist()
    assert found["total"].to_list() == pytest.approx((pairs @ frame["w"].to_numpy()).tolist())


@given(ROWS)
def test_uniques_and_the_rule_count_by_classes(rows: list[Any]) -> None:
    records = read(rows)
    sizes = matches(records.collect(), ["p", "q", "r"]).sum(axis=1)
    assert eq.risk.Uniques(2).measure(records, records).number == (sizes <= 2).sum()
    unsafe = eq.rules.MinCount(3).flag(count(records)).to_numpy()
    assert count(records).n[unsafe].sum() == (sizes < 3).sum()


@given(ROWS, st.sampled_from([1.0, 0.8, 0.5]))
def test_attribute_disclosure_looks_at_all_that_match(rows: list[Any], share: float) -> None:
    records = read(rows)
    frame = records.collect()
    pairs, values = matches(frame, ["p", "q", "r"]), frame["s"].to_numpy()
    largest = np.max([(pairs & (values == v)).sum(axis=1) for v in ("x", "y")], axis=0)
    expected = largest >= share * pairs.sum(axis=1) - 1e-9
    score = eq.risk.AttributeDisclosure("s", share).measure(records, records)
    assert score.number == expected.sum()
    assert score.by_record()["risk"].to_list() == expected.astype(float).tolist()


@given(ROWS, st.data())
def test_suppressing_a_key_never_lowers_a_class(rows: list[Any], data: Any) -> None:
    """The law that local suppression relies on."""
    place, key = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.integers(0, 2))
    fewer = [tuple(None if i == place and j == key else v for j, v in enumerate(row)) for i, row in enumerate(rows)]
    before, after = (matches(read(r).collect(), ["p", "q", "r"]).sum(axis=1) for r in (rows, fewer))
    assert (after >= before).all()
    ours = [eq.risk.Uniques().measure(read(r), read(r)).by_record()["risk"].to_numpy() for r in (rows, fewer)]
    assert (ours[1] <= ours[0]).all()


def test_numbers_in_a_narrow_range_of_all_that_match() -> None:
    frame = pl.DataFrame({"k": ["a", "a", "b", None], "x": [1.0, 2.0, 50.0, 51.0]})
    records = eq.read(frame, eq.Roles("k", sensitive="x", missing="any"))
    apart = eq.read(frame, eq.Roles("k", sensitive="x"))
    measure = eq.risk.AttributeDisclosure("x", range=1)
    assert [measure.measure(r, r).by_record()["risk"].to_list() for r in (records, apart)] == [
        [0, 0, 1, 0],
        [1, 1, 1, 1],
    ]


def test_zayatz_counts_classes_not_cells() -> None:
    """Of records without missing keys both rules give the same; a null that matches all leaves no unique."""
    whole, gap = [("a",) * 3 + ("x",)] * 3 + [("b",) * 3 + ("x",)], (None,) * 3 + ("x",)
    measure = eq.risk.PopulationUniques(0.5, "zayatz")
    same = [measure.measure(read(whole, m), read(whole, m)).value for m in ("any", "category")]
    assert same[0] == same[1] > 0
    assert measure.measure(read([*whole, gap]), read([*whole, gap])).value == 0


def test_an_assessment_says_both() -> None:
    rows = [("a", "a", "a", "x")] * 3 + [("a", "a", None, "x"), ("b", "b", "b", "y")]
    for missing, told in (
        ("any", "category of its own the result is 40"),
        ("category", "matched anything, the result"),
    ):
        notes = eq.assess(read(rows, missing), [eq.risk.Uniques()]).scores["uniques"].notes
        assert len(notes) == 1
        assert told in notes[0]
    full = [row for row in rows if None not in row]
    assert not eq.assess(read(full), [eq.risk.Uniques()]).scores["uniques"].notes


def test_cells_keep_the_rule_when_they_are_rolled_up() -> None:
    cells = count(read([("a", "a", None, "x"), ("b", "b", "c", "x"), ("b", "b", None, "y")]))
    assert cells.roll_up({"p": {"a": "b"}, "q": {"a": "b"}}).alike[0].tolist() == [3, 3]
    assert cells.margin(("r",)).alike[0].tolist() == [3, 3]
    assert replace(cells, open=()).alike[0].tolist() == [1, 1, 1]
