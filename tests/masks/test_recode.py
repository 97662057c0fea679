"""Recode: the released value is the hierarchy's label, on records and on cells."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.data.cells import Cells
from equipoise.ground.randomness import Draws
from equipoise.masks import Recode

VALUES = st.lists(st.none() | st.integers(-40, 40), min_size=1, max_size=40)


@given(values=VALUES, level=st.integers(0, 3))
def test_records_get_the_labels_of_the_level(values: list[Any], level: int) -> None:
    """Row by row what `level.label` says, in order, nulls null."""
    tree = eq.Hierarchy.intervals([5, 10], alone=0, top=30, root=True)
    table = pl.DataFrame({"x": pl.Series(values, dtype=pl.Int64), "y": range(len(values))})
    released = Recode("x", level).apply(eq.read(table, eq.Roles(["x"], hierarchies={"x": tree})), Draws(1)).collect()
    assert released["x"].to_list() == tree.level(level).label(table["x"]).to_list()
    assert released["y"].to_list() == list(range(len(values)))
    assert released.columns == table.columns


def test_the_law_is_public_and_plain(people_records: eq.Records) -> None:
    """What was done, in words and parameters: no seed, no value."""
    law = Recode("age", 1).apply(people_records, Draws(1)).history[0]
    assert law.words == "age grouped into intervals of 5, top code 80"
    assert law.parameters == {"column": "age", "level": "5"}
    assert law.coarsens


def test_columns_that_are_no_keys_can_be_recoded(people: pl.DataFrame) -> None:
    roles = eq.Roles(["sex"], hierarchies={"salary": eq.Hierarchy.intervals(50_000)})
    released = eq.Recipe([Recode("salary", 1)]).run(eq.read(people, roles))
    assert released.collect("salary")["salary"].n_unique() == 2


def test_cells_without_the_column_stay_as_they_are() -> None:
    cells = Cells.of(pl.DataFrame({"x": [1, 2], "n": [1, 2]}))
    assert Recode("y", 1).roll_up(cells) is cells


@pytest.mark.parametrize(("level", "said"), [("7", "No level '7'"), (9, "No level 9")])
def test_no_such_level(people_records: eq.Records, level: Any, said: str) -> None:
    with pytest.raises(eq.ParameterError, match=said):
        Recode("age", level).apply(people_records, Draws(1))


def test_a_column_without_a_hierarchy(people_records: eq.Records) -> None:
    with pytest.raises(eq.ParameterError, match="'sex' has no hierarchy"):
        Recode("sex", 1).apply(people_records, Draws(1))


def test_two_columns_in_any_order(people_records: eq.Records) -> None:
    """Recodes of different columns commute."""
    a, b = Recode("age", "5"), Recode("area", "2")
    one, two = eq.Recipe([a, b]).run(people_records), eq.Recipe([b, a]).run(people_records)
    assert_frame_equal(one.collect(), two.collect())
