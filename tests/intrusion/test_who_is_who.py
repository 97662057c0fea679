"""Whose record is whose: by id, by row, or nobody knows."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.intrusion.who_is_who import in_step, pair


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {"x": rng.normal(size=300), "town": rng.choice(list("abcd"), 300), "age": rng.integers(20, 60, 300)}
    )


def records(table: pl.DataFrame) -> eq.Records:
    return eq.read(table, eq.Roles())


def test_noise_keeps_rows_in_step(table: pl.DataFrame) -> None:
    noise = np.random.default_rng(1).normal(size=300)
    assert in_step(records(table.select(pl.col("x") + noise)), records(table.select("x")))


def test_shuffled_rows_are_out_of_step(table: pl.DataFrame) -> None:
    """In 200 shuffles not one passes for rows in step."""
    sides = records(table)
    for seed in range(200):
        assert not in_step(records(table.sample(fraction=1, shuffle=True, seed=seed)), sides)


def test_a_coarsening_keeps_rows_in_step(table: pl.DataFrame) -> None:
    bands = table.select((pl.col("age") // 10).cast(pl.String).alias("age"))
    assert in_step(records(bands), records(table.select("age")))
    assert not in_step(records(bands.sample(fraction=1, shuffle=True, seed=1)), records(table.select("age")))


def test_moved_categories_keep_rows_in_step(table: pl.DataFrame) -> None:
    moved = table.select(pl.when(pl.int_range(300) % 3 > 0).then(pl.lit("a")).otherwise("town").alias("town"))
    assert in_step(records(moved), records(table.select("town")))


def test_other_heights_are_out_of_step(table: pl.DataFrame) -> None:
    assert not in_step(records(table.head(200)), records(table))


def test_roles_of_columns_that_are_missing_are_left_out(table: pl.DataFrame) -> None:
    roles = eq.Roles(["age"], ["town"], numeric=["x"], weight="w")
    original = eq.read(table.with_columns(w=pl.lit(2.0)), roles)
    files = pair(records(table.select("age", "town")), original, ("age",))
    assert files.truth == "row"
    assert files.original.roles == eq.Roles(["age"], ["town"])


def test_ids_of_another_type(table: pl.DataFrame) -> None:
    original = eq.read(table.with_row_index("nr"), eq.Roles(id="nr"))
    other = eq.read(table.with_row_index("nr").cast({"nr": pl.String}), eq.Roles())
    with pytest.raises(eq.RolesError, match="another type"):
        pair(other, original, ("age",))


def test_ids_with_nothing_in_common(table: pl.DataFrame) -> None:
    original = eq.read(table.with_row_index("nr"), eq.Roles(id="nr"))
    other = eq.read(table.with_row_index("nr", offset=1000), eq.Roles())
    with pytest.raises(eq.RolesError, match="nothing in common"):
        pair(other, original, ("age",))


def test_common_people(table: pl.DataFrame) -> None:
    original = eq.read(table.with_row_index("nr"), eq.Roles(id="nr"))
    files = pair(eq.read(table.with_row_index("nr").tail(100), eq.Roles()), original, ("age",))
    assert files.people == 100
    assert [side.height() for side in files.common()] == [100, 100]
