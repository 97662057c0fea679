"""Records: adopted, checked, and never changed."""

import dataclasses
from typing import Any

import narwhals as nw
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws


def test_the_frame_is_a_narwhals_lazyframe(people_records: eq.Records) -> None:
    """`Records.frame` (a Narwhals LazyFrame)."""
    assert isinstance(people_records.frame, nw.LazyFrame)


def test_records_are_frozen(people_records: eq.Records) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        people_records.roles = eq.Roles()  # type: ignore[misc]


def test_history_grows_and_the_original_stays(people_records: eq.Records) -> None:
    done = eq.masks.Recode("age", 1).apply(people_records, Draws(1))
    assert people_records.history == ()
    assert [law.mask for law in done.history] == ["recode"]
    assert "age" not in done.roles.hierarchies
    assert "age" in people_records.roles.hierarchies


@pytest.mark.parametrize("mask", [eq.masks.Recode("age", "10"), eq.masks.TopCode("age", 50)], ids=["recode", "top"])
def test_a_masked_file_is_counted_afresh(people_records: eq.Records, mask: Any) -> None:
    """What was remembered of the original is not taken for the release."""
    before = len(eq.count(people_records))
    done = mask.apply(people_records, Draws(1))
    assert len(eq.count(done)) < before
    assert len(eq.count(people_records)) == before


def test_no_positive_weight() -> None:
    with pytest.raises(eq.RolesError, match="No record has a positive weight"):
        eq.read(pl.DataFrame({"x": [1, 2], "w": [0, 0]}), eq.Roles(["x"], weight="w"))


def test_a_weight_of_zero_is_a_weight() -> None:
    cells = eq.count(eq.read(pl.DataFrame({"x": [1, 2], "w": [0, 2]}), eq.Roles(["x"], weight="w")))
    assert cells.table.rows() == [(1, 1, 0.0), (2, 1, 2.0)]


def test_some_columns_or_all(people_records: eq.Records) -> None:
    assert people_records.collect("sex", "age").columns == ["sex", "age"]
    assert people_records.collect().height == 400


def test_the_repr_has_names_and_counts_only(people_records: eq.Records) -> None:
    assert repr(people_records) == "Records(7 columns, keys=['sex', 'area', 'age'], engine='polars')"


@pytest.mark.parametrize(
    "dates",
    [pl.lit(2**31 - 1, pl.Int32).cast(pl.Date), pl.lit(-(10**17)).cast(pl.Datetime("ms"))],
)
def test_dates_that_no_calendar_has_are_refused_by_name_without_a_panic(dates: pl.Expr, capfd: Any) -> None:
    frame = pl.DataFrame({"sex": list("fm") * 9, "pay": range(18)}).with_columns(born=dates)
    records = eq.read(frame, eq.Roles(["sex", "born"]))
    for verb in (eq.assess, lambda records: eq.attack(records, records)):
        with pytest.raises(eq.DataError, match="'born' has dates that no calendar has"):
            verb(records)
    assert "panicked" not in capfd.readouterr().err
