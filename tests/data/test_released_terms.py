"""Original values in the terms of a release: by hierarchy, by the records, and where neither can tell."""

from dataclasses import replace
from datetime import date

import polars as pl
import pytest

import equipoise as eq
from equipoise.data.aligned_files import comparable
from equipoise.data.records import Law, Records
from equipoise.data.released_terms import ComparableFiles, rows
from equipoise.ground.randomness import Draws


def read(table: pl.DataFrame, id: str | None = None) -> Records:
    return Records.of(table, eq.Roles(id=id))


def files(
    here: pl.DataFrame, there: pl.DataFrame, held: pl.DataFrame | None = None, law: Law | None = None
) -> ComparableFiles:
    original, released = read(there), read(here)
    released = released if law is None else released.with_frame(released.frame, law)
    return ComparableFiles.read(
        released, replace(original, holdout=read(held) if held is not None else None), tuple(there.columns)
    )


def test_a_number_never_seen_has_the_label_of_the_nearest_and_a_text_none() -> None:
    there = pl.DataFrame({"age": [10, 10, 20, 20, None, None], "town": ["a", "a", "b", "b", "c", "c"]})
    here = there.with_columns(age=pl.Series(["low", "low", "high", "high", "?", "?"]), town=pl.lit("x"))
    found = files(here, there, pl.DataFrame({"age": [1, 14, 16, 99, None], "town": ["a", "b", "z", None, "c"]}))
    terms = found.in_terms("age", "town")
    assert terms.there.equals(here)
    assert terms.held is not None
    assert terms.held["age"].to_list() == ["low", "low", "high", "high", "?"]
    assert terms.held["town"].to_list() == ["x", "x", None, None, "x"]


def test_missing_values_without_a_label() -> None:
    there = pl.DataFrame({"age": [1, 2, 3, 4] * 2, "gap": pl.Series([None] * 8, dtype=pl.Int64)})
    here = pl.DataFrame({"age": ["a", "a", "b", "b"] * 2, "gap": ["none"] * 8})
    found = files(here, there, pl.DataFrame({"age": [None, 2], "gap": [None, 5]})).in_terms("age", "gap")
    assert found.held is not None
    assert found.held.to_dict(as_series=False) == {"age": [None, "a"], "gap": ["none", None]}


def test_what_was_perturbed_stays_as_it_was() -> None:
    there = pl.DataFrame({"x": [1, 1, 2, 2, 3, 3], "t": ["a", "a", "b", "b", "c", "c"]})
    here = pl.DataFrame({"x": [1, 2, 2, 3, 3, 1], "t": ["a", "b", "b", "c", "c", "a"]})
    assert files(here, there).in_terms("x", "t").there.equals(there)
    shifted = there.with_columns(pl.col("x") + 10)
    assert files(shifted, there).in_terms("x").there.equals(there)
    law = Law("shift", ("x",), "moved", coarsens=True)
    assert files(shifted, there, law=law).in_terms("x").there["x"].equals(shifted["x"])
    noise = Law("noise", ("x",), "noise")
    assert files(there.with_columns(x=pl.lit(1)), there, law=noise).in_terms("x").there.equals(there)


def test_labels_of_another_kind_that_were_moved_as_well() -> None:
    """Bands, one of them swapped: the intruder looks for the label that most of the same age have."""
    there = pl.DataFrame({"age": [10, 10, 10, 20, 20, 20]})
    here = pl.DataFrame({"age": ["1", "1", "2", "2", "2", "1"]})
    assert files(here, there).in_terms("age").there["age"].to_list() == ["1", "1", "1", "2", "2", "2"]


def test_the_level_of_a_recode_holds_for_synthetic_files_too() -> None:
    table = pl.DataFrame({"age": [11, 25, 38], "id": [1, 2, 3]})
    roles = eq.Roles("age", id="id", hierarchies={"age": eq.Hierarchy.intervals([10])})
    original = replace(eq.read(table, roles), holdout=eq.read(table.with_columns(age=pl.Series([2, 30, None])), roles))
    released = eq.masks.Recode("age", "10").apply(original, Draws(1))
    made = released.with_frame(released.frame, Law("synthesize", ("age",), "drawn", {"synthetic": "full"}))
    found = ComparableFiles.read(made, original, ("age",)).in_terms("age")
    assert not found.in_step
    assert found.there["age"].to_list() == ["10-19", "20-29", "30-39"]
    assert found.held is not None
    assert found.held["age"].to_list() == ["0-9", "30-39", None]


def test_rows_by_id() -> None:
    table = pl.DataFrame({"id": [3, 1, 2], "x": [30, 10, 20]})
    found = ComparableFiles.read(read(table, "id"), read(table.reverse(), "id"), ("x",))
    assert found.in_step
    assert found.there["x"].to_list() == [10, 20, 30]
    assert rows(read(table, "id"), risk=found.there["x"].to_numpy()).equals(table.rename({"x": "risk"}))


def test_kinds_that_can_be_compared() -> None:
    numbers, ordered = comparable(pl.Series([1, 2]), pl.Series([1.5, float("nan")]))
    assert ordered
    assert numbers[1].to_list() == [1.5, None]
    assert comparable(pl.Series([date(2020, 1, 1)]), pl.Series([None]))[1]
    texts, ordered = comparable(pl.Series([1, 2]), pl.Series(["1", None]))
    assert not ordered
    assert texts[0].to_list() == ["1", "2"]
    with pytest.raises(eq.DataError, match="cannot be compared"):
        comparable(pl.Series("x", [[1, 2]]))


def test_columns_that_are_not_there() -> None:
    table = pl.DataFrame({"age": [1]})
    with pytest.raises(eq.RolesError, match="Did you mean"):
        ComparableFiles.read(read(table), read(table), ("agee",))
    with pytest.raises(eq.RolesError, match="released file has no column"):
        ComparableFiles.read(read(pl.DataFrame({"x": [1]})), read(table), ("age",))


def test_a_release_whose_ids_are_withheld_is_compared_as_a_file() -> None:
    """The original has an id role, the release no such column: nothing says which record is whose."""
    there = pl.DataFrame({"person": [3, 1, 2], "age": [10, 20, 30]})
    made = ComparableFiles.read(read(there.drop("person")), read(there, "person"), ("age",))
    assert not made.in_step
    assert sorted(made.here["age"]) == sorted(made.there["age"]) == [10, 20, 30]
